"""hotloop soak: does it slow down or leak."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from hotloop.cli import sweeps
from hotloop.cli.child import settled
from hotloop.cli.console import bar, remark, stdout_kept_clean
from hotloop.cli.results import make_room
from hotloop.cli.targets import reporting
from hotloop.core.target import Target
from hotloop.options.soak import SoakOptions

if TYPE_CHECKING:
    from hotloop.core.record.record import Record
    from hotloop.lab.soak import Asked


def soak(options: SoakOptions) -> int:
    """Step a target for long, keep and show the record; returns its exit code."""
    from hotloop.lab.soak import Asked
    from hotloop.lab.soak import soak as lab

    target = reporting(Target.typed(options.target, options.words), options.phases)
    asked = Asked(seconds=options.seconds, env_steps=options.steps)
    make_room(options.output)
    remark(f"soak: {sweeps.duration(asked.seconds) if asked.seconds else f'{asked.env_steps:,} env-steps'}")
    if options.on is not None:
        record = soak_on(options.on, target, asked, options.policy)
        return sweeps.tell(record, options.output, as_json=options.json)
    with bar(target.name) as progress, stdout_kept_clean():
        record = lab(target, asked, progress, policy=options.policy)
    return sweeps.tell(settled(record), options.output, as_json=options.json)


def soak_on(on: str, target: Target, asked: "Asked", policy: str) -> "Record":
    """Soak on another machine, which nothing else of ours is timed on meanwhile."""
    from hotloop.lab import seeds
    from hotloop.lab.cells import Cell, Here, sweep

    cell = Cell(target=target, experiment=seeds.SOAK, asked=asdict(asked) | {"policy": policy})
    with sweeps.executor(on, [cell], Here(), timed=True) as (executor, _), bar(target.name) as progress:
        swept = sweep([cell], executor, None, progress)
    if not swept.records:
        raise KeyboardInterrupt if swept.interrupted else seeds.refusal(swept.refused)
    return swept.records[0][1]
