"""What passes between two processes of ours, and what does not."""

import random
from collections import OrderedDict
from enum import IntEnum
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from hotloop.core.errors import ExitCode, InputError, TheirError
from hotloop.core.settings import Target
from hotloop.envs.projects import Opaque, receive, send
from hotloop.worlds.grid import world


class Colour(IntEnum):
    RED = 3


class Pair(NamedTuple):
    one: int
    two: str


class Action:
    """An object that only the measured program knows."""

    def __reduce__(self) -> Any:
        raise AssertionError("it was pickled")

    def __str__(self) -> str:
        return "an action"


def passed(value: Any) -> Any:
    ours, theirs = Pipe()
    send(ours, value)
    return receive(theirs)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [1, 2.5, float("inf"), "x", True, 1 << 70],
        {"a": (1, {2, 3}), 4: frozenset([5]), None: b"\0\1"},
        Target("grid/toy", {"size": 3}),
        ExitCode.USAGE,
        Path("/tmp/x"),
        np.float32(0.1),
        world,
    ],
)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    back = passed(value)
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.int16).reshape(2, 3)[:, ::2],
        np.zeros((0, 4)),
        np.array(3.5),
        np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
        np.array([[1, "two"], [None, 4.0]], dtype=object),
        np.array(["2026-11-19"], dtype="datetime64[D]"),
    ],
)
def test_an_array_comes_back_as_it_was(array: np.ndarray[Any, Any]) -> None:
    back = passed(array)
    assert (back.dtype, back.shape, back.tolist()) == (array.dtype, array.shape, array.tolist())


def test_subclasses_come_back_as_what_they_are_made_of() -> None:
    assert passed([Colour.RED, Pair(1, "x"), OrderedDict(a=1)]) == [3, (1, "x"), {"a": 1}]


def test_a_generator_comes_back_in_its_state() -> None:
    for ours in (np.random.default_rng(3), np.random.RandomState(3)):
        assert passed(ours).uniform() == ours.uniform()
    python = random.Random(3)
    assert passed(python).random() == python.random()


def test_an_error_comes_back_with_its_class_and_words() -> None:
    back = passed(TheirError("it raised"))
    assert (type(back), str(back)) == (TheirError, "it raised")


def test_an_object_of_a_program_is_its_text_and_goes_no_further() -> None:
    back = passed({"action": Action()})["action"]
    assert (back, str(back)) == (Opaque(f"{__name__}.Action", "an action"), "an action")
    with pytest.raises(InputError, match=r"Action cannot pass between processes"):
        passed(back)
