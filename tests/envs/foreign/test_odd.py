"""Envs whose lookups of attributes raise or lie, async ones, and games of OpenSpiel: measured or refused."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from hotloop.core.errors import InputError
from hotloop.core.settings import Target
from hotloop.envs.foreign.inside import attribute, has
from hotloop.envs.foreign.open import open_foreign

ODD = Path(__file__).parents[2] / "support" / "odd_envs.py"


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize(
    "name", ["Recurses", "Raises", "Mock", "AllNone", "NotBuilt", "Slots", "Game", "together"]
)
def test_what_an_env_answers_to_odd_questions_does_not_keep_it_from_being_stepped(
    name: str, *, timed: bool
) -> None:
    subject = open_foreign(Target(f"{ODD}:{name}"), timed=timed)
    subject.reset()
    for actions in subject.draw(np.random.default_rng(0), 50):
        subject.step(actions)
    assert subject.counters["env_steps"] == 50
    assert subject.answers()
    subject.generators()
    subject.close()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("AsyncStep", "step of AsyncStep is async: give an env whose"),
        ("AsyncReset", "reset of AsyncReset is async: give an env whose"),
        ("later", "returned a coroutine: give an env whose"),
        ("Later", "step returned a coroutine: give an env whose"),
        ("strange_specs", "the specs of a SimpleNamespace are none of dm_env's"),
    ],
)
def test_what_cannot_be_stepped_is_refused_in_one_line(name: str, why: str) -> None:
    with pytest.raises(InputError, match=why) as raised:
        step_once(name)
    assert "\n" not in str(raised.value)


def step_once(name: str) -> None:
    subject = open_foreign(Target(f"{ODD}:{name}"), timed=False)
    subject.reset()
    subject.step(0)


def test_workers_are_for_envs_of_gymnasium() -> None:
    with pytest.raises(InputError, match=r"the Base of .* has no metadata; use vector=sync"):
        open_foreign(Target(f"{ODD}:Base", {"num_envs": "2", "vector": "async"}), timed=False)


def test_a_game_of_openspiel_says_whose_turn_it_is_and_what_each_player_earned() -> None:
    subject = open_foreign(Target(f"{ODD}:Game", {"seed": "7"}), timed=False)
    subject.reset()
    assert subject.env.env.seeds == [7]
    assert subject.observation.shape == (2, 4)
    subject.step(1)
    assert (subject.answers()["rewards"].item(), subject.told["info"]["rewards"].tolist()) == (
        1.0,
        [1.0, -1.0],
    )
    assert (subject.told["info"]["current_player"], subject.masks.ravel().tolist()) == (
        1,
        [True, False, True],
    )


def test_a_real_game_of_openspiel_is_stepped() -> None:
    environment = pytest.importorskip("open_spiel.python.rl_environment")
    from hotloop.envs.foreign.deepmind import SpielEnv

    for game in ("tic_tac_toe", "matrix_pd"):
        env = SpielEnv(environment.Environment(game))
        seen, _ = env.reset(seed=1)
        assert seen.shape == env.observation_space.shape
        assert env.step(env.action_space.sample())[2] in (False, True)


CODE = """
import numpy as np, hotloop
class Env:
    num_actions = 2
    def reset(self, seed=None):
        self.n = 0
        return np.zeros(2), {}
    def step(self, action):
        self.n += 1
        return np.ones(2) * self.n, 1.0, self.n >= 20, False, {}
def make(): return Env()
short = dict(rounds=6, iterations=50, warmup=10)
for each in (Env, make, lambda: Env(), Env()):
    assert hotloop.bench(each, **short).work.env_steps == 300
assert hotloop.bench(Env(), **short).target.name.startswith("__main__:Env")
assert hotloop.bench("__main__:Env", **short).work.env_steps == 300
record = hotloop.profile(Env, steps=2000, time=["Env.step"])
assert record.target.name == "__main__:Env", record.target
assert hotloop.validate(Env, 50, against=make).exit_code == 0
assert hotloop.compare(Env, make, seconds=0.5).comparisons[0].outcome != "not equal"
print("measured")
"""


@pytest.mark.parametrize("words", [["-c", CODE], ["-"]])
def test_what_is_defined_without_a_file_is_measured_in_its_process(words: list[str]) -> None:
    said = subprocess.run(
        [sys.executable, *words], input=CODE, capture_output=True, text=True, check=False, timeout=300
    )
    assert (said.stdout, said.returncode) == ("measured\n", 0), said.stderr


def test_an_env_of_torchrl_is_not_asked_for_what_its_workers_would_die_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class EnvBase:
        batch_size = (2,)

    envs = ModuleType("torchrl.envs")
    envs.__dict__["EnvBase"] = EnvBase
    monkeypatch.setitem(sys.modules, "torchrl.envs", envs)
    made = EnvBase()
    asked: list[str] = []
    monkeypatch.setattr(EnvBase, "__getattr__", lambda _, name: asked.append(name), raising=False)
    assert (attribute(made, "batch_size"), attribute(made, "counters"), has(made, "envs")) == (
        (2,),
        None,
        False,
    )
    assert not asked
