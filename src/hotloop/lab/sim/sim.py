"""Sim: episodes played to their end by a named player, and what came of them."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import cpu_ns, now_ns
from hotloop.core.errors import Code, InputError, Notice, notice
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
    Resources,
)
from hotloop.core.registry import find
from hotloop.core.settings import Target, by_role, parameter
from hotloop.core.spans import peak_rss_bytes
from hotloop.envs import tapes
from hotloop.envs.batch import Batch
from hotloop.envs.cuda import require_host
from hotloop.envs.open import make
from hotloop.envs.spec import Spec
from hotloop.envs.tapes import Episode, Episodes
from hotloop.judge.judge import judge
from hotloop.lab.measure.loop import Tally, until_interrupted
from hotloop.lab.measure.policy import RANDOM, TAPE, Actions
from hotloop.lab.measure.record import Recorder, describe_method, describe_validation, throughput
from hotloop.lab.sim.seated import BatchPlayer, envs_for, find_players, seated_spec

WARMUP_CALLS = 50

ENDLESS_STEPS = 1_000  # By default, where a world never ends


@dataclass(frozen=True, slots=True, kw_only=True)
class SimSettings:
    """Who plays, and how much."""

    player: str = parameter(RANDOM, role="workload", help="Who chooses the actions.")
    opponent: str = parameter(
        "", role="workload", help="Who plays the other seat from outside, as run:NAME; the world where empty."
    )
    episodes: int = parameter(64, low=1, high=1_000_000, role="workload", help="Episodes to play.")
    steps: int = parameter(
        0, low=0, high=2**31 - 1, role="workload", help="Cut an episode off after so many; 0 is never."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What there is to see between two steps."""

    batch: Batch
    episodes: Episodes
    length: int  # Steps of an episode at most; 0 where that is not known
    actions: Actions | None = None  # Of the step that led here; None before the first
    ended: Sequence[Episode] = ()  # The episodes that this step ended


Watch = Callable[[Moment], None]


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
            for values in (self._ns, self._cpu_ns):  # every two neighbors become one
                values[:] = [early + late for early, late in zip(values[::2], values[1::2], strict=True)]
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


@dataclass(slots=True, kw_only=True)
class PlayState:
    """What is known so far of episodes that are played: work and time."""

    work: Tally
    wall_ns: int = 0  # Of choosing and stepping; what watching costs is not in it
    cpu_ns: int = 0  # Of the process, on all its cores, while choosing and stepping
    calls: int = 0
    stretches: Stretches = field(default_factory=Stretches)
    partial: bool = True

    def add(self, wall_ns: int, cpu_ns: int) -> None:
        """Add the time of one call, or of one game."""
        self.wall_ns += wall_ns
        self.cpu_ns += cpu_ns
        self.calls += 1
        self.stretches.add(wall_ns, cpu_ns)


@dataclass(slots=True, kw_only=True)
class SimState(PlayState):
    """The episodes of a batch of ours so far; a call is a step of every env."""

    # By env; each env plays its share, so that short episodes are not counted more often than long ones
    finished: list[list[Episode]]
    shares: list[int]
    # Of the infos of the world's history, over all steps of each env
    sums: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    @property
    def episodes(self) -> list[Episode]:
        """The episodes that count, the first of every env first."""
        rows = [played[:share] for played, share in zip(self.finished, self.shares, strict=True)]
        longest = max(map(len, rows))
        return [row[k] for k in range(longest) for row in rows if k < len(row)]

    @property
    def done(self) -> bool:
        return all(len(row) >= share for row, share in zip(self.finished, self.shares, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """A batch, its player and when to stop."""

    batch: Batch
    player: BatchPlayer
    asked: SimSettings
    limit: int  # Steps after which an episode is cut off; 0 is never

    @property
    def length(self) -> int:
        """Steps of an episode at most; 0 where that is not known."""
        ends = (self.limit, self.batch.spec.world.most_steps(self.batch.spec.parameters))
        return min((end for end in ends if end), default=0)

    @property
    def shares(self) -> list[int]:
        """Episodes of each env that count; of a tape all that it has."""
        envs, episodes = self.batch.spec.num_envs, self.asked.episodes
        if self.asked.player.startswith(TAPE):
            return [2**31] * envs
        return [episodes // envs + (env < episodes % envs) for env in range(envs)]

    def play(self, found: SimState) -> Iterator[Moment]:
        """Play until every env has played its share, stopping before each step for an observer."""
        batch, length = self.batch, self.length
        episodes = Episodes(batch, self.limit, watched=found.sums)
        yield Moment(batch=batch, episodes=episodes, length=length)
        while not found.done:
            start, used = now_ns(), cpu_ns()
            try:
                actions = self.player.choose()
            except StopIteration:
                return
            ended = episodes.step(actions)
            self.player.note([episode.env for episode in ended])
            took = now_ns() - start
            found.add(took, cpu_ns() - used)
            for info in found.sums:
                found.sums[info] += episodes.told[info]
            for episode in ended:
                found.finished[episode.env].append(episode)
            yield Moment(batch=batch, episodes=episodes, length=length, actions=actions, ended=ended)

    @property
    def warmup_calls(self) -> int:
        """Calls before a contest, on a batch of their own; 0 for any other world or a tape."""
        is_taped = self.asked.player.startswith(TAPE)
        return 0 if self.batch.spec.world.contest is None or is_taped else WARMUP_CALLS

    def warm_up(self) -> None:
        """Play some calls elsewhere, so that the counted games find code and caches warm."""
        if not self.warmup_calls:
            return
        work = self.batch.spec.same_work
        with closing(make(work.name, **work.keys)) as batch:
            player = find_players(batch, self.asked.player, self.asked.opponent)
            batch.reset()
            for _ in range(self.warmup_calls):
                batch.step(player.choose())
                player.note(np.flatnonzero(batch.terminals | batch.truncations).tolist())


def open_game(target: Target, asked: SimSettings) -> Game:
    """Make the batch to play on; refuses a player it does not have."""
    if "autoreset" in target.keys:
        raise InputError("leave out autoreset=: sim begins every next episode by itself")
    timed = {"profile": True} if not target.is_foreign and find(target.name).world.contest else {}
    batch = make(
        target.name,
        **{"num_envs": envs_for(asked.episodes), **keys_of_tape(target, asked), **timed, **target.keys},
    )
    require_host(batch, "sim")
    player = find_players(batch, asked.player, asked.opponent)
    endless = batch.spec.world.is_endless(batch.spec.parameters)
    limit = asked.steps or (ENDLESS_STEPS if endless else 0)
    return Game(batch=batch, player=player, asked=asked, limit=limit)


def keys_of_tape(target: Target, asked: SimSettings) -> dict[str, object]:
    """Return the keys that a tape was recorded with, if one is played."""
    if not asked.player.startswith(TAPE):
        return {}
    tape = tapes.read(Path(asked.player.removeprefix(TAPE)))
    if tape.target != find(target.name).target:
        raise InputError(
            f"{asked.player} was recorded on {tape.target}: write {tape.target} for {target.name}"
        )
    return {**tape.parameters, "seed": tape.seed, "seed_step": tape.seed_step, "num_envs": tape.num_envs}


def sim(game: Game, progress: Progress = silent, watches: Sequence[Watch] = ()) -> Record:
    """Play the episodes of a game; Ctrl-C leaves a record of those that ended."""
    with closing(game.batch) as batch:
        spec: Spec = batch.spec
        contest = batch.spec.world.contest
        if contest is not None:  # its players are among the keys
            seats = {contest.player: game.asked.player}
            if game.asked.opponent:
                seats |= dict.fromkeys(contest.both_outside, game.asked.opponent)
            spec = seated_spec(spec, Target(spec.name, seats))
        recorder = Recorder("sim", spec)
        game.warm_up()
        batch.reset()
        found = SimState(
            work=Tally(lambda: batch.counters),
            finished=[[] for _ in range(batch.spec.num_envs)],
            shares=game.shares,
            sums={info: np.zeros(batch.spec.num_envs) for info in history_of(batch).values()},
        )
        with until_interrupted(found):
            for moment in game.play(found):
                for watch in watches:
                    watch(moment)
                if game.length:  # in steps of one env, or else in episodes
                    done = len(found.finished[0]) * game.length + int(moment.episodes.ages[0])
                    progress(done, found.shares[0] * game.length)
                else:
                    progress(sum(map(len, found.finished)), game.asked.episodes)
            start = now_ns()
            batch.wait()
            found.wall_ns += now_ns() - start
        found.work.note()
        return judge(record(game, recorder, found))


def record(game: Game, recorder: Recorder, found: SimState) -> Record:
    """Return the record of a game: a round is an episode, whose steps are the mean."""
    spec, episodes, gained = game.batch.spec, found.episodes, found.work.gained
    env_steps = gained["env_steps"]
    ended = spec.world.rules_end
    said = Counter(ended if episode.terminal else "steps" for episode in episodes) if ended else {}
    history = history_of(game.batch).items() if found.calls else ()
    policy = game.asked.player
    if spec.world.contest is not None:
        known = by_role(spec.parameters, "workload")
        [inside] = (known[key] for key in spec.world.contest.both_outside)
        policy = f"{policy} against {game.asked.opponent or inside}"
    made = recorder.record(
        method=describe_method(
            spec,
            rounds=len(episodes),
            iterations=env_steps // max(len(episodes), 1),
            policy=policy,
            warmup=game.warmup_calls * spec.num_envs,
            headline=GAMES_PER_S,
        ),
        counters=gained,
        values={
            "return_per_agent": [episode.return_per_agent for episode in episodes],
            "episode_length": [float(episode.length) for episode in episodes],
            **{
                f"{OUTCOME}{name}": [each.outcomes[name] for each in episodes] for name in spec.world.outcomes
            },
            **{f"{MEAN}{name}": (found.sums[info] / found.calls).tolist() for name, info in history},
            **{f"{ENDED}{reason}": [float(count)] for reason, count in said.items()},
            **contest(game, found),
            **(throughput(spec, env_steps, [found.wall_ns], gained) if env_steps else {}),
            GAMES_PER_S: found.stretches.speeds(games_done(game, found), found.calls),
            CPU_SHARE: found.stretches.cpu_shares,
            "wall_ns": [float(found.wall_ns)],
        },
        partial=found.partial,
        validation=describe_validation(game.batch.counters),
        resources=Resources(rss_peak_bytes=peak_rss_bytes(), cpu_share=found.cpu_ns / max(found.wall_ns, 1)),
    )
    return replace(made, notices=(*made.notices, *notices(game, found, made)))


def history_of(batch: Batch) -> dict[str, str]:
    """Return heading and label to info, of what a run is about as it goes on."""
    each = batch.spec.world.history.items()
    return {f"{heading}.{label}": info for heading, labels in each for label, info in labels.items()}


def contest(game: Game, found: SimState) -> dict[str, list[float]]:
    """Return games won and lost, why they ended, how many per second, and where the time went."""
    said, episodes = game.batch.spec.world.contest, found.episodes
    if said is None or not episodes:
        return {}
    games_per_s = games_done(game, found) * 1e9 / max(found.wall_ns, 1)
    decisions = fmean(episode.outcomes[said.decisions] for episode in episodes)
    reasons = Counter(said.reasons[int(episode.outcomes[said.reason])] for episode in episodes)
    return {
        f"{CONTEST}won": [episode.outcomes[said.won] for episode in episodes],
        f"{CONTEST}began": [episode.outcomes[said.began] for episode in episodes],
        f"{CONTEST}games_per_s": [games_per_s],
        f"{CONTEST}decisions_per_s": [games_per_s * decisions],
        **{f"{REASON}{reason}": [float(count)] for reason, count in reasons.items()},
        **split(game, found, said.encoding),
    }


def games_done(game: Game, found: SimState) -> float:
    """Return how many games all steps are worth; episodes of any other world count once they are over.

    Every env of a contest steps until the last one has played its share, so games are cut off at the end:
    they count by their steps, in games of the mean length.
    """
    episodes = found.episodes
    if game.batch.spec.world.contest is None or not episodes:
        return sum(map(len, found.finished))
    return found.calls * game.batch.spec.num_envs / fmean(episode.length for episode in episodes)


def split(game: Game, found: SimState, encoding: str) -> dict[str, list[float]]:
    """Return the parts of the wall time, in nanoseconds; one thread's, so that they add up."""
    phases = game.batch.phase_totals()
    encoded = phases.get(encoding, 0)
    stepped = sum(phases.values()) - phases.get("step", 0) - encoded
    player = game.player
    parts = {
        "env.step": stepped,
        "inference/forward": player.forward_ns,
        "inference/selection": player.select_ns,
        "encoding": encoded,
    }
    parts["rest"] = max(found.wall_ns - sum(parts.values()), 0)
    return {f"{SPLIT}{name}": [float(ns)] for name, ns in parts.items()}


def episode_notices(cuts: Sequence[bool], wanted: int, limit: int, *, partial: bool) -> list[Notice]:
    """Return what to say of episodes that are missing, and of those cut off after `limit` steps."""
    said = []
    if partial:
        said.append(notice(Code.PARTIAL, done=f"{len(cuts)} of {wanted}"))
    if any(cuts):
        said.append(notice(Code.CUT_OFF, cut=sum(cuts), episodes=len(cuts), steps=limit))
    return said


def notices(game: Game, found: SimState, made: Record) -> list[Notice]:
    """Return what a reader must know about the episodes."""
    cuts = [episode.cut for episode in found.episodes]
    said = episode_notices(cuts, game.asked.episodes, game.limit, partial=found.partial)
    wanted = game.batch.spec.world.mechanics.get(game.batch.spec.preset, ())
    silent_ones = [name for name in wanted if not made.work.coverage.get(name)]
    if silent_ones:
        said.append(notice(Code.MECHANIC_SILENT, mechanics=", ".join(silent_ones)))
    return said
