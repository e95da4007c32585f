"""A round robin: every player meets every other in both seats, and all of them are rated by Elo."""

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import permutations

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.notices import Code, notice
from hotloop.core.progress import Progress, silent
from hotloop.core.record.profile import Finding, Table
from hotloop.core.record.record import ELO, PAIR, Record
from hotloop.core.registry import find
from hotloop.core.target import Target
from hotloop.envs.spec import Spec
from hotloop.judge.judge import judge
from hotloop.lab.measure.loop import until_interrupted
from hotloop.lab.measure.record import Recorder, describe_method, throughput
from hotloop.lab.measure.target import open_subject
from hotloop.lab.measure.work import Tally
from hotloop.lab.sim.games import counted_games
from hotloop.lab.sim.seated import KEYS, Seated, as_game, games_of
from hotloop.stats.elo import rate

LONGEST = 100_000
"""Steps of all envs after which a pair whose games do not end is refused."""


@dataclass(slots=True, kw_only=True)
class Robin:
    """What is known of a round robin so far."""

    spec: Spec
    recorder: Recorder
    scores: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    """Hero and villain to the hero's score of each game."""
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
