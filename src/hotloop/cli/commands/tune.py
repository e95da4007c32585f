"""hotloop tune: which settings are the fastest, and do they still learn."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hotloop.cli import sweeps
from hotloop.cli.console import remark, stdout_kept_clean
from hotloop.cli.results import make_room
from hotloop.cli.targets import metric_of, program_of, reporting
from hotloop.core.errors import InputError
from hotloop.core.project import SAYABLE
from hotloop.core.target import Target
from hotloop.options.tune import MOST, TuneOptions, TuneProgramOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotloop.core.project import Budget
    from hotloop.core.record import Record
    from hotloop.core.record.experiments import Tuning
    from hotloop.lab.sweep.combinations import ProgramAxes
    from hotloop.lab.sweep.scale import Axes


AnyOptions = TypeVar("AnyOptions", TuneOptions, TuneProgramOptions)


def tune(options: TuneOptions) -> int:
    """Search the combinations, keep and show the record and the floor; returns its exit code."""
    from hotloop.lab.sweep import tune as lab
    from hotloop.lab.sweep.combinations import read
    from hotloop.lab.sweep.tune import RungRunner

    axes = read(reporting(Target.typed(options.target, options.words), options.phases, options.time))
    check_floor(options.write_floor, axes)
    options = announced(axes, options)
    make_room(options.output)
    record = sweeps.swept(
        axes,
        "tune",
        [RungRunner.cell_of(axes, place, 0, options.first_rounds, options) for place in axes.places],
        lambda progress, shelf, executor: lab.tune(
            axes,
            options,
            progress,
            executor=executor,
            learners=sweeps.side_by_side(executor),
            shelf=shelf,
            say=remark,
        ),
        on=options.on,
        resume=options.resume,
    )
    code = sweeps.tell(record, options.output, as_json=options.json)
    keep_floor(options.write_floor, record, axes)
    return code


def announced(axes: "Axes", options: AnyOptions) -> AnyOptions:
    """Say how long it takes, and at most, before it begins; the same with that bound."""
    from hotloop.lab.sweep import tune as lab
    from hotloop.lab.sweep.combinations import checked_present

    with stdout_kept_clean():
        seconds = lab.forecast(axes, options)
        learning_s = lab.announced(checked_present(axes), options)
    longest = lab.LONGEST * seconds if options.at_most_s is None else options.at_most_s
    then = f"; then the learning check, about {sweeps.duration(learning_s)}" if learning_s else ""
    expected = seconds if options.at_most_s is None else min(seconds, options.at_most_s)
    more = f", at most {sweeps.duration(longest)}{then}"
    sweeps.announce(len(axes.places), expected, yes=options.yes, more=more)
    return replace(options, minutes=min(longest / 60, MOST))


def check_name(name: str | None) -> None:
    """Refuse, before anything is measured, a budget whose name cannot be one."""
    if name is not None and not SAYABLE.fullmatch(name):
        raise InputError(f"--write-floor {name!r} does not fit: a name has letters, digits, '-', '_' and '.'")


def check_floor(name: str | None, axes: "Axes") -> None:
    """Refuse, before anything is measured, a budget that no gate could measure."""
    check_name(name)
    if name is None:
        return
    from hotloop.lab.training.settings import is_training

    if any(is_training(axes.target_at(place)) for place in axes.places):
        raise InputError("--write-floor is for envs alone: a gate measures no training; leave it out")


def keep_floor(name: str | None, record: "Record", axes: "Axes") -> None:
    """Write the floor of the confirmed winner as a budget."""
    from hotloop.core.project import Budget

    if name is None or not keeps_floor(name, record):
        return
    found = record.tuning
    assert found is not None
    chosen = next(axes.target_at(each) for each in axes.places if each.at == found.winner)
    keep(
        Budget(
            name=name,
            target=chosen.name,
            keys={key: typed(value) for key, value in chosen.keys.items()},
            metric="env_steps_per_s",
            limit=float(round(found.floor or 0.0)),
            reason="the floor of the settings that hotloop tune confirmed",
        )
    )


def keeps_floor(name: str, record: "Record") -> bool:
    """Whether there is a floor to write; says so if there is none."""
    assert record.tuning is not None
    if record.tuning.floor is None:
        remark(f"no budget {name} written: nothing was confirmed to be as fast as the present settings")
    return record.tuning.floor is not None


def keep(budget: "Budget") -> None:
    """Write a budget into the project's hotloop.toml, or into a new one here."""
    from hotloop.core.project import NAME, find_file, put_budget

    place = find_file() or Path(NAME)
    put_budget(place, budget)
    remark(f"wrote [budget.{budget.name}] into {place}")


def typed(value: object) -> object:
    """A value as TOML would have it: a number where it is one."""
    text = str(value)
    try:
        return int(text)
    except ValueError:
        return text


def tune_program(words: tuple[str, ...], options: TuneProgramOptions) -> int:
    """Search the settings of a program, keep and show the record and the floor; returns its exit code."""
    from hotloop.lab.programs.launch import parse_metric
    from hotloop.lab.sweep import combinations
    from hotloop.lab.sweep import tune as lab
    from hotloop.lab.sweep.tune import RungRunner

    axes = combinations.read_program(program_of(words).words, options.present)
    metric_of(options)  # refused before anything is run
    if options.learning_metric is not None:
        parse_metric(options.learning_metric, less_is_better=False)
    check_name(options.write_floor)
    options = replace(options, rounds=options.rounds or combinations.rounds_of(len(axes.places)))
    make_room(options.output)
    say_settings(axes, words)
    options = announced(axes, options)
    record = sweeps.swept(
        axes,
        "tune",
        [RungRunner.cell_of(axes, place, 0, options.first_rounds, options) for place in axes.places],
        lambda progress, shelf, executor: lab.tune(
            axes, options, progress, executor=executor, shelf=shelf, say=remark
        ),
        on=None,
        resume=options.resume,
    )
    code = sweeps.tell(record, options.output, as_json=options.json)
    keep_program_floor(options.write_floor, record, axes, options)
    return code


def say_settings(axes: "ProgramAxes", words: "Sequence[str]") -> None:
    """Say what the program is compared with, and values that were read from several words."""
    from hotloop.lab.sweep.combinations import is_expanded
    from hotloop.lab.sweep.combinations import program_of as command_of

    if is_expanded(words):
        remark(f"the shell expanded the braces: {axes.words}; quote them as in '{{8,32}}' to be sure")
    remark(f"present settings: {command_of(axes.present).name}")


def keep_program_floor(
    name: str | None, record: "Record", axes: "ProgramAxes", options: TuneProgramOptions
) -> None:
    """Write the floor of the confirmed winner as a budget."""
    if name is not None and keeps_floor(name, record):
        assert record.tuning is not None
        keep(budget_of(name, axes, record.tuning, options))


def budget_of(name: str, axes: "ProgramAxes", found: "Tuning", options: TuneProgramOptions) -> "Budget":
    """The floor of the winner as a budget, held by what the search was judged by."""
    from hotloop.core.project import PROGRAM, Budget
    from hotloop.judge.checks import rounded
    from hotloop.lab.sweep.combinations import metric_of as parsed
    from hotloop.lab.sweep.combinations import program_of as command_of

    metric = parsed(options.metric, less_is_better=options.less_is_better)
    kind = "printed_less" if options.less_is_better else "printed"
    chosen = next(axes.target_at(each) for each in axes.places if each.at == found.winner)
    speed = found.floor or 0.0
    return Budget(
        name=name,
        target=f"{PROGRAM}{command_of(chosen).name}",
        metric=f"{kind}:{metric.name}" if metric else "runs_per_s",
        pattern=metric.pattern.pattern if metric else "",
        limit=float(rounded(1 / speed if options.less_is_better else speed)),
        reason="the floor of the settings that hotloop tune confirmed",
    )
