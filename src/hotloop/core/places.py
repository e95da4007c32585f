"""Where the keys of a TOML file stand: the line of each, for errors that name it."""

import re
import tomllib
from dataclasses import dataclass, field
from typing import Any

Keys = tuple[str, ...]
"""The keys from the outermost inwards; an item of a list is its number."""

TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\''
    r"|#[^\n]*|[\[\]{}=,\n]|[^\s\[\]{}=,#\"']+",
    re.DOTALL,
)
"""Text, a comment, a bracket, the end of a line, or a bare word."""


@dataclass(slots=True)
class Container:
    """A table or a list that has begun."""

    keys: Keys
    item: int | None = None
    """The number of the item that is being read; None in a table."""

    @property
    def here(self) -> Keys:
        """Where a value stands that has no key."""
        return self.keys if self.item is None else (*self.keys, str(self.item))


@dataclass(slots=True)
class Reader:
    """Goes through the tokens of a file."""

    lines: dict[Keys, int] = field(default_factory=dict)
    stack: list[Container] = field(default_factory=lambda: [Container(())])
    pending: list[str] = field(default_factory=list)
    """The words of a key whose equals sign has not come."""
    value: Keys | None = None
    """Where the value that comes next stands; None where a key comes next."""

    def read(self, token: str, line: int) -> None:
        """One token inside a statement."""
        top = self.stack[-1]
        if token == "=":
            self.value = (*top.keys, *keys_of("".join(self.pending)))
            self.lines.setdefault(self.value, line)
            self.pending = []
        elif token in "[{":
            where = top.here if self.value is None else self.value
            self.lines.setdefault(where, line)
            self.stack.append(Container(where, 0 if token == "[" else None))
            self.value = None
        elif token in "]}":
            self.stack.pop()
            self.value, self.pending = None, []
        elif token == ",":
            if top.item is not None:
                top.item += 1
            self.value, self.pending = None, []
        else:
            self.pending.append(token)

    def begin(self, header: str, line: int) -> None:
        """A table, or one more of a list of tables."""
        keys = keys_of(header.strip("[] \t"))
        self.lines.setdefault(keys, line)
        if header.startswith("[["):
            count = sum(1 for each in self.lines if each[:-1] == keys and each[-1].isdecimal())
            keys = (*keys, str(count))
            self.lines[keys] = line
        self.stack = [Container(keys)]

    @property
    def between(self) -> bool:
        """Whether a statement ends with the line."""
        return len(self.stack) == 1


HEADER = re.compile(r"\[\[?[^\n]*?\]\]?(?=[ \t]*(?:#|\r?\n|$))")


def places(text: str) -> dict[Keys, int]:
    """The line of every table, key and list item of a file that `tomllib` can read, counted from 1."""
    reader, position, line, fresh = Reader(), 0, 1, True
    while match := TOKEN.search(text, position):
        line += text.count("\n", position, match.start())
        token, header = match[0], HEADER.match(text, match.start())
        if fresh and header and reader.between:
            reader.begin(header[0], line)
            match = header
        elif token == "\n":
            if reader.between:
                reader.value, reader.pending = None, []
        elif not token.startswith("#"):
            reader.read(token, line)
        fresh = token == "\n" or (fresh and token.startswith("#"))
        line += text.count("\n", match.start(), match.end())
        position = match.end()
    return reader.lines


def keys_of(dotted: str) -> Keys:
    """The parts of a dotted key, without their quotes."""
    found: list[str] = []
    inner: Any = tomllib.loads(f"{dotted} = 0")
    while isinstance(inner, dict):
        (key, inner), *_ = inner.items()
        found.append(key)
    return tuple(found)
