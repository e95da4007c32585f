"""What an env does that its own interface forbids: said in the record, and never a crash of ours."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hotloop.core.clock import now_ns
from hotloop.core.errors import HotloopError, InputError
from hotloop.core.notices import Code, Notice, notice
from hotloop.envs.subject import Subject

STEPS = 16

BOX_NS = 200_000_000
"""A slow env is looked at for as long as this."""


def examine(subject: Subject, actions: Iterable[Any] | None = None) -> tuple[Notice, ...]:
    """Reset and step a subject a few times at random, or go on with what somebody plays.

    Each kind of fault is noted once, where it was first seen.
    """
    seen: dict[str, str] = {}
    space = subject.spaces[0]

    def look(where: str) -> None:
        for fault in faults(subject, space):
            seen.setdefault(fault.partition(":")[0], f"{fault}, {where}")

    try:
        if actions is None:
            subject.reset()
            look("at the reset")
        begin = now_ns()
        for step, chosen in enumerate(drawn(subject) if actions is None else actions, 1):
            subject.step(chosen)
            look(f"at step {step}")
            if now_ns() - begin > BOX_NS:
                break
    except HotloopError as error:  # what was measured stays so, whoever played it
        seen.setdefault("raised", str(error))
    return tuple(notice(Code.INTERFACE, target=subject.spec.name, fault=fault) for fault in seen.values())


def drawn(subject: Subject) -> Sequence[Any]:
    """Random actions; none where an env does not say what its actions are, and somebody's policy plays it."""
    try:
        return subject.draw(np.random.default_rng(0), STEPS)
    except InputError:
        return ()


def faults(subject: Subject, space: Any) -> Iterator[str]:
    answers = subject.answers()
    for name, rows in answers.items():
        if name.startswith(("observations", "rewards")) and not_a_number(rows):
            yield f"{name} is not a number (NaN): every mean of it will be none either"
    observation = in_numpy(subject.observation)
    if hasattr(space, "contains") and not contains(space, observation):
        yield f"the observation is not in its space: {described(observation)} in {described(space)}"


def in_numpy(value: Any) -> Any:
    """Arrays of other libraries as NumPy's, which a space knows."""
    if isinstance(value, Mapping):
        return {key: in_numpy(part) for key, part in value.items()}
    if type(value) is tuple:
        return tuple(map(in_numpy, value))
    return value if isinstance(value, np.generic) or not hasattr(value, "__array__") else np.asarray(value)


def not_a_number(rows: Any) -> bool:
    return rows.dtype.kind == "f" and bool(np.isnan(rows).any())


def contains(space: Any, observation: Any) -> bool:
    try:
        if space.contains(observation):
            return True
        rows = isinstance(observation, np.ndarray) and observation.shape[1:] == space.shape
        return rows and all(map(space.contains, observation))  # of a batch that has no space for all
    except (TypeError, ValueError, AttributeError, KeyError):
        return False


def described(value: Any) -> str:
    """The shape, type and range of an array, to the last digit; the name of another thing."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and value.size:
        low, high = float(np.min(value)), float(np.max(value))
        finite = math.isfinite(low) and math.isfinite(high)
        around = f" from {exactly(low)} to {exactly(high)}" if finite else ""
        return f"{value.dtype} {list(value.shape)}{around}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {described(part)}' for key, part in value.items())}}}"
    return " ".join(str(value).split())[:80]


def exactly(number: float) -> str:
    """A number that can be told from its neighbours: rounded, 1 + 2e-16 would lie in a space from 0 to 1."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)
