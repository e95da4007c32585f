"""Equality: everything that a subject shows, and the first place where two of them differ."""

import hashlib
import json
import random
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import now_ns
from hotloop.core.errors import Code, InputError, Notice, notice
from hotloop.core.progress import Progress, silent
from hotloop.core.record.comparison import BYTES, Difference, field_words
from hotloop.envs.subject import Subject
from hotloop.lab.measure.policy import acting

FOREIGN = "foreign"

Place = tuple[int, ...]
States = tuple[Any, Any, Any]  # Of `random`, of NumPy, and of torch; None if torch is not loaded

USUAL_TOLERANCE = 1e-6

EXPECTED = "expected bytes, ulp:N (such as ulp:4), tolerance or tolerance:T (such as tolerance:1e-6)"

NEXT = "next_"  # What names of fields begin with of what the next episode begins with

STEPS = 500

# Of every env, or one whole episode where that is shorter, before two sides count as equal
NEEDED_STEPS = 200

BOX_NS = 1_500_000_000  # Where the needed steps are done sooner, the replay goes on for as long as this
MOST_NS = 60_000_000_000  # What the needed steps may take

TEXT = "U"

NOWHERE = "nothing"  # What a side says in a field that it does not show

# What every subject answers, in one field or several (`observations.left`); others where both have them
NEEDED = ("observations", "rewards", "terminals", "truncations")

Answers = Mapping[str, NDArray[Any]]

Shown = dict[str, NDArray[Any]]

STATE = "digest"

RANDOM = "random"  # What the fields of the whole state, and of random numbers, are called or begin with

FLAGS = ("terminals", "truncations")

# Looked at first: a flag that is wrong spoils all the rest, since an episode begins too late or too soon
CAUSES = (*FLAGS, "rewards")


@dataclass(frozen=True, slots=True, kw_only=True)
class Closeness:
    """A way to compare: by bytes if it has neither a number of ULPs nor a tolerance."""

    mode: str = BYTES
    ulps: int | None = None  # Floating-point numbers may be so many representable numbers apart
    tolerance: float | None = None  # Or so far, and that share of the reference's size on top
    narrows: bool = False  # Whether floating-point numbers of unlike width are compared in the narrower type

    @property
    def compares_state(self) -> bool:
        """Whether a hash of the state means anything: only where every bit has to be the same."""
        return self.ulps is None and self.tolerance is None

    def first_place(self, a: NDArray[Any], b: NDArray[Any]) -> Place | None:
        """Return where two arrays of one shape and type first differ."""
        if a.tobytes() == b.tobytes():
            return None
        if self.compares_state or a.dtype.kind != "f":
            # values alone would not tell 0.0 from -0.0
            one, other = (np.frombuffer(array.tobytes(), np.uint8) for array in (a, b))
            at = int(np.argmax(one != other)) // a.dtype.itemsize
            return tuple(int(i) for i in np.unravel_index(at, a.shape))
        if self.ulps is None:
            far = ~np.isclose(b, a, rtol=self.tolerance or 0, atol=self.tolerance or 0, equal_nan=True)
        else:
            ranks, others = rank_floats(a), rank_floats(b)
            gap = np.where(ranks > others, ranks - others, others - ranks).view(np.uint64)
            # NaN is equal to NaN and to nothing else
            far = (gap > self.ulps) & ~(np.isnan(a) & np.isnan(b)) | (np.isnan(a) != np.isnan(b))
        return tuple(int(i) for i in np.argwhere(far)[0]) if far.any() else None


EXACT = Closeness()


def closeness_of(word: str) -> Closeness:
    """Return the way to compare that a word stands for."""
    kind, _, bound = word.partition(":")
    try:
        if kind == BYTES and not bound:
            return EXACT
        if kind == "ulp" and int(bound) >= 0:
            return Closeness(mode=f"ulp:{int(bound)}", ulps=int(bound))
        if kind == "tolerance":
            tolerance = float(bound or USUAL_TOLERANCE)
            if 0 <= tolerance < np.inf:
                return Closeness(mode=f"tolerance:{tolerance:g}", tolerance=tolerance)
    except ValueError:
        pass
    raise InputError(f"--mode {word} does not fit: {EXPECTED}")


def rank_floats(array: NDArray[Any]) -> NDArray[np.int64]:
    """Return the place of each number in the order of all that its type can hold; both zeros have one."""
    bits = array.view(f"i{array.dtype.itemsize}")
    lowest = np.iinfo(bits.dtype).min
    return np.where(bits < 0, lowest - bits, bits).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How much of two sides was compared, and where they first differed."""

    steps: int
    envs: int
    comparisons: int  # One is one agent's full output at one step
    fields: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()  # What could not be compared
    settings: frozenset[str] = frozenset()  # Those of `left_out` that the sides were given differently
    difference: Difference | str | None  # Where they first differed; in words where only hashes were compared
    all_envs: int = 0  # Of the side that has more
    # The convention of autoreset in which both were shown env by env, if interfaces or widths differ
    shown_as: str | None = None
    too_few: "TooFew | None" = None  # What is missing, where the steps do not suffice to call the sides equal


@dataclass(frozen=True, slots=True, kw_only=True)
class TooFew:
    """A replay that ended before the needed steps."""

    steps: int
    needed: int
    needed_s: float  # Seconds that the needed steps take, about

    def __str__(self) -> str:
        return f"equality: {self.steps:,} steps only"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far two sides are replayed."""

    steps: int = STEPS  # At most, unless more are needed
    needed: int = NEEDED_STEPS  # Steps of every env that suffice
    episodes: bool = True  # Whether one whole episode of every env suffices too
    box_ns: int = BOX_NS  # Time after the first step, once there are enough
    most_ns: int | None = MOST_NS  # Time after the first step, if there are not enough; None has no limit

    def is_over(self, played: int, spent_ns: int, *, enough: bool) -> bool:
        if enough:
            return played >= self.steps or spent_ns >= self.box_ns
        return self.most_ns is not None and spent_ns >= self.most_ns

    def missing(self, played: int, spent_ns: int) -> TooFew:
        """Return what to say of a replay that ended too early."""
        step_ns = spent_ns / max(played - 1, 1)
        return TooFew(steps=played, needed=self.needed, needed_s=step_ns * self.needed / 1e9)


USUAL = Reach()


def read_global_rng() -> States:
    """Return the states of the random numbers that the whole process shares."""
    generator = torch_generator()
    of_torch = None if generator is None else generator.get_state()
    return random.getstate(), np.random.get_state(legacy=False), of_torch  # noqa: NPY002 - theirs


def set_global_rng(states: States) -> None:
    """Put the random numbers of the process into earlier states."""
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002 - theirs
    if states[2] is not None:
        torch_generator().set_state(states[2])


def torch_generator() -> Any:
    """Return torch's own generator on the host; None if torch is not loaded."""
    return getattr(sys.modules.get("torch"), "default_generator", None)


class Streams:
    """The global random numbers as each side would find them if it were alone; ours draw from none of them.

    A simulator that draws from `random`, `numpy.random` or torch themselves has its own generators when it
    runs alone. All begin with what is there now, or a seed.
    """

    def __init__(self, sides: Sequence[Subject], seed: int | None = None) -> None:
        now = begin = read_global_rng()
        if seed is not None:
            random.seed(seed)
            np.random.seed(seed % 2**32)  # noqa: NPY002 - theirs
            if (generator := torch_generator()) is not None:
                generator.manual_seed(seed)
            begin = read_global_rng()
            set_global_rng(now)
        self._of = {
            id(side): begin
            for side in sides
            if side.spec.impl == FOREIGN and not getattr(side, "keeps_random_numbers", False)
        }

    @contextmanager
    def of(self, side: Subject) -> Iterator[None]:
        """Let one side draw from its own; ours draw from none of them."""
        if id(side) not in self._of:
            yield
            return
        set_global_rng(self._of[id(side)])
        try:
            yield
        finally:
            self._of[id(side)] = read_global_rng()


def replay(
    a: Subject,
    b: Subject,
    *,
    reach: Reach = USUAL,
    policy: str = "random",
    ignore: Sequence[str] = (),
    closeness: Closeness = EXACT,
    progress: Progress = silent,
) -> Agreement:
    """Reset both and step them through the same actions; a side of more envs is looked at in part.

    Each side gets a copy of the actions, since it may change what it is given. What only one side shows
    after the reset is left out, and so is what only one ever shows where one is ours and the other is not.
    The clock starts after both first steps, in which Numba and JAX compile.
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
    replayed = Replayed(a, b, ignore, closeness)
    played = begin = spent_ns = 0
    ended, enough = np.zeros(envs, bool), False
    replayed.compare(0, snapshot(a, (), envs), snapshot(b, (), envs))
    while replayed.difference is None:
        chosen = next(script)
        played += 1
        shows = []
        for side in (a, b):
            mine = chosen if side.spec.num_envs == wide.spec.num_envs else cut(chosen, envs)
            with streams.of(side):
                side.step(deepcopy(mine))
            shows.append(snapshot(side, (), envs))  # before the other one moves
        replayed.compare(played, *shows)
        begin = begin or now_ns()
        spent_ns = now_ns() - begin
        ended |= episodes_over(shows[0], envs)
        enough = played >= reach.needed or (reach.episodes and bool(ended.all()))
        progress(min(played, reach.needed), reach.needed)
        if reach.is_over(played, spent_ns, enough=enough):
            break
    return Agreement(
        steps=played,
        envs=envs,
        comparisons=(played + 1) * envs * agents,
        fields=tuple(sorted(replayed.fields - replayed.left_out)),
        left_out=tuple(sorted(replayed.left_out)),
        settings=replayed.settings,
        difference=replayed.difference,
        all_envs=wide.spec.num_envs,
        too_few=None if enough or replayed.difference else reach.missing(played, spent_ns),
    )


def episodes_over(seen: Shown, envs: int) -> NDArray[np.bool_]:
    """Return which envs ended an episode in this step, all their agents at once."""
    flags = {
        name: rows.astype(bool).reshape(envs, -1)
        for name, rows in seen.items()
        if name.partition(".")[0] in FLAGS and rows.dtype.kind in "biuf" and rows.shape[:1] == (envs,)
    }
    agents = {name.partition(".")[2] for name in flags}
    over = np.ones(envs, bool)
    for agent in agents:
        of_agent = [rows for name, rows in flags.items() if name.partition(".")[2] == agent]
        over &= np.logical_or.reduce(of_agent).all(axis=1)
    return over if agents else ~over


class Replayed:
    """What two sides that are stepped alike have shown so far."""

    def __init__(self, a: Subject, b: Subject, ignore: Sequence[str], closeness: Closeness = EXACT) -> None:
        self._sides, self._closeness = (a, b), closeness
        self._ignore = tuple(ignore)
        ours, theirs = (shown(side) for side in self._sides)
        check_answered(a.everything(), b.everything())
        check_sides_apart(a.everything(), b.everything())
        self._left_out = {*ours} ^ {*theirs}
        self._given = GivenSettings(self._sides, ours, theirs)
        self._left_out |= self._given.names
        self._offers = Offers()
        self.fields: set[str] = set()
        self.difference: Difference | None = None

    def compare(self, step: int, ours: Shown, theirs: Shown) -> None:
        """Compare everything at one moment."""
        self._left_out |= {name for side in self._sides for name in side.unseen()}
        self._left_out |= {name for name in (*ours, *theirs) if is_ignored(name, self._ignore)}
        one, other = (
            {n: rows for n, rows in each.items() if n not in self._left_out} for each in (ours, theirs)
        )
        self.fields |= {*one} & {*other}
        self.difference = (
            self._offers.compare(step, one, other)
            or first_of(step, one, other, self._closeness)
            or self._given.compare(step, ours, theirs)
        )

    @property
    def settings(self) -> frozenset[str]:
        """What the sides were given differently and no step changed."""
        return self._given.names

    @property
    def left_out(self) -> set[str]:
        """What was not compared: it cannot be, is ignored, or only one side ever shows it."""
        return self._left_out | self._offers.one_sided


class GivenSettings:
    """Settings that two sides were given unlike, which are no outputs for as long as no step changes them."""

    def __init__(self, sides: Sequence[Subject], ours: Shown, theirs: Shown) -> None:
        # the fields of a side that hold what it was made with: only models have some
        one, other = (frozenset[str](getattr(side, "settings", ())) for side in sides)
        both = sorted(one & other & {*ours} & {*theirs})
        given = {name: [spelled_out(side, name) for side in (ours, theirs)] for name in both}
        self._given = {name: values for name, values in given.items() if values[0] != values[1]}
        self.names = frozenset(self._given)

    def compare(self, step: int, ours: Shown, theirs: Shown) -> Difference | None:
        """Return the first setting that is no longer what its side was given: that one is a state."""
        for name, given in self._given.items():
            now = [spelled_out(side, name) for side in (ours, theirs)]
            if now != given:
                return Difference(step=step, field=name, index=(), a=now[0], b=now[1])
        return None


def notices_of(left_out: Iterable[str], settings: Collection[str]) -> Iterator[Notice]:
    """Yield what a reader must know of fields that were not compared."""
    for names, remedy in (
        (
            [each for each in left_out if each not in settings],
            "to compare it, let both sides show it and leave it out of --ignore",
        ),
        (
            sorted(settings),
            "it is a setting that the sides were given differently; if it is an output, name it in outputs()",
        ),
    ):
        if names:
            yield notice(Code.NOT_COMPARED, fields=field_words(names), remedy=remedy)


def spelled_out(side: Shown, name: str) -> str:
    """Return the values of a field as text."""
    return str(side[name].tolist()) if name in side else NOWHERE


class Offers:
    """Which fields each of two sides has shown so far.

    A field that only one side ever shows does not decide. One that both have, and one of them not at the
    same moments, is a difference.
    """

    def __init__(self) -> None:
        self._shown: tuple[set[str], set[str]] = (set(), set())
        # Fields that one side has shown without the other, each with the first such moment
        self._alone: dict[str, Difference] = {}

    @property
    def one_sided(self) -> set[str]:
        """Return the fields that only one side has ever shown."""
        return self._shown[0] ^ self._shown[1]

    def compare(self, step: int, ours: Shown, theirs: Shown) -> Difference | None:
        """Return where a field that both sides have was first shown by one of them alone."""
        for shown_so_far, now in zip(self._shown, (ours, theirs), strict=True):
            shown_so_far.update(now)
        for name in sorted({*ours} ^ {*theirs}):
            words = [NOWHERE, NOWHERE]
            for number, side in enumerate((ours, theirs)):
                if (rows := side.get(name)) is not None:
                    words[number] = str(rows.reshape(-1)[0]) if rows.size == 1 else form_of_array(rows)
            self._alone.setdefault(name, Difference(step=step, field=name, index=(), a=words[0], b=words[1]))
        both = (each for name, each in self._alone.items() if name not in self.one_sided)
        return min(both, key=lambda each: each.step, default=None)


def form_of_array(array: NDArray[Any]) -> str:
    """Return the type and the shape of an array in words."""
    return f"{array.dtype} {list(array.shape)}"


def check_answered(a: Answers, b: Answers) -> None:
    """Refuse sides that do not both answer what every subject does."""
    answered = {name.partition(".")[0] for name in a if name in b}
    missing = [name for name in NEEDED if name not in answered]
    if missing:
        raise InputError(f"the sides do not both answer with {', '.join(missing)}: they cannot be compared")


def check_sides_apart(a: Answers, b: Answers) -> None:
    """Refuse sides that show the same memory: they would be equal whatever they do."""
    shared = [name for name in a if name in b and np.may_share_memory(a[name], b[name])]
    if shared:
        raise InputError(
            f"both sides show the same memory as {', '.join(shared)}: give each arrays of its own"
        )


def cut(actions: Any, num_envs: int) -> Any:
    """Return the actions of the first envs, for a side that has fewer."""
    return np.ascontiguousarray(actions[:num_envs])


def first_of(step: int, a: Answers, b: Answers, closeness: Closeness = EXACT) -> Difference | None:
    """Return the first byte that differs, or number that is too far off; None if there is none."""
    for name, rows in a.items():
        if name not in b:
            continue
        ours, theirs = as_wide(rows, b[name], closeness)
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            one, other = map(form_of_array, (ours, theirs))
            return Difference(step=step, field=name, index=(), a=one, b=other)
        at = closeness.first_place(ours, theirs)
        if at is not None:
            return Difference(step=step, field=name, index=at, a=str(ours[at]), b=str(theirs[at]))
    return None


def as_wide(a: NDArray[Any], b: NDArray[Any], closeness: Closeness) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return texts in one type, which is otherwise as wide as the longest of each; anything else as it is.

    Between interfaces floating-point numbers become as narrow as the narrower side keeps them.
    """
    if closeness.narrows and a.dtype.kind == b.dtype.kind == "f":
        narrow = min(a.dtype, b.dtype, key=lambda each: each.itemsize)
        return a.astype(narrow), b.astype(narrow)
    if a.dtype.kind == b.dtype.kind == TEXT:
        wide = np.promote_types(a.dtype, b.dtype)
        return a.astype(wide), b.astype(wide)
    return a, b


def shown(subject: Subject) -> Shown:
    """Return everything that a subject shows now, causes first; the arrays may be its own."""
    answers = {**subject.everything(), **random_states(subject)}
    causes = [name for cause in CAUSES for name in answers if name.partition(".")[0] == cause]
    return {name: answers[name] for name in (*causes, *(each for each in answers if each not in causes))}


def snapshot(subject: Subject, left_out: Sequence[str], envs: int) -> Shown:
    """Return copies of what a subject shows, so that nothing it does later can change them."""
    return {
        name: rows[:envs].copy() for name, rows in shown(subject).items() if not is_ignored(name, left_out)
    }


def is_ignored(name: str, ignore: Sequence[str]) -> bool:
    """Return whether a field is one of the named ones, or a part of one."""
    return any(is_within(name, each) for each in ignore)


def is_within(name: str, part: str) -> bool:
    """Return whether a field is the named one, or a part of it: `infos.time` of `infos`.

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
    """Return a hash of every generator that all envs of a subject keep."""
    states = [{name: hash_generator(each) for name, each in env.items()} for env in subject.generators()]
    names = set.intersection(*map(set, states)) if states else set()
    return {
        f"{RANDOM}.{name.lstrip('_')}": np.array([state[name] for state in states], np.uint64)
        for name in sorted(names)
    }


def hash_generator(generator: Any) -> int:
    """Return a hash of a generator's state."""
    if isinstance(generator, np.random.Generator):
        state: object = generator.bit_generator.state
    elif isinstance(generator, np.random.RandomState):
        state = generator.get_state(legacy=False)
    else:
        state = generator.getstate()
    # all of it as text; an array's own text would leave out its middle
    text = json.dumps(state, default=lambda array: array.tolist())
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def field_hashes(subject: Subject, *, narrow: bool = False) -> dict[str, str]:
    """Return a hash of each field of all that a subject shows now, but for what cannot be compared.

    With `narrow`, floats are hashed in 32 bits, in which another interface may keep them.
    """
    unseen = subject.unseen()
    fields = {name: rows for name, rows in shown(subject).items() if name not in unseen}
    if narrow:
        fields = {
            n: rows.astype(np.float32) if rows.dtype.kind == "f" else rows for n, rows in fields.items()
        }
    return {name: field_hash(rows) for name, rows in fields.items()}


def field_hash(array: NDArray[Any]) -> str:
    """Return the hash of an array with its type and shape, in hex digits."""
    total = hashlib.blake2b(f"{array.dtype.str} {array.shape}".encode(), digest_size=8)
    total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def row_hashes(moment: Mapping[str, NDArray[Any]]) -> NDArray[np.uint64]:
    """Return one hash per env of everything at a moment."""
    rows = [np.ascontiguousarray(array) for array in moment.values()]
    return np.array([row_hash(rows, env) for env in range(len(rows[0]))], np.uint64)


def row_hash(rows: Sequence[NDArray[Any]], env: int) -> int:
    """Return the hash of one env; what belongs to all of them is part of each."""
    total = hashlib.blake2b(digest_size=8)
    for array in rows:
        total.update(array[min(env, len(array) - 1)].tobytes())
    return int.from_bytes(total.digest(), "big")


def unlike_sides(what: str, ours: object, theirs: object) -> InputError:
    one, other = (" ".join(str(each).split()) for each in (ours, theirs))
    return InputError(f"the reference has {what} of {one}, the candidate of {other}: make them alike")


def check_shown(reference: Shown, candidate: Shown, closeness: Closeness = EXACT) -> tuple[str, ...]:
    """Refuse arrays that are unlike or the same memory; returns the fields that only one side has."""
    check_answered(reference, candidate)
    for name, ours in reference.items():
        theirs = candidate.get(name)
        if theirs is None:
            continue
        one_type, other_type = (each.dtype for each in as_wide(ours, theirs, closeness))
        if ours.shape[1:] != theirs.shape[1:] or one_type != other_type:
            one, other = (f"{array.dtype} {list(array.shape[1:])}" for array in (ours, theirs))
            raise unlike_sides(name, one, other)
        check_sides_apart({name: ours}, {name: theirs})
    return tuple(sorted(set(reference) ^ set(candidate)))
