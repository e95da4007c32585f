"""What the games of two seats came to: wins by seat, lengths, games per second, and where the time went."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from hotloop.core.notices import Code, notice
from hotloop.core.record.profile import WALL, Phase
from hotloop.core.record.record import CONTEST, ENV_STEPS_PER_S, GAMES_PER_S, SPLIT, Record
from hotloop.envs.foreign.inside import ENV_RESET, ENV_STEP, OBSERVE
from hotloop.envs.subject import Subject
from hotloop.lab.measure.policy import FORWARD
from hotloop.lab.measure.rounds import Rounds
from hotloop.lab.sim.seated import INFERENCE, GameOver, Seated, SeatedBatch
from hotloop.stats.summary import with_metrics

LAST = "env.last"
"""The row in which an AEC env of PettingZoo looks for the agent whose turn it is."""

FEWEST_CALLS = 50
"""Calls of a pass, however few games it is for: a shorter one times little but the clock."""


def counted_games(table: Seated, games: int | None = None) -> list[GameOver]:
    """Return the games that count: of every env its share, so that short games do not count more often."""
    envs = table.spec.num_envs
    by_env: list[list[GameOver]] = [[] for _ in range(envs)]
    for game in table.games or ():
        by_env[game.env].append(game)
    if games is None:
        return [game for row in by_env for game in row]
    return [game for env, row in enumerate(by_env) for game in row[: share_of(env, envs, games)]]


def share_of(env: int, envs: int, games: int) -> int:
    """Return how many of some games an env has to play."""
    return games // envs + (env < games % envs)


def rounds_for_games(rounds: Rounds, clean: Subject, games: int | None) -> Rounds:
    """Return rounds of about as many steps as the games need, by the length of those in the warm-up."""
    if games is None or not isinstance(clean, Seated) or not clean.games:
        return rounds
    envs = clean.spec.num_envs
    steps = games * fmean(game.steps for game in clean.games)
    calls = max(FEWEST_CALLS, round(steps / rounds.count / envs))
    return replace(rounds, iterations=min(rounds.iterations, calls * envs), box_iterations=False)


def with_games(record: Record, clean: Subject, watched: Subject, games: int | None) -> Record:
    """Add what the games of the clean passes came to; any other record stays as it is.

    Steps of games that were cut off at the end are in the time, and so they count: a game is worth the
    steps that a game takes on average.
    """
    if not isinstance(clean, Seated):
        return record
    over = counted_games(clean, games)
    values = {**record.values, **split_of(record.phases, watched), **values_of(over)}
    if over:
        steps = fmean(game.steps for game in over)
        values[GAMES_PER_S] = tuple(speed / steps for speed in record.values[ENV_STEPS_PER_S])
    short = games is not None and len(over) < games
    said = (notice(Code.FEW_GAMES, over=len(over), games=games),) if short else ()
    return with_metrics(replace(record, values=values, notices=(*record.notices, *said)))


def values_of(games: Sequence[GameOver]) -> dict[str, tuple[float, ...]]:
    """Return the score, the first turn and the length of each game."""
    return {
        f"{CONTEST}won": tuple(game.won for game in games),
        f"{CONTEST}began": tuple(float(game.began) for game in games),
        "episode_length": tuple(float(game.length) for game in games),
    }


def split_of(phases: Sequence[Phase], watched: Subject) -> dict[str, tuple[float, ...]]:
    """Return the parts of the watched time in nanoseconds; they add up to it."""
    totals = {phase.path: phase.total_ns for phase in phases}
    if WALL not in totals:
        return {}
    encoding = [OBSERVE, LAST]
    if isinstance(watched, SeatedBatch):
        encoding = [watched.contest.encoding]
    encoded = {path: ns for path, ns in totals.items() if is_outermost(path, encoding)}
    env = {path for path in totals if path in (f"{WALL}/{ENV_STEP}", f"{WALL}/{ENV_RESET}")}
    inside = sum(ns for path, ns in encoded.items() if any(path.startswith(f"{each}/") for each in env))
    inference = totals.get(f"{WALL}/{INFERENCE}", 0)
    forward = totals.get(f"{WALL}/{INFERENCE}/{FORWARD}", 0)
    if isinstance(watched, SeatedBatch):
        player = watched.player
        forward = round(inference * player.forward_ns / max(player.forward_ns + player.select_ns, 1))
    parts = {
        "env.step": sum(totals[path] for path in env) - inside,
        "inference/forward": forward,
        "inference/selection": inference - forward,
        "encoding": sum(encoded.values()),
    }
    parts["rest"] = max(totals[WALL] - sum(parts.values()), 0)
    return {f"{SPLIT}{name}": (float(ns),) for name, ns in parts.items()}


def is_outermost(path: str, names: Sequence[str]) -> bool:
    """Return whether the last part of a path is one of some names, and no part before it is."""
    *above, last = path.split("/")
    return last in names and not any(part in names for part in above)


MOST = 40
"""Stretches that are kept; then two become one, so that 20 of them or more are left."""


class Stretches:
    """The times of a run's calls, added up over stretches that grow with the run."""

    def __init__(self) -> None:
        self._calls = 1
        """Of a stretch."""
        self._open = self._open_ns = self._open_cpu_ns = 0
        """Calls since the last whole stretch, and what they took."""
        self._ns: list[int] = []
        self._cpu_ns: list[int] = []

    def add(self, ns: int, cpu_ns: int) -> None:
        """Take in one more call: its wall time, and the CPU time of the process."""
        self._open += 1
        self._open_ns += ns
        self._open_cpu_ns += cpu_ns
        if self._open < self._calls:
            return
        self._ns.append(self._open_ns)
        self._cpu_ns.append(self._open_cpu_ns)
        self._open = self._open_ns = self._open_cpu_ns = 0
        if len(self._ns) == MOST:
            self._ns, self._cpu_ns = in_twos(self._ns), in_twos(self._cpu_ns)
            self._calls *= 2

    @property
    def cpu_shares(self) -> Sequence[float]:
        """Return CPU time over wall time of each stretch."""
        return [cpu_ns / max(ns, 1) for cpu_ns, ns in zip(self._cpu_ns, self._ns, strict=True)]

    def speeds(self, events: float, calls: int) -> Sequence[float]:
        """Return the events per second of each stretch, if so many events came of so many calls."""
        if not events or not calls:
            return ()
        return [self._calls * events / calls * 1e9 / max(ns, 1) for ns in self._ns]


def in_twos(values: Sequence[int]) -> list[int]:
    """Return the sums of every two neighbors."""
    return [early + late for early, late in zip(values[::2], values[1::2], strict=True)]
