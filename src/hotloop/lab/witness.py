"""Witness: all that a subject shows at one moment, and whether two can be held against each other."""

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError, SetupError
from hotloop.envs.batch import Batch
from hotloop.envs.subject import Subject
from hotloop.lab.equality import NEEDED

Shown = dict[str, NDArray[Any]]

STATE = "digest"
RANDOM = "random"
"""What the fields of the whole state, and of random numbers, are called or begin with."""
CAUSES = ("terminals", "truncations", "rewards")
"""Looked at first: a flag that is wrong spoils all the rest, since an episode begins too late or too soon."""
GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)


def shown(subject: Subject) -> Shown:
    """Everything that can be seen of a subject now; the arrays may be its own."""
    read = getattr(subject, "everything", subject.answers)
    answers = {**read(), **random_states(subject)}
    causes = [name for cause in CAUSES for name in answers if name.partition(".")[0] == cause]
    return {name: answers[name] for name in (*causes, *(each for each in answers if each not in causes))}


def snapshot(subject: Subject, left_out: Sequence[str], envs: int) -> Shown:
    """Copies of what a subject shows, so that nothing it does later can change them."""
    return {name: rows[:envs].copy() for name, rows in shown(subject).items() if name not in left_out}


def random_states(subject: Subject) -> Shown:
    """A hash of every generator that an env of somebody else's keeps."""
    env = getattr(subject, "env", None)
    inner = getattr(env, "unwrapped", env)
    envs = [getattr(each, "unwrapped", each) for each in getattr(inner, "envs", [inner])]
    states = [
        {name: hashed(value) for name, value in getattr(each, "__dict__", {}).items() if is_generator(value)}
        for each in envs
    ]
    names = set.intersection(*map(set, states)) if states else set()
    return {
        f"{RANDOM}.{name.lstrip('_')}": np.array([state[name] for state in states], np.uint64)
        for name in sorted(names)
    }


def is_generator(value: object) -> bool:
    return isinstance(value, GENERATORS)


def hashed(generator: Any) -> int:
    """A hash of a generator's state."""
    if isinstance(generator, np.random.Generator):
        state: object = generator.bit_generator.state
    elif isinstance(generator, np.random.RandomState):
        state = generator.get_state(legacy=False)
    else:
        state = generator.getstate()
    return int.from_bytes(hashlib.blake2b(spelled(state).encode(), digest_size=8).digest(), "big")


def spelled(state: object) -> str:
    """All of a state as text; an array's own would leave out its middle."""
    return json.dumps(state, default=lambda array: array.tolist())


def row_hashes(moment: Mapping[str, NDArray[Any]]) -> NDArray[np.uint64]:
    """One hash an env of everything at a moment."""
    rows = [np.ascontiguousarray(array) for array in moment.values()]
    return np.array([row_hash(rows, env) for env in range(len(rows[0]))], np.uint64)


def row_hash(rows: Sequence[NDArray[Any]], env: int) -> int:
    total = hashlib.blake2b(digest_size=8)
    for array in rows:
        total.update(array[env].tobytes())
    return int.from_bytes(total.digest(), "big")


def check_alike(reference: Subject, candidate: Subject) -> None:
    """Refuse sides that cannot play one tape: other spaces, agents or actions, another way to begin anew."""
    one, other = reference.spec, candidate.spec
    if one.agents != other.agents:
        raise unlike("agents", one.agents, other.agents)
    for what, ours, theirs in zip(
        ("an observation space", "an action space"), spaces(reference), spaces(candidate), strict=True
    ):
        if ours is not None and theirs is not None and ours != theirs:
            raise unlike(what, ours, theirs)
    if autoreset(reference) != autoreset(candidate):
        raise InputError(
            f"the sides have different autoreset conventions: {one.name} begins the next episode "
            f"{autoreset(reference)!r}, {other.name} {autoreset(candidate)!r}; make them alike"
        )


def unlike(what: str, ours: object, theirs: object) -> InputError:
    one, other = (" ".join(str(each).split()) for each in (ours, theirs))
    return InputError(f"the reference has {what} of {one}, the candidate of {other}: make them alike")


def spaces(subject: Subject) -> tuple[object, object]:
    """What a subject says its observations and actions are; None where it does not."""
    if isinstance(subject, Batch):
        return None, f"{subject.spec.num_actions} actions"
    env = getattr(subject, "env", None)
    found = (getattr(env, name, None) for name in ("observation_space", "action_space"))
    observation, action = (None if callable(space) else space for space in found)
    return observation, action


def autoreset(subject: Subject) -> str:
    """When the next episode begins after one that ended."""
    if isinstance(subject, Batch):
        return "SameStep" if subject.spec.settings.autoreset else "Disabled"
    return str(getattr(subject, "autoreset", "by itself"))


def check_shown(reference: Shown, candidate: Shown) -> tuple[str, ...]:
    """Refuse arrays that are unlike or the same memory; returns the fields that only one side has."""
    answered = {name.partition(".")[0] for name in reference if name in candidate}
    missing = [name for name in NEEDED if name not in answered]
    if missing:
        raise InputError(f"the sides do not both answer with {', '.join(missing)}: they cannot be compared")
    for name, ours in reference.items():
        theirs = candidate.get(name)
        if theirs is None:
            continue
        if ours.shape[1:] != theirs.shape[1:] or ours.dtype != theirs.dtype:
            one, other = (f"{array.dtype} {list(array.shape[1:])}" for array in (ours, theirs))
            raise unlike(name, one, other)
        if np.may_share_memory(ours, theirs):
            raise SetupError(f"both sides show the same memory as {name}: that proves nothing")
    return tuple(sorted(set(reference) ^ set(candidate)))
