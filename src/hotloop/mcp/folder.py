"""The folder an agent may work in: whatever names something outside it is refused before anything runs."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hotloop.core.errors import InputError
from hotloop.core.registry import find, presets
from hotloop.core.target import names_callable
from hotloop.envs.trust import REGISTERED, file_of

KEY = re.compile(r"[A-Za-z_][\w.]*")

PLACES = ("artifacts", ".design", "train_dir")
"""What commands write below a folder."""

Keys = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class Folder:
    """Where the server was started."""

    root: Path

    def path(self, text: str) -> Path:
        """A path inside, as it would be typed; links are followed before that is decided."""
        try:
            found = (self.root / Path(text).expanduser()).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise InputError(f"{text!a} is no path: {error}") from None
        if not found.is_relative_to(self.root):
            raise InputError(
                f"{text} is outside {self.root}, the folder that this server was started in: "
                "name something inside it"
            )
        return found

    def check_places(self) -> None:
        """Refuse to write where a link leads outside."""
        for place in PLACES:
            self.path(place)

    def word(self, text: str, what: str) -> str:
        """A word that is no flag, and of which no part leads outside."""
        if not text or text.startswith("-") or not text.isprintable():
            raise InputError(f"{what} {text!a} does not fit: expected a name")
        for part in (text, *text.split(":"), *text.split("=")):
            self.path(part)
        return text

    def name(self, text: str) -> str:
        """The name of a target: a preset of ours, a registered id, or a callable of a file in the folder."""
        self.word(text, "the target")
        if any(each.isspace() for each in text):
            raise InputError(f"the target {text!a} has a space in it: give its keys as `keys`")
        if not names_callable(text):
            return preset_of(text)
        if not REGISTERED.fullmatch(text):
            place = text.rpartition(":")[0]
            file = file_of(place)
            if file is None:
                raise InputError(f"there is no module {place} here: write the target as path.py:callable")
            self.path(str(file))
        return text

    def keys(self, keys: Keys | None) -> list[str]:
        """Keys as words, `agents=100`."""
        return [self.key(name, value) for name, value in (keys or {}).items()]

    def key(self, name: str, value: str | float) -> str:
        if not KEY.fullmatch(name):
            raise InputError(f"{name!a} is no key: expected a name such as agents")
        if isinstance(value, str):
            if not value.isprintable():
                raise InputError(f"{name}={value!a} does not fit: expected text of one line")
            for part in (value, *value.split(":"), *value.split("=")):
                self.path(part)
        return f"{name}={str(value).lower() if isinstance(value, bool) else value}"

    def words(self, words: Iterable[str], what: str) -> list[str]:
        return [self.word(each, what) for each in words]


def preset_of(name: str) -> str:
    """A preset; a world without one is several targets, and an answer is about one."""
    found = find(name)
    if "/" not in name and len(names := [each.target for each in presets(found.world)]) > 1:
        raise InputError(f"{name} is a world: name one of its presets, {', '.join(names)}")
    return name


def spelled(flags: Mapping[str, object]) -> list[str]:
    """Flags as words: None and False are left out, a sequence is given one by one."""
    words: list[str] = []
    for name, value in flags.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            words += [f"{flag}={each}" for each in value]
        elif value is not None and value is not False:
            words.append(f"{flag}={value}")
    return words
