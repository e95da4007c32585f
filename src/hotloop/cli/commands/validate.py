"""hotloop validate: is the fast one the same as the slow one, in everything, and where not."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotloop.cli import flags, sweeps
from hotloop.cli.console import bar, emit, remark, show, stdout_kept_clean
from hotloop.cli.flags import Json, Output, names_several, targets_of
from hotloop.cli.results import FOLDER, check_trust, make_room, names_file, record_path
from hotloop.cli.runner import kept_in, measure, tell
from hotloop.core.errors import ExitCode, InputError
from hotloop.core.files import save
from hotloop.core.target import Target

if TYPE_CHECKING:
    from hotloop.core.progress import Progress
    from hotloop.core.record.comparison import Comparison
    from hotloop.core.record.record import Record
    from hotloop.lab.validate.bundle import Bundle
    from hotloop.lab.validate.lockstep import Way
    from hotloop.lab.validate.match import Match
    from hotloop.lab.validate.statistical.statistical import Asked as Distributions


ISOLATED = True

EXAMPLES = (
    "hotloop validate grid/toy",
    "hotloop validate grid soak --against original",
    "hotloop validate prospector/short 20000",
    "hotloop validate prospector/short 20000 --policy run:first",
    "hotloop validate fast.py:make 5000 --against slow.py:make",
    'hotloop validate fast.py:make 5000 --against "gym:CartPole-v1" --mode tolerance:1e-5',
    "hotloop validate port.py:make 512 --against gym:CartPole-v1 --statistical",
    "hotloop validate --replay artifacts/throughput/NAME.bundle",
    "hotloop validate grid --against original --adoption",
    "hotloop validate grid/toy 2000 --seeds 40 --on ray",
)

SCALE = "smoke"

TRANSFER = 30_000
"""Env-steps of each side's policy, where nobody says."""

AmountAndWords = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[smoke|soak|N] KEY=VALUE",
        help="A minute, at least 100,000 comparisons, or N env-steps  [default: smoke]; then parameters.",
        show_default=False,
    ),
]

Against = Annotated[
    str | None,
    typer.Option(
        metavar="OTHER",
        help="reference (the Python twin), a way of the world's own such as the grid's original, cuda, "
        "path.py:callable, or a quoted target with keys; a callable has the target's keys unless it is given "
        "its own.  [default: reference]",
    ),
]

Mode = Annotated[
    str, typer.Option(metavar="M", help="How equal: bytes, ulp:N or tolerance:T, of floating-point numbers.")
]

ValidatingPolicy = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="NAME",
        help="Who plays in the place of the world's players: one of them, run:NAME, tape:FILE, "
        "module:callable.",
        show_default=False,
    ),
]

ByDistributions = Annotated[
    bool,
    typer.Option(
        "--statistical",
        help="Where bytes cannot be equal: compare distributions; N is then pairs of episodes a policy.",
    ),
]

Transfer = Annotated[
    int | None,
    typer.Option(
        metavar="STEPS",
        min=0,
        help="With --statistical: env-steps that a policy is trained for on each side, then played on both; "
        "0 trains none.  [default: 30000]",
    ),
]

Replay = Annotated[
    Path | None, typer.Option(metavar="BUNDLE", help="Play again what was found to differ, from its bundle.")
]

Seeds = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        max=100_000,
        help="Validate N seeds, from seed= on, each a cell.",
        show_default=False,
    ),
]

ShowAdoption = Annotated[
    bool, typer.Option("--adoption", help="Where the candidate stands on its way to the default; times both.")
]

Budget = Annotated[
    float | None, typer.Option(metavar="S", help="Seconds that --adoption may time for.  [default: 6]")
]


WORTH_SAYING_S = 2.0
"""A validation that takes less is over before a reader has read how long it takes."""


def validate(  # noqa: PLR0913 - one argument a flag
    target: flags.TargetOrNone = None,
    words: AmountAndWords = None,
    *,
    against: Against = None,
    mode: Mode = "bytes",
    ignore: flags.Ignore = None,
    policy: ValidatingPolicy = None,
    statistical: ByDistributions = False,
    transfer: Transfer = None,
    replay: Replay = None,
    trust: flags.Trust = None,
    adoption: ShowAdoption = False,
    budget: Budget = None,
    seeds: Seeds = None,
    on: sweeps.On = None,
    resume: sweeps.Resume = False,
    output: Output = FOLDER,
    json: Json = False,
) -> int:
    """Check that a fast version does the same as the slow one.

    TARGET is the candidate; it is compared with its reference. Both play the same actions, random, scripted
    and adversarial (actions that do not exist, resets in the middle, short episodes), and must show the same
    observations, rewards, flags, infos, random numbers and state at every step; then the candidate repeats
    them in other batch sizes and with more threads. The first difference is named, and shrunk into a bundle
    that --replay plays again. Exit code 2: they differ. --statistical compares the distributions of returns,
    lengths, observations, rewards and transitions instead, and says how large a difference could have gone
    unseen.
    """
    from hotloop.lab.validate.equal import closeness_of
    from hotloop.lab.validate.lockstep import Way

    if replay is not None:
        return play_again(alone(replay, target), trust, as_json=json)
    if trust is not None:
        raise InputError("--trust goes with --replay: leave it out")
    scale, keys = parted(words)
    candidate = Target.typed(named(target), keys)
    way = Way(closeness=closeness_of(mode), ignore=tuple(ignore or ()))
    if adoption:
        return show_adoption(candidate, against, output, budget, as_json=json)
    elsewhere = seeds is not None or on is not None or resume
    check_statistical(statistical, transfer, single=mode != "bytes" or bool(ignore), elsewhere=elsewhere)
    if elsewhere:
        asked: dict[str, Any] = {"amount": scale or SCALE, "against": against, "mode": mode}
        asked |= {"policy": policy, "ignore": list(ignore or ())}
        records = over_seeds(candidate, seeds or 1, asked, output, on=on, resume=resume)
        return told(records, as_json=json, as_list=True)
    check_single(candidate, output)
    with stdout_kept_clean():
        matches = matches_of(targets_of(candidate), against)
    make_room(output)
    if statistical:
        distributions = by_distributions(scale or SCALE, transfer, policy)
        return tell_distributions(candidate, matches, distributions, output, as_json=json)
    records = run(matches, scale or SCALE, way, output, policy)
    return told(records, as_json=json, as_list=names_several(candidate.name))


def told(records: "list[Record]", *, as_json: bool, as_list: bool) -> int:
    from hotloop.report.kinds.validate import validations
    from hotloop.report.terminal import draw

    return tell(records, draw(validations(records)), as_json=as_json, as_list=as_list)


def over_seeds(
    target: Target, seeds: int, asked: "dict[str, Any]", output: Path, *, on: str | None, resume: bool
) -> "list[Record]":
    """Validate every preset with every seed as cells; a difference is found again here, with its bundle."""
    from hotloop.lab.cells import FOLDER as SHELVES
    from hotloop.lab.cells import Here, shelf_of, sweep
    from hotloop.lab.seeds import refusal, validations_of

    if names_file(output):
        raise InputError(f"--output {output} is for one record: name a folder for those of many seeds")
    cells = [cell for each in targets_of(target) for cell in validations_of(each, seeds, **asked)]
    make_room(output)
    with sweeps.executor(on, cells, Here(), timed=False) as (executor, machines):
        shelf = shelf_of(SHELVES, "validate", cells, resume=resume, machines=machines)
        with bar(target.name) as progress, stdout_kept_clean():
            swept = sweep(cells, executor, shelf, progress)
    if not swept.records:
        raise KeyboardInterrupt if swept.interrupted else refusal(swept.refused)
    for each in swept.refused:
        remark(f"failed: {each.cell.target.words}: {each.refused}")
    if swept.interrupted:
        remark(f"interrupted after {len(swept.records)} of {len(cells)}: --resume goes on")
    return [
        witnessed(cell.target, record, asked, output)
        if ExitCode(record.exit_code) is ExitCode.MISMATCH
        else kept_in(output, record)
        for cell, record in swept.records
    ]


def witnessed(target: Target, record: "Record", asked: "dict[str, Any]", output: Path) -> "Record":
    """What differed elsewhere, found again here, so that its bundle lies beside its record."""
    from hotloop.lab.validate.equal import closeness_of
    from hotloop.lab.validate.lockstep import Way

    way = Way(closeness=closeness_of(asked["mode"]), ignore=tuple(asked["ignore"]))
    matches = matches_of([target], asked["against"])
    [found] = run(matches, asked["amount"], way, output, asked["policy"])
    if ExitCode(found.exit_code) is not ExitCode.MISMATCH:
        remark(f"{target.words} differed on {record.machine['cpu']} and does not here")
        return kept_in(output, record)
    return found


def check_statistical(statistical: bool, transfer: int | None, *, single: bool, elsewhere: bool) -> None:
    """Refuse what does not go with distributions, and what only goes with them."""
    if transfer is not None and not statistical:
        raise InputError("--transfer goes with --statistical: leave it out")
    if statistical and single:
        raise InputError("--mode and --ignore are about single numbers: leave them out of --statistical")
    if statistical and elsewhere:
        raise InputError("--statistical plays seeds of its own, here: leave out --seeds, --on and --resume")


def by_distributions(scale: str, transfer: int | None, policy: str | None) -> "Distributions":
    from hotloop.lab.validate.statistical.statistical import asked_for

    return asked_for(scale, TRANSFER if transfer is None else transfer, policy)


def tell_distributions(
    candidate: Target, matches: "dict[str, Match]", asked: "Distributions", output: Path, *, as_json: bool
) -> int:
    """Compare the distributions of the targets, one after another."""
    from hotloop.lab.validate.statistical.statistical import validate as compared
    from hotloop.report.kinds.validate import statistical as sections
    from hotloop.report.terminal import draw

    def experiment(target: Target, progress: "Progress") -> "Record":
        return compared(matches[target.name], asked, progress)

    def keep(record: "Record") -> Path:
        return save(record_path(output, record), record.to_json())

    records = measure([Target(name) for name in matches], experiment, keep)
    return tell(records, draw(sections(records)), as_json=as_json, as_list=names_several(candidate.name))


def parted(words: Sequence[str] | None) -> tuple[str | None, list[str]]:
    """How much is to be compared, and the words of parameters."""
    amounts = [word for word in words or () if "=" not in word]
    if len(amounts) > 1:
        raise InputError(f"{' and '.join(amounts)} both say how much: give one, smoke, soak or a number")
    return amounts[0] if amounts else None, [word for word in words or () if "=" in word]


def named(target: str | None) -> str:
    if target is None:
        raise InputError("validate needs a TARGET, or --replay BUNDLE: hotloop validate --help says how")
    return target


def alone(bundle: Path, target: str | None) -> Path:
    """Refuse to validate and to replay at once."""
    if target is not None:
        raise InputError(f"--replay {bundle} says itself what is played: leave out {target}")
    return bundle


def check_single(target: Target, output: Path) -> None:
    presets = len(targets_of(target))
    if presets > 1 and names_file(output):
        raise InputError(
            f"--output {output} is for one record, {target.name} has {presets} presets: name one of them"
        )


def matches_of(targets: Sequence[Target], against: str | None) -> "dict[str, Match]":
    from hotloop.lab.validate.match import match_of

    return {target.name: match_of(target, against) for target in targets}


def run(
    matches: "dict[str, Match]", scale: str, way: "Way", output: Path, policy: str | None = None
) -> "list[Record]":
    """Validate the targets one after another, and keep their records and bundles."""
    from hotloop.lab.validate import bundle as bundles
    from hotloop.lab.validate import validate as lab

    first = next(iter(matches.values()))
    asked = replace(lab.asked_for(scale, first.against, way, presets=len(matches)), policy=policy)

    def experiment(target: Target, progress: "Progress") -> "Record":
        return lab.validate(matches[target.name], asked, progress, keep_bundle, say)[0]

    def say(seconds: float) -> None:
        if seconds >= WORTH_SAYING_S:
            remark(f"validate: about {sweeps.duration(seconds)}")

    def keep_bundle(record: "Record", found: "bundles.Bundle") -> Path:
        path = bundles.write_bundle(found, record_path(output, record).with_suffix(bundles.SUFFIX))
        keep_frames(path, found)
        return path

    def keep(record: "Record") -> Path:
        return save(record_path(output, record), record.to_json())

    return measure([Target(name) for name in matches], experiment, keep)


def keep_frames(path: Path, bundle: "Bundle") -> None:
    """Draw what leads to a difference beside its bundle, for the page, where it can be drawn."""
    from hotloop.core.errors import HotloopError
    from hotloop.core.record.files import FRAMES_SUFFIX, write_frames
    from hotloop.lab.sim.frames import frames_of_bundle

    try:
        if frames := frames_of_bundle(bundle):
            write_frames(path.with_name(f"{path.name}{FRAMES_SUFFIX}"), frames)
    except HotloopError as error:
        remark(f"no frames beside {path}: {error}")


def play_again(path: Path, trusted: Path | None, *, as_json: bool) -> int:
    """Play a bundle again; its record is shown and not kept."""
    from hotloop.lab.validate import bundle as bundles
    from hotloop.lab.validate.validate import again
    from hotloop.report.kinds.validate import replay
    from hotloop.report.terminal import draw

    bundle = bundles.read_bundle(path)
    check_trust(path, (bundle.facts.reference, bundle.facts.candidate), trusted)
    with bar(path.name) as progress, stdout_kept_clean():
        record, from_state = again(bundle, progress)
    if as_json:
        emit(record.to_json())
    else:
        show(draw(replay(bundle.facts, record, from_state)))
    return record.exit_code


def show_adoption(
    target: Target,
    against: str | None,
    output: Path,
    budget: float | None,
    *,
    as_json: bool,
) -> int:
    """Where a candidate stands, from the records of a folder and from timing it beside its reference."""
    import json

    from hotloop.cli.results import read_folder
    from hotloop.lab.validate.adoption import stand
    from hotloop.report.kinds.validate import adoption
    from hotloop.report.terminal import draw

    if names_file(output):
        raise InputError(f"--adoption reads a folder of records and {output} is a file: name its folder")
    targets = targets_of(target)
    with stdout_kept_clean():
        match = matches_of(targets[:1], against)[targets[0].name]
    records = read_folder(output).records if output.is_dir() and any(output.glob("*.json")) else []
    found = stand(match, [each.name for each in targets], records, timed(match, budget))
    if as_json:
        emit(f"{json.dumps(asdict(found), indent=1)}\n")
    else:
        show(draw(adoption(found)))
    return ExitCode.MISMATCH if any(each.difference for each in found.configurations) else ExitCode.FINE


def timed(match: "Match", budget: float | None) -> "Comparison | None":
    """Both sides in turns; a live comparison like any other, phases too where they are ours."""
    from hotloop.cli.commands.compare import plan
    from hotloop.lab.compare.compare import Asked, compare
    from hotloop.lab.compare.contenders import TargetContender

    a, b = (TargetContender(side) for side in (match.reference, match.candidate))
    phases = not (a.target.is_foreign or b.target.is_foreign)
    asked = Asked(plan=plan(thorough=False, band=None, budget=budget), profile=phases)
    with bar(f"{a.name} | {b.name}") as progress, stdout_kept_clean():
        record = compare(a, b, asked, progress)
    if record.partial:
        raise KeyboardInterrupt
    for each in record.notices:
        remark(f"{each.code}: {each.text}")
    return record.comparisons[0]
