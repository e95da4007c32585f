"""Equality: everything that a subject shows, and the first place where two of them differ."""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError, SetupError
from hotloop.core.record import BYTES, Difference, field_words
from hotloop.envs.subject import Subject
from hotloop.lab.measure.policy import acting
from hotloop.lab.validate.streams import FOREIGN, Streams

Place = tuple[int, ...]

USUAL_TOLERANCE = 1e-6

EXPECTED = "expected bytes, ulp:N (such as ulp:4), tolerance or tolerance:T (such as tolerance:1e-6)"

NEXT = "next_"
"""What names of fields begin with of what the next episode begins with."""

STEPS = 500

BOX_NS = 1_500_000_000
"""A slow side gets fewer steps: as many as fit, and one at least."""

TEXT = "U"

NOWHERE = "nothing"
"""What a side says in a field that it does not show."""

NEEDED = ("observations", "rewards", "terminals", "truncations")
"""What every subject answers, in one field or several (`observations.left`); others where both have them."""

Answers = Mapping[str, NDArray[Any]]

Shown = dict[str, NDArray[Any]]

STATE = "digest"

RANDOM = "random"
"""What the fields of the whole state, and of random numbers, are called or begin with."""

CAUSES = ("terminals", "truncations", "rewards")
"""Looked at first: a flag that is wrong spoils all the rest, since an episode begins too late or too soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closeness:
    """A way to compare."""

    mode: str = BYTES
    apart: Callable[[NDArray[Any], NDArray[Any]], NDArray[np.bool_]] | None = None
    """Which floating-point numbers are too far from each other; None where bytes are compared."""

    def first_place(self, a: NDArray[Any], b: NDArray[Any]) -> Place | None:
        """Where two arrays of one shape and type first differ."""
        if a.tobytes() == b.tobytes():
            return None
        if self.apart is None or a.dtype.kind != "f":
            return first_byte(a, b)
        far = self.apart(a, b)
        return tuple(int(i) for i in np.argwhere(far)[0]) if far.any() else None

    @property
    def compares_state(self) -> bool:
        """Whether a hash of the state means anything: only where every bit has to be the same."""
        return self.apart is None


EXACT = Closeness()


def closeness_of(word: str) -> Closeness:
    """The way to compare that a word stands for."""
    kind, _, bound = word.partition(":")
    try:
        if kind == BYTES and not bound:
            return EXACT
        if kind == "ulp" and int(bound) >= 0:
            return Closeness(mode=f"ulp:{int(bound)}", apart=beyond_ulps(int(bound)))
        if kind == "tolerance":
            tolerance = float(bound or USUAL_TOLERANCE)
            if 0 <= tolerance < np.inf:
                return Closeness(mode=f"tolerance:{tolerance:g}", apart=beyond(tolerance))
    except ValueError:
        pass
    raise InputError(f"--mode {word} does not fit: {EXPECTED}")


def first_byte(a: NDArray[Any], b: NDArray[Any]) -> Place:
    """Where the bytes of two arrays first differ; values alone would not tell 0.0 from -0.0."""
    one, other = (np.frombuffer(array.tobytes(), np.uint8) for array in (a, b))
    at = int(np.argmax(one != other)) // a.dtype.itemsize
    return tuple(int(i) for i in np.unravel_index(at, a.shape))


def beyond_ulps(most: int) -> Callable[[NDArray[Any], NDArray[Any]], NDArray[np.bool_]]:
    """Further apart than so many representable numbers; NaN is equal to NaN and to nothing else."""

    def apart(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
        one, other = ranks(a), ranks(b)
        gap = np.where(one > other, one - other, other - one).view(np.uint64)
        far: NDArray[np.bool_] = (gap > most) & ~(np.isnan(a) & np.isnan(b)) | (np.isnan(a) != np.isnan(b))
        return far

    return apart


def ranks(array: NDArray[Any]) -> NDArray[np.int64]:
    """The place of each number in the order of all that its type can hold; both zeros have one."""
    bits = array.view(f"i{array.dtype.itemsize}")
    lowest = np.iinfo(bits.dtype).min
    return np.where(bits < 0, lowest - bits, bits).astype(np.int64)


def beyond(tolerance: float) -> Callable[[NDArray[Any], NDArray[Any]], NDArray[np.bool_]]:
    """Further apart than the tolerance, and than that share of the reference's size on top."""

    def apart(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
        close: NDArray[np.bool_] = np.isclose(b, a, rtol=tolerance, atol=tolerance, equal_nan=True)
        return ~close

    return apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How much of two sides was compared, and where they first differed."""

    steps: int
    envs: int
    comparisons: int
    """One is one agent's full output at one step."""
    fields: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """What could not be compared."""
    difference: Difference | str | None
    """Where they first differed; in words where only hashes were compared."""


def replay_both(a: Subject, b: Subject, *, steps: int = STEPS, box_ns: int = BOX_NS) -> Agreement:
    """Replay two sides and close them."""
    with closing(a), closing(b):
        return replay(a, b, steps=steps, box_ns=box_ns)


def replay(
    a: Subject,
    b: Subject,
    *,
    steps: int = STEPS,
    box_ns: int = BOX_NS,
    policy: str = "random",
    ignore: Sequence[str] = (),
) -> Agreement:
    """Reset both and step them through the same actions; a side of more envs is looked at in part.

    Each side gets a copy of the actions, since it may change what it is given. What only one side shows
    after the reset is left out, and so is what only one ever shows where one is ours and the other is not.
    """
    envs, agents = min(a.spec.num_envs, b.spec.num_envs), a.spec.agents
    if b.spec.agents != agents:
        raise InputError(f"{agents} agents against {b.spec.agents}: these cannot play one tape")
    wide = a if a.spec.num_envs >= b.spec.num_envs else b
    streams = Streams((a, b))
    for subject in (a, b):
        with streams.of(subject):
            subject.reset()
    script = acting(policy, wide)
    replayed = Replayed(a, b, ignore)
    begin, played = now_ns(), 0
    replayed.compare(0, snapshot(a, (), envs), snapshot(b, (), envs))
    while replayed.difference is None and played < steps:
        chosen = next(script)
        actions = {wide.spec.num_envs: chosen}
        if a.spec.num_envs != b.spec.num_envs:
            actions[envs] = cut(chosen, envs)
        played += 1
        replayed.compare(
            played, *(stepped(each, actions[each.spec.num_envs], envs, streams) for each in (a, b))
        )
        if now_ns() - begin > box_ns:
            break
    return Agreement(
        steps=played,
        envs=envs,
        comparisons=(played + 1) * envs * agents,
        fields=tuple(sorted(replayed.fields)),
        left_out=tuple(sorted(replayed.left_out)),
        difference=replayed.difference,
    )


def stepped(subject: Subject, actions: Any, envs: int, streams: Streams) -> Shown:
    """Step one side with actions of its own, and keep what it says before the other one moves."""
    with streams.of(subject):
        subject.step(deepcopy(actions))
    return snapshot(subject, (), envs)


class Replayed:
    """What two sides that are stepped alike have shown so far."""

    def __init__(self, a: Subject, b: Subject, ignore: Sequence[str]) -> None:
        self._sides = (a, b)
        self._ignore = tuple(ignore)
        ours, theirs = (shown(side) for side in self._sides)
        check_answered(a.everything(), b.everything())
        self.left_out = {*ours} ^ {*theirs}
        self._mixed = (a.spec.impl == FOREIGN) != (b.spec.impl == FOREIGN)
        self.fields: set[str] = set()
        self.difference: Difference | None = None

    def compare(self, step: int, ours: Shown, theirs: Shown) -> None:
        """Compare everything at one moment."""
        if self._mixed:
            self.left_out |= {*ours} ^ {*theirs}
        self.left_out |= {name for side in self._sides for name in side.unseen()}
        self.left_out |= {name for name in (*ours, *theirs) if is_ignored(name, self._ignore)}
        one, other = (
            {n: rows for n, rows in each.items() if n not in self.left_out} for each in (ours, theirs)
        )
        self.fields |= {*one}
        self.difference = one_sided(step, one, other) or first_of(step, one, other)


def one_sided(step: int, ours: Shown, theirs: Shown) -> Difference | None:
    """A field that one side shows at this moment and the other does not."""
    for name in (*ours, *theirs):
        if name not in ours or name not in theirs:
            said = [described(side[name]) if name in side else NOWHERE for side in (ours, theirs)]
            return Difference(step=step, field=name, index=(), a=said[0], b=said[1])
    return None


def described(array: Any) -> str:
    return f"{array.dtype} {list(array.shape)}" if array.size != 1 else str(array.reshape(-1)[0])


def check_answered(a: Answers, b: Answers) -> None:
    """Refuse sides that lack what every subject answers, or of whose fields one is a buffer seen twice."""
    answered = {name.partition(".")[0] for name in a if name in b}
    missing = [name for name in NEEDED if name not in answered]
    if missing:
        raise InputError(f"the sides do not both answer with {', '.join(missing)}: they cannot be compared")
    shared = [name for name in a if name in b and np.may_share_memory(a[name], b[name])]
    if shared:
        raise SetupError(f"both sides show the same memory as {', '.join(shared)}: that proves nothing")


def cut(actions: Any, num_envs: int) -> Any:
    """The actions of the first envs, for a side that has fewer."""
    return np.ascontiguousarray(actions[:num_envs])


def first_of(step: int, a: Answers, b: Answers, closeness: Closeness = EXACT) -> Difference | None:
    """The first byte that differs, or number that is too far off, field by field."""
    for name, rows in a.items():
        ours, theirs = as_wide(rows, b[name])
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            one, other = (f"{array.dtype} {list(array.shape)}" for array in (ours, theirs))
            return Difference(step=step, field=name, index=(), a=one, b=other)
        at = closeness.first_place(ours, theirs)
        if at is not None:
            return Difference(step=step, field=name, index=at, a=str(ours[at]), b=str(theirs[at]))
    return None


def as_wide(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Texts of one type, which is otherwise as wide as the longest of each; anything else as it is."""
    if a.dtype.kind == b.dtype.kind == TEXT:
        wide = np.promote_types(a.dtype, b.dtype)
        return a.astype(wide), b.astype(wide)
    return a, b


def shown(subject: Subject) -> Shown:
    """Everything that can be seen of a subject now; the arrays may be its own."""
    answers = {**subject.everything(), **random_states(subject)}
    causes = [name for cause in CAUSES for name in answers if name.partition(".")[0] == cause]
    return {name: answers[name] for name in (*causes, *(each for each in answers if each not in causes))}


def snapshot(subject: Subject, left_out: Sequence[str], envs: int) -> Shown:
    """Copies of what a subject shows, so that nothing it does later can change them."""
    left = tuple(left_out)
    return {name: rows[:envs].copy() for name, rows in shown(subject).items() if not is_ignored(name, left)}


def is_ignored(name: str, ignore: Sequence[str]) -> bool:
    return any(is_within(name, each) for each in ignore)


def is_within(name: str, part: str) -> bool:
    """Whether a field is the named one, or a part of it: `infos.time` of `infos`.

    What an episode begins with, in the step that ends the one before, is the same field.
    """
    return any(each == part or each.startswith(f"{part}.") for each in (name, name.removeprefix(NEXT)))


def check_ignored(ignore: Sequence[str], names: Collection[str]) -> None:
    """Refuse to ignore what is never shown: it is a slip of the pen."""
    for each in ignore:
        if not any(is_within(name, each) for name in names):
            raise InputError(
                f"--ignore {each}: there is no such field; there are {field_words(sorted(names))}"
            )


def random_states(subject: Subject) -> Shown:
    """A hash of every generator that all envs of a subject keep."""
    states = [{name: hashed(each) for name, each in env.items()} for env in subject.generators()]
    names = set.intersection(*map(set, states)) if states else set()
    return {
        f"{RANDOM}.{name.lstrip('_')}": np.array([state[name] for state in states], np.uint64)
        for name in sorted(names)
    }


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


def field_hashes(subject: Subject) -> dict[str, str]:
    """A hash of each field of all that a subject shows now, but for what cannot be compared."""
    unseen = subject.unseen()
    return {name: field_hash(rows) for name, rows in shown(subject).items() if name not in unseen}


def field_hash(array: NDArray[Any]) -> str:
    total = hashlib.blake2b(f"{array.dtype.str} {array.shape}".encode(), digest_size=8)
    total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def row_hashes(moment: Mapping[str, NDArray[Any]]) -> NDArray[np.uint64]:
    """One hash an env of everything at a moment."""
    rows = [np.ascontiguousarray(array) for array in moment.values()]
    return np.array([row_hash(rows, env) for env in range(len(rows[0]))], np.uint64)


def row_hash(rows: Sequence[NDArray[Any]], env: int) -> int:
    """Of one env; what belongs to all of them is part of each."""
    total = hashlib.blake2b(digest_size=8)
    for array in rows:
        total.update(array[min(env, len(array) - 1)].tobytes())
    return int.from_bytes(total.digest(), "big")


def check_alike(reference: Subject, candidate: Subject) -> None:
    """Refuse sides that cannot play one tape: other spaces, agents or actions, another way to begin anew."""
    one, other = reference.spec, candidate.spec
    if one.agents != other.agents:
        raise unlike_sides("agents", one.agents, other.agents)
    for what, ours, theirs in zip(
        ("an observation space", "an action space"), reference.spaces, candidate.spaces, strict=True
    ):
        if ours is not None and theirs is not None and ours != theirs:
            raise unlike_sides(what, ours, theirs)
    if reference.autoreset != candidate.autoreset:
        raise InputError(
            f"the sides have different autoreset conventions: {one.name} begins the next episode "
            f"{reference.autoreset!r}, {other.name} {candidate.autoreset!r}; make them alike"
        )


def unlike_sides(what: str, ours: object, theirs: object) -> InputError:
    one, other = (" ".join(str(each).split()) for each in (ours, theirs))
    return InputError(f"the reference has {what} of {one}, the candidate of {other}: make them alike")


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
            raise unlike_sides(name, one, other)
        if np.may_share_memory(ours, theirs):
            raise SetupError(f"both sides show the same memory as {name}: that proves nothing")
    return tuple(sorted(set(reference) ^ set(candidate)))
