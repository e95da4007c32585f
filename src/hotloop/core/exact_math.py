"""Arithmetic and random numbers that twins share with native code, exact to the bit on every machine.

exp, log, sin, cos and pow are polynomials in double, rounded once to float; they agree with maths.h. Python's
own functions come from the platform's library and differ between machines and devices in the last bit; these
are sums and products in a fixed order, which do not. Random numbers are a function of (episode_seed, tick,
lane), or a PCG32 stream; they agree with random.h.
"""

import math
from ctypes import c_float
from typing import Self

LN2_HIGH = 6.93147180369123816490e-01

LN2_LOW = 1.90821492927058770002e-10

LOG2_E = 1.44269504088896338700

HALF_PI_HIGH = 1.57079632673412561417

HALF_PI_LOW = 6.07710050650619224932e-11

TWO_OVER_PI = 6.36619772367581382433e-01

SQRT_HALF = 0.70710678118654752440

EXP = tuple(1.0 / math.factorial(n) for n in range(13))

LOG = tuple(1.0 / (2 * n + 1) for n in range(9))

SIN = tuple((-1.0) ** n / math.factorial(2 * n + 1) for n in range(8))

# Coefficients, the constant one first; each is one division of whole numbers, rounded once.
COS = tuple((-1.0) ** n / math.factorial(2 * n) for n in range(8))


def polynomial(c: tuple[float, ...], x: float) -> float:
    """The polynomial of 8, 9 or 13 coefficients at x, neighbours first, then pairs of pairs (Estrin's order).

    Native code, which has several pairs under way at a time, adds up in the same order.
    """
    x2 = x * x
    x4 = x2 * x2
    low = ((c[0] + c[1] * x) + (c[2] + c[3] * x) * x2) + ((c[4] + c[5] * x) + (c[6] + c[7] * x) * x2) * x4
    if len(c) == 8:
        return low
    high = c[8] if len(c) == 9 else ((c[8] + c[9] * x) + (c[10] + c[11] * x) * x2) + c[12] * x4
    return low + high * (x4 * x4)


def f32(x: float) -> float:
    """Round to the nearest float32."""
    return c_float(x).value


def _exp(x: float) -> float:
    if x > 709.0:
        return math.inf
    if x < -708.0:
        return 0.0
    k = math.floor(x * LOG2_E + 0.5)
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    return math.ldexp(polynomial(EXP, r), k)


def _log(x: float) -> float:
    if x < 0.0 or x != x:
        return math.nan
    if x == 0.0:
        return -math.inf
    if x == math.inf:
        return math.inf
    m, k = math.frexp(x)
    if m < SQRT_HALF:
        m, k = m * 2.0, k - 1
    s = (m - 1.0) / (m + 1.0)
    return k * LN2_HIGH + (2.0 * s * polynomial(LOG, s * s) + k * LN2_LOW)


def _sin_cos(x: float) -> tuple[float, float]:
    """Sine and cosine for |x| up to about a million radians."""
    k = math.floor(x * TWO_OVER_PI + 0.5)
    r = (x - k * HALF_PI_HIGH) - k * HALF_PI_LOW
    z = r * r
    s, c = r * polynomial(SIN, z), polynomial(COS, z)
    return ((s, c), (c, -s), (-s, -c), (-c, s))[k & 3]


def exp(x: float) -> float:
    return f32(_exp(x))


def log(x: float) -> float:
    return f32(_log(x))


def sin(x: float) -> float:
    return f32(_sin_cos(x)[0])


def cos(x: float) -> float:
    return f32(_sin_cos(x)[1])


def pow(x: float, y: float) -> float:
    """x to the y for x > 0; 0 to a positive power is 0, anything to the 0 is 1."""
    if y == 0.0:
        return 1.0
    if x == 0.0 and y > 0.0:
        return 0.0
    return f32(_exp(y * _log(x)))


MASK = (1 << 64) - 1

GOLDEN = 0x9E3779B97F4A7C15


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
        """Return 64 bits, each spread over all of them (the finalizer of SplitMix64)."""
        x = (self.key + lane * GOLDEN) & MASK
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
        return x ^ (x >> 31)

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
