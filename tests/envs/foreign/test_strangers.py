"""Packages that we did not write, as targets; `hotloop[strangers]` installs those that go together."""

from importlib.util import find_spec

import numpy as np
import pytest

from hotloop.core.settings import Target
from hotloop.envs.open import open_target
from hotloop.lab.bench import bench
from hotloop.lab.measure.loop import Rounds

ROUNDS = Rounds(count=6, iterations=10, warmup=10, box_iterations=False)

STRANGERS = [
    ("gym:Acrobot-v1", {}, "gymnasium"),
    ("gym:LunarLander-v3", {}, "Box2D"),
    ("gym:HalfCheetah-v5", {}, "mujoco"),
    ("gym:MiniGrid-Empty-5x5-v0", {}, "minigrid"),
    ("gym:ALE/Pong-v5", {}, "ale_py"),
    ("pettingzoo:classic.tictactoe_v3", {"num_envs": 2}, "pettingzoo"),
    ("pettingzoo:classic.chess_v6", {}, "chess"),
    ("pettingzoo:classic.leduc_holdem_v4", {}, "rlcard"),
    ("pettingzoo:classic.texas_holdem_no_limit_v6", {}, "rlcard"),
    ("support.strangers:open_spiel", {}, "pyspiel"),
    ("support.strangers:mesa", {}, "mesa"),
    ("support.strangers:envpool", {}, "envpool"),
    ("support.strangers:torchrl", {}, "torchrl"),
    ("support.strangers:torchrl", {"num": 2}, "torchrl"),
    ("support.strangers:sb3", {}, "stable_baselines3"),
    ("gym:highway-fast-v0", {}, "highway_env"),
    ("gym:rware-tiny-2ag-v2", {}, "rware"),
    ("support.strangers:dm_control", {}, "dm_control"),
    ("support.strangers:jumanji", {}, "jumanji"),
    ("gym:FlappyBird-v0", {}, "flappy_bird_gymnasium"),
    ("support.strangers:magent2", {}, "magent2"),
    ("support.strangers:anytrading", {}, "gym_anytrading"),
]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("name", "keys", "package"), STRANGERS)
def test_a_package_of_others_is_opened_played_and_measured(
    name: str, keys: dict[str, object], package: str
) -> None:
    if find_spec(package) is None:
        pytest.skip(f"{name.upper()} IS NOT TESTED HERE: {package} is not installed, see hotloop[strangers]")
    subject = open_target(Target(name, keys))
    subject.reset()
    for actions in subject.draw(np.random.default_rng(0), 30):
        subject.step(actions)
    assert subject.counters["env_steps"] >= 30
    subject.close()
    record = bench(Target(name, keys), ROUNDS)
    assert record.work.env_steps >= 50
    assert not [each.text for each in record.notices if each.code == "interface" and "raised" in each.text]
