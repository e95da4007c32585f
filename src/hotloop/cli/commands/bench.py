"""hotloop bench: how fast a target steps, with its spread."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli import flags, suites, sweeps
from hotloop.cli.console import bar, remark, stdout_kept_clean
from hotloop.cli.flags import QUICK, THOROUGH, Json, Output, Policy, Words, names_world, targets_of
from hotloop.cli.results import (
    FOLDER,
    check_baseline,
    find_baselines,
    keep_baseline,
    make_room,
    names_file,
    part_words,
    record_path,
    show_folder,
)
from hotloop.cli.runner import Experiment, check, kept_in, measure, tell
from hotloop.core.errors import InputError
from hotloop.core.files import save
from hotloop.core.target import Target

if TYPE_CHECKING:
    from hotloop.core.progress import Progress
    from hotloop.core.record import Record
    from hotloop.judge.judge import Wanted
    from hotloop.lab.bench import Extras
    from hotloop.lab.ladder import Climb
    from hotloop.lab.measure.rounds import Rounds
    from hotloop.lab.measure.target import Opener
    from hotloop.lab.training.settings import RunSettings


ISOLATED = True

EXAMPLES = (
    "hotloop bench grid/toy",
    "hotloop bench grid/toy agents=100 num_envs=16 --rounds 30",
    "hotloop bench grid/toy impl=reference --quick",
    "hotloop bench grid/toy --profile --phase before --output results/before.json",
    "hotloop bench grid/toy --phase after --baseline results/before.json --output results/after.json",
    "hotloop bench my_env.py:make --baseline HEAD~1",
    "hotloop bench --report results",
    "hotloop bench --suite quick",
    "hotloop bench grid/toy --target-steps-per-sec 100000 --enforce-target",
    "hotloop bench grid --json > grid.json",
    "hotloop bench -- python train.py --steps 1000",
    "hotloop bench prospector --mode env_only,rollout,trainer,trainer_eval train.update_epochs=1",
)

LADDER_ROUNDS, QUICK_ROUNDS, THOROUGH_ROUNDS = 12, 6, 30


def bench(  # noqa: PLR0913 - one argument a flag
    target: flags.TargetOrNone = None,
    words: Words = None,
    *,
    rounds: flags.RoundCount = None,
    iterations: flags.Iterations = None,
    warmup: flags.Warmup = None,
    quick: flags.Quick = False,
    thorough: flags.Thorough = False,
    seed: flags.Seed = None,
    threads: flags.Threads = None,
    policy: Policy = "random",
    mode: flags.Mode = "env_only",
    profile: flags.Phases = False,
    phases: flags.Reports = None,
    instructions: flags.Instructions = False,
    gc: flags.Gc = "between",
    phase: flags.Label = None,
    target_steps_per_sec: flags.TargetSpeed = None,
    enforce_target: flags.Enforce = False,
    baseline: flags.Baselines = None,
    save_baseline: flags.SaveBaseline = None,
    report: flags.Folder = None,
    suite: flags.SuiteName = None,
    resume: flags.ResumeSuite = False,
    on: sweeps.On = None,
    output: Output = FOLDER,
    json: Json = False,
) -> int:
    """Measure how fast a target steps, and how much that varies.

    Random actions, drawn before the clock starts; every probe is off. One call makes num_envs env-steps.
    --mode measures the stages up to training, in turns. For programs see bench --help --. --suite NAME runs a
    list from hotloop.toml, or one of ours (farm, worlds, quick). Exit: 1 spread over 20%, 3 slower, 4 unsure.
    """
    from hotloop.lab import bench as lab
    from hotloop.lab.ladder import ENV_ONLY, check_modes

    if report is not None:
        return show_folder(check_alone(report, target), as_json=json)
    planned = plan(rounds, iterations, warmup, quick=quick, thorough=thorough)
    if suite is not None or resume or on is not None:
        return suites.run(check_suite(suite, target), planned, output, on=on, resume=resume, as_json=json)
    modes, (keys, (kept, refs)) = check_modes(mode), part_words(words, baseline)
    one = flags.reporting(Target.typed(named(target), keys, seed=seed, threads=threads), phases)
    check_single(one, output, [*kept, *refs], save_baseline)
    extras = lab.Extras(
        label=phase,
        phases=profile,
        instructions=instructions,
        wanted=wanted(target_steps_per_sec, enforced=enforce_target),
        baselines=find_baselines(kept),
        band=band(thorough=thorough),
        garbage=flags.garbage_of(gc),
    )
    if modes != (ENV_ONLY,):
        check_ladder(modes, extras, policy, save_baseline, refs)
        climb = plan_climb(rounds, iterations, warmup, quick=quick, thorough=thorough)
        return climb_all(one, modes, climb, extras, output, as_json=json)
    return measured(one, planned, policy, extras, refs, (output, save_baseline), as_json=json)


def measured(
    target: Target,
    planned: "Rounds",
    policy: str,
    extras: "Extras",
    refs: Sequence[str],
    kept: tuple[Path, str | None],
    *,
    as_json: bool,
) -> int:
    """Measure the envs by themselves, once they can be; `kept` is where records go, and as which baseline."""
    from hotloop.lab.measure.target import Opener

    with closing(Opener()) as opener:
        check(targets_of(target), policy, opener, instructions=extras.instructions)
        make_room_for_all(*kept)
        doing = experiment_of(planned, policy, extras, opener, refs)
        return run(target, doing, keeper(*kept), as_json=as_json)


def experiment_of(
    planned: "Rounds", policy: str, extras: "Extras", opener: "Opener", refs: Sequence[str] = ()
) -> Experiment:
    """What is done with each target; commits that are baselines take turns with the present code after it."""
    from hotloop.lab import bench as lab
    from hotloop.lab.compare.commits import check_asked
    from hotloop.lab.compare.compare import Asked
    from hotloop.lab.compare.present import against_commits
    from hotloop.lab.measure.settle import Plan

    if refs:
        check_asked(policy, beyond_speed=False)
    asked = Asked(plan=Plan(band=extras.band), garbage=extras.garbage)

    def experiment(target: Target, progress: "Progress") -> "Record":
        record = lab.bench(target, planned, progress, policy=policy, extras=extras, opener=opener)
        return against_commits(record, target, refs, asked, progress, say=remark)

    return experiment


def make_room_for_all(output: Path, baseline: str | None) -> None:
    """Refuse, before anything is measured, places that cannot be written to."""
    check_baseline(baseline)
    make_room(output)


def check_ladder(
    modes: Sequence[str], extras: "Extras", policy: str, save_as: str | None, refs: Sequence[str]
) -> None:
    """Refuse what is only for the envs by themselves, and baselines of several rungs."""
    beyond = {
        "--profile": extras.phases,
        "--instructions": extras.instructions,
        "--policy": policy != "random",
        "--save-baseline": save_as is not None,
        f"--baseline {' '.join(refs)}, a commit,": bool(refs),
    }
    asked = [flag for flag, is_asked in beyond.items() if is_asked]
    if asked:
        raise InputError(f"{asked[0]} is for --mode env_only: leave it out; hotloop train shows the tree")
    if extras.baselines and len(modes) > 1:
        raise InputError(f"--baseline is for one mode and {len(modes)} are asked for: name one of them")


def keeper(output: Path, baseline: str | None) -> "Callable[[Record], Path]":
    """What keeps a record where it was asked for, and as a baseline where it is to be one."""

    def keep(record: "Record") -> Path:
        path = save(record_path(output, record), record.to_json())
        keep_baseline(baseline, record)
        return path

    return keep


MOST = 10**12
"""Rounds, or steps of one: what nobody lives to see the end of is a slip of the finger."""


def check_alone(folder: Path, target: str | None) -> Path:
    """Refuse to measure and to report at once."""
    if target is not None:
        raise InputError(f"--report {folder} measures nothing: leave out {target}, or leave out --report")
    return folder


def check_suite(suite: str | None, target: str | None) -> str:
    """Refuse a target beside a suite, and to resume nothing."""
    if suite is None:
        raise InputError("--resume goes on with a suite, --on runs one: give --suite NAME too")
    if target is not None:
        raise InputError(f"--suite {suite} has targets of its own: leave out {target}, or leave out --suite")
    return suite


def named(target: str | None) -> str:
    if target is None:
        raise InputError("bench needs a TARGET, --suite NAME or --report DIR: hotloop bench --help says how")
    return target


def check_single(target: Target, output: Path, baselines: list[str], save_as: str | None) -> None:
    """Refuse a world of several presets where one record is asked for."""
    presets = len(targets_of(target))
    for_one = {
        "--baseline": bool(baselines),
        "--save-baseline": save_as is not None,
        f"--output {output}": names_file(output),
    }
    asked = [flag for flag, is_asked in for_one.items() if is_asked]
    if presets > 1 and asked:
        raise InputError(
            f"{asked[0]} is for one record and {target.name} has {presets} presets: name one of them"
        )


def run(target: Target, experiment: Experiment, keep: "Callable[[Record], Path]", *, as_json: bool) -> int:
    """Measure the targets, keep their records and show them."""
    from hotloop.report.sections.bench import bench as sections
    from hotloop.report.terminal import draw

    records = measure(targets_of(target), experiment, keep)
    return tell(records, draw(sections(records)), as_json=as_json, as_list=names_world(target.name))


def plan_climb(
    rounds: int | None, iterations: int | None, warmup: int | None, *, quick: bool, thorough: bool
) -> "Climb":
    """Rounds as asked; env-steps are made into whole updates where their size is known."""
    from hotloop.lab.ladder import Climb

    usual = QUICK_ROUNDS if quick else THOROUGH_ROUNDS if thorough else LADDER_ROUNDS
    climb = Climb(rounds=rounds or usual, env_steps=iterations)
    if quick:
        climb = replace(climb, warmup=1)
    return climb if warmup is None else replace(climb, warmup_steps=warmup)


def climb_all(
    target: Target,
    modes: Sequence[str],
    climb: "Climb",
    extras: "Extras",
    output: Path,
    *,
    as_json: bool,
) -> int:
    """Measure the rungs of one preset, or of all of a world; keep every record and show the ladder."""
    from hotloop.lab.training import settings as training_settings
    from hotloop.report.sections.ladder import ladder
    from hotloop.report.terminal import draw

    several = len(modes) > 1 or len(targets_of(target)) > 1
    if several and names_file(output):
        raise InputError(f"--output {output} is for one record: name a folder, or one mode of one preset")
    asked = replace(climb, extras=extras)
    runs = [training_settings.read(each) for each in targets_of(target)]
    make_room(output)
    ladders: list[list[Record]] = []
    for each in runs:
        ladders.append(one_ladder(each, modes, asked))
        ladders[-1] = [kept_in(output, record) for record in ladders[-1]]
        if ladders[-1][0].partial:
            break
    records = [record for rungs in ladders for record in rungs]
    view = (section for rungs in ladders for section in ladder(rungs))
    return tell(records, draw(view), as_json=as_json, as_list=names_world(target.name) or len(modes) > 1)


def one_ladder(settings: "RunSettings", modes: Sequence[str], asked: "Climb") -> "list[Record]":
    """The rungs of one configuration."""
    from hotloop.lab.ladder import climb

    with bar(f"{settings.target.name} {','.join(modes)}") as progress, stdout_kept_clean():
        return climb(settings, modes, asked, progress)


def plan(
    count: int | None,
    iterations: int | None,
    warmup: int | None,
    *,
    quick: bool = False,
    thorough: bool = False,
) -> "Rounds":
    """Numbers that were asked for are kept whatever it takes; those of a plan may shrink on a slow target."""
    from hotloop.lab.measure.rounds import Rounds

    if quick and thorough:
        raise InputError("--quick and --thorough exclude each other: give one of them")
    for what, number in (("rounds", count), ("iterations", iterations), ("warmup", warmup)):
        if number is not None and number > MOST:
            raise InputError(f"--{what} {number} does not fit: expected at most {MOST:,}")
    usual = Rounds()
    rounds, steps, before = (
        QUICK if quick else THOROUGH if thorough else (usual.count, usual.iterations, usual.warmup)
    )
    return Rounds(
        count=rounds if count is None else count,
        iterations=steps if iterations is None else iterations,
        warmup=before if warmup is None else warmup,
        box_iterations=iterations is None,
        box_warmup=warmup is None,
    )


def band(*, thorough: bool) -> float:
    """How small a change is called the same."""
    from hotloop.lab.measure.settle import THOROUGH as STRICT
    from hotloop.lab.measure.settle import USUAL

    return (STRICT if thorough else USUAL).band


def wanted(env_steps_per_s: float | None, *, enforced: bool) -> "Wanted | None":
    """The speed to hold a run against; None where none was asked for."""
    from hotloop.judge.judge import Wanted

    if env_steps_per_s is not None:
        return Wanted(env_steps_per_s=env_steps_per_s, enforced=enforced)
    if enforced:
        raise InputError("--enforce-target has nothing to enforce: give --target-steps-per-sec N")
    return None
