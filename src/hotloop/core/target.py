"""A target: a name and its keys, as typed; it is what is opened, compared, and sent to other processes.

A program may be told through its environment which rung of the ladder to be.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from hotloop.core.errors import InputError
from hotloop.core.settings import parse_pairs


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
