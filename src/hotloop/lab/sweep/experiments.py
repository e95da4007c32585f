"""Experiments that run as cells: the items of a suite, each in a process of its own, and one over many seeds.

An item that fails or dies does not stop the others. Records are cached, so that a suite goes on after Ctrl-C.
What is played follows from the seeds alone: the same cells give the same records wherever they run.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hotloop.core import project
from hotloop.core.clock import now_ns, utc_now
from hotloop.core.errors import ExitCode, HotloopError, InputError, unknown
from hotloop.core.progress import Progress, silent
from hotloop.core.project import Suite, SuiteItem
from hotloop.core.record import (
    CONTEST,
    CPU_SHARE,
    ENDED,
    GAMES_PER_S,
    MEAN,
    OUTCOME,
    REASON,
    SPLIT,
    Ran,
    Record,
    SuiteRan,
    run_id,
)
from hotloop.core.record.metadata import own_commit
from hotloop.core.settings import Target
from hotloop.judge.judge import judge
from hotloop.lab import bench as benching
from hotloop.lab import soak as soaks
from hotloop.lab.compare import compare as comparing
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure.loop import Rounds
from hotloop.lab.measure.policy import TAPE
from hotloop.lab.profile.profile import ProfilePlan
from hotloop.lab.profile.profile import profile as run_profile
from hotloop.lab.sim import games
from hotloop.lab.sim import sim as sims
from hotloop.lab.sweep import scale as scaling
from hotloop.lab.sweep.cells import Cell, CellCache, CellResult, Executor, Swept, run_again, sweep
from hotloop.lab.validate import validate as validating
from hotloop.lab.validate.match import match_of, rivals
from hotloop.options.sweeps import ScaleOptions, SoakOptions
from hotloop.options.validate import ValidateOptions
from hotloop.stats.summary import with_metrics

SHIPPED = Path(__file__).with_name("suites.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedSuite:
    """A suite, and where its targets are opened from."""

    suite: Suite
    folder: Path


def find(name: str, here: Path | None = None) -> LocatedSuite:
    """A suite of the project around a folder, or one of those that ship; InputError with the nearest name."""
    folder = (here or Path.cwd()).resolve()
    path = project.find_file(folder)
    own = project.read(path) if path else None
    shipped = project.read(SHIPPED)
    if own and name in own.suites:
        return LocatedSuite(suite=own.suites[name], folder=own.folder)
    if name in shipped.suites:
        return LocatedSuite(suite=shipped.suites[name], folder=folder)
    known = [*(own.suites if own else ()), *shipped.suites]
    raise unknown("suite", name, known, f"there are {', '.join(known)}; {project.NAME} may have others")


def bench(target: Target, progress: Progress = silent, **asked: Any) -> Record:
    """How fast it is."""
    return benching.bench(target, Rounds(**asked), progress)


def instructions(target: Target, progress: Progress = silent, **asked: Any) -> Record:
    """How fast it is, and the instructions of an env-step."""
    return benching.bench(target, Rounds(**asked), progress, extras=benching.Extras(instructions=True))


def profile(target: Target, progress: Progress = silent) -> Record:
    """Where its time goes."""
    return run_profile(ProfilePlan(target=target), progress)


def scale(target: Target, progress: Progress = silent) -> Record:
    """How its cost grows along the keys that have several values."""
    return scaling.scale(scaling.read(target), ScaleOptions(target=target.name), progress)


def compare(target: Target, progress: Progress = silent, *, against: str) -> Record:
    """Whether it is faster than another, which is side A."""
    sides = [TargetContender(each) for each in (Target.parse(against), target)]
    return comparing.compare(sides[0], sides[1], comparing.CompareSettings(), progress)


def cell_of(item: SuiteItem, rounds: Rounds) -> Cell:
    """What is to be done, as another process can do it."""
    asked: dict[str, Any] = asdict(rounds) if item.do in ("bench", "instructions") else {}
    if item.against is not None:
        asked = {"against": item.against.words}
    return Cell(target=item.target, experiment=f"{__name__}:{item.do}", asked=asked)


def summarize_suite(found: LocatedSuite, cells: Sequence[Cell], swept: Swept) -> SuiteRan:
    """What the items came to, in the order of the suite."""
    done = {each.cell.id: each for each in swept.done}
    items = []
    for item, cell in zip(found.suite.items, cells, strict=True):
        if cell.id not in done:
            continue
        result = done[cell.id]
        ran = Ran(
            do=item.do,
            target=item.target.words,
            against=item.against.words if item.against else None,
            record=result.record,
            refused=result.refused,
            code=result.code if result.record is None else ExitCode(result.record.exit_code),
            kept=result.kept,
        )
        items.append(ran)
    return SuiteRan(
        name=found.suite.name,
        created=utc_now().isoformat(timespec="seconds"),
        items=tuple(items),
        asked=len(cells),
        interrupted=swept.interrupted,
    )


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
        return games.play(target, settings, progress)[0]
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
    made = merge_pieces(target, pieces, now_ns() - begin)
    return judge(replace(made, partial=partial, notices=(*made.notices, *run_again(swept.done))))


def refusal(refused: Sequence[CellResult]) -> HotloopError:
    return InputError(f"no cell can be run: {refused[0].refused}")


def merge_pieces(target: Target, pieces: Sequence[Record], wall_ns: int) -> Record:
    """Return one record of all pieces: episodes in a row, counts added, speeds over the whole time."""
    now, first, work = utc_now(), pieces[0], scaling.add_work(pieces)
    names = dict.fromkeys(name for piece in pieces for name in piece.values)
    values = {name: merge_value(name, pieces, wall_ns) for name in names}
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


def merge_value(name: str, pieces: Sequence[Record], wall_ns: int) -> tuple[float, ...]:
    """Return one value of all pieces: counts and times are added, rates weighed, the rest stands in a row."""
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
