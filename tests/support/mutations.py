"""Files as nobody should write them: seeded damage to JSON, to text and to bytes."""

import copy
import json
import random
from collections.abc import Iterator
from datetime import date
from typing import Any

NASTY: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        -(2**63),
        2**53 + 1,
        2**64,
        10**400,
        0.5,
        -0.0,
        1e-320,
        1e300,
        -1e300,
        1.7e308,
    ),
    *(float("nan"), float("inf"), float("-inf")),
    *("", "a", "\x00", "\x1b[31m", "\ud800", "../../x", "os:system", "\uff19", "a\nb", "x" * 5_000, "NaN"),
    *([], {}, [[]], {"a": {}}, [None], [1, "a"], {"": 1}, {"\udfff": 0}),
)

DEEP = "[" * 10_000 + "]" * 10_000


def mutated(plain: Any, seed: int) -> str:
    """JSON text of a value that one to three things are wrong with."""
    chance = random.Random(seed)
    value = copy.deepcopy(plain)
    for _ in range(chance.randint(1, 3)):
        damage(value, chance)
    text = json.dumps(value)
    kind = chance.random()
    if kind < 0.03:
        return text.replace("null", DEEP, 1)
    if kind < 0.08:
        return text[: chance.randrange(len(text))]
    if kind < 0.11:
        return text + chance.choice(("{}", "x", "\x00", text))
    return text


def damage(value: Any, chance: random.Random) -> None:
    """Change one place of a value: another one in it, none, one more, or two exchanged."""
    places = list(places_of(value))
    if not places:
        return
    holder, key = chance.choice(places)
    match chance.randrange(6):
        case 0 if isinstance(holder, dict):
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[chance.choice(("surprise", "", "\x1b[0m", "x" * 300))] = chance.choice(NASTY)
        case 2 if isinstance(holder, list):
            holder.extend(holder[:3] or [chance.choice(NASTY)])
        case 3:
            other, place = chance.choice(places)
            holder[key] = copy.deepcopy(other[place])
        case _:
            holder[key] = copy.deepcopy(chance.choice(NASTY))


def places_of(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (holder, key) of a JSON value, from the outside inwards."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(pairs):
        yield value, key
        if isinstance(item, dict | list):
            yield from places_of(item)


def damaged(content: bytes, seed: int) -> bytes:
    """Bytes of which some were turned, cut off, doubled or added."""
    chance = random.Random(seed)
    data = bytearray(content)
    match chance.randrange(5):
        case 0:
            return bytes(data[: chance.randrange(len(data))])
        case 1:
            return bytes(data) + chance.randbytes(chance.randrange(1, 200))
        case 2:
            begin = chance.randrange(len(data))
            data[begin : begin + chance.randrange(1, 64)] = chance.randbytes(chance.randrange(1, 64))
        case _:
            for _ in range(chance.choice((1, 4, 64))):
                data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data)


def toml(table: dict[str, Any]) -> str:
    """The text of a table, one line a key; what TOML has no word for is left out."""
    return "".join(
        f"{json.dumps(key)} = {toml_value(value)}\n" for key, value in table.items() if sayable(value)
    )


def sayable(value: Any) -> bool:
    return value is not None


def toml_value(value: Any) -> str:
    if isinstance(value, dict):
        inner = (f"{json.dumps(key)} = {toml_value(each)}" for key, each in value.items() if sayable(each))
        return f"{{{', '.join(inner)}}}"
    if isinstance(value, list):
        return f"[{', '.join(toml_value(each) for each in value if sayable(each))}]"
    if isinstance(value, float):
        return repr(value)
    return value.isoformat() if isinstance(value, date) else json.dumps(value)
