"""Sim of somebody else's environment: episodes played to their end by random play, a policy or a tape."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core import spans
from hotloop.core.clock import cpu_ns, now_ns
from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record import (
    CONTEST,
    CPU_SHARE,
    EPISODES_PER_S,
    GAMES_PER_S,
    RETURN_OF,
    Record,
    Resources,
)
from hotloop.core.record.profile import describe_times
from hotloop.core.spans import peak_rss_bytes
from hotloop.core.target import Target
from hotloop.envs.foreign.single import SeveralSubject
from hotloop.envs.foreign.vector import NEXT_STEP
from hotloop.envs.subject import Subject
from hotloop.judge.judge import judge
from hotloop.lab.measure.loop import Tally, until_interrupted
from hotloop.lab.measure.policy import RANDOM, acting
from hotloop.lab.measure.record import Recorder, describe_method, throughput
from hotloop.lab.measure.target import check_player, open_subject
from hotloop.lab.profile.tree import LOOP, loop_times
from hotloop.lab.sim.games import Stretches, counted_games, split_of, values_of
from hotloop.lab.sim.seated import Seated, as_game, is_seated
from hotloop.lab.sim.sim import SimSettings, episode_notices

ENDLESS_STEPS = 100_000  # An episode that is longer is cut off, unless somebody says when
SPLIT_NS = 2_000_000_000  # What games may take that are played again to split their time


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One episode that is over."""

    length: int
    returns: NDArray[np.float64]  # By agent
    cut: bool


@dataclass(slots=True, kw_only=True)
class EpisodesState:
    """What is known so far."""

    work: Tally
    episodes: list[Played] = field(default_factory=list)
    actions: list[Any] = field(default_factory=list)  # What was played, where it is kept
    wall_ns: int = 0
    calls: int = 0
    stretches: Stretches = field(default_factory=Stretches)
    cpu_ns: int = 0
    partial: bool = True


class Scores:
    """The age and the returns of the episode that each env is in."""

    def __init__(self, subject: Subject, limit: int) -> None:
        self._subject, self._limit = subject, limit
        envs = subject.spec.num_envs
        self._ages = np.zeros(envs, np.int64)
        self._returns: NDArray[np.float64] | None = None
        self._over = np.zeros(envs, np.bool_)  # Envs that are only begun anew in the next call

    def step(self, actions: Any) -> list[Played]:
        """Step, and tell the episodes that ended."""
        subject, begun = self._subject, self._subject.resets
        subject.step(actions)
        earned, alive = rewards_of(subject), ~self._over
        if self._returns is None:
            self._returns = np.zeros(earned.shape)
        self._ages += alive
        self._returns += earned * alive[:, None]
        over = ended(subject, begun)
        self._over = over & alive if subject.autoreset == NEXT_STEP else np.zeros_like(over)
        cut = ~over & (self._ages >= self._limit)
        told = [
            self._played(env, cut=bool(cut[env])) for env in np.flatnonzero((over & alive) | cut).tolist()
        ]
        if cut.any():
            subject.reset_some(np.flatnonzero(cut).tolist())
        return told

    def _played(self, env: int, *, cut: bool) -> Played:
        assert self._returns is not None
        played = Played(length=int(self._ages[env]), returns=self._returns[env].copy(), cut=cut)
        self._ages[env] = 0
        self._returns[env] = 0
        return played


def ended(subject: Subject, resets_before: int) -> NDArray[np.bool_]:
    """Envs whose episode is over with the last call."""
    if subject.spec.num_envs == 1:
        return np.array([subject.resets > resets_before])
    shown, envs = subject.everything(), subject.spec.num_envs
    over: NDArray[np.bool_] = np.zeros(envs, np.bool_)
    for name in ("terminals", "truncations"):
        over |= np.asarray(shown[name], np.bool_).reshape(envs, -1).all(axis=1)
    return over


def rewards_of(subject: Subject) -> NDArray[np.float64]:
    """What every agent of every env was given by the last call, [num_envs, agents]."""
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
            play_all(subject, asked, found, progress, keep=keep)
        found.work.note()
        tape = (subject, found.actions) if keep else None
        return judge(record(subject, asked, recorder, found)), tape


def play_all(
    subject: Subject, asked: SimSettings, found: EpisodesState, progress: Progress, *, keep: bool
) -> None:
    scores, actions = Scores(subject, asked.steps or ENDLESS_STEPS), acting(asked.player, subject)
    while len(found.episodes) < asked.episodes:
        start, used = now_ns(), cpu_ns()
        chosen = next(actions)
        over = scores.step(chosen)
        took = now_ns() - start
        found.wall_ns += took
        found.calls += 1
        found.stretches.add(took, cpu_ns() - used)
        if keep:
            found.actions.append(chosen)
        found.episodes += over
        progress(min(len(found.episodes), asked.episodes), asked.episodes)
    del found.episodes[asked.episodes :]


def play_games(target: Target, asked: SimSettings, progress: Progress, *, keep: bool) -> Record:
    """Play whole games of two seats, then some of them again with their time split."""
    if keep or asked.player != RANDOM:
        raise InputError("hero= and villain= play by themselves: leave out player= and --record")
    with closing(open_subject(as_game(target), profile=False)) as subject:
        assert isinstance(subject, Seated), "it names its players"
        recorder = Recorder("sim", subject.spec)
        found = EpisodesState(work=Tally(lambda: subject.counters))
        with until_interrupted(found):
            play_whole_games(subject, asked, found, progress)
        found.work.note()
        parts = {} if found.partial else split_again(as_game(target), asked, found.wall_ns)
        return judge(record_of_games(subject, asked, recorder, found, parts))


def play_whole_games(subject: Seated, asked: SimSettings, found: EpisodesState, progress: Progress) -> None:
    """Play a warm-up game, then every game from the seed; no step is made that belongs to no counted game."""
    limit = asked.steps or ENDLESS_STEPS
    subject.reset()
    play_one(subject, limit)
    subject.reset()
    subject.keep_games()
    found.work.begin()
    while found.calls < asked.episodes:
        begin, used = now_ns(), cpu_ns()
        if not play_one(subject, limit):
            raise InputError(
                f"a game of {subject.spec.name} did not end in {limit:,} steps: give steps=N for longer ones"
            )
        took, used = now_ns() - begin, cpu_ns() - used
        found.stretches.add(took, used)
        found.wall_ns, found.cpu_ns, found.calls = found.wall_ns + took, found.cpu_ns + used, found.calls + 1
        progress(found.calls, asked.episodes)


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
                play_one_timed(subject)
                if now_ns() - begin > SPLIT_NS:
                    break
            took_ns = now_ns() - begin
        finally:
            spans.disable()
        parts = split_of(describe_times(loop_times(subject, spans.tree(), took_ns, 1, {})), subject)
    return {name: (ns * wall_ns / took_ns,) for name, (ns,) in parts.items()}


@spans.span(LOOP)
def play_one_timed(subject: Seated) -> None:
    play_one(subject, ENDLESS_STEPS)


def record_of_games(
    subject: Seated,
    asked: SimSettings,
    recorder: Recorder,
    found: EpisodesState,
    parts: Mapping[str, Sequence[float]],
) -> Record:
    """Return the record of games that were played one after another."""
    games, env_steps = counted_games(subject)[: found.calls], found.work.gained["env_steps"]
    seconds = max(found.wall_ns, 1) / 1e9
    rates: dict[str, Sequence[float]] = {}
    if games:
        rates = {
            **throughput(subject.spec, env_steps, [found.wall_ns], found.work.gained),
            EPISODES_PER_S: [len(games) / seconds],
            f"{CONTEST}games_per_s": [len(games) / seconds],
            f"{CONTEST}decisions_per_s": [sum(game.length for game in games) / seconds],
            GAMES_PER_S: found.stretches.speeds(len(games), found.calls),
            CPU_SHARE: found.stretches.cpu_shares,
        }
    iterations = env_steps // max(len(games), 1)
    return recorder.record(
        method=describe_method(
            subject.spec,
            rounds=len(games),
            iterations=iterations,
            policy=subject.policy,
            warmup=iterations,
            headline=GAMES_PER_S,
        ),
        counters=found.work.gained,
        values={**values_of(games), **rates, **parts, "wall_ns": [float(found.wall_ns)]},
        notices=episode_notices(
            [each.cut for each in found.episodes],
            asked.episodes,
            asked.steps or ENDLESS_STEPS,
            partial=found.partial,
        ),
        partial=found.partial,
        resources=Resources(rss_peak_bytes=peak_rss_bytes(), cpu_share=found.cpu_ns / max(found.wall_ns, 1)),
    )


def record(subject: Subject, asked: SimSettings, recorder: Recorder, found: EpisodesState) -> Record:
    env_steps, played = found.work.gained["env_steps"], found.episodes
    speeds = throughput(subject.spec, env_steps, [found.wall_ns], found.work.gained) if env_steps else {}
    if found.wall_ns and played:
        speeds[EPISODES_PER_S] = [len(played) * 1e9 / found.wall_ns]
    return recorder.record(
        method=describe_method(
            subject.spec,
            rounds=len(played),
            iterations=env_steps // max(len(played), 1),
            policy=asked.player,
            headline=GAMES_PER_S,
        ),
        counters=found.work.gained,
        values={
            "return_per_agent": [float(each.returns.mean()) for each in played],
            "episode_length": [float(each.length) for each in played],
            **returns_by_agent(subject, played),
            **speeds,
            GAMES_PER_S: found.stretches.speeds(len(played), found.calls),
            CPU_SHARE: found.stretches.cpu_shares,
            "wall_ns": [float(found.wall_ns)],
        },
        notices=episode_notices(
            [each.cut for each in found.episodes],
            asked.episodes,
            asked.steps or ENDLESS_STEPS,
            partial=found.partial,
        ),
        partial=found.partial,
    )


def returns_by_agent(subject: Subject, played: Sequence[Played]) -> dict[str, list[float]]:
    """Of agents that have names, what each came to."""
    names = list(getattr(getattr(subject, "env", None), "possible_agents", ()))
    if not played or len(names) != len(played[0].returns):
        return {}
    return {
        f"{RETURN_OF}{name}": [float(each.returns[agent]) for each in played]
        for agent, name in enumerate(names)
    }
