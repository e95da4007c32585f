"""The numbers of the prospector world, and float32 as its twin counts in it."""

from typing import Any

import numpy as np

from hotloop.core.exact import maths

F = np.float32
Number = np.floating[Any]
"""A float32. What meets a Python number stays one, so `heat + 2.5` rounds once, as native code does."""

Real = Number | float
"""A float32, or a Python number to become one."""
NOTHING = F(0)

COMMODITIES = 6
"""Iron, nickel, water ice, platinum group, rare isotopes, volatiles."""
IRON, NICKEL, ICE, PLATINUM, ISOTOPES, VOLATILES = range(COMMODITIES)
COMMODITY_NAMES = ("iron", "nickel", "water ice", "platinum", "isotopes", "volatiles")
MAX_NODES = 32
SLOTS = 6
MAX_ASTEROIDS = 16
STATION, CLUSTER, HAZARD = range(3)
KIND_NAMES = ("station", "cluster", "hazard")

MAX_FUEL = 1000
MAX_CARGO = 200
FULL = 100
"""Of hull, heat, tool and alert."""
MAX_SUPPLIES = 12
CREDIT_SCALE = 1000
FARTHEST = 31
"""Steps to the station of a node that has no way there."""

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
    return F(maths.log(float(x)))


def exp(x: Number) -> Number:
    return F(maths.exp(float(x)))


def sin(x: Number) -> Number:
    return F(maths.sin(float(x)))


def cos(x: Number) -> Number:
    return F(maths.cos(float(x)))


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
