"""Random numbers that are a function of (episode_seed, tick, lane), and PCG32; agrees with random.h."""

from typing import Self

MASK = (1 << 64) - 1

GOLDEN = 0x9E3779B97F4A7C15


def scramble(x: int) -> int:
    """Spread every bit of a 64-bit word over all of them (the finaliser of SplitMix64)."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def mix(*words: int) -> int:
    """Fold words into one, so that changing any of them or their order changes the result.

    Every word is scrambled as above, in place: twins hash hundreds of them every step.
    """
    h, golden, mask = 0, GOLDEN, MASK
    for word in words:
        x = (h + golden ^ word) & mask
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
        h = x ^ (x >> 31)
    return h


class Draws:
    """The random numbers of one tick: lane in, number out, in any order."""

    __slots__ = ("key",)

    def __init__(self, episode_seed: int, tick: int) -> None:
        self.key = mix(episode_seed, tick)

    def word(self, lane: int) -> int:
        return scramble((self.key + lane * GOLDEN) & MASK)

    def below(self, lane: int, bound: int) -> int:
        """A whole number from 0 to bound - 1, by multiplying the upper 32 bits."""
        return ((self.word(lane) >> 32) * bound) >> 32


class Pcg32:
    """The PCG32 stream of one episode: 64-bit state, xorshift-and-rotate output."""

    __slots__ = ("state",)

    MULTIPLIER = 6364136223846793005
    INCREMENT = (54 << 1) | 1

    def __init__(self, seed: int) -> None:
        self.state = 0
        self.next()
        self.state = (self.state + seed) & MASK
        self.next()

    def next(self) -> int:
        old = self.state
        self.state = (old * self.MULTIPLIER + self.INCREMENT) & MASK
        word = ((old >> 18) ^ old) >> 27 & 0xFFFFFFFF
        turn = old >> 59
        return (word >> turn | word << (-turn & 31)) & 0xFFFFFFFF

    def skip(self, draws: int) -> Self:
        """Jump over a number of draws in logarithmic time."""
        factor, offset = 1, 0
        step_factor, step_offset = self.MULTIPLIER, self.INCREMENT
        while draws > 0:
            if draws & 1:
                factor = factor * step_factor & MASK
                offset = (offset * step_factor + step_offset) & MASK
            step_offset = (step_factor + 1) * step_offset & MASK
            step_factor = step_factor * step_factor & MASK
            draws >>= 1
        self.state = (factor * self.state + offset) & MASK
        return self
