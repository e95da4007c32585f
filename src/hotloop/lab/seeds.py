"""One experiment over many seeds, as cells: validation, simulation and soaks that another machine can run.

What is played is decided by the seeds alone, so that the same cells come to the same wherever they run.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from hotloop.core.clock import now_ns, utc_now
from hotloop.core.errors import HotloopError, InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record import (
    CONTEST,
    CPU_SHARE,
    ENDED,
    GAMES_PER_S,
    MEAN,
    OUTCOME,
    REASON,
    SPLIT,
    Record,
    run_id,
)
from hotloop.core.record.metadata import own_commit
from hotloop.core.target import Target
from hotloop.judge.judge import judge
from hotloop.lab import soak as soaks
from hotloop.lab.cells import Cell, CellCache, CellResult, Executor, run_again, sweep
from hotloop.lab.measure.policy import TAPE
from hotloop.lab.sim import foreign
from hotloop.lab.sim import sim as sims
from hotloop.lab.validate import validate as validating
from hotloop.lab.validate.match import match_of, rivals
from hotloop.options.soak import SoakOptions
from hotloop.options.validate import ValidateOptions
from hotloop.stats.summary import with_metrics

SEED = 42  # The first, where none is given
PIECE, MOST_PIECES = 64, 256  # Episodes of a cell at least, and cells at most

SOAK = f"{__name__}:soak_one"

RATES = ("env_steps_per_s", "agent_steps_per_s", "episodes_per_s")


def seeds_of(target: Target, count: int) -> list[int]:
    """So many seeds, from the target's own on."""
    first = str(target.keys.get("seed", SEED))
    if not first.isdecimal():
        raise InputError(f"seed={first} does not fit: expected a number, the first of {count}")
    return list(range(int(first), int(first) + count))


def validations_of(target: Target, seeds: int, **asked: Any) -> list[Cell]:
    """A validation of each seed; `asked` is what `validate_one` is told."""
    each = [target.with_keys({"seed": seed}) for seed in seeds_of(target, seeds)]
    return [Cell(target=one, experiment=f"{__name__}:validate_one", asked=asked) for one in each]


def validate_one(target: Target, progress: Progress = silent, **asked: Any) -> Record:
    """Validate a target with its seed, on both sides."""
    against: str | None = asked["against"]
    if against is not None and against not in (*rivals(), "reference", "cuda") and " " in against:
        against = f"{against} seed={target.keys['seed']}"
    match = match_of(target, against)
    given = {name: asked[name] for name in ("mode", "ignore", "policy")}
    options = ValidateOptions(target=target.name, words=[asked["amount"]], **given)
    return validating.validate(match, options, progress)[0]


def soak_one(target: Target, progress: Progress = silent, *, options: dict[str, Any]) -> Record:
    """Soak a target, or a training of it."""
    return soaks.soak(target, SoakOptions.from_plain(options), progress)


def sims_of(target: Target, asked: sims.SimSettings) -> list[Cell]:
    """The episodes in pieces, each with a seed of its own."""
    if asked.player.startswith(TAPE):
        raise InputError(f"player={asked.player}: a tape is played here; leave out --on")
    pieces = min(MOST_PIECES, max(1, asked.episodes // PIECE))
    share, more = divmod(asked.episodes, pieces)
    cells = []
    for number, seed in enumerate(seeds_of(target, pieces)):
        told = asdict(asked) | {"episodes": share + (number < more)}
        one = target.with_keys({"seed": seed})
        cells.append(Cell(target=one, experiment=f"{__name__}:sim_one", asked=told))
    return cells


def sim_one(target: Target, progress: Progress = silent, **asked: Any) -> Record:
    """Play the episodes of one piece."""
    settings = sims.SimSettings(**asked)
    if target.is_foreign:
        return foreign.play(target, settings, progress)[0]
    return sims.sim(sims.open_game(target, settings), progress)


def sim(
    target: Target,
    asked: sims.SimSettings,
    executor: Executor,
    shelf: CellCache | None = None,
    progress: Progress = silent,
    tell: Callable[[CellResult], None] = lambda _: None,
) -> Record:
    """Play all pieces, and make one record of them; Ctrl-C leaves one of those that were played."""
    cells, begin = sims_of(target, asked), now_ns()
    swept = sweep(cells, executor, shelf, progress, tell)
    if not swept.records:
        raise KeyboardInterrupt if swept.interrupted else refusal(swept.refused)
    order = {cell.id: number for number, cell in enumerate(cells)}
    pieces = [record for cell, record in sorted(swept.records, key=lambda each: order[each[0].id])]
    partial = swept.interrupted or bool(swept.refused)
    made = joined(target, pieces, now_ns() - begin)
    return judge(replace(made, partial=partial, notices=(*made.notices, *run_again(swept.done))))


def refusal(refused: Sequence[CellResult]) -> HotloopError:
    return InputError(f"no cell can be run: {refused[0].refused}")


def joined(target: Target, pieces: Sequence[Record], wall_ns: int) -> Record:
    """One record of all pieces: episodes one after another, counts added, speeds over the whole time."""
    from hotloop.lab.scale.scale import added

    now, first, work = utc_now(), pieces[0], added(pieces)
    names = dict.fromkeys(name for piece in pieces for name in piece.values)
    values = {name: merged(name, pieces, wall_ns) for name in names}
    whole = max(wall_ns, 1)
    values |= {"wall_ns": (float(wall_ns),)}
    values |= {name: (rate(name, pieces) / whole,) for name in RATES if name in values}
    episodes = len(values["episode_length"])
    values |= {GAMES_PER_S: (episodes * 1e9 / whole,)}
    described = replace(first.target, keys={**first.target.keys, **target.keys})
    made = replace(
        first,
        run_id=run_id(now, *own_commit(first.code), f"sim-{described.words}"),
        created=now.isoformat(timespec="seconds"),
        target=described,
        method=replace(first.method, rounds=episodes, iterations=work.env_steps // max(episodes, 1)),
        work=work,
        values=values,
        metrics={},
        notices=tuple(dict.fromkeys(said for piece in pieces for said in piece.notices)),
    )
    return with_metrics(made)


def merged(name: str, pieces: Sequence[Record], wall_ns: int) -> tuple[float, ...]:
    """One value of all pieces: counts and times are added, rates weighed, the rest stands in a row."""
    every = [piece.values.get(name, ()) for piece in pieces]
    if name.startswith((ENDED, REASON, SPLIT)):
        return (sum(sum(each) for each in every),)
    if name in (GAMES_PER_S, CPU_SHARE):
        return ()  # stretches of one process each: they are no speed of all of them
    if name.startswith(CONTEST) and name.endswith("_per_s"):
        return (rate(name, pieces) / max(wall_ns, 1),)
    assert name.startswith((OUTCOME, MEAN, CONTEST, "return_per_agent", "episode_length", *RATES, "wall_ns"))
    return tuple(value for each in every for value in each)


def rate(name: str, pieces: Sequence[Record]) -> float:
    """What a rate came to over all pieces, in events times nanoseconds a second."""
    return sum(
        piece.values[name][0] * piece.values["wall_ns"][0] for piece in pieces if piece.values.get(name)
    )
