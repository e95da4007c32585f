"""A world of one agent that sees floats and has a mask: no axis of agents anywhere."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test

from hotloop.core.settings import parameter
from hotloop.core.world import Array, Layout, World
from hotloop.envs.adapters import views
from hotloop.envs.adapters.gymnasium import HotloopEnv, HotloopVectorEnv
from hotloop.envs.adapters.pettingzoo import HotloopParallelEnv
from hotloop.envs.adapters.pufferlib import PufferRows
from hotloop.envs.batch import Batch
from hotloop.envs.open import make_batch
from hotloop.envs.spec import BatchSettings, batch_spec

ACTIONS, LENGTH = 7, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Whether the arrays have an axis for the one agent, which a world may choose."""

    axis: bool = parameter(False, role="workload", help="An axis for the agent.")


class Twin:
    """Sees how often it acted, its last action, and noise of its seed."""

    def __init__(self, plan: Any, out: Any) -> None:
        self.out = {name: rows.reshape(-1) for name, rows in out.items()}
        self.chosen = [0]
        self.counters: dict[str, int] = {}

    def restart(self, episode_seed: int) -> None:
        self.age, self.seed = 0, episode_seed
        self.show(0)

    def act(self) -> None:
        self.age += 1
        self.show(self.chosen[0])
        self.out["rewards"][0] = self.chosen[0]
        self.out["truncations"][0] = self.age == LENGTH

    def show(self, action: int) -> None:
        self.out["observations"][:] = (self.age / 10, action / 10, self.seed % 1000 / 1000)
        self.out["masks"][:] = np.arange(ACTIONS) != self.age


def layout(parameters: Parameters) -> Layout:
    one = (1,) if parameters.axis else ()
    shapes = {
        "observations": ("float32", (*one, 3)),
        "rewards": ("float32", one),
        "masks": ("bool", (*one, 7)),
    }
    flags = {"terminals": ("bool", ()), "truncations": ("bool", ())}
    arrays = (
        Array(
            name=name,
            dtype=dtype,
            shape=shape,
            **({"low": 0.0, "high": 1.0} if name == "observations" else {}),
        )
        for name, (dtype, shape) in (shapes | flags).items()
    )
    return Layout(agents=1, num_actions=ACTIONS, arrays=tuple(arrays))


WORLD = World(
    name="solo",
    summary="One agent.",
    parameters=Parameters,
    presets={"default": {}},
    phases=("act",),
    plan=lambda parameters: {"num_actions": ACTIONS},
    layout=layout,
    twin=lambda: Twin,  # type: ignore[arg-type, return-value]
)


@pytest.fixture(params=[False, True], ids=["no axis", "axis of one"], autouse=True)
def solo(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = Parameters(axis=request.param)

    def make(target: str, *, num_envs: int, autoreset: bool, render_mode: str) -> Batch:
        settings = BatchSettings(num_envs=num_envs, autoreset=autoreset, render_mode=render_mode)
        spec = batch_spec(target, WORLD, "default", "reference", parameters, settings, {})
        return make_batch(spec, WORLD.plan(parameters))

    monkeypatch.setattr(views, "make", make)


def test_one_env_is_a_plain_env_of_box_and_discrete() -> None:
    env = HotloopEnv("solo/default")
    assert env.observation_space == Box(0.0, 1.0, (3,), np.float32)
    assert env.action_space == Discrete(ACTIONS)
    seen, info = env.reset(seed=250)
    assert seen.tolist() == pytest.approx([0.0, 0.0, 0.25])
    assert info["action_mask"].shape == (ACTIONS,)
    seen, reward, ended, cut, info = env.step(4)
    assert (seen.tolist(), reward, ended, cut) == (pytest.approx([0.1, 0.4, 0.25]), 4.0, False, False)
    assert info["action_mask"].tolist() == [True, False, *[True] * 5]


@pytest.mark.filterwarnings("ignore:.*Not able to test alternative render modes")
def test_gymnasium_finds_nothing_wrong_with_it() -> None:
    check_env(HotloopEnv("solo/default"))


def test_many_envs_are_rows() -> None:
    envs = HotloopVectorEnv("solo/default", num_envs=3)
    seen, infos = envs.reset(seed=250)
    assert seen.shape == (3, 3)
    assert seen[:, 2].tolist() == pytest.approx([0.25, 0.251, 0.252])
    assert infos["action_mask"].shape == (3, ACTIONS)
    for _ in range(LENGTH):
        seen, rewards, _, cut, infos = envs.step(np.array([1, 2, 3]))
    assert rewards.tolist() == [1.0, 2.0, 3.0]
    assert cut.all()
    assert infos["final_obs"][1].tolist() == pytest.approx([0.5, 0.2, 0.251])
    assert not infos["final_info"]["action_mask"][:, LENGTH].any()
    assert seen[:, 0].tolist() == [0.0, 0.0, 0.0]


def test_it_is_a_parallel_env_of_one_agent_and_rows_of_puffers_too() -> None:
    zoo = HotloopParallelEnv("solo/default")
    parallel_api_test(zoo, num_cycles=20)
    assert zoo.observation_space("agent_0").shape == (3,)
    rows = PufferRows("solo/default", num_envs=4)
    assert rows.reset(seed=1)[0].shape == (4, 3)
    assert rows.step(np.arange(4))[1].tolist() == [0.0, 1.0, 2.0, 3.0]
