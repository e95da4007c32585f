"""The numbers of the prospector world, float32 as its twin counts in it, and an episode's random stream.

numbers.h and stream.h have the same.
"""

from typing import Any

import numpy as np

from hotloop.core import exact_math
from hotloop.core.exact_math import Pcg32

F = np.float32
# A float32. What meets a Python number stays one, so `heat + 2.5` rounds once, as native code does.
Number = np.floating[Any]

Real = Number | float  # A float32, or a Python number to become one
NOTHING = F(0)

COMMODITIES = 6  # Iron, nickel, water ice, platinum group, rare isotopes, volatiles
IRON, NICKEL, ICE, PLATINUM, ISOTOPES, VOLATILES = range(COMMODITIES)
COMMODITY_NAMES = ("iron", "nickel", "water ice", "platinum", "isotopes", "volatiles")
MAX_NODES = 32
SLOTS = 6
MAX_ASTEROIDS = 16
STATION, CLUSTER, HAZARD = range(3)
KIND_NAMES = ("station", "cluster", "hazard")

MAX_FUEL = 1000
MAX_CARGO = 200
FULL = 100  # Of hull, heat, tool and alert
MAX_SUPPLIES = 12
CREDIT_SCALE = 1000
FARTHEST = 31  # Steps to the station of a node that has no way there

PRICE_BASE = tuple(map(F, (45, 55, 85, 145, 210, 120)))
PRICE_MIN = tuple(map(F, (12, 15, 20, 50, 80, 30)))
PRICE_MAX = tuple(map(F, (180, 200, 240, 320, 420, 300)))

TWO_PI = F(6.2831853)
SMALLEST = F(1e-8)


def clamp(x: Number, low: Real, high: Real) -> Number:
    return F(low) if x < low else F(high) if x > high else x


def positive(x: Number) -> Number:
    """What is above zero of it."""
    return x if x > 0 else F(0)


def less(x: Real, y: Real) -> Number:
    """The smaller one."""
    return F(x) if x < y else F(y)


def total(numbers: list[Number]) -> Number:
    """The sum, from the first to the last."""
    summed = F(0)
    for number in numbers:
        summed = F(summed + number)
    return summed


def normalised(numbers: list[Number]) -> list[Number]:
    """Shares of one, each a little above nothing."""
    floored = [max(SMALLEST, number) for number in numbers]
    whole = total(floored)
    return [number / whole for number in floored]


def log(x: Number) -> Number:
    return F(exact_math.log(float(x)))


def exp(x: Number) -> Number:
    return F(exact_math.exp(float(x)))


def sin(x: Number) -> Number:
    return F(exact_math.sin(float(x)))


def cos(x: Number) -> Number:
    return F(exact_math.cos(float(x)))


def sqrt(x: Number) -> Number:
    return F(np.sqrt(F(x)))


def sigmoid(x: Number) -> Number:
    return 1 / (1 + exp(-x))


def power(x: Number, times: int) -> Number:
    """x multiplied by itself in double, rounded once."""
    product = 1.0
    for _ in range(times):
        product *= float(x)
    return F(product)


class Stream(Pcg32):
    """PCG32 with the distributions of this world; each says how many numbers it draws."""

    __slots__ = ()

    def unit(self) -> Number:
        """One draw: 0 to 1."""
        return F(self.next() / 2.0**32)

    def uniform(self, low: float, high: float) -> Number:
        """One draw."""
        return F(low) + (F(high) - F(low)) * self.unit()

    def between(self, low: int, high: int) -> int:
        """One draw: a whole number from low to high - 1."""
        return low + self.next() % (high - low)

    def exponential(self) -> Number:
        """One draw."""
        return -log(max(self.unit(), SMALLEST))

    def normal(self, mean: Real, deviation: Real) -> Number:
        """Two draws."""
        u1, u2 = self.unit(), self.unit()
        return F(mean) + F(deviation) * sqrt(-2 * log(max(u1, SMALLEST))) * cos(TWO_PI * u2)

    def lognormal(self, mean: float, deviation: float) -> Number:
        """Two draws."""
        return exp(self.normal(mean, deviation))

    def beta32(self) -> Number:
        """Five draws: the beta distribution of 3 and 2."""
        first = total([self.exponential() for _ in range(3)])
        second = total([self.exponential() for _ in range(2)])
        return first / (first + second)

    def dirichlet(self) -> list[Number]:
        """Six draws: shares of the commodities."""
        parts = [self.exponential() for _ in range(COMMODITIES)]
        whole = total(parts)
        return [part / whole for part in parts]
