import sys
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

from hotloop.core.errors import HotloopError, InputError, MissingError
from hotloop.core.settings import Target
from hotloop.envs.batch import Batch
from hotloop.envs.foreign.outputs import contains, described, in_numpy
from hotloop.envs.open import open_target
from hotloop.envs.subject import Subject

THEIRS = Path(__file__).parents[2] / "support" / "theirs.py"


@pytest.mark.parametrize(
    ("target", "given", "kind", "envs", "agents"),
    [
        ("gym:CartPole-v1", {}, "gymnasium", 1, 1),
        ("gym:CartPole-v1", {"num_envs": "3"}, "gymnasium vector", 3, 1),
        ("gym:hotloop/grid-toy-v0", {"num_envs": "3", "vector": "own"}, "gymnasium vector", 3, 1),
        ("pettingzoo:sisl.pursuit_v5", {"n_pursuers": "4"}, "pettingzoo parallel", 1, 4),
        ("pettingzoo:sisl.pursuit_v5", {"api": "aec"}, "pettingzoo aec", 1, 1),
        ("pettingzoo:classic.tictactoe_v3", {}, "pettingzoo aec", 1, 1),
        ("support.theirs:make", {}, "gymnasium", 1, 1),
        (f"{THEIRS}:make", {"num_envs": "2", "work": "5"}, "gymnasium vector", 2, 1),
        ("support.theirs:plain", {}, "reset and step", 1, 1),
        (
            "hotloop.envs.adapters.pufferlib:PufferRows",
            {"target": "grid/toy", "agents": "3"},
            "pufferlib",
            1,
            3,
        ),
        (
            "hotloop.envs.adapters.pettingzoo:parallel_env",
            {"target": "grid/toy"},
            "pettingzoo parallel",
            1,
            20,
        ),
    ],
)
def test_whatever_a_target_names_is_opened_reset_and_stepped(
    target: str, given: dict[str, object], kind: str, envs: int, agents: int
) -> None:
    subject = open_target(Target(target, given))
    assert subject.spec.described.variant == {"num_envs": envs, "interface": kind}
    assert subject.spec.agents == agents
    assert subject.spec.notices == ()
    subject.reset()
    before = subject.counters
    for actions in subject.draw(np.random.default_rng(0), 5):
        subject.step(actions)
    assert subject.counters["env_steps"] - before["env_steps"] == 5 * envs
    assert {"observations", "rewards"} <= {name.partition(".")[0] for name in subject.answers()}
    subject.close()


def test_a_batch_of_ours_stays_one() -> None:
    subject = open_target(Target("support.theirs:ours", {"agents": "2"}))
    assert isinstance(subject, Batch)
    assert subject.spec.described.name == "support.theirs:ours"


def test_keys_go_to_the_callable_and_seed_is_ours_unless_it_has_one() -> None:
    subject = open_target(Target("support.theirs:make", {"work": "7", "seed": "5"}))
    assert subject.spec.seed == 5
    assert subject.spec.described.params == {"work": 7, "seed": 5}
    assert subject.env.work == 7  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("target", "given", "code", "said"),
    [
        ("gym:CartPole-v9", {}, 64, "version `v9` for environment `CartPole` doesn't exist"),
        ("gym:CartPole-v1", {"masss": "1"}, 64, "unexpected keyword argument 'masss'"),
        ("gym:CartPole-v1", {"num_envs": "0"}, 64, "num_envs=0 does not fit: expected int of at least 1"),
        ("gym:CartPole-v1", {"vector": "threads"}, 64, "expected one of sync, async, own"),
        ("gym:CartPole-v1", {"seed": "-1"}, 64, "seed=-1 does not fit"),
        ("gym:LunarLander-v3", {}, 64, "pip install"),
        ("pettingzoo:sisl.nothing_v1", {}, 64, "PettingZoo has no sisl.nothing_v1"),
        ("pettingzoo:atari.pong_v3", {}, 64, "pip install multi_agent_ale_py"),
        ("pettingzoo:classic.tictactoe_v3", {"api": "both"}, 64, "expected one of parallel, aec"),
        ("pettingzoo:classic.tictactoe_v3", {"api": "parallel"}, 64, "has no parallel_env"),
        ("puffer:breakout", {}, 64, "pip install pufferlib"),
        ("support.theirs:nothing", {"num_envs": 2}, 64, "returned a NoneType: expected an env of Gymnasium"),
        (
            "support.theirs:needs",
            {},
            64,
            "missing a required argument: 'size'; give its arguments as key=value",
        ),
        ("support.theirs:make", {"vector": "own"}, 64, "vector=own is for gym: ids"),
    ],
)
def test_what_cannot_be_opened_is_said_with_what_to_do(
    target: str, given: dict[str, object], code: int, said: str
) -> None:
    with pytest.raises(HotloopError, match=said.replace("(", "\\(").replace(")", "\\)")) as caught:
        open_target(Target(target, given))
    assert caught.value.exit_code == code
    assert isinstance(caught.value, (MissingError, InputError))


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("tuple", "step returned a tuple of 2: expected"),
        ("raises", r"KeyError: 'no such cell' \(.*theirs.py:[0-9]+ in step\)"),
    ],
)
def test_what_cannot_be_stepped_is_said_in_its_own_last_words(fault: str, said: str) -> None:
    subject = open_target(Target("support.theirs:faulty", {"fault": fault}))
    with pytest.raises(InputError, match=said):
        stepped(subject, 5)
    (notice,) = subject.faults()
    assert fault == "raises" or "step returned a tuple of 2" in notice.text


def stepped(subject: Subject, calls: int) -> None:
    subject.reset()
    for actions in subject.draw(np.random.default_rng(0), calls):
        subject.step(actions)


@pytest.mark.parametrize("package", ["gymnasium", "pettingzoo"])
def test_a_missing_package_is_named_with_the_line_that_installs_it(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    prefix = {"gymnasium": "gym"}.get(package, package)
    with pytest.raises(MissingError, match=rf"{package} is not installed: .*pip install .*\[envs\]'"):
        open_target(Target(f"{prefix}:whatever", {}))


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("nan", "observations is not a number (NaN)"),
        ("reward", "rewards is not a number (NaN)"),
        ("outside", "the observation is not in its space: float32 [3] from 1 to 1000 in Box"),
        ("shape", "the observation is not in its space: float32 [5]"),
    ],
)
def test_an_env_that_breaks_its_interface_is_told_so_and_measured(fault: str, said: str) -> None:
    subject = open_target(Target("support.theirs:faulty", {"fault": fault}))
    stepped(subject, 5)
    notices = [notice.text for notice in subject.faults() if notice.code == "interface"]
    assert any(said in text for text in notices), notices
    assert "at step 1" in notices[0]


def test_a_space_that_cannot_say_what_is_in_it_is_held_against_nobody() -> None:
    subject = open_target(Target("support.theirs:make"))
    subject.env.observation_space = SimpleNamespace(shape=(3,))  # type: ignore[attr-defined]
    stepped(subject, 5)
    assert subject.faults() == ()


def test_arrays_of_other_libraries_are_in_spaces_as_numpys_are() -> None:
    class Theirs:
        def __init__(self, value: object) -> None:
            self.value = value

        def __array__(self, *_: object, **__: object) -> object:
            return np.array(self.value)

    space = gymnasium.spaces.Dict({"n": gymnasium.spaces.Discrete(3), "x": gymnasium.spaces.MultiBinary(2)})
    assert contains(space, in_numpy({"n": Theirs(2), "x": Theirs(np.ones(2, np.int8))}))
    assert not contains(space, in_numpy({"n": Theirs(3), "x": Theirs(np.ones(2, np.int8))}))


COUNTING = """
class Env:
    made, closed, num_actions = 0, 0, 2
    def __init__(self):
        self.steps = 0
        type(self).made += 1
    def reset(self, seed=None):
        return 0.0
    def step(self, action):
        self.steps += 1
        return 0.0, 0.0, False, False, {}
    def close(self):
        type(self).closed += 1

ONLY = Env()
def only():
    return ONLY
"""


@pytest.mark.parametrize("maker", ["Env", "only"])
def test_an_env_is_made_once_and_stepped_by_nobody_until_its_faults_are_asked_for(
    maker: str, tmp_path: Path
) -> None:
    file = tmp_path / f"counting_{maker}.py"
    file.write_text(COUNTING)
    subject = open_target(Target(f"{file}:{maker}", {}))
    env = subject.env  # type: ignore[attr-defined]
    made = {"Env": 2, "only": 1}[maker]  # one of them when the file is imported
    assert (env.steps, env.made, env.closed) == (0, made, 0)
    assert subject.faults() == ()
    assert (env.steps, env.made, env.closed) == (16, made, 0)


def test_an_env_that_does_not_say_its_actions_has_its_reset_looked_at(tmp_path: Path) -> None:
    file = tmp_path / "silent.py"
    file.write_text(
        COUNTING.replace(", num_actions = 0, 0, 2", " = 0, 0").replace(
            "return 0.0\n", "return float('nan')\n"
        )
    )
    subject = open_target(Target(f"{file}:Env", {}))
    (notice,) = subject.faults()
    assert "observations is not a number (NaN)" in notice.text
    assert "at the reset" in notice.text


def test_discrete_actions_are_numpys_as_gymnasiums_own_are() -> None:
    subject = open_target(Target("gym:CartPole-v1"))
    drawn = subject.draw(np.random.default_rng(0), 3)
    assert {type(action) for action in drawn} == {type(gymnasium.make("CartPole-v1").action_space.sample())}


def test_an_id_is_found_where_a_package_of_the_current_folder_registers_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        "import gymnasium\n"
        "from gymnasium.envs.classic_control.cartpole import CartPoleEnv\n"
        "gymnasium.register('{name}', entry_point=CartPoleEnv)\n"
    )
    (tmp_path / "mypkg_here.py").write_text(source.format(name="Mine-v0"))
    (tmp_path / "other_here.py").write_text(source.format(name="Other_Here/Mine-v0"))
    (tmp_path / "motorway_env.py").write_text(source.format(name="motorway-fast-v0"))
    (tmp_path / "slow_bird_gymnasium.py").write_text(source.format(name="SlowBird-v0"))
    monkeypatch.chdir(tmp_path)
    names = ("mypkg_here:Mine-v0", "Other_Here/Mine-v0", "motorway-fast-v0", "SlowBird-v0")
    try:
        for name in (f"gym:{each}" for each in names):
            open_target(Target(name)).close()
    finally:
        for name in ("Mine-v0", *names[1:]):
            gymnasium.registry.pop(name, None)


def test_an_id_that_nobody_registers_says_how_to_name_who_does() -> None:
    with pytest.raises(InputError, match="gym:package:ID"):
        open_target(Target("gym:Nobody-v0"))


def test_what_is_just_outside_of_a_space_can_be_told_from_its_edge() -> None:
    assert described(np.array([0.5, np.nextafter(1, 2)])) == "float64 [2] from 0.5 to 1.0000000000000002"


def test_an_attribute_of_pettingzoo_is_read_from_the_layer_that_has_it() -> None:
    from pettingzoo.classic import tictactoe_v3
    from pettingzoo.utils import BaseWrapper

    from hotloop.envs.foreign.zoo import layer_of

    class Doubled(BaseWrapper):  # type: ignore[type-arg]
        @property
        def rewards(self) -> dict[str, float]:
            return {agent: 2 * each for agent, each in self.env.rewards.items()}

    env = tictactoe_v3.env()
    env.reset()
    assert layer_of(env, "agent_selection") is env.unwrapped
    doubled = Doubled(env)
    assert layer_of(doubled, "rewards") is doubled
    assert layer_of(doubled, "agents") is env.unwrapped
