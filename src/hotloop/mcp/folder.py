"""Arguments of tools that name code or files: what is outside the folder is refused before anything runs."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hotloop.core.errors import InputError
from hotloop.core.files import Confinement
from hotloop.core.registry import find, presets
from hotloop.core.settings import names_callable
from hotloop.envs.callables import FILE, REGISTERED, literal

KEY = re.compile(r"[A-Za-z_][\w.]*")

WORD = re.compile(r"[A-Za-z][\w.-]*")  # A world, a player or a way to validate

AMOUNT = re.compile(r"smoke|soak|\d+")

MODE = re.compile(r"[a-z]+(?::[\w.+-]+)?")

DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")  # A module, or a function with its class and module
PARTS = re.compile(r"[\s:=,;]+")  # What stands between the paths in one value
WRITTEN = ("artifacts", ".design", "train_dir")  # The folders that commands write to
TRAINING = "train."  # What keys of a training begin with

# What policies begin with, and how a checkpoint ends.
TAPE, RUN, LIVE, CHECKPOINT = "tape:", "run:", "live:", ".pt"

Value = str | int | float | bool

Keys = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Folder(Confinement):
    """The folder that the server was started in."""

    def check_written(self) -> None:
        """Refuse to write where a link leads outside."""
        for name in WRITTEN:
            self.path(name)
            for place, folders, _ in os.walk(self.root / name):
                for each in folders:
                    self.path(Path(place, each))

    def text(self, text: str, what: str) -> str:
        """Return one word of a command line; refuse a flag."""
        if not text or text.startswith("-") or not text.isprintable():
            raise InputError(f"{what} {text!a} does not fit: expected a name")
        return text

    def word(self, text: str, what: str, form: re.Pattern[str] = WORD) -> str:
        """Return a word that names neither code nor a file."""
        if not form.fullmatch(self.text(text, what)):
            raise InputError(f"{what} {text!a} does not fit: expected a plain name")
        return text

    def target(self, text: str) -> str:
        """Return a target: a preset of ours, a registered id, or a callable of code in the folder."""
        self.text(text, "the target")
        if any(each.isspace() for each in text):
            raise InputError(f"the target {text!a} has a space in it: give its keys as `keys`")
        if not names_callable(text):
            names = [each.target for each in presets(find(text).world)]
            if "/" not in text and len(names) > 1:  # an answer is about one target
                raise InputError(f"{text} is a world: name one of its presets, {', '.join(names)}")
            return text
        if REGISTERED.fullmatch(text):
            for part in PARTS.split(text):
                self.path(part)
            return text
        return self.callable(text)

    def callable(self, text: str) -> str:
        """Return `path.py:name` or `module:name`; refuse one that is not code of the folder."""
        place, _, name = text.rpartition(":")
        if not name.isidentifier():
            raise InputError(f"{text!a} names no callable: write path.py:callable")
        if place.endswith(".py"):
            self.code(place)
        elif not DOTTED.fullmatch(place) or not self.module(place):
            raise InputError(f"there is no module {place} here: write path.py:callable")
        return text

    def policy(self, text: str) -> str:
        """Return a policy: a player's name, a tape, a run, a checkpoint or a callable of the folder."""
        self.text(text, "the policy")
        if text.startswith(TAPE):
            self.path(text.removeprefix(TAPE))
        elif text.startswith(RUN):
            name = self.word(text.removeprefix(RUN), "the run")
            self.path(Path("train_dir") / name / "checkpoints")
        elif text.endswith(CHECKPOINT):
            self.path(text)
        elif names_callable(text) and not text.startswith(LIVE):
            self.callable(text)
        else:
            self.word(text.removeprefix(LIVE), "the policy")
        return text

    def functions(self, names: Iterable[str]) -> list[str]:
        """Return dotted names of functions; refuse those of modules that are not of the folder."""
        checked = [self.word(each, "the function", DOTTED) for each in names]
        for each in checked:
            if "." in each:
                self.module(each.rpartition(".")[0])
        return checked

    def keys(self, keys: Keys | None) -> list[str]:
        """Return keys as words, such as `agents=100`."""
        return [self.key(name, value) for name, value in (keys or {}).items()]

    def key(self, name: str, value: Value) -> str:
        """Return a key as a word; refuse a value that names a file or code outside the folder."""
        if not KEY.fullmatch(name):
            raise InputError(f"{name!a} is no key: expected a name such as agents")
        if isinstance(value, str):
            if not value.isprintable():
                raise InputError(f"{name}={value!a} does not fit: expected text of one line")
            for text in texts_in(value):
                self.value(name, text)
        return f"{name}={str(value).lower() if isinstance(value, bool) else value}"

    def value(self, name: str, text: str) -> None:
        """Refuse a text that names a file or code outside."""
        for part in (text, *PARTS.split(text)):
            self.path(part)
            self.path(os.path.expandvars(part))
        if FILE.search(text) or (name.startswith(TRAINING) and names_callable(text)):
            self.callable(text)


def texts_in(value: str) -> Iterator[str]:
    """Yield a value as it was typed, and the texts in the list or mapping that it spells."""
    yield value
    left = [literal(value)]
    while left:
        part = left.pop()
        if isinstance(part, str) and part != value:
            yield part
        elif isinstance(part, Mapping):
            left += [*part.keys(), *part.values()]
        elif isinstance(part, list | tuple | set | frozenset):
            left += part
        elif isinstance(part, bytes):
            left.append(part.decode(errors="replace"))
