"""Settings as dataclasses, each parameter declared once, and targets: a name and its keys, as typed.

A *workload* parameter changes results (agents, map, seed); a *variant* must not (implementation,
threads, device). Only workloads have to be equal for two runs to be compared.
"""

import dataclasses
import hashlib
import json
import math
import numbers
import shlex
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hotloop.core.errors import InputError, unknown

Role = Literal["workload", "variant"]

T = TypeVar("T")

WORDS_FOR_TRUE = ("true", "yes", "1")

WORDS_FOR_FALSE = ("false", "no", "0")

WORD_FOR_NONE = "none"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ParameterInfo:
    """Everything that is known about one parameter."""

    name: str
    annotation: Any
    default: Any
    help: str
    role: Role
    low: Any
    high: Any
    choices: tuple[Any, ...] | None
    env: str | None
    env_values: Mapping[str, object] | None
    words: Mapping[str, object]

    def from_environment(self, environment: Mapping[str, str]) -> Any:
        """The value its environment variable asks for; None where it is unset or there is none."""
        word = environment.get(self.env) if self.env else None
        if not word:
            return None
        if self.env_values is None:
            return self.read(word)
        if word not in self.env_values:
            raise InputError(f"{self.env}={word} does not fit: expected one of {', '.join(self.env_values)}")
        return self.env_values[word]

    @property
    def type(self) -> str:
        """The type as a person would write it: `int`, `float or none`, `int,int,...`."""
        return type_name(self.annotation)

    @property
    def expected(self) -> str:
        """What may be given, in words: `int from 1 to 1024`, `one of native, reference`."""
        return ", or ".join([self._numbers, *self.words])

    @property
    def _numbers(self) -> str:
        if self.choices is not None:
            return "one of " + ", ".join(map(str, self.choices))
        match self.low, self.high:
            case None, None:
                return self.type
            case low, None:
                return f"{self.type} of at least {low}"
            case None, high:
                return f"{self.type} of at most {high}"
            case low, high:
                return f"{self.type} from {low} to {high}"

    def read(self, given: object) -> Any:
        """Convert and check one value; InputError where it does not fit."""
        if isinstance(given, str) and given in self.words:
            return self.words[given]
        refusal = InputError(f"{self.name}={given} does not fit: expected {self.expected}")
        try:
            value = convert(self.annotation, given)
        except (TypeError, ValueError, OverflowError):
            raise refusal from None
        if not all(self._allows(item) for item in (value if isinstance(value, tuple) else (value,))):
            raise refusal
        return value

    def _allows(self, item: Any) -> bool:
        if item is None:
            return True
        if self.choices is not None:
            return item in self.choices
        return (self.low is None or item >= self.low) and (self.high is None or item <= self.high)


def parameter(  # noqa: PLR0913 - one argument a fact about it
    default: Any,
    *,
    help: str,
    role: Role,
    low: float | None = None,
    high: float | None = None,
    choices: Sequence[object] | None = None,
    env: str | None = None,
    env_values: Mapping[str, object] | None = None,
    words: Mapping[str, object] | None = None,
) -> Any:
    """Declare a field of a settings dataclass; range and choices hold for each item of a tuple.

    `env` names an environment variable that decides where no key is given; `env_values` says what its
    words mean where they are not the parameter's own. `words` stand for values, wherever they are given.
    """
    allowed = None if choices is None else tuple(choices)
    facts = {"help": help, "role": role, "low": low, "high": high, "choices": allowed}
    return dataclasses.field(
        default=default, metadata=facts | {"env": env, "env_values": env_values, "words": words or {}}
    )


def describe(cls: Any) -> list[ParameterInfo]:
    """List the parameters of a settings dataclass, in order."""
    hints = get_type_hints(cls)
    for each in dataclasses.fields(cls):
        if "role" not in each.metadata:
            raise TypeError(f"{cls.__name__}.{each.name} is not declared with parameter(...)")
    return [
        ParameterInfo(name=f.name, annotation=hints[f.name], default=f.default, **f.metadata)
        for f in dataclasses.fields(cls)
    ]


def parse_pairs(words: Sequence[str]) -> dict[str, str]:
    """Split `key=value` words; the values stay text until a settings dataclass reads them."""
    pairs: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise InputError(f"{word!r} is not key=value: write for example agents=24")
        if key in pairs:
            raise InputError(f"{key} is given twice, as {pairs[key]!r} and {value!r}: give it once")
        pairs[key] = value
    return pairs


def apply(cls: type[T], *overrides: Mapping[str, object]) -> T:
    """Make settings from defaults and overrides, later ones winning; text is converted, all is checked."""
    infos = {info.name: info for info in describe(cls)}
    given = {key: value for override in overrides for key, value in override.items()}
    for key in given:
        if key not in infos:
            raise unknown("parameter", key, infos, f"the parameters are {', '.join(infos)}")
    return cls(**{key: infos[key].read(value) for key, value in given.items()})


def by_role(instance: Any, role: Role) -> dict[str, object]:
    """The values of one role, by name."""
    return {info.name: getattr(instance, info.name) for info in describe(type(instance)) if info.role == role}


def workload_hash(name: str, *instances: Any) -> str:
    """Twelve hex digits that are equal where the target and all workload values are equal."""
    return hash_of(name, *(by_role(instance, "workload") for instance in instances))


def hash_of(name: str, *values: Mapping[str, Any]) -> str:
    """Twelve hex digits that are equal where the name and all values are equal."""
    items = (item for mapping in values for item in mapping.items())
    text = json.dumps([name, *sorted(map(json.dumps, items))])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def convert(annotation: Any, given: object) -> Any:
    """Turn text or an object into the annotated type; an error where that would lose or invent something.

    Known are int, float, bool, str, tuples of one of them (`tuple[int, ...]`, in text `1,2`), and each
    of these `| None`.
    """
    if is_optional(annotation):
        is_none = given is None or (isinstance(given, str) and given.lower() == WORD_FOR_NONE)
        return None if is_none else convert(without_none(annotation), given)
    if get_origin(annotation) is tuple:
        items = given.split(",") if isinstance(given, str) else given
        if not isinstance(items, Sequence):
            raise TypeError(given)
        return tuple(convert(get_args(annotation)[0], item) for item in items)
    if annotation is bool:
        return read_bool(given)
    if annotation is not str:
        return read_number(annotation, given)
    if isinstance(given, str):
        return given
    raise TypeError(given)


def type_name(annotation: Any) -> str:
    """The type as a person would write it."""
    if is_optional(annotation):
        return f"{type_name(without_none(annotation))} or {WORD_FOR_NONE}"
    if get_origin(annotation) is tuple:
        item = type_name(get_args(annotation)[0])
        return f"{item},{item},..."
    return "true or false" if annotation is bool else str(annotation.__name__)


def is_optional(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation)


def without_none(annotation: Any) -> Any:
    return next(choice for choice in get_args(annotation) if choice is not type(None))


def read_number(kind: Any, given: object) -> Any:
    """Read text of plain characters, or a number of this kind; NumPy's are, a bool is not."""
    if isinstance(given, str):
        if not given.isascii():
            raise ValueError(given)
    elif isinstance(given, bool) or not isinstance(given, numbers.Integral if kind is int else numbers.Real):
        raise TypeError(given)
    value = kind(given)
    if kind is float and not math.isfinite(value):
        raise ValueError(given)
    return value


def read_bool(given: object) -> bool:
    word = str(given).lower()
    if word in WORDS_FOR_TRUE:
        return True
    if word in WORDS_FOR_FALSE:
        return False
    raise ValueError(given)


@dataclass(frozen=True, slots=True)
class Target:
    """What was asked for; what a record says of it is `Described`."""

    name: str  # `grid/toy`, `gym:ID`, `path.py:callable` or `module:callable`
    keys: dict[str, Any] = field(default_factory=dict)  # Key to value, text where it was typed
    # The function that finds what reports the phases of a user's env, `path.py:function`.
    phases: str | None = None
    # Functions of its code that are timed as parts of a step: `Class.method`, `path.py:Class.method`.
    time: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "time", tuple(self.time))  # a list where it was JSON

    @classmethod
    def typed(cls, name: str, words: Sequence[str] | None = None, **flags: object) -> "Target":
        """A name and its `key=value` words; flags are short for such words where they are not None.

        Words may stand behind the name in one quoted argument too, as `compare` has them.
        """
        head, *quoted = name.split() or [name]
        if all("=" in each for each in quoted):
            name = head
        else:  # a path with a blank in it
            quoted = []
        spelled = (f"{key}={value}" for key, value in flags.items() if value is not None)
        return cls(name, dict(parse_pairs([*quoted, *(words or ()), *spelled])))

    @classmethod
    def parse(cls, words: str, what: str = "a target") -> "Target":
        """A target with its keys in one quoted argument, `what` being what stands there."""
        try:
            name, *pairs = shlex.split(words) or [""]
        except ValueError as error:
            raise InputError(f"{what} cannot be read: {error} in {words!r}") from None
        if not name:
            raise InputError(f"{what} is empty: name a target, such as grid/toy")
        return cls.typed(name, pairs)

    @property
    def words(self) -> str:
        """As it would be typed."""
        return " ".join([self.name, *(f"{key}={value}" for key, value in self.keys.items())])

    @property
    def is_foreign(self) -> bool:
        """Whether it is a user's environment rather than a preset."""
        return names_callable(self.name)

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it; without functions to time, which an earlier version does not know."""
        fields = asdict(self)
        return fields if self.time else {name: each for name, each in fields.items() if name != "time"}

    def with_keys(self, keys: Mapping[str, object]) -> "Target":
        """The same with other values of some keys."""
        return replace(self, keys={**self.keys, **keys})

    def __str__(self) -> str:
        return self.words


def names_callable(name: str) -> bool:
    """Whether a name is a callable's, `path.py:name` or `module:name`, rather than a preset's."""
    return ":" in name


def names_code(words: Iterable[object]) -> bool:
    """Whether one of some words names code or a tape, which has to be where it is used."""
    return any(isinstance(word, str) and names_callable(word) and "://" not in word for word in words)


# Environment variables: the rung's name, and the file that the program writes its updates into.
RUNG, RUNG_FILE = "HOTLOOP_RUNG", "HOTLOOP_RUNG_FILE"

ENV_ONLY, ROLLOUT, TRAINER, TRAINER_EVAL = RUNGS = ("env_only", "rollout", "trainer", "trainer_eval")

EVAL_EVERY = 5  # Rollouts between two evaluations by default
