"""One side of a comparison of two commits, run by that side's own Python: `python worker.py '<settings>'`.

It needs nothing but the standard library, because the commit it opens may be any; what has no reset or says
no actions is opened by the Hotloop that is there. Settings are JSON: target (name, and keys as typed), seed,
reseed (whether a preset needs that seed as a key), gc (`life` leaves the collector on), tree (the folder
that nothing may be loaded from) and packages (whether to name the versions of what was loaded). Commands come
in and answers go out as lines of JSON; what the measured program prints goes to stderr.

    {"turn": env_steps, "run_in": env_steps or null}  -> {"ns": ..., "env_steps": ..., "cpu_ns": ..., ...}
    {"counters": true} -> {name: count}                {"seen": true}  -> {field: hash}
    {"replay": {"steps": ..., ...}} -> {"steps": [{field: hash}, ...], "enough_at": step or null, "ns": ...}
    {"facts": true} -> {...}

The first answer is the facts. An answer {"error": ...} is the last.
"""

import ast
import gc
import hashlib
import importlib
import importlib.util
import inspect
import json
import os
import platform
import random
import runpy
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from functools import partial
from importlib import metadata
from itertools import chain, count
from pathlib import Path
from time import perf_counter_ns
from types import ModuleType
from typing import Any

# What a batch shows after a step, beside its infos and its digest.
STANDARD = ("observations", "rewards", "terminals", "truncations", "final_observations", "masks")
# What an env's step answers, by how many there are.
ANSWERS: dict[int, tuple[str, ...]] = {
    5: ("observations", "rewards", "terminals", "truncations", "infos"),
    4: ("observations", "rewards", "terminals", "infos"),
}
# Actions made at a time; a turn that needs more goes through them again.
MOST_BYTES, MOST_DRAWN = 16 << 20, 1 << 16

HASH_BYTES = 6

# Packages whose arrays hold their values; another object with `__array__` computes them for its reader.
LIBRARIES = ("numpy", "torch", "jax", "jaxlib", "tensordict", "pandas")

MASK = "action_mask"  # What infos and observations call the actions that are legal now
NUMBERS = count(int(os.environ.get("HOTLOOP_FIRST_INSTANCE", "0")))  # Of what is made here

Fields = dict[str, Any]

# Files beside this are run by their path: no module of user code may be left.
HERE = Path(__file__).parent

CORE = HERE.parents[1] / "core"

TIMING = runpy.run_path(str(CORE / "turn_clock.py"))  # How turns are timed everywhere
CLOCK = TIMING["TurnClock"]()  # Times the turns of the one subject that a worker has

SERVE = runpy.run_path(str(CORE / "process" / "serve.py"))["serve"]


class BatchSubject:
    """A batch of Hotloop, by what every version of it has."""

    def __init__(self, batch: Any, seed: int) -> None:
        import numpy as np

        self.made = batch
        self.num_envs, self.agents = batch.spec.num_envs, batch.spec.agents
        self.step = batch.step
        self._np = np
        self._random = np.random.default_rng(seed)
        batch.reset()

    def draw(self, calls: int) -> Sequence[Any]:
        a_call = self.num_envs * self.agents
        calls = min(calls, max(16, MOST_BYTES // (4 * a_call)))
        shape = (calls, self.num_envs, self.agents)
        spec = self.made.spec
        most = getattr(spec, "drawn_actions", spec.num_actions)  # which older commits do not have
        return list(self._random.integers(most, size=shape, dtype=self._np.int32))

    def counters(self) -> dict[str, int]:
        return {name: int(count) for name, count in self.made.counters.items()}

    def wait(self) -> None:
        """Return when what was begun is done, where that is not when a step returns."""
        getattr(self.made, "wait", int)()

    def answers(self) -> Fields:
        shown = {name: getattr(self.made, name, None) for name in STANDARD}
        fields = {name: array for name, array in shown.items() if array is not None}
        infos = {f"infos.{name}": array for name, array in getattr(self.made, "infos", {}).items()}
        digest = getattr(self.made, "digest", None)
        return fields | infos | ({"digest": digest()} if digest else {})


class EnvSubject:
    """An object with reset and step: Gymnasium's five answers, the older four, or whatever it returns."""

    def __init__(self, env: Any, seed: int) -> None:
        self.made = env
        self.num_envs: int = getattr(env, "num_envs", 1)
        self.agents: int = getattr(env, "num_agents", 1)
        self._steps = self._resets = 0
        self._choose, self._chance = chooser(env, seed), random.Random(seed)
        self._told: Any = None
        self._masks = getattr(env, "action_masks", None) or getattr(
            getattr(env, "unwrapped", env), "action_masks", None
        )
        self._restart(**({"seed": seed} if takes_seed(env) else {}))
        self._masked = self._mask() is not None

    def draw(self, calls: int) -> Sequence[Any]:
        return [self._choose() for _ in range(min(calls, MOST_DRAWN))]

    def step(self, action: Any) -> None:
        if self._masked:
            action = self._legal(action, self._mask())
        self._told = answer = self.made.step(action)
        self._steps += 1
        self._over = ended(answer)
        if self._over:
            self._restart()

    def _mask(self) -> Any:
        """Which actions are legal now, as the infos, the observation or a method say it."""
        told = named(self._begun, reset=True) if self._over else named(self._told, reset=False)
        for place in (told.get("infos"), told.get("observations")):
            if isinstance(place, Mapping) and place.get(MASK) is not None:
                return place[MASK]
        return self._masks() if callable(self._masks) else None

    def _legal(self, action: Any, mask: Any) -> Any:
        start = int(getattr(getattr(self.made, "action_space", None), "start", 0))
        whole = isinstance(action, int) or getattr(action, "shape", None) == ()
        if mask is None or not whole or mask[int(action) - start]:
            return action
        legal = [each for each, allowed in enumerate(mask) if allowed]
        return type(action)(start + self._chance.choice(legal)) if legal else action

    def _restart(self, **given: int) -> None:
        self._begun, self._over = self.made.reset(**given), True
        self._resets += 1

    @property
    def one_episode_over(self) -> bool:
        return self.num_envs == 1 and self._resets > 1

    def wait(self) -> None:
        """Return when what the last step answered is there."""
        ready((self._told, self._begun))

    def counters(self) -> dict[str, int]:
        own = getattr(self.made, "counters", None) or {}
        own = own() if callable(own) else own
        steps = self._steps * self.num_envs
        return {
            **{str(name): int(count) for name, count in dict(own).items()},
            "env_steps": steps,
            "agent_steps": steps * self.agents,
            "foreign_steps": steps,
            "batch_calls": self._steps,
            "resets": self._resets,
        }

    def answers(self) -> Fields:
        """The last step's answers, and those of the reset that the end of an episode brought."""
        begun = named(self._begun, reset=True)
        if not self._steps:
            return begun
        return named(self._told, reset=False) | {f"reset.{name}": value for name, value in begun.items()}


Subject = BatchSubject | EnvSubject


class FunctionEnv:
    """A function that makes no env: a step is a call of it."""

    num_actions = 1

    def __init__(self, call: Callable[[], Any]) -> None:
        self.reset, self._call = list, call

    def step(self, _: Any) -> list[Any]:
        return [ready(self._call())]


def ready(value: Any) -> Any:
    """A value when it is there: JAX and a GPU compute behind their caller."""
    if "torch" in sys.modules and sys.modules["torch"].cuda.is_initialized():
        sys.modules["torch"].cuda.synchronize()
    return sys.modules["jax"].block_until_ready(value) if "jax" in sys.modules else value


def chooser(env: Any, seed: int) -> Callable[[], Any]:
    """Where an env's actions come from: its action space, a list, or a number of them."""
    space: Any = getattr(env, "action_space", None)
    listed, count = getattr(env, "actions", None), getattr(env, "num_actions", None)
    own = random.Random(seed)
    if hasattr(space, "sample"):
        if hasattr(space, "seed"):
            space.seed(seed)
        sample: Callable[[], Any] = space.sample
        return sample
    if isinstance(listed, Sequence) and listed:
        return lambda: own.choice(listed)
    if isinstance(count, int) and count > 0:
        return lambda: own.randrange(count)
    raise ValueError(
        f"a {type(env).__name__} says no actions: give it an action_space, a list `actions`, or `num_actions`"
    )


def takes_seed(env: Any) -> bool:
    try:
        parameters = inspect.signature(env.reset).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(each.name == "seed" or each.kind is each.VAR_KEYWORD for each in parameters)


def ended(answer: Any) -> bool:
    """Whether an episode is over; many envs behind one call begin their next ones themselves."""
    if not isinstance(answer, tuple):
        return False
    if len(answer) == 5:
        return is_set(answer[2]) or is_set(answer[3])
    return len(answer) == 4 and is_set(answer[2])


def is_set(flag: Any) -> bool:
    return flag if isinstance(flag, bool) else not getattr(flag, "shape", ()) and bool(flag)


def named(answer: Any, *, reset: bool) -> Fields:
    """The parts of an answer by the names they have everywhere."""
    if reset:
        is_pair = isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], dict)
        return {"observations": answer[0], "infos": answer[1]} if is_pair else {"observations": answer}
    if isinstance(answer, tuple) and len(answer) in ANSWERS:
        return dict(zip(ANSWERS[len(answer)], answer, strict=True))
    return {"answer": answer}


def hashes(fields: Mapping[str, Any]) -> dict[str, str]:
    return {name: digest(value) for name, value in flat(fields)}


def flat(fields: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dictionaries within fields become fields of their own: infos.goals."""
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def digest(value: Any) -> str:
    hashed = hashlib.blake2b(digest_size=HASH_BYTES)
    for piece in pieces(value):
        hashed.update(piece)
    return hashed.hexdigest()


def check_array(cls: type) -> None:
    """Refuse an array that a class of the measured program's own computes when it is read."""
    own = (each for each in cls.__mro__ if each.__module__.partition(".")[0] not in LIBRARIES)
    if any("__array__" in vars(each) for each in own):
        name = f"{cls.__module__}.{cls.__qualname__}"
        raise TypeError(
            f"it returned a {name}, which computes its values when they are read: return a NumPy array"
        )


def pieces(value: Any) -> Iterable[bytes]:
    """A value as bytes that are equal where it is; of an opaque object only its type."""
    if hasattr(value, "__array__"):
        check_array(type(value))
        array = value.__array__()
        if array.dtype == object or not array.shape:
            return pieces(array.tolist())
        return (f"{array.dtype.str} {array.shape} ".encode(), array.tobytes())
    if isinstance(value, (list, tuple, set, frozenset)):
        ordered = value if isinstance(value, (list, tuple)) else sorted(value, key=repr)
        return chain((f"{len(value)} of ".encode(),), chain.from_iterable(map(pieces, ordered)))
    if isinstance(value, Mapping):
        return chain.from_iterable(pieces(item) for item in sorted(value.items(), key=repr))
    if isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
        return (repr(value).encode(), b";")
    return (type(value).__name__.encode(), b";")


def open_subject(asked: Mapping[str, Any]) -> Subject:
    """Open the target anew, with everything seeded that can be."""
    seed = int(asked["seed"])
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)
    target, keys = asked["target"]["name"], asked["target"]["keys"]
    if asked.get("reseed") and ":" not in target:
        keys = {**keys, "seed": seed}
    if any(key.startswith("train.") for key in keys):
        return by_hotloop("TrainingSubject", asked)
    if names_players(target, keys):
        return by_hotloop("PresentSubject", asked)
    if ":" in target:
        made = called(find(target), keys)
        if not any(hasattr(made, method) for method in ("reset", "step")):
            made = FunctionEnv(partial(find(target), **{key: literal(keys[key]) for key in keys}))
    else:
        made = importlib.import_module("hotloop").make(target, **keys)
    if hasattr(made, "spec") and hasattr(made.spec, "num_actions"):
        return BatchSubject(made, seed)
    if callable(getattr(made, "reset", None)) and says_actions(made):
        return EnvSubject(made, seed)
    return by_hotloop("PresentSubject", asked)


def names_players(target: str, keys: Mapping[str, Any]) -> bool:
    """Whether keys name players of two seats, rather than arguments of the target's own callable."""
    players = {"hero", "villain"} & set(keys)
    prefix = target.partition(":")[0]
    if "hero" not in players and ":" not in target:
        return False
    if not players or ":" not in target or prefix in ("gym", "pettingzoo", "puffer"):
        return bool(players)
    return not players & set(inspect.signature(find(target)).parameters)


def says_actions(env: Any) -> bool:
    listed = getattr(env, "actions", None) or getattr(env, "num_actions", None)
    return bool(listed) or hasattr(getattr(env, "action_space", None), "sample")


def by_hotloop(what: str, asked: Mapping[str, Any]) -> Subject:
    """A subject of present.py, for what only Hotloop can step or train."""
    target = asked["target"]
    try:
        present = runpy.run_path(str(HERE / "present.py"))
        made: Subject = present[what](target["name"], target["keys"], int(asked["seed"]))
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("hotloop"):
            raise
        raise TypeError(
            f"{target['name']} has no reset() or no action_space, or is to be trained: only Hotloop can do "
            "that; have --build install it beside the project"
        ) from None
    return made


def called(function: Callable[..., Any], keys: Mapping[str, Any]) -> Any:
    """What a callable makes, which may ask for a number of its own; the variable says the first."""
    number = next(NUMBERS)
    spelled = {k: v.replace("{instance}", str(number)) if isinstance(v, str) else v for k, v in keys.items()}
    arguments = {key: literal(value) for key, value in spelled.items()}
    try:
        wanted = "instance" in inspect.signature(function).parameters and "instance" not in arguments
    except (TypeError, ValueError):
        wanted = False
    return function(**arguments, **({"instance": number} if wanted else {}))


def find(target: str) -> Callable[..., Any]:
    """The callable, its module from a file of the commit or by name; what is installed is found first."""
    if target.startswith("gym:"):
        return partial(importlib.import_module("gymnasium").make, target.removeprefix("gym:"))
    if target.startswith(("pettingzoo:", "puffer:")):
        raise ValueError(f"{target} at two commits: write a function that returns it, path.py:callable")
    place, _, name = target.rpartition(":")
    module = load(place) if place.endswith(".py") else importlib.import_module(place)
    found: Callable[..., Any] = getattr(module, name)
    return found


def load(place: str) -> ModuleType:
    """A file of the commit as a module, loaded once."""
    path = Path(place).resolve()
    if not path.is_file():
        raise FileNotFoundError(f"this commit has no file {place}")
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    if path.stem not in sys.modules:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[path.stem])
    return sys.modules[path.stem]


def literal(value: Any) -> Any:
    """A word from the command line as the number, truth or text it spells."""
    if not isinstance(value, str):
        return value
    truths = {"true": True, "false": False, "none": None}
    if value.lower() in truths:
        return truths[value.lower()]
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return value


def turn(subject: Subject, env_steps: int, run_in: int | None = None) -> dict[str, Any]:
    """Time a stretch of at least that many env-steps; its actions are made before the clock starts."""
    calls = -(-env_steps // subject.num_envs)
    ahead = -(-calls // TIMING["RUN_IN"]) if run_in is None else -(-run_in // subject.num_envs)
    if ahead and getattr(subject, "needs_run_in", True):
        play(subject, subject.draw(ahead), ahead)
    actions = subject.draw(calls)
    rested = CLOCK.rest()
    took = CLOCK.time(partial(play, subject, actions, calls))
    TIMING["collect_rest"]()
    turn: dict[str, Any] = took._replace(env_steps=calls * subject.num_envs, rested=rested)._asdict()
    return turn


def play(subject: Subject, actions: Sequence[Any], calls: int) -> int:
    step = subject.step
    begin = perf_counter_ns()
    for action in TIMING["repeat"](actions, calls):
        step(action)
    subject.wait()
    return perf_counter_ns() - begin


def replay(asked: Mapping[str, Any], reach: Mapping[str, Any]) -> dict[str, Any]:
    """Play from the beginning; a hash for each field of the answers after the reset and after every step.

    `reach` says how far, as `Reach` of lab/validate/equal.py. The clock starts after the first step.
    """
    subject = open_subject(asked)
    hashed, enough_at = [hashes(subject.answers())], None
    begin = spent = played = 0
    for action in chain.from_iterable(subject.draw(1) for _ in count()):
        subject.step(action)
        hashed.append(hashes(subject.answers()))
        played, begin = played + 1, begin or perf_counter_ns()
        spent = perf_counter_ns() - begin
        episode_over = reach["episodes"] and getattr(subject, "one_episode_over", False)
        if enough_at is None and (played >= reach["needed"] or episode_over):
            enough_at = played
        most_ns = reach["most_ns"] if enough_at is None else reach["box_ns"]
        if (most_ns is not None and spent >= most_ns) or (enough_at and played >= reach["steps"]):
            break
    close(subject)
    return {"steps": hashed, "enough_at": enough_at, "ns": spent}


def facts(subject: Subject, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Who opened what, and from where."""
    spec = getattr(subject.made, "spec", None)
    return {
        "python": platform.python_version(),
        "versions": {
            name: str(sys.modules[name].__version__)
            for name in ("hotloop", "numpy", "gymnasium")
            if hasattr(sys.modules.get(name), "__version__")
        },
        "packages": packages() if asked.get("packages") else {},
        "opened": f"{type(subject.made).__module__}.{type(subject.made).__qualname__}",
        "num_envs": subject.num_envs,
        "agents": subject.agents,
        "impl": getattr(spec, "impl", "foreign"),
        "target": plain(getattr(spec, "described", None)),
        "build": plain(getattr(spec, "build", None)),
        "strays": strays(Path(asked["tree"])) if asked.get("tree") else [],
    }


def packages() -> dict[str, str]:
    """Versions of Python and of what is installed and was loaded."""
    loaded = {name.partition(".")[0] for name in sys.modules} - {"hotloop"}
    names = {
        each
        for module, found in metadata.packages_distributions().items()
        if module in loaded
        for each in found
    }
    return {"python": platform.python_version()} | {name: metadata.version(name) for name in sorted(names)}


def plain(value: Any) -> dict[str, Any] | None:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else None


def strays(tree: Path) -> list[str]:
    """Modules loaded from the folder that this commit was taken from, and not from the commit."""
    files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
    paths = {name: Path(file).resolve() for name, file in files.items() if file and name != "__main__"}
    return sorted(
        str(path)
        for path in paths.values()
        if path.is_relative_to(tree) and not {"site-packages", "dist-packages"} & set(path.parts)
    )


def close(subject: Subject) -> None:
    ending = getattr(subject.made, "close", None)
    if callable(ending):
        ending()


def answer_to(command: Mapping[str, Any], subject: Subject, asked: Mapping[str, Any]) -> dict[str, Any]:
    if "turn" in command:
        return turn(subject, command["turn"], command.get("run_in"))
    if "seen" in command:
        return hashes(subject.answers())
    if "replay" in command:
        return replay(asked, command["replay"])
    return dict(subject.counters()) if "counters" in command else facts(subject, asked)


def answers_to(asked: Mapping[str, Any], commands: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Answer until the commands end; an error of the measured program is the last answer."""
    try:
        subject = open_subject(asked)
        gc.collect()
        gc.freeze()
        if asked.get("gc") != "life":
            gc.disable()
        yield facts(subject, asked)
        for command in commands:
            yield answer_to(command, subject, asked)
        close(subject)
    except Exception as error:  # noqa: BLE001 - whatever the measured program raises is an answer
        traceback.print_exc()
        frames = traceback.extract_tb(error.__traceback__)[-1:]
        places = "".join(f" ({Path(frame.filename).name}:{frame.lineno})" for frame in frames)
        yield {"error": f"{type(error).__name__}: {error}{places}"}


def main() -> None:
    sys.path[:] = [each for each in sys.path if Path(each or ".").resolve() != HERE.resolve()]
    sys.path.append(str(Path.cwd()))
    settings = json.loads(sys.argv[1])
    SERVE(lambda commands: answers_to(settings, commands))


if __name__ == "__main__":
    main()
