"""WindowEpisodes metrics from arrays, held against a loop that looks at one env at a time."""

from math import fsum
from typing import Any

import numpy as np
import pytest

import hotloop
from hotloop.core.errors import InputError
from hotloop.envs.batch import Batch
from hotloop.train.windows import EnvStep, PerEnv, WindowEpisodes, Windows

TARGETS = [
    ("grid/guard", {"max_steps": 17, "num_envs": 5}),
    ("prospector/short", {"num_envs": 7}),
    ("grid/arena", {"max_steps": 9, "num_envs": 20}),
]


class Loop:
    """The plain account: one env after another, in Python."""

    def __init__(self, batch: Batch) -> None:
        self.adapter = PerEnv(self.look, sampled=0)
        self.agents = batch.spec.agents
        self.returns = [[0.0] * self.agents for _ in range(batch.spec.num_envs)]
        self.lengths = [0] * batch.spec.num_envs
        self.clear()

    def clear(self) -> None:
        self.steps = 0
        self.ended: list[tuple[float, int, dict[str, float]]] = []

    def step(self, batch: Batch) -> None:
        self.adapter.step(batch)

    def look(self, seen: EnvStep) -> None:
        self.steps += 1
        self.lengths[seen.env] += 1
        row = self.returns[seen.env]
        for agent, reward in enumerate(seen.rewards.tolist()):
            row[agent] += reward
        if seen.terminal or seen.truncated:
            infos = {name: float(np.mean(value, dtype=np.float64)) for name, value in seen.info.items()}
            self.ended.append((float(np.mean(row)), self.lengths[seen.env], infos))
            self.returns[seen.env] = [0.0] * self.agents
            self.lengths[seen.env] = 0

    def close(self) -> dict[str, Any]:
        returns = [episode[0] for episode in self.ended]
        names = self.ended[0][2] if self.ended else ()
        window = {
            "env_steps": self.steps,
            "episodes": len(self.ended),
            "return_sum": fsum(returns),
            "return_min": min(returns, default=None),
            "return_max": max(returns, default=None),
            "length_sum": sum(episode[1] for episode in self.ended),
            "infos": {name: fsum(ended[2][name] for ended in self.ended) / len(self.ended) for name in names},
        }
        self.clear()
        return window


def play(batch: Batch, watchers: list[Any], calls: int) -> None:
    for actions in batch.draw(np.random.default_rng(calls), calls):
        batch.step(actions)
        for watcher in watchers:
            watcher.step(batch)


def as_dict(window: WindowEpisodes) -> dict[str, Any]:
    names = ("env_steps", "episodes", "return_sum", "return_min", "return_max", "length_sum", "infos")
    return {name: getattr(window, name) for name in names}


@pytest.mark.parametrize(("target", "given"), TARGETS)
def test_every_window_and_their_totals_equal_a_loop_over_envs(target: str, given: dict[str, object]) -> None:
    batch = hotloop.make(target, seed=3, **given)
    batch.reset()
    windows, loop = Windows(batch), Loop(batch)
    ours, theirs = [], []
    for calls in (1, 17, 18, 40, 3, 100, 9):  # edges on, before and after the ends of episodes
        play(batch, [windows, loop], calls)
        ours.append(as_dict(windows.close()))
        theirs.append(loop.close())
    assert ours == theirs
    assert sum(window["episodes"] for window in ours) >= batch.spec.num_envs
    assert sum(window["episodes"] for window in ours) + batch.spec.num_envs == batch.counters["resets"]
    assert sum(window["env_steps"] for window in ours) == batch.counters["env_steps"]


def test_an_episode_counts_once_in_the_window_of_its_last_step() -> None:
    batch = hotloop.make("grid/guard", num_envs=3, max_steps=4)
    batch.reset()
    windows = Windows(batch)
    play(batch, [windows], 3)
    before = windows.close()
    play(batch, [windows], 1)
    at = windows.close()
    play(batch, [windows], 1)
    after = windows.close()
    assert (before.episodes, at.episodes, after.episodes) == (0, 3, 0)
    assert (at.length_sum, at.mean_length) == (12, 4)
    assert (before.mean_return, before.return_min, before.infos) == (None, None, {})


def test_infos_of_envs_that_do_not_finish_come_from_a_sample_at_the_windows_end() -> None:
    batch = hotloop.make("prospector", num_envs=40)
    batch.reset()
    windows = Windows(batch)
    play(batch, [windows], 5)
    window = windows.close()
    sampled = np.unique(np.linspace(0, 39, 16).astype(int))
    assert window.sampled["fuel_used"] == fsum(batch.infos["fuel_used"][sampled].astype(float)) / 16
    assert windows.close().sampled == {}


def test_episodes_go_on_where_they_were_saved() -> None:
    batch = hotloop.make("grid/guard", num_envs=3, max_steps=10, seed=5)
    batch.reset()
    whole = Windows(batch)
    play(batch, [whole], 6)
    whole.close()
    later = Windows(batch)
    later.restore(whole.state())
    play(batch, [whole, later], 6)
    assert whole.close() == later.close()


def test_an_episode_whose_beginning_is_not_known_does_not_count() -> None:
    batch = hotloop.make("grid/guard", num_envs=3, max_steps=10)
    batch.reset()
    play(batch, [], 6)
    later = Windows(batch)
    later.restore(None)
    play(batch, [later], 6)
    assert later.close().episodes == 0
    play(batch, [later], 8)
    assert later.close().length_sum == 30


def test_a_state_of_another_batch_is_refused() -> None:
    small, large = (hotloop.make("grid/guard", num_envs=count) for count in (2, 3))
    with pytest.raises(InputError, match="same num_envs"):
        Windows(large).restore(Windows(small).state())


def test_a_state_stays_what_it_was() -> None:
    batch = hotloop.make("grid/guard", num_envs=2)
    batch.reset()
    windows = Windows(batch)
    state = windows.state()
    play(batch, [windows], 3)
    assert state["lengths"].tolist() == [0, 0]


def test_one_env_at_a_time_gives_infos_of_the_finished_and_of_the_sampled_only() -> None:
    batch = hotloop.make("grid/guard", num_envs=4, max_steps=3)
    batch.reset()
    seen: list[EnvStep] = []
    play(batch, [PerEnv(seen.append, envs=(3, 1), sampled=1)], 3)
    assert [step.env for step in seen] == [3, 1] * 3
    assert [bool(step.info) for step in seen] == [True, False, True, False, True, True]
    assert [step.truncated for step in seen] == [False] * 4 + [True] * 2
    assert [step.terminal for step in seen] == [False] * 6


def test_what_one_env_gave_stays_when_the_batch_goes_on() -> None:
    batch = hotloop.make("prospector", num_envs=2)
    batch.reset()
    seen: list[EnvStep] = []
    play(batch, [PerEnv(seen.append, sampled=2)], 20)
    ticks = [float(step.info["time_remaining"]) for step in seen if step.env == 0]
    assert len(set(ticks)) > 1
    assert not any(np.shares_memory(step.rewards, batch.rewards) for step in seen)


def test_many_episodes_are_added_up_by_a_crew_as_by_one_and_lose_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hotloop.train.windows.WORTH_SHARING", 1)
    batch = hotloop.make("grid/guard", num_envs=5, max_steps=2, threads=2)
    batch.reset()
    windows, loop = Windows(batch), Loop(batch)
    for calls in (9, 4):
        play(batch, [windows, loop], calls)
        assert as_dict(windows.close()) == loop.close()


def test_without_native_code_the_sums_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = hotloop.make("prospector/short", num_envs=7, seed=3)
    batch.reset()
    ours = Windows(batch)
    monkeypatch.setattr("hotloop.train.windows.load_kernels", lambda: ImportError("no such file"))
    theirs = Windows(batch)
    play(batch, [ours, theirs], 300)
    assert ours.close() == theirs.close()
