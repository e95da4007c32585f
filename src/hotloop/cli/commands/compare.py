"""hotloop compare: which of two is faster, and do both do the same."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotloop.cli import flags
from hotloop.cli.console import bar, remark, stdout_kept_clean
from hotloop.cli.flags import Build, Json, Output, Policy
from hotloop.cli.results import FOLDER, make_room
from hotloop.cli.runner import kept_in, tell_one
from hotloop.core.errors import InputError
from hotloop.core.target import Target

if TYPE_CHECKING:
    from hotloop.core.record.record import Record
    from hotloop.lab.compare.compare import Asked
    from hotloop.lab.compare.contenders import Contender, TargetContender
    from hotloop.lab.measure.loop import Plan


ISOLATED = True

EXAMPLES = (
    'hotloop compare "grid/toy encoder=original" grid/toy',
    'hotloop compare "grid/arena threads=1" "grid/arena threads=2" "grid/arena threads=4" --thorough',
    "hotloop compare grid/toy env.py:faster_toy --profile",
    "hotloop compare before.json after.json",
    "hotloop compare grid/toy --a-ref HEAD~1 --b-ref HEAD",
    'hotloop compare "prospector train.update_epochs=4" "prospector train.update_epochs=1"',
    'hotloop compare -- "python train.py" "python train.py --fast"',
)

Band = Annotated[
    float | None, typer.Option(metavar="%", help="Smaller changes count as the same.  [default: 2]")
]

ReturnAfter = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="For two trainings: also compare the return after N env-steps."),
]

MOST_S = 1_000_000
"""Of a run: what takes longer was not meant."""

SIDE = "A target with its key=value words in one quoted argument, or a record (.json)."


More = Annotated[
    list[str] | None,
    typer.Argument(metavar="C ...", help="More targets, each compared with A.", show_default=False),
]

ARef = Annotated[
    str | None,
    typer.Option(metavar="REF", help="Compare the one target at a commit of this project, A, ..."),
]

BRef = Annotated[
    str | None, typer.Option(metavar="REF", help="... and at another, B.  [default: the working tree]")
]


APython = Annotated[
    Path | None,
    typer.Option(metavar="VENV", help="Compare the one target as VENV has its packages installed, A, ..."),
]

BPython = Annotated[
    Path | None, typer.Option(metavar="VENV", help="... and as another has, B.  [default: this Python]")
]

Budget = Annotated[
    float | None,
    typer.Option(metavar="S", help="Seconds that one run may take, with warm-up.  [default: 6]"),
]


EqualSteps = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Steps of every env to replay for equality, whatever they take.  "
        "[default: 200 or one whole episode, and up to 500]",
    ),
]


Control = Annotated[
    str | None,
    typer.Option(metavar="PHASE", help="A phase that the change cannot affect; implies --profile."),
]


Profile = Annotated[
    bool, typer.Option("--profile", help="Also compare phase by phase, and say what each is worth.")
]

Unlike = Annotated[
    bool, typer.Option("--unlike", help="Compare things that do different work; the headline says so.")
]

Thorough = Annotated[bool, typer.Option("--thorough", help="A band of 1% and up to a minute for a run.")]


def compare(  # noqa: PLR0913 - one argument a flag
    a: Annotated[str, typer.Argument(metavar="A", help=SIDE, show_default=False)],
    b: Annotated[str | None, typer.Argument(metavar="B", help=SIDE, show_default=False)] = None,
    more: More = None,
    *,
    a_ref: ARef = None,
    b_ref: BRef = None,
    build: Build = None,
    a_python: APython = None,
    b_python: BPython = None,
    thorough: Thorough = False,
    band: Band = None,
    budget: Budget = None,
    profile: Profile = False,
    phases: flags.Reports = None,
    control: Control = None,
    unlike: Unlike = False,
    ignore: flags.Ignore = None,
    equal_steps: EqualSteps = None,
    instructions: flags.Instructions = False,
    gc: flags.Gc = "between",
    return_after: ReturnAfter = None,
    policy: Policy = "random",
    output: Output = FOLDER,
    json: Json = False,
) -> int:
    """Compare two or more: which is faster, and do they do the same?

    A is the baseline; B and each of C, ... are compared with it. Both must return the same bytes for the same
    actions, or the exit code is 2. Then A, B and a second A take turns; faster and slower need a second run
    that agrees. For programs see compare --help --. Exit: 0 faster or same, 3 slower, 4 cannot tell.
    """
    from hotloop.lab.compare.compare import Asked

    make_room(output)
    chosen = plan(thorough=thorough, band=band, budget=budget)
    pythons = (a_python, b_python)
    refs = commits(a_ref, b_ref, b, build, installed=any(pythons))
    sides = [a, str(b), *(more or ())]
    check_several(sides, return_after, instructions=instructions)
    check_replayed(sides, ignore, equal_steps, here=not (refs or unlike or any(pythons)))
    if b and any(map(names_record, (a, b))):
        return tell(of_records(a, b, chosen.band, unlike=unlike), output, as_json=json)
    asked = Asked(
        plan=chosen,
        policy=policy,
        unlike=unlike,
        ignore=tuple(ignore or ()),
        profile=profile or control is not None,
        control=control,
        instructions=instructions,
        garbage=flags.garbage_of(gc),
        equal_steps=equal_steps,
    )
    if any(pythons) or refs:
        return tell(of_one(a, pythons, refs, build, asked, return_after), output, as_json=json)
    if more:
        return tell(of_several(a, [str(b), *more], asked, phases), output, as_json=json)
    return tell(of_targets(a, str(b), asked, return_after, phases), output, as_json=json)


def check_replayed(
    sides: list[str], ignore: list[str] | None, equal_steps: int | None, *, here: bool
) -> None:
    """Refuse to leave fields out, or to ask for a number of steps, if none is replayed (here)."""
    replayed = not any(names_record(each) or names_training(each) for each in sides)
    if ignore and not (replayed and here):
        raise InputError("--ignore is for targets that are replayed here: leave it out")
    if equal_steps and not replayed:
        raise InputError("--equal-steps is for targets that are replayed: leave it out")


def check_several(sides: list[str], return_after: int | None, *, instructions: bool) -> None:
    """Refuse what is only for two sides."""
    if len(sides) > 2 and instructions:
        raise InputError("--instructions counts two sides: give A and B")
    if len(sides) > 2 and (return_after is not None or any(map(names_training, sides))):
        raise InputError("trainings are compared two at a time: give A and B")
    if len(sides) > 2 and any(map(names_record, sides)):
        raise InputError("records are compared two at a time: give A and B; bench --report shows a folder")


def of_several(a: str, others: list[str], asked: "Asked", phases: str | None) -> "Record":
    """Compare each of several targets with A."""
    from hotloop.lab.compare.several import compare_several

    with bar(" | ".join([a, *others])) as progress, stdout_kept_clean():
        return compare_several(
            lambda: contender(a, phases, asked.ignore),
            [contender(each, phases, asked.ignore) for each in others],
            asked,
            progress,
            remark,
        )


def commits(
    a_ref: str | None, b_ref: str | None, b: str | None, build: str | None, *, installed: bool = False
) -> tuple[str, str | None] | None:
    """The commit of A and that of B, or None for the working tree, if it is commits that are compared."""
    if installed:
        if a_ref or b_ref or build or b is not None:
            raise InputError(
                "environments are compared by one target: leave out B, --a-ref, --b-ref and --build"
            )
        return None
    if (a_ref or b_ref) and b is not None:
        raise InputError("commits are compared by one target: leave out B, or --a-ref and --b-ref")
    if a_ref:
        return a_ref, b_ref
    if b_ref:
        raise InputError("--b-ref names what --a-ref is compared with: give --a-ref too")
    if build is not None:
        raise InputError("--build builds commits: give --a-ref too")
    if b is None:
        raise InputError("compare needs two sides, A and B, or one target with --a-ref")
    return None


def of_one(
    words: str,
    pythons: tuple[Path | None, Path | None],
    refs: tuple[str, str | None] | None,
    build: str | None,
    asked: "Asked",
    return_after: int | None,
) -> "Record":
    """Compare one target in two environments, or at two commits."""
    if refs:
        return of_commits(words, refs, build, asked, return_after)
    if return_after is not None:
        raise InputError("--return-after is for two trainings of the present code: leave it out")
    return of_installed(words, pythons, asked)


def of_commits(
    words: str, refs: tuple[str, str | None], build: str | None, asked: "Asked", return_after: int | None
) -> "Record":
    """Compare a target, or the training on it, at two commits of the project in the current folder."""
    from dataclasses import replace

    from hotloop.lab.compare.commits import NOT_COUNTED, CommitContender, check_asked, check_out, commands
    from hotloop.lab.compare.present import check_out_beside
    from hotloop.lab.measure.policy import LEARNING

    check_asked(asked.policy, beyond_speed=asked.profile)
    if asked.instructions and commands(Path.cwd(), build):
        raise InputError(NOT_COUNTED.format(name=words))
    if return_after is not None:
        raise InputError("--return-after is for two trainings of the present code: leave it out")
    if names_training(words):
        asked = replace(asked, replayed=False, policy=LEARNING)
    target, (then, now) = side_of(words), refs
    with (
        check_out(Path.cwd(), then, now, target, build=build, garbage=asked.garbage, say=remark)
        if now
        else check_out_beside(Path.cwd(), then, target, asked, remark, build)
    ) as checkouts:
        a, b = (CommitContender(checkout) for checkout in checkouts)
        return live(a, b, asked)


def of_installed(words: str, pythons: tuple[Path | None, Path | None], asked: "Asked") -> "Record":
    """Compare a target as two environments have its packages installed."""
    from hotloop.lab.compare.commits import check_asked
    from hotloop.lab.compare.installed import open_installed

    check_asked(asked.policy, beyond_speed=asked.profile or asked.instructions)
    if names_training(words):
        raise InputError("trainings are not compared between environments: leave out train. keys")
    with open_installed(pythons, side_of(words), asked, remark) as (a, b):
        return live(a, b, asked)


def names_record(side: str) -> bool:
    return side.endswith(".json")


def of_records(a: str, b: str, band: float, *, unlike: bool) -> "Record":
    """Compare two records; refuses one of them beside something that would have to run."""
    from hotloop.core.record.record import read
    from hotloop.judge.compare import compare_records

    if not (names_record(a) and names_record(b)):
        raise InputError("a record can be compared with a record only: give two of them, or two targets")
    return compare_records(read(Path(a)), read(Path(b)), band=band, unlike=unlike)


def of_targets(
    a: str, b: str, asked: "Asked", return_after: int | None, phases: str | None = None
) -> "Record":
    """Compare two targets as they run here, or the trainings on them."""
    if names_training(a) or names_training(b):
        return of_trainings(a, b, asked, return_after)
    if return_after is not None:
        raise InputError("--return-after is for trainings: give a side a train. key")
    return live(contender(a, phases, asked.ignore), contender(b, phases, asked.ignore), asked)


def names_training(side: str) -> bool:
    """Whether a side has a key of the trainer's."""
    return any(word.startswith("train.") for word in side.split())


def of_trainings(a: str, b: str, asked: "Asked", return_after: int | None) -> "Record":
    """Compare two trainings: their speed and, where asked, what they have learnt after as many steps."""
    from hotloop.lab.training.sides import SPEED_ONLY, TrainContender, check_one_variable, compare_trainings

    if asked.profile or asked.instructions or asked.policy != "random":
        raise InputError(SPEED_ONLY)
    one, other = TrainContender(side_of(a)), TrainContender(side_of(b))
    if not asked.unlike:
        check_one_variable(one, other)
    then = "" if return_after is None else f", then {return_after:,} env-steps a side"
    with bar(f"{one.name} | {other.name}{then}") as progress, stdout_kept_clean():
        return compare_trainings(one, other, asked, return_after, progress)


def contender(words: str, phases: str | None = None, ignore: Sequence[str] = ()) -> "TargetContender":
    """One side from its quoted argument."""
    from hotloop.lab.compare.contenders import TargetContender

    return TargetContender(flags.reporting(side_of(words), phases), ignore)


def side_of(words: str) -> Target:
    return Target.parse(words, "a side")


def plan(*, thorough: bool, band: float | None, budget: float | None) -> "Plan":
    """The usual plan or the thorough one, with what was asked for."""
    from dataclasses import replace

    from hotloop.lab.measure.settle import THOROUGH, USUAL

    chosen = THOROUGH if thorough else USUAL
    if band is not None:
        if not 0 < band < 100:
            raise InputError(f"--band {band:g} does not fit: expected per cent, above 0 and below 100")
        chosen = replace(chosen, band=band / 100)
    if budget is not None:
        if not 0 < budget <= MOST_S:
            raise InputError(
                f"--budget {budget:g} does not fit: expected seconds, above 0 and up to {MOST_S:,}"
            )
        chosen = replace(chosen, budget_ns=round(budget * 1e9))
    return chosen


def live(a: "Contender", b: "Contender", asked: "Asked") -> "Record":
    from hotloop.lab.compare import compare as lab

    with bar(f"{a.name} | {b.name}") as progress, stdout_kept_clean():
        return lab.compare(a, b, asked, progress, remark)


def tell(record: "Record", output: Path, *, as_json: bool) -> int:
    """Keep the record, print or draw it; returns its exit code."""
    return tell_one(kept_in(output, record), as_json=as_json)
