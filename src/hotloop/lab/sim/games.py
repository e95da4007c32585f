"""Episodes of user code and games of two seats: played, counted, timed, and rated in a round robin."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import permutations
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core import spans
from hotloop.core.clock import cpu_ns, now_ns
from hotloop.core.errors import Code, InputError, notice
from hotloop.core.progress import Progress, silent
from hotloop.core.record import (
    CONTEST,
    CPU_SHARE,
    ELO,
    ENV_STEPS_PER_S,
    EPISODES_PER_S,
    GAMES_PER_S,
    PAIR,
    RETURN_OF,
    SPLIT,
    Record,
    Resources,
)
from hotloop.core.record.profile import WALL, Finding, Phase, Table, describe_times
from hotloop.core.registry import find
from hotloop.core.settings import Target
from hotloop.core.spans import peak_rss_bytes
from hotloop.envs.foreign.inside import ENV_RESET, ENV_STEP, OBSERVE
from hotloop.envs.foreign.single import SeveralSubject
from hotloop.envs.foreign.vector import NEXT_STEP
from hotloop.envs.spec import Spec
from hotloop.envs.subject import Subject
from hotloop.judge.judge import judge
from hotloop.lab.measure.loop import Rounds, Tally, until_interrupted
from hotloop.lab.measure.policy import FORWARD, RANDOM, acting
from hotloop.lab.measure.record import Recorder, describe_method, throughput
from hotloop.lab.measure.target import check_player, open_subject
from hotloop.lab.profile.calls import LOOP, loop_times
from hotloop.lab.sim.seated import (
    INFERENCE,
    KEYS,
    GameOver,
    Seated,
    SeatedBatch,
    as_game,
    games_of,
    is_seated,
)
from hotloop.lab.sim.sim import PlayState, SimSettings, episode_notices
from hotloop.stats.elo import rate
from hotloop.stats.summary import with_metrics

Values = Mapping[str, Sequence[float]]

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
    encoded = {}
    for path, ns in totals.items():
        *above, last = path.split("/")
        if last in encoding and not any(part in encoding for part in above):  # the outermost alone
            encoded[path] = ns
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
    return judge(record_of_pairs(found, players, len(pairs)))


def play_pair(table: Seated, pair: tuple[str, str], games: int, found: Robin) -> None:
    """Play the games of one pair, and add them to what is known."""
    work, begin = Tally(lambda: table.counters), now_ns()
    scores = scores_of(table, games)
    found.wall_ns += now_ns() - begin
    work.note()
    found.counters.update(work.gained)
    found.scores[pair] = scores


def record_of_pairs(found: Robin, players: Sequence[str], pairs: int) -> Record:
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


def scores_of(table: Seated, games: int) -> list[float]:
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


ENDLESS_STEPS = 100_000  # An episode that is longer is cut off by default
SPLIT_NS = 2_000_000_000  # What games may take that are played again to split their time


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedEpisode:
    """One episode that is over."""

    length: int
    returns: NDArray[np.float64]  # By agent
    cut: bool


@dataclass(slots=True, kw_only=True)
class EpisodesState(PlayState):
    """The episodes of user code so far; a call is a step, or a whole game of two seats."""

    episodes: list[PlayedEpisode] = field(default_factory=list)
    actions: list[Any] = field(default_factory=list)  # What was played, where it is kept


class Scores:
    """The age and the returns of the episode that each env is in."""

    def __init__(self, subject: Subject, limit: int) -> None:
        self._subject, self._limit = subject, limit
        envs = subject.spec.num_envs
        self._ages = np.zeros(envs, np.int64)
        self._returns: NDArray[np.float64] | None = None
        self._over = np.zeros(envs, np.bool_)  # Envs that are only begun anew in the next call

    def step(self, actions: Any) -> list[PlayedEpisode]:
        """Step, and tell the episodes that ended."""
        subject, begun = self._subject, self._subject.resets
        subject.step(actions)
        earned, alive = rewards_of(subject), ~self._over
        if self._returns is None:
            self._returns = np.zeros(earned.shape)
        self._ages += alive
        self._returns += earned * alive[:, None]
        over = find_ended(subject, begun)
        self._over = over & alive if subject.autoreset == NEXT_STEP else np.zeros_like(over)
        cut = ~over & (self._ages >= self._limit)
        told = [
            self._played(env, cut=bool(cut[env])) for env in np.flatnonzero((over & alive) | cut).tolist()
        ]
        if cut.any():
            subject.reset_some(np.flatnonzero(cut).tolist())
        return told

    def _played(self, env: int, *, cut: bool) -> PlayedEpisode:
        assert self._returns is not None
        played = PlayedEpisode(length=int(self._ages[env]), returns=self._returns[env].copy(), cut=cut)
        self._ages[env] = 0
        self._returns[env] = 0
        return played


def find_ended(subject: Subject, resets_before: int) -> NDArray[np.bool_]:
    """Return the envs whose episode is over with the last call."""
    if subject.spec.num_envs == 1:
        return np.array([subject.resets > resets_before])
    shown, envs = subject.everything(), subject.spec.num_envs
    over: NDArray[np.bool_] = np.zeros(envs, np.bool_)
    for name in ("terminals", "truncations"):
        over |= np.asarray(shown[name], np.bool_).reshape(envs, -1).all(axis=1)
    return over


def rewards_of(subject: Subject) -> NDArray[np.float64]:
    """Return the rewards of the last call, [num_envs, agents]."""
    own = getattr(subject, "rewards_now", None)  # turns give rewards to others than whose turn it is
    if own is not None:
        return np.asarray(own, np.float64).reshape(1, -1)
    shown, envs = subject.everything(), subject.spec.num_envs
    rows = [each for name, each in shown.items() if name.partition(".")[0] == "rewards"]
    return np.concatenate([np.asarray(each, np.float64).reshape(envs, -1) for each in rows], axis=1)


def play(
    target: Target, asked: SimSettings, progress: Progress = silent, *, keep: bool = False
) -> tuple[Record, Any]:
    """Play episodes of a target; returns the record, and what was played as a tape's actions if asked to."""
    if is_seated(target):
        return play_games(target, asked, progress, keep=keep), None
    with closing(open_subject(target, profile=False)) as subject:
        if isinstance(subject, SeveralSubject):
            raise InputError("sim plays one env of this kind: leave out num_envs=")
        check_player(subject, asked.player)
        recorder = Recorder("sim", subject.spec)
        subject.reset()
        found = EpisodesState(work=Tally(lambda: subject.counters))
        with until_interrupted(found):
            scores, actions = Scores(subject, asked.steps or ENDLESS_STEPS), acting(asked.player, subject)
            while len(found.episodes) < asked.episodes:
                start, used = now_ns(), cpu_ns()
                chosen = next(actions)
                over = scores.step(chosen)
                took = now_ns() - start
                found.add(took, cpu_ns() - used)
                if keep:
                    found.actions.append(chosen)
                found.episodes += over
                progress(min(len(found.episodes), asked.episodes), asked.episodes)
            del found.episodes[asked.episodes :]
        found.work.note()
        tape = (subject, found.actions) if keep else None
        values = values_of_episodes(subject, found)
        return judge(record(subject, asked, recorder, found, values, asked.player)), tape


def play_games(target: Target, asked: SimSettings, progress: Progress, *, keep: bool) -> Record:
    """Play whole games of two seats, then some of them again with their time split."""
    if keep or asked.player != RANDOM:
        raise InputError("hero= and villain= play by themselves: leave out player= and --record")
    with closing(open_subject(as_game(target), profile=False)) as subject:
        assert isinstance(subject, Seated), "it names its players"
        recorder = Recorder("sim", subject.spec)
        found = EpisodesState(work=Tally(lambda: subject.counters))
        limit = asked.steps or ENDLESS_STEPS
        with until_interrupted(found):
            # a warm-up game, then every game from the seed; no step belongs to a game that does not count
            subject.reset()
            play_one(subject, limit)
            subject.reset()
            subject.keep_games()
            found.work.begin()
            while found.calls < asked.episodes:
                begin, used = now_ns(), cpu_ns()
                if not play_one(subject, limit):
                    raise InputError(
                        f"a game of {subject.spec.name} did not end in {limit:,} steps: "
                        "give steps=N for longer ones"
                    )
                took = now_ns() - begin
                found.add(took, cpu_ns() - used)
                progress(found.calls, asked.episodes)
        found.work.note()
        parts = {} if found.partial else split_again(as_game(target), asked, found.wall_ns)
        games = counted_games(subject)[: found.calls]
        values = {**values_of(games), **rates_of_games(subject, found, games), **parts}
        cpu_share = found.cpu_ns / max(found.wall_ns, 1)
        resources = Resources(rss_peak_bytes=peak_rss_bytes(), cpu_share=cpu_share)
        return judge(record(subject, asked, recorder, found, values, subject.policy, resources=resources))


def play_one(subject: Seated, limit: int) -> bool:
    """Play one game to its end; returns whether it ended within so many steps."""
    begun = subject.resets
    for _ in range(limit):
        subject.step(None)
        if subject.resets != begun:
            return True
    return False


def split_again(target: Target, asked: SimSettings, wall_ns: int) -> dict[str, tuple[float, ...]]:
    """Play games again under the instrument; returns the parts of the wall time, by their shares there."""
    with closing(open_subject(target, profile=True)) as subject:
        assert isinstance(subject, Seated), "it names its players"
        subject.reset()
        play_one(subject, ENDLESS_STEPS)
        subject.reset()
        begin = now_ns()
        spans.enable()
        try:
            for _ in range(asked.episodes):
                with spans.span(LOOP):
                    play_one(subject, ENDLESS_STEPS)
                if now_ns() - begin > SPLIT_NS:
                    break
            took_ns = now_ns() - begin
        finally:
            spans.disable()
        parts = split_of(describe_times(loop_times(subject, spans.tree(), took_ns, 1, {})), subject)
    return {name: (ns * wall_ns / took_ns,) for name, (ns,) in parts.items()}


def rates_of_games(subject: Seated, found: EpisodesState, games: Sequence[GameOver]) -> Values:
    """Return the speeds of games that were played one after another; empty if there are none."""
    seconds = max(found.wall_ns, 1) / 1e9
    if not games:
        return {}
    return {
        **throughput(subject.spec, found.work.gained["env_steps"], [found.wall_ns], found.work.gained),
        EPISODES_PER_S: [len(games) / seconds],
        f"{CONTEST}games_per_s": [len(games) / seconds],
        f"{CONTEST}decisions_per_s": [sum(game.length for game in games) / seconds],
        GAMES_PER_S: found.stretches.speeds(len(games), found.calls),
        CPU_SHARE: found.stretches.cpu_shares,
    }


def values_of_episodes(subject: Subject, found: EpisodesState) -> Values:
    """Return returns, lengths and speeds of episodes; of agents that have names what each came to."""
    env_steps, played = found.work.gained["env_steps"], found.episodes
    names = list(getattr(getattr(subject, "env", None), "possible_agents", ()))
    has_names = bool(played) and len(names) == len(played[0].returns)
    speeds = throughput(subject.spec, env_steps, [found.wall_ns], found.work.gained) if env_steps else {}
    if found.wall_ns and played:
        speeds[EPISODES_PER_S] = [len(played) * 1e9 / found.wall_ns]
    return {
        "return_per_agent": [float(each.returns.mean()) for each in played],
        "episode_length": [float(each.length) for each in played],
        **{
            f"{RETURN_OF}{name}": [float(each.returns[agent]) for each in played]
            for agent, name in enumerate(names if has_names else ())
        },
        **speeds,
        GAMES_PER_S: found.stretches.speeds(len(played), found.calls),
        CPU_SHARE: found.stretches.cpu_shares,
    }


def record(
    subject: Subject,
    asked: SimSettings,
    recorder: Recorder,
    found: EpisodesState,
    values: Values,
    policy: str,
    **more: Any,
) -> Record:
    """Return the record of episodes or whole games; games had a warm-up game before them."""
    rounds = len(values["episode_length"])
    iterations = found.work.gained["env_steps"] // max(rounds, 1)
    cuts = [each.cut for each in found.episodes]
    return recorder.record(
        method=describe_method(
            subject.spec,
            rounds=rounds,
            iterations=iterations,
            policy=policy,
            warmup=iterations if isinstance(subject, Seated) else 0,
            headline=GAMES_PER_S,
        ),
        counters=found.work.gained,
        values={**values, "wall_ns": [float(found.wall_ns)]},
        notices=episode_notices(cuts, asked.episodes, asked.steps or ENDLESS_STEPS, partial=found.partial),
        partial=found.partial,
        **more,
    )
