"""hotloop.shadow: a reference beside an env, inside a training loop that knows nothing of it."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from inspect import signature
from secrets import randbits
from types import TracebackType
from typing import Any, Self

from hotloop.core.clock import now_ns
from hotloop.core.errors import ExitCode, InputError
from hotloop.core.record.comparison import Difference, Validation
from hotloop.envs.foreign.inside import attribute
from hotloop.envs.foreign.outputs import everything
from hotloop.envs.foreign.phases import Reported
from hotloop.envs.native import FIRST, milestone_after, progress_line, say
from hotloop.lab.validate.equal import (
    Offers,
    Shown,
    check_sides_apart,
    closeness_of,
    first_of,
    read_global_rng,
    set_global_rng,
)
from hotloop.lab.validate.shadow import comparisons_of

NAMES = ("observations", "rewards", "terminals", "truncations", "infos")

# Of a step before Gymnasium, and of a VecEnv of Stable-Baselines3.
OLD_NAMES = ("observations", "rewards", "terminals", "infos")

SEED_BITS = 31

UNKNOWN = "not known: the env has no counters() to say it"

Say = Callable[[str], None]


class Shadow:
    """A reference that is given every call its env is given; all that both answer is compared."""

    def __init__(self, env: Any, reference: Any, level: str | int, mode: str, say: Say) -> None:
        self.env, self.reference = env, reference
        self.comparisons = self.steps = 0
        self.difference: Difference | None = None
        self.env_ns = self.reference_ns = 0
        """In the steps of each."""
        self._most, self._closeness, self._say = comparisons_of(str(level)), closeness_of(mode), say
        self._fields: tuple[str, ...] = ()
        self._offers = Offers()
        self._next, self._told, self._seeded, self._closed = FIRST[0], -1, False, False
        self._watched: dict[str, Any] = {}
        """Methods of the env as they were."""
        self._pending: Any = None
        halves = ("reset", "seed", "step_async", "step_wait")  # what wraps an env of Stable-Baselines3 calls
        is_vec_env = all(callable(attribute(env, name)) for name in halves[1:])
        for name in halves if is_vec_env else ("reset", "step"):
            self._watch(name)

    @property
    def done(self) -> bool:
        """Whether there is nothing left to compare."""
        enough = self._most is not None and self.comparisons >= self._most
        return enough or self.difference is not None or self._closed

    @property
    def timing_ratio(self) -> float | None:
        """How many times as long the reference's steps took."""
        return self.reference_ns / self.env_ns if self.env_ns and self.reference_ns else None

    @property
    def validation(self) -> Validation:
        """What was compared so far."""
        return Validation(
            comparisons=self.comparisons,
            mismatches=int(self.difference is not None),
            timing_ratio=self.timing_ratio,
            mode=self._closeness.mode,
            against=type(self.reference).__name__,
            fields=self._fields,
            left_out=tuple(sorted(self._offers.one_sided)),
            difference=self.difference,
        )

    @property
    def exit_code(self) -> ExitCode:
        """For a script that ends with it: 2 if something differed, 4 if nothing was compared."""
        if self.difference is not None:
            return ExitCode.MISMATCH
        return ExitCode.FINE if self.comparisons else ExitCode.CANNOT_TELL

    def close(self) -> None:
        """Leave the env as it was, say what was compared, and close the reference."""
        if self._closed:
            return
        self._closed = True
        for name in self._watched:
            vars(self.env).pop(name, None)
        if self._told < self.comparisons:
            self._tell()
        if self._most is not None and self.difference is None and self.comparisons < self._most:
            self._say(f"  the loop ended after {self.comparisons:,} of {self._most:,} comparisons")
        for side, env in (("env", self.env), ("reference", self.reference)):
            self._say(f"  counted by the {side}: {counted(env)}")
        ending = attribute(self.reference, "close")
        if callable(ending):
            ending()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _watch(self, name: str) -> None:
        method = attribute(self.env, name)
        if not callable(method):
            return
        self._watched[name] = method
        try:
            setattr(self.env, name, partial(getattr(self, f"_{name}"), method))
        except (AttributeError, TypeError):
            kind = type(self.env).__name__
            raise InputError(f"a {kind} lets nobody set {name}: put it into a wrapper first") from None

    def _reset(self, method: Callable[..., Any], *given: Any, **more: Any) -> Any:
        if not self._seeded and not given and more.get("seed") is None:
            more |= self._first_seed(method)
        self._seeded = True
        return self._both(method, self.reference.reset, given, more, reset=True)

    def _first_seed(self, method: Callable[..., Any]) -> dict[str, int]:
        """Have both begin alike if the loop gives no seed."""
        seed = randbits(SEED_BITS)
        if "seed" in signature(method).parameters:
            return {"seed": seed}
        for side in (self.env, self.reference):
            if callable(attribute(side, "seed")):
                side.seed(seed)
        return {}

    def _seed(self, method: Callable[..., Any], *given: Any, **more: Any) -> Any:
        self._seeded = True
        if not self.done:
            self.reference.seed(*given, **more)
        return method(*given, **more)

    def _step(self, method: Callable[..., Any], *given: Any, **more: Any) -> Any:
        return self._both(method, self.reference.step, given, more, reset=False)

    def _step_async(self, method: Callable[..., Any], actions: Any) -> Any:
        self._pending = deepcopy(actions)
        return method(actions)

    def _step_wait(self, method: Callable[..., Any]) -> Any:
        actions = self._pending
        return self._both(lambda _: method(), self.reference.step, (actions,), {}, reset=False)

    def _both(
        self,
        ours: Callable[..., Any],
        theirs: Callable[..., Any],
        given: tuple[Any, ...],
        more: Mapping[str, Any],
        *,
        reset: bool,
    ) -> Any:
        """Call the env, then the reference with the same arguments and random numbers, and compare."""
        if self.done:
            return ours(*given, **more)
        copies, before = deepcopy(given), read_global_rng()
        answer, env_ns = timed(ours, given, more)
        shown = parts_of(self.env, answer, reset=reset)
        kept, after = {name: rows.copy() for name, rows in shown.items()}, read_global_rng()
        set_global_rng(before)  # the reference draws what the env drew, whatever the loop draws in between
        try:
            again, reference_ns = timed(theirs, copies, more)
        finally:
            set_global_rng(after)
        if not reset:
            self.steps += 1
            self.env_ns, self.reference_ns = self.env_ns + env_ns, self.reference_ns + reference_ns
        self._compare(parts_of(self.reference, again, reset=reset), shown, kept, agents_of(self.env, answer))
        return answer

    def _compare(self, reference: Shown, shown: Shown, kept: Shown, agents: int) -> None:
        if not self.comparisons:
            check_sides_apart(reference, shown)
        self._fields = tuple(dict.fromkeys((*self._fields, *kept)))
        self.comparisons += agents
        self.difference = self._offers.compare(self.steps, reference, kept) or first_of(
            self.steps, reference, kept, self._closeness
        )
        if self.difference:
            self._say(f"shadow of {self.name}: MISMATCH at {self.difference}; the env goes on alone")
        elif self.comparisons >= self._next:
            self._next = milestone_after(self.comparisons)
            self._tell()

    @property
    def name(self) -> str:
        return type(attribute(self.env, "unwrapped", self.env)).__name__

    def _tell(self) -> None:
        self._told, mismatches = self.comparisons, int(self.difference is not None)
        self._say(
            progress_line(self.name, self.comparisons, mismatches, self.timing_ratio, ("the reference", "it"))
        )


def shadow(
    env: Any, reference: Any, level: str | int = "true", *, mode: str = "bytes", say: Say = say
) -> Shadow:
    """Compare an env with a reference at every reset and step of whatever drives it.

        with hotloop.shadow(env, reference, "soak") as shadow:
            PPO("MlpPolicy", env).learn(100_000)
        sys.exit(shadow.exit_code)

    The env itself is watched: give the loop the same object, in as many wrappers as it likes. Both are given
    the same seed at the first reset. `level` is how much to compare: `smoke`, `soak`, a number of
    comparisons, or `true` for all; then, and after the first difference, the env goes on alone. `mode` is
    `bytes`, `ulp:N` or `tolerance:T`. A line on stderr says how much was compared after 1,000, 10,000 and
    every 100,000 comparisons and at the end, with the `counters()` of both sides.
    """
    if env is reference:
        raise InputError("the reference is the env itself: make another one")
    for side in (env, reference):
        if not (callable(attribute(side, "reset")) and callable(attribute(side, "step"))):
            raise InputError(f"a {type(side).__name__} has no reset and step: it cannot be shadowed")
    return Shadow(env, reference, level, mode, say)


def timed(function: Callable[..., Any], given: tuple[Any, ...], more: Mapping[str, Any]) -> tuple[Any, int]:
    begin = now_ns()
    answer = function(*given, **more)
    return answer, now_ns() - begin


def parts_of(env: Any, answer: Any, *, reset: bool) -> Shown:
    """Return all that an env answered as named arrays, which may be its own."""
    if answer is None and callable(attribute(env, "last")):
        answer, reset = env.last(), False  # PettingZoo's AEC shows nothing by itself
    if reset:
        is_pair = isinstance(answer, tuple) and len(answer) == 2
        return everything(dict(zip(("observations", "infos"), answer if is_pair else [answer], strict=False)))
    if not isinstance(answer, tuple):
        return everything({"answer": answer})
    return everything(dict(zip(OLD_NAMES if len(answer) == 4 else NAMES, answer, strict=False)))


def agents_of(env: Any, answer: Any) -> int:
    """Return whose outputs an answer holds: agents by name, or those of every env."""
    observed = answer[0] if isinstance(answer, tuple) and answer else answer
    agents = attribute(env, "possible_agents")
    if agents and isinstance(observed, Mapping):
        return len(observed)
    counts = [attribute(env, name, 1) for name in ("num_envs", "num_agents")]
    envs, each = (count if isinstance(count, int) and count > 0 else 1 for count in counts)
    return envs * (1 if agents else each)


def counted(env: Any) -> str:
    """Return what an env counted itself, which attests the path that ran."""
    counters = Reported(lambda: env).counters()
    return ", ".join(f"{name} {count:,}" for name, count in counters.items()) or UNKNOWN
