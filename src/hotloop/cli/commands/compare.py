"""hotloop compare: which of two is faster, and do both do the same."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli.main import bar, remark, stdout_kept_clean
from hotloop.cli.results import make_room, print_records, reporting, save_record
from hotloop.core.errors import InputError
from hotloop.core.settings import Target
from hotloop.options.compare import CompareOptions, CompareProgramOptions

if TYPE_CHECKING:
    from hotloop.core.record import Record
    from hotloop.lab.compare.compare import CompareSettings
    from hotloop.lab.compare.contenders import Contender, TargetContender
    from hotloop.lab.measure.loop import Plan

NOT_TWO_TRAININGS = "--return-after is for two trainings of the present code: leave it out"


def compare(options: CompareOptions) -> int:
    """Compare what the options name, keep and show the record; return its exit code."""
    make_room(options.output)
    sides = [options.a, str(options.b), *(options.more or ())]
    is_elsewhere = any((options.a_ref, options.a_python, options.b_python))
    check_sides(sides, options, here=not (is_elsewhere or options.unlike))
    if options.b and any(map(names_record, sides[:2])):
        record = compare_files(sides[0], sides[1], options)
    elif options.a_ref:
        record = compare_commits(options.a, options.a_ref, options)
    elif is_elsewhere:
        record = compare_installed(options.a, options)
    elif options.more:
        record = compare_with_first(sides, options)
    elif any(map(names_training, sides)):
        record = compare_trained(sides[0], sides[1], options)
    elif options.return_after is not None:
        raise InputError("--return-after is for trainings: give a side a train. key")
    else:
        a, b = (contender(each, options) for each in sides)
        record = compare_live(a, b, asked_of(options))
    return print_records([save_record(options.output, record)], as_json=options.json)


def check_sides(sides: list[str], options: CompareOptions, *, here: bool) -> None:
    """Refuse what only two sides can be asked, and about the replay if none is replayed (here)."""
    if options.more and any(map(names_training, sides)):
        raise InputError("trainings are compared two at a time: give A and B")
    if options.more and any(map(names_record, sides)):
        raise InputError("records are compared two at a time: give A and B; bench --report shows a folder")
    replayed = not any(names_record(each) or names_training(each) for each in sides)
    if options.ignore and not (replayed and here):
        raise InputError("--ignore is for targets that are replayed here: leave it out")
    if options.equal_steps and not replayed:
        raise InputError("--equal-steps is for targets that are replayed: leave it out")


def names_record(side: str) -> bool:
    """Return whether a side is a file of a record."""
    return side.endswith(".json")


def names_training(side: str) -> bool:
    """Return whether a side has a key of the trainer's."""
    return any(word.startswith("train.") for word in side.split())


def asked_of(options: CompareOptions) -> "CompareSettings":
    """Return what a comparison is to do."""
    from hotloop.lab.compare.compare import CompareSettings

    return CompareSettings(
        plan=plan_of(options),
        policy=options.policy,
        unlike=options.unlike,
        profile=options.profile or options.control is not None,
        control=options.control,
        instructions=options.instructions,
        garbage=options.gc,
        equal_steps=options.equal_steps,
    )


def plan_of(options: CompareOptions) -> "Plan":
    """Return when a comparison is over."""
    from hotloop.lab.measure.loop import Plan
    from hotloop.lab.measure.settle import THOROUGH

    usual = THOROUGH if options.thorough else Plan()
    return replace(usual, band=options.band_share, budget_ns=options.budget_ns)


def compare_with_first(sides: list[str], options: CompareOptions) -> "Record":
    """Compare each of several targets with the first."""
    from hotloop.lab.compare.compare import compare_several

    with bar(" | ".join(sides)) as progress, stdout_kept_clean():
        return compare_several(
            lambda: contender(sides[0], options),
            [contender(each, options) for each in sides[1:]],
            asked_of(options),
            progress,
            remark,
        )


def contender(words: str, options: CompareOptions) -> "TargetContender":
    """Return one side from its quoted argument."""
    from hotloop.lab.compare.contenders import TargetContender

    return TargetContender(reporting(Target.parse(words, "a side"), options.phases), options.ignore or ())


def compare_live(a: "Contender", b: "Contender", asked: "CompareSettings") -> "Record":
    """Compare two sides in turns under a bar."""
    from hotloop.lab.compare import compare as lab

    with bar(f"{a.name} | {b.name}") as progress, stdout_kept_clean():
        return lab.compare(a, b, asked, progress, remark)


def compare_commits(words: str, then: str, options: CompareOptions) -> "Record":
    """Compare a target, or the training on it, at two commits of the project in the current folder."""
    from hotloop.lab.compare.commits import check_out, commands
    from hotloop.lab.compare.process import NOT_COUNTED, CommitContender, check_asked
    from hotloop.lab.measure.policy import LEARNING

    asked, build = asked_of(options), options.build
    check_asked(asked.policy, beyond_speed=asked.profile)
    if asked.instructions and commands(Path.cwd(), build):
        raise InputError(NOT_COUNTED.format(name=words))
    if options.return_after is not None:
        raise InputError(NOT_TWO_TRAININGS)
    if names_training(words):
        asked = replace(asked, replayed=False, policy=LEARNING)
    target = Target.parse(words, "a side")
    with check_out(
        Path.cwd(), then, options.b_ref or None, target, build=build, garbage=options.gc, say=remark
    ) as checkouts:
        a, b = (CommitContender(checkout) for checkout in checkouts)
        return compare_live(a, b, asked)


def compare_installed(words: str, options: CompareOptions) -> "Record":
    """Compare a target as two environments have its packages installed."""
    from hotloop.lab.compare.commits import open_installed
    from hotloop.lab.compare.process import check_asked

    if options.return_after is not None:
        raise InputError(NOT_TWO_TRAININGS)
    asked = asked_of(options)
    check_asked(asked.policy, beyond_speed=asked.profile or asked.instructions)
    if names_training(words):
        raise InputError("trainings are not compared between environments: leave out train. keys")
    places = (options.a_python, options.b_python)
    with open_installed(places, Target.parse(words, "a side"), options.gc, remark) as (a, b):
        return compare_live(a, b, asked)


def compare_files(a: str, b: str, options: CompareOptions) -> "Record":
    """Compare two records; refuse one of them beside something that would have to run."""
    from hotloop.core.record import read
    from hotloop.judge.compare import compare_records

    if not (names_record(a) and names_record(b)):
        raise InputError("a record can be compared with a record only: give two of them, or two targets")
    return compare_records(read(Path(a)), read(Path(b)), band=options.band_share, unlike=options.unlike)


def compare_trained(a: str, b: str, options: CompareOptions) -> "Record":
    """Compare two trainings: their speed and, if asked for, what they have learnt after as many steps."""
    from hotloop.lab.training.sides import SPEED_ONLY, TrainContender, check_one_variable, compare_trainings

    asked, return_after = asked_of(options), options.return_after
    if asked.profile or asked.instructions or asked.policy != "random":
        raise InputError(SPEED_ONLY)
    one, other = (TrainContender(Target.parse(side, "a side")) for side in (a, b))
    if not asked.unlike:
        check_one_variable(one, other)
    then = "" if return_after is None else f", then {return_after:,} env-steps a side"
    with bar(f"{one.name} | {other.name}{then}") as progress, stdout_kept_clean():
        return compare_trainings(one, other, asked, return_after, progress)


def compare_program(sides: tuple[str, ...], options: CompareProgramOptions) -> int:
    """Compare programs, each of them a quoted argument; return the exit code of the record."""
    from hotloop.lab.programs.launch import Program, metric_of
    from hotloop.lab.programs.measure import check_count
    from hotloop.lab.programs.measure import compare as run

    programs = [Program.parse(each, "a side") for each in sides]
    check_count(programs)
    metric = metric_of(options.metric, less_is_better=options.less_is_better)
    rounds, chosen = options.rounds, plan_of(options.usual)
    make_room(options.output)
    lasts = f"{rounds} rounds" if rounds else f"up to {chosen.budget_ns / 1e9:g} s, and six rounds at least"
    remark(f"{lasts}, and as much again for faster or slower")
    with bar(" | ".join(each.name for each in programs)) as progress:
        record = run(programs, chosen, progress, rounds=rounds, metric=metric)
    return print_records([save_record(options.output, record)], as_json=options.json)
