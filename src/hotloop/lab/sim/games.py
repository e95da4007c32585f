"""What the games of two seats came to: wins by seat, lengths, games per second, and where the time went."""

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import permutations
from statistics import fmean

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.notices import Code, notice
from hotloop.core.progress import Progress, silent
from hotloop.core.record import CONTEST, ELO, ENV_STEPS_PER_S, GAMES_PER_S, PAIR, SPLIT, Record
from hotloop.core.record.profile import WALL, Finding, Phase, Table
from hotloop.core.registry import find
from hotloop.core.target import Target
from hotloop.envs.foreign.inside import ENV_RESET, ENV_STEP, OBSERVE
from hotloop.envs.spec import Spec
from hotloop.envs.subject import Subject
from hotloop.judge.judge import judge
from hotloop.lab.measure.loop import Rounds, Tally, until_interrupted
from hotloop.lab.measure.policy import FORWARD
from hotloop.lab.measure.record import Recorder, describe_method, throughput
from hotloop.lab.measure.target import open_subject
from hotloop.lab.sim.seated import INFERENCE, KEYS, GameOver, Seated, SeatedBatch, as_game, games_of
from hotloop.stats.elo import rate
from hotloop.stats.summary import with_metrics

LAST = "env.last"  # The row in which an AEC env of PettingZoo looks for the agent whose turn it is
FEWEST_CALLS = 50  # Calls of a pass, however few games it is for: a shorter one times little but the clock


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


MOST = 40  # Stretches that are kept; then two become one, so that 20 of them or more are left


class Stretches:
    """The times of a run's calls, added up over stretches that grow with the run."""

    def __init__(self) -> None:
        self._calls = 1  # Of a stretch
        # Calls since the last whole stretch, and what they took
        self._open = self._open_ns = self._open_cpu_ns = 0
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


LONGEST = 100_000  # Steps of all envs after which a pair whose games do not end is refused


@dataclass(slots=True, kw_only=True)
class Robin:
    """What is known of a round robin so far."""

    spec: Spec
    recorder: Recorder
    # Hero and villain to the hero's score of each game
    scores: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    counters: Counter[str] = field(default_factory=Counter)
    wall_ns: int = 0


def round_robin(target: Target, players: Sequence[str], progress: Progress = silent) -> Record:
    """Play every ordered pair of players; Ctrl-C leaves a record of the pairs that were finished."""
    check(target, players)
    games, pairs = games_of(target), list(permutations(players, 2))
    found: Robin | None = None
    with until_interrupted():
        for done, pair in enumerate(pairs):
            with closing(open_pair(target, pair)) as table:
                found = found or Robin(spec=table.env_spec, recorder=Recorder("sim", table.env_spec))
                play_pair(table, pair, games, found)
            progress((done + 1) * games, len(pairs) * games)
    if found is None or not found.scores:
        raise KeyboardInterrupt
    return judge(record(found, players, len(pairs)))


def play_pair(table: Seated, pair: tuple[str, str], games: int, found: Robin) -> None:
    """Play the games of one pair, and add them to what is known."""
    work, begin = Tally(lambda: table.counters), now_ns()
    scores = play(table, games)
    found.wall_ns += now_ns() - begin
    work.note()
    found.counters.update(work.gained)
    found.scores[pair] = scores


def record(found: Robin, players: Sequence[str], pairs: int) -> Record:
    """Return the record of the pairs that were played; each of them has its scores, game by game."""
    played, env_steps = sum(map(len, found.scores.values())), found.counters["env_steps"]
    policy, iterations = f"round robin of {', '.join(players)}", env_steps // max(played, 1)
    partial, done = len(found.scores) < pairs, f"{len(found.scores)} of {pairs} pairs"
    pair_scores = {
        f"{PAIR}{hero} against {villain}": scores for (hero, villain), scores in found.scores.items()
    }
    return found.recorder.record(
        method=describe_method(found.spec, rounds=played, iterations=iterations, policy=policy),
        counters=found.counters,
        values={
            **pair_scores,
            **throughput(found.spec, env_steps, [found.wall_ns], found.counters),
            "wall_ns": [float(found.wall_ns)],
        },
        notices=[notice(Code.PARTIAL, done=done)] if partial else [],
        findings=(Finding(probe=ELO, tables=(standings(found.scores),)),),
        partial=partial,
    )


def check(target: Target, players: Sequence[str]) -> None:
    """Refuse a round robin of fewer than two players, or one whose target names players as well."""
    if len(set(players)) < 2 or len(set(players)) != len(players):
        raise InputError(
            f"--round-robin {','.join(players)} does not fit: expected two or more different players"
        )
    if given := [key for key in KEYS if key in target.keys]:
        raise InputError(f"--round-robin seats its players: leave out {given[0]}={target.keys[given[0]]}")
    contest = None if target.is_foreign else find(target.name).world.contest
    if not target.is_foreign and contest is None:
        raise InputError(f"{target.name} is no game of two seats: hotloop worlds lists those that are")


def open_pair(target: Target, pair: tuple[str, str]) -> Seated:
    """Open a target with two players in its seats."""
    table = open_subject(as_game(target.with_keys(dict(zip(KEYS, pair, strict=True)))), profile=False)
    if not isinstance(table, Seated):
        table.close()
        raise InputError(f"{target.name} takes hero= and villain= itself: Hotloop cannot seat players there")
    return table


def play(table: Seated, games: int) -> list[float]:
    """Play so many games from the seed; returns the hero's score of each."""
    table.reset()
    table.keep_games()
    over, limit = 0, LONGEST
    while True:
        table.step(None)
        limit -= 1
        if table.games and len(table.games) != over:
            over, limit = len(table.games), LONGEST
            counted = counted_games(table, games) if over >= games else []
            if len(counted) >= games:
                return [game.won for game in counted]
        if not limit:
            raise InputError(f"no game of {table.spec.name} ended in {LONGEST:,} steps")


def standings(scores: dict[tuple[str, str], list[float]]) -> Table:
    """Return every player with the rating, its interval, the score and the games, the strongest first."""
    ratings = rate({pair: (sum(each), len(each)) for pair, each in scores.items()})
    rows = []
    for name, rating in ratings.items():
        own = [
            score if hero == name else 1 - score
            for (hero, villain), each in scores.items()
            if name in (hero, villain)
            for score in each
        ]
        rows.append((name, rating.elo, rating.low, rating.high, sum(own) / len(own), len(own)))
    rows.sort(key=lambda row: -row[1])
    return Table(
        title="Elo", columns=("player", "elo", "low", "high", "score_share", "games"), rows=tuple(rows)
    )
