"""Outputs are values that exist when a step returns: what computes them on reading is refused."""

import collections
import dataclasses
import enum
import functools
import re
import types
from fractions import Fraction
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pytest
import torch

from hotloop.core.errors import ExitCode, InputError
from hotloop.core.settings import Target
from hotloop.envs.foreign.outputs import check_output
from hotloop.envs.open import open_target
from hotloop.lab.compare.compare import CompareSettings, compare
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure.loop import Plan

ROW = np.arange(4, dtype=np.float32)


class Lazy:
    """What claims to be an array and computes it for its reader."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return ROW.copy()


class LazyArray(np.ndarray):
    def __getitem__(self, at: Any) -> Any:
        return ROW[at]


class LazyDict(dict[str, Any]):
    def __getitem__(self, name: str) -> Any:
        return ROW


class LazyList(list[Any]):
    def __iter__(self) -> Any:
        return iter(ROW)


class LazyMapping(collections.abc.Mapping[str, Any]):
    def __getitem__(self, name: str) -> Any:
        return ROW

    def __iter__(self) -> Any:
        return iter("a")

    def __len__(self) -> int:
        return 1


class LazyReward(float):
    def __float__(self) -> float:
        return 1.0


class LazyTensor(torch.Tensor):
    def __array__(self, dtype: Any = None) -> Any:
        return ROW.copy()


@dataclasses.dataclass
class LazyFields:
    row: Any

    def __getattribute__(self, name: str) -> Any:
        return ROW


@dataclasses.dataclass
class LazyField:
    """A field that nobody sets, computed by whoever asks for it."""

    row: Any = dataclasses.field(init=False)

    def __getattr__(self, name: str) -> Any:
        return ROW


@dataclasses.dataclass
class LazyCachedField:
    row: Any = dataclasses.field(init=False)


LazyCachedField.row = functools.cached_property(lambda self: ROW)
LazyCachedField.row.__set_name__(LazyCachedField, "row")


class LazyTensorOfProtocol(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return torch.from_numpy(ROW)


@dataclasses.dataclass(slots=True)
class Slotted:
    row: Any
    unset: Any = dataclasses.field(init=False)


@dataclasses.dataclass
class Delegates:
    """Its fields are its own; only what it lacks is somebody else's."""

    row: Any

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class Spelled:
    """An object whose text is all that can be compared."""

    def __repr__(self) -> str:
        return "Spelled()"


class Color(enum.IntEnum):
    RED = 1


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass
class Fields:
    row: Any
    depth: int = 0


class AttrDict(dict[str, Any]):
    """A dict as many packages have one: reading it by its keys is the dict's own business."""

    __getattr__ = dict.get


REAL = [
    None,
    True,
    1,
    1.5,
    "text",
    b"bytes",
    ROW,
    np.float32(1),
    np.ma.masked_array([1, 2], [0, 1]),
    np.array([{"a": 1}, None], object),
    torch.zeros(3),
    Fraction(1, 3),
    Color.RED,
    (1, (2, ROW)),
    [1, {"a": [ROW]}],
    {"a": {"b": ROW}},
    {1, 2},
    collections.OrderedDict(a=ROW),
    collections.defaultdict(list, a=[1]),
    collections.deque([ROW]),
    Pair(ROW, 1),
    Fields(ROW),
    Slotted(ROW),
    Delegates(ROW),
    AttrDict(a=ROW),
    types.SimpleNamespace(a=ROW),
    gymnasium.spaces.GraphInstance(ROW, ROW, ROW),
    [(0, 1), []],
]

LAZY = [
    Lazy(),
    ROW.view(LazyArray),
    LazyDict(a=1),
    LazyList([1, 2]),
    LazyMapping(),
    LazyReward(1),
    torch.zeros(3).as_subclass(LazyTensor),
    LazyFields(1),
    LazyField(),
    LazyCachedField(),
    torch.zeros(3).as_subclass(LazyTensorOfProtocol),
    (1, Lazy()),
    [ROW, [Lazy()]],
    {"a": {"b": Lazy()}},
    Pair(1, Lazy()),
    Fields(Lazy()),
    np.array([Lazy(), None], object),
    [np.array([Lazy(), None], object)],
    types.SimpleNamespace(a=Lazy()),
]


@pytest.mark.parametrize("value", REAL, ids=lambda value: type(value).__name__)
def test_values_and_containers_of_values_are_outputs(value: object) -> None:
    check_output("observations", value, declared=True)


@pytest.mark.parametrize("value", LAZY, ids=lambda value: type(value).__name__)
def test_what_computes_its_values_on_reading_is_refused(value: object) -> None:
    with pytest.raises(InputError, match=r"Lazy.*return a NumPy array"):
        check_output("infos", value)


@pytest.mark.parametrize("value", [Spelled(), (each for each in "ab"), map(str, [1])])
def test_an_unknown_object_is_no_observation_and_may_be_an_info(value: object) -> None:
    check_output("infos", value)
    with pytest.raises(InputError, match="whose values Hotloop cannot read"):
        check_output("observations", value, declared=True)


class Env(gymnasium.Env[Any, Any]):
    """Episodes of 50 steps; the observation is lazy from a call on, the reward or an info where asked."""

    observation_space = gymnasium.spaces.Box(-1, 9, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, lazy: str = "", since: int = 0) -> None:
        self.lazy, self.since, self.calls, self.t = lazy, since, 0, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.t = 0
        return self.seen(), {}

    def seen(self) -> Any:
        return Lazy() if self.is_lazy("observation") else ROW.copy()

    def is_lazy(self, what: str) -> bool:
        return self.lazy == what and self.calls >= self.since

    def step(self, action: Any) -> Any:
        self.calls += 1
        self.t += 1
        reward = LazyReward(1.0) if self.is_lazy("reward") else 1.0
        info = {"seen": Lazy()} if self.is_lazy("info") else {"other": Spelled()}
        return self.seen(), reward, False, self.t >= 50, info


HERE = f"{__name__}:Env"


@pytest.mark.parametrize("what", ["observation", "reward", "info"])
def test_a_lazy_output_is_refused_after_the_turn_that_returned_it(what: str) -> None:
    subject = open_target(Target(HERE, {"lazy": what}))
    subject.reset() if what != "observation" else None
    subject.play(subject.draw(np.random.default_rng(0), 5))
    with pytest.raises(InputError, match=f"{what}.*Lazy"):
        _ = subject.counters


@pytest.mark.parametrize("num_envs", [1, 2])
def test_what_is_lazy_only_under_the_clock_is_refused(num_envs: int) -> None:
    """The replay takes at most 500 calls, so it sees real arrays."""
    envs = {"num_envs": num_envs} if num_envs > 1 else {}
    a = TargetContender(Target(HERE, envs))
    b = TargetContender(Target(HERE, {"lazy": "info", "since": 520, **envs}))
    with pytest.raises(InputError, match=re.escape("seen")) as error:
        compare(a, b, CompareSettings(plan=Plan(budget_ns=2_000_000_000)))
    assert error.value.exit_code == ExitCode.USAGE


def test_an_info_that_nothing_can_be_read_of_is_no_fault() -> None:
    subject = open_target(Target(HERE))
    subject.reset()
    subject.play(subject.draw(np.random.default_rng(0), 5))
    assert subject.counters["env_steps"] == 5
    assert subject.everything()["observations"].tolist() == [ROW.tolist()]
    subject.close()


def test_a_dataclass_is_compared_field_by_field() -> None:
    from hotloop.envs.foreign.outputs import everything

    shown = everything({"observations": Fields(ROW, 3)})
    assert shown.keys() == {"observations.row", "observations.depth"}
