"""Saved states with a few of their places changed."""

import random
import struct

NUMBERS = (0, 1, -1, 60, 120, 255, 256, 65_536, 2**31 - 1, -(2**31))
FLOATS = (float("nan"), float("inf"), -1e30, -1.0, 1e9)
WORDS = [struct.pack("<i", each) for each in NUMBERS] + [struct.pack("<f", each) for each in FLOATS]


def forge(content: bytes, chance: random.Random) -> bytes:
    """Change a few places, more often where a block begins: there is what the rest is read by."""
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 8))):
        place = chance.randrange(chance.choice((600, 4_000, len(data))) % len(data) or len(data))
        if chance.random() < 0.5:
            data[place] = chance.choice((0, 1, 2, 59, 120, 127, 128, 255, data[place] ^ 4))
        else:
            place -= place % 4
            data[place : place + 4] = chance.choice(WORDS)
    return bytes(data[: len(content)])
