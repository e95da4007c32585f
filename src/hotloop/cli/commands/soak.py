"""hotloop soak: does it slow down or leak."""

from typing import TYPE_CHECKING

from hotloop.cli import sweeps
from hotloop.cli.child import settled
from hotloop.cli.console import bar, remark, stdout_kept_clean
from hotloop.cli.results import make_room
from hotloop.cli.targets import metric_of, program_of, reporting
from hotloop.core.target import Target
from hotloop.options.soak import SoakOptions, SoakProgramOptions

if TYPE_CHECKING:
    from hotloop.core.record import Record


def soak(options: SoakOptions) -> int:
    """Step a target for long, keep and show the record; returns its exit code."""
    from hotloop.lab.soak import soak as lab

    target = reporting(Target.typed(options.target, options.words), options.phases)
    seconds = options.seconds
    make_room(options.output)
    remark(f"soak: {f'{options.steps:,} env-steps' if seconds is None else sweeps.duration(seconds)}")
    if options.on is not None:
        record = soak_on(options.on, target, options)
        return sweeps.tell(record, options.output, as_json=options.json)
    with bar(target.name) as progress, stdout_kept_clean():
        record = lab(target, options, progress)
    return sweeps.tell(settled(record), options.output, as_json=options.json)


def soak_on(on: str, target: Target, options: SoakOptions) -> "Record":
    """Soak on another machine, which nothing else of ours is timed on meanwhile."""
    from hotloop.lab.sweep import experiments
    from hotloop.lab.sweep.cells import Cell, LocalExecutor, sweep

    cell = Cell(target=target, experiment=experiments.SOAK, asked={"options": options.to_plain()})
    with (
        sweeps.executor(on, [cell], LocalExecutor(), timed=True) as (executor, _),
        bar(target.name) as progress,
    ):
        swept = sweep([cell], executor, None, progress)
    if not swept.records:
        raise KeyboardInterrupt if swept.interrupted else experiments.refusal(swept.refused)
    return swept.records[0][1]


def soak_program(words: tuple[str, ...], options: SoakProgramOptions) -> int:
    """Watch a program as it runs, keep and show the record; returns its exit code."""
    from hotloop.lab.programs.measure import soak as lab

    program, metric = program_of(words), metric_of(options)
    make_room(options.output)
    with bar(program.name) as progress:
        record = lab(program, options, progress, metric=metric)
    return sweeps.tell(record, options.output, as_json=options.json)
