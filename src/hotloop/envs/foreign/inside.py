"""Reach into an env that the user wrote: attributes, wrappers, spans around its methods, and its errors.

Also its actions: how random ones are drawn before the clock starts, and which are legal now.
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import HotloopError, InputError, TheirError
from hotloop.core.process import lifeline
from hotloop.core.spans import span
from hotloop.envs.batch import Batch
from hotloop.envs.callables import last_words, message_of

ENV_STEP = "env.step"

ENV_RESET = "env.reset"

OBSERVE = "observation encoding"

# What Gymnasium puts around every env that it makes: `self`, since a look costs more than they do.
BY_MAKE = ("PassiveEnvChecker", "OrderEnforcing", "TimeLimit")

# What environments call the method that encodes what an agent sees.
ENCODERS = ("_get_obs", "_get_observation", "_observe", "observe", "get_time_step")


def is_a(env: object, module: str, name: str) -> bool:
    """Whether an object is of a class of a package, without importing the package."""
    home = sys.modules.get(module)
    return home is not None and isinstance(env, getattr(home, name, ()))


def plain(value: object) -> object:
    """A value as a record can keep it."""
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def in_span(name: str, function: Callable[..., Any], *, timed: bool) -> Callable[..., Any]:
    """The function itself, or with each call in a span, over when what it returned is there."""
    return span(name)(awaited(function)) if timed else function


def awaited(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, unless JAX is in use: then what it returned is waited for.

    Otherwise the row of the first reader of a result would have the time.
    """
    if "jax" not in sys.modules:
        return function

    def called(*given: Any, **more: Any) -> Any:
        return ready(function(*given, **more))

    return called


def ready(value: Any) -> Any:
    """A value when it is there, of which JAX or a GPU may have only begun the arrays."""
    jax, torch = sys.modules.get("jax"), sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return value if jax is None else jax.block_until_ready(value)


def time_method(owner: object, method: str, name: str) -> bool:
    """Put the calls of one object's method into a span, if it has such a method of its class's."""
    function = attribute(owner, method)
    if not callable(function) or not hasattr(type(owner), method):
        return False
    try:
        setattr(owner, method, span(name)(function))
    except (AttributeError, TypeError):  # slots, a generator, or a C type: it stays part of what is around it
        return False
    return True


def unwrapped(env: Any) -> Any:
    """An env without its wrappers, where it is of a kind that has them."""
    inner = attribute(env, "unwrapped")
    return env if inner is None else inner


MISSING = object()


def attribute(owner: Any, name: str, default: Any = None) -> Any:
    """Return an attribute, or the default if the object has none or raises anything when asked for it.

    User code may look for it without end, or in something that is not built yet. Envs of torchrl look in
    their workers, which end if they do not have it: those are asked only for what their class has.
    """
    if is_a(owner, "torchrl.envs", "EnvBase") and inspect.getattr_static(owner, name, MISSING) is MISSING:
        return default
    try:
        return getattr(owner, name, default)
    except Exception:  # noqa: BLE001 - whatever a property or __getattr__ raises, there is no value
        return default


def has(owner: Any, name: str) -> bool:
    """Return whether an object gives an attribute when asked for it."""
    return attribute(owner, name, MISSING) is not MISSING


def envs_inside(env: Any) -> Sequence[Any] | None:
    """Return the envs that a vector env holds in a list; None if it shows no such list."""
    envs = attribute(unwrapped(env), "envs")
    return envs if isinstance(envs, (list, tuple)) else None


def time_inside(env: object, *, encoders: bool = True) -> None:
    """Set what is inside an env apart, wrapper by wrapper, and observation encoding from the rest.

    An env that reports phases of its own says that itself: its time would be in two rows.
    """
    inner = unwrapped(env)
    for method in ENCODERS if encoders else ():
        time_method(inner, method, OBSERVE)
    for owner in below(env, inner):
        for method in ("step", "reset"):
            time_method(owner, method, f"{type(owner).__name__}.{method}")


def below(env: object, inner: object) -> Iterator[object]:
    """What an env has inside, from the outermost on: wrappers worth a row, and the env without any."""
    while env is not inner:
        env = attribute(env, "env")
        if env is None:
            yield inner  # wrapped by something that says only what is inside all of it
            return
        if type(env).__name__ not in BY_MAKE:
            yield env


BROKEN = BaseException  # What the user's code may raise; `raised` leaves Ctrl-C as it is

# What helps with an async env.
WAITS = "give an env whose reset() and step() return when they are done, as asyncio.Runner().run(...) does"


def awaitable_error(what: str, given: Any) -> InputError:
    """Return the error for a coroutine in place of a result; the coroutine is closed."""
    if inspect.iscoroutine(given):
        given.close()
    return InputError(f"{what} a {type(given).__name__}: {WAITS}")


# Words of an env that refuses an action.
REFUSAL = re.compile(r"illegal|invalid|legal|not allowed|not valid|mask|\bmove\b|\baction", re.IGNORECASE)

REMEDY = (
    'if it refuses actions that are not legal now, have it say which are: info["action_mask"], '
    'obs["action_mask"] or action_masks(); or say who plays with --policy module:callable'
)


def raised(name: str, error: BaseException, *, masked: bool = True) -> BaseException:
    """What is said of an env that raises: its own last words, and what helps where it refused an action.

    SystemExit is an error like any other; Ctrl-C stays what it is.
    """
    if isinstance(error, (HotloopError, KeyboardInterrupt)):
        return error
    said = f"{name} raised: {last_words(error)}{lifeline.at_step()}"
    refused = not masked and REFUSAL.search(f"{type(error).__name__} {message_of(error)}")
    return TheirError(f"{said}; {REMEDY}" if refused else said)


# From a generator and a number of calls to an action for each.
Sample = Callable[[np.random.Generator, int], list[Any]]

EXPECTED = "expected an action_space to sample or num_actions; or say who plays with --policy module:callable"


def sampler(owner: object, name: str) -> Sample:
    """How to draw actions for an env: from its action space, or from the number of its actions."""
    space = attribute(owner, "action_space")
    if space is None or not has(space, "sample"):
        count = attribute(owner, "num_actions") or attribute(space, "n")
        if not isinstance(count, (int, np.integer)):
            raise InputError(f"{name} does not say what its actions are: {EXPECTED}")
        return whole_numbers(0, int(count))
    return from_space(space)


def discrete(owner: object) -> tuple[int, int] | None:
    """The first action and how many there are, of an env that takes one whole number; else None."""
    space = attribute(owner, "action_space")
    count = attribute(owner, "num_actions") if space is None else attribute(space, "n")
    return (int(getattr(space, "start", 0)), int(count)) if isinstance(count, (int, np.integer)) else None


def from_space(space: Any) -> Sample:
    """One draw for all calls where a space is a range of whole numbers, else its own sampling, seeded."""
    if type(space).__name__ == "Discrete":
        return whole_numbers(int(getattr(space, "start", 0)), int(space.n))
    return lambda random, calls: sampled(space, random, calls)


def whole_numbers(start: int, count: int) -> Sample:
    """As Gymnasium's own sampling gives them: NumPy's int64, which envs may ask for `.item()`."""
    return lambda random, calls: list(random.integers(start, start + count, calls))


def sampled(space: Any, random: np.random.Generator, calls: int) -> list[Any]:
    if has(space, "seed"):
        space.seed(int(random.integers(2**31)))
    return [space.sample() for _ in range(calls)]


# The key of infos and observations, as Gymnasium and PettingZoo have it; the method of sb3-contrib.
MASK, METHOD = "action_mask", "action_masks"

GOLDEN = 0.6180339887498949  # From the chance of one part of an action to that of the next


class Pick(NamedTuple):
    """A random action that is settled when its turn comes: what was drawn if that is legal, else by chance.

    Every legal action is as likely as every other.
    """

    drawn: Any
    chance: Any  # From 0 to 1; an array where several act


def picks(random: np.random.Generator, drawn: Sequence[Any], rows: int | None = None) -> list[Pick]:
    """Actions with their chances, one a call or `rows` a call."""
    chances = random.random(len(drawn) if rows is None else (len(drawn), rows))
    return [Pick(*each) for each in zip(drawn, chances.tolist(), strict=True)]


def mask_in(*places: Any) -> Any:
    """The mask that infos or an observation have; None where neither does."""
    for place in places:
        if isinstance(place, Mapping):
            mask = place.get(MASK)
            if mask is not None:
                # every look at an element of another library's array would be a call of that library
                is_plain = isinstance(mask, (np.ndarray, list, tuple)) or not hasattr(mask, "__array__")
                return mask if is_plain else np.asarray(mask)
    return None


def mask_method(env: Any) -> Callable[[], Any] | None:
    """The method that gives the mask, of an env or of what is inside its wrappers; none that allows all."""
    inner = attribute(env, "unwrapped")
    batch = attribute(inner, "_batch")
    if isinstance(batch, Batch) and batch.masks is None:
        return None
    for owner in (env, inner):
        method = attribute(owner, METHOD)
        if callable(method):
            found: Callable[[], Any] = method
            return found
    return None


def settled(drawn: Any, chance: float, mask: Any, space: Any = None) -> Any:
    """What was drawn where a mask allows it or nothing, else one of those that it allows."""
    if np.ndim(drawn):  # several whole numbers, whose masks come as a tuple or one behind the other
        sizes, row = np.ravel(space.nvec), flat(mask)
        if row[np.ravel(drawn) + np.cumsum(sizes) - sizes].all():
            return np.asarray(drawn)
        masks = np.split(row, np.cumsum(sizes)[:-1])
        chances = [(chance + part * GOLDEN) % 1.0 for part in range(len(sizes))]
        parts = [settled(*each) for each in zip(np.ravel(drawn), chances, masks, strict=True)]
        return np.array(parts, np.asarray(drawn).dtype).reshape(np.shape(drawn))
    start = int(getattr(space, "start", 0))
    if mask[int(drawn) - start]:
        return drawn
    legal = np.flatnonzero(mask)
    return np.int64(start + legal[int(chance * len(legal))]) if len(legal) else drawn


def flat(mask: Any) -> NDArray[np.bool_]:
    """A mask as one row."""
    parts = mask if isinstance(mask, tuple) else (mask,)
    return np.concatenate([np.asarray(part, np.bool_).ravel() for part in parts])
