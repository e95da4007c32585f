"""hotloop tune -- CMD: which settings of a program are the fastest, and do they still learn."""

from dataclasses import replace
from typing import TYPE_CHECKING

from hotloop.cli import sweeps
from hotloop.cli.commands.tune import announced, asked_of, check_name, keep, keeps_floor
from hotloop.cli.console import remark
from hotloop.cli.programs.flags import metric_of, program_of
from hotloop.cli.results import make_room
from hotloop.options.tune import TuneProgramOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotloop.core.project import Budget
    from hotloop.core.record.record import Record
    from hotloop.core.record.sweep import Tuning
    from hotloop.lab.tune.asked import Asked
    from hotloop.lab.tune.programs import ProgramAxes


def tune(words: tuple[str, ...], options: TuneProgramOptions) -> int:
    """Search the settings of a program, keep and show the record and the floor; returns its exit code."""
    from hotloop.lab.programs.metrics import parse
    from hotloop.lab.tune import programs
    from hotloop.lab.tune import tune as lab
    from hotloop.lab.tune.halving import Sweeping

    axes = programs.read(program_of(words).words, options.present)
    metric_of(options)  # refused before anything is run
    if options.learning_metric is not None:
        parse(options.learning_metric, less_is_better=False)
    check_name(options.write_floor)
    asked = replace(
        asked_of(options, options.rounds or programs.rounds_of(len(axes.places))),
        metric=options.metric,
        less_is_better=options.less_is_better,
        learning_metric=options.learning_metric,
    )
    make_room(options.output)
    say_settings(axes, words)
    asked = announced(axes, asked, yes=options.yes)
    record = sweeps.swept(
        axes,
        "tune",
        [Sweeping.cell_of(axes, place, 0, asked.rounds, asked) for place in axes.places],
        lambda progress, shelf, executor: lab.tune(
            axes, asked, progress, executor=executor, shelf=shelf, say=remark
        ),
        on=None,
        resume=options.resume,
    )
    code = sweeps.tell(record, options.output, as_json=options.json)
    keep_floor(options.write_floor, record, axes, asked)
    return code


def say_settings(axes: "ProgramAxes", words: "Sequence[str]") -> None:
    """Say what the program is compared with, and values that were read from several words."""
    from hotloop.lab.tune.programs import is_expanded
    from hotloop.lab.tune.programs import program_of as command_of

    if is_expanded(words):
        remark(f"the shell expanded the braces: {axes.words}; quote them as in '{{8,32}}' to be sure")
    remark(f"present settings: {command_of(axes.present).name}")


def keep_floor(name: str | None, record: "Record", axes: "ProgramAxes", asked: "Asked") -> None:
    """Write the floor of the confirmed winner as a budget."""
    if name is not None and keeps_floor(name, record):
        assert record.tuning is not None
        keep(budget_of(name, axes, record.tuning, asked))


def budget_of(name: str, axes: "ProgramAxes", found: "Tuning", asked: "Asked") -> "Budget":
    """The floor of the winner as a budget, held by what the search was judged by."""
    from hotloop.core.project import PROGRAM, Budget
    from hotloop.judge.gate import rounded
    from hotloop.lab.tune.programs import metric_of as parsed
    from hotloop.lab.tune.programs import program_of as command_of

    metric = parsed(asked.metric, less_is_better=asked.less_is_better)
    kind = "printed_less" if asked.less_is_better else "printed"
    chosen = next(axes.target_at(each) for each in axes.places if each.at == found.winner)
    speed = found.floor or 0.0
    return Budget(
        name=name,
        target=f"{PROGRAM}{command_of(chosen).name}",
        metric=f"{kind}:{metric.name}" if metric else "runs_per_s",
        pattern=metric.pattern.pattern if metric else "",
        limit=float(rounded(1 / speed if asked.less_is_better else speed)),
        reason="the floor of the settings that hotloop tune confirmed",
    )
