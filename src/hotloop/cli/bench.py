"""hotloop bench: how fast a target steps, with its spread."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotloop.cli.arguments import Json, Output, Policy, TargetName, Words, given_by, names_world, targets_of
from hotloop.cli.measuring import measure, tell
from hotloop.cli.place import FOLDER, make_room, names_file, record_path, save
from hotloop.core.errors import InputError

if TYPE_CHECKING:
    from hotloop.core.record import Record
    from hotloop.lab.progress import Progress
    from hotloop.lab.rounds import Rounds

EXAMPLES = (
    "hotloop bench grid/toy",
    "hotloop bench grid/toy agents=100 num_envs=16 --rounds 30",
    "hotloop bench grid/toy impl=reference",
    "hotloop bench grid --json > grid.json",
)


def bench(  # noqa: PLR0913 - one argument a flag
    target: TargetName,
    words: Words = None,
    *,
    rounds: Annotated[
        int, typer.Option(metavar="N", min=1, help="Measured rounds; from 6 on with an interval.")
    ] = 20,
    iterations: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Env-steps in a round.  [default: 20000; a slow target fewer]"),
    ] = None,
    warmup: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="Env-steps before the first round.  [default: 150000; at most 2 s]"
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Short for seed=N.")] = None,
    threads: Annotated[int | None, typer.Option(metavar="N", help="Short for threads=N.")] = None,
    policy: Policy = "random",
    instructions: Annotated[
        bool, typer.Option("--instructions", help="Also count the instructions of an env-step (valgrind).")
    ] = False,
    output: Output = FOLDER,
    json: Json = False,
) -> int:
    """How fast a target steps, with its spread.

    Random play, every probe off, garbage collection off, actions drawn before the clock starts; another
    policy plays ahead of the clock, and its actions are replayed. Steps are env-steps: one batch call
    makes num_envs of them. A record is saved and never overwrites another.
    Exit code 1 means that the rounds varied by more than 20%.
    """
    from hotloop.lab.opening import check
    from hotloop.probes.instructions import require

    targets = targets_of(target)
    given = given_by(words, seed=seed, threads=threads)
    if names_file(output) and len(targets) > 1:
        raise InputError(
            f"{output} is one file and {target} has {len(targets)} presets: name one, or give a folder"
        )
    check(targets, given, policy)
    if instructions:
        require()
    make_room(output)
    return run(target, given, plan(rounds, iterations, warmup), policy, output, instructions, as_json=json)


def plan(count: int, iterations: int | None, warmup: int | None) -> "Rounds":
    """What was asked for is kept; the usual numbers may shrink on a slow target."""
    from hotloop.lab.rounds import Rounds

    usual = Rounds()
    return Rounds(
        count=count,
        iterations=usual.iterations if iterations is None else iterations,
        warmup=usual.warmup if warmup is None else warmup,
        box_iterations=iterations is None,
        box_warmup=warmup is None,
    )


def run(
    target: str,
    given: dict[str, object],
    rounds: "Rounds",
    policy: str,
    output: Path,
    instructions: bool,
    *,
    as_json: bool,
) -> int:
    from hotloop.lab import bench as lab
    from hotloop.lab.instructions import counted
    from hotloop.report.terminal import draw_bench

    def experiment(name: str, progress: "Progress") -> "Record":
        record = lab.bench(name, given, rounds, progress, policy=policy)
        return counted(record, name, given, progress, policy=policy) if instructions else record

    def keep(record: "Record") -> Path:
        return save(record_path(output, record), record.to_json())

    records = measure(targets_of(target), experiment, keep)
    return tell(records, draw_bench(records), as_json=as_json, as_list=names_world(target))
