"""Fits: by which law a cost grows with a size, and how surely.

The curve is `a + c * n**p`, a and c not negative, errors in proportion to the cost. The exponent's interval
is the profile likelihood's: every p whose best a and c leave little enough unexplained. A law by name
(constant, logarithm, linear, n log n, quadratic) is said where it explains the values as well as the free
exponent does; where several do, the others are said beside it. Values that allow nearly any exponent
have no law.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from hotloop.core.record.experiments import Law

# What a law adds to its constant, per unit.
SHAPES: Mapping[Law, Callable[[float], float]] = {
    "log": lambda n: math.log(n + 1),
    "linear": lambda n: n,
    "n log n": lambda n: n * math.log(n + 1),
    "quadratic": lambda n: n * n,
}

LOWEST, HIGHEST, STEPS = -1.5, 4.0, 1_100  # Exponents that are tried, and how many
FEWEST_SIZES = 3  # For a curve with a constant; of two sizes only their ratio is known

# How many times the repeats' own spread the curve may miss the sizes' means by; beyond that it is noise.
MISFIT = 3.0

LACK = 0.15  # Of the cost: a curve that misses the sizes by more is another law, however few sizes there are
WORSE = 4.0  # How many times as much as the best may be missed, squared, where the best itself misses more
SINGULAR = 1e-12  # Of the determinant: below it a shape cannot be told from a constant
TINY = 1e-12  # What rounding leaves unexplained

# An interval of the exponent that is wider tells no law from another: a constant from a cubic one, say.
WIDE = 3.0

# Sum of squared relative misses below which a law by name is met, whatever other exponents would allow.
EXACT = 1e-6

GROWN = 2.0  # What is so many times as much at one size as at another is not constant, however noisy

# Student's t at 99.5%, by degrees of freedom from 1. Wider than 95% asks for by itself, since the exponent
# and the constant are found from the same few sizes: with it an interval held the truth in 97 to 100 of 100
# made-up sweeps with a noise of 10%.
T = (63.66, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """How a cost grows with a size."""

    law: Law
    exponent: float  # Of `a + c * n**p`, the best p
    low: float
    high: float  # Its 95% interval
    constant: float
    factor: float  # a and c of the law that is named; of a power or no law, with its exponent
    also: tuple[Law, ...] = ()  # Other laws that the same values allow

    def at(self, size: float) -> float:
        """Return the cost that the curve says."""
        return self.constant + self.factor * self.shape(size)

    def shape(self, size: float) -> float:
        if self.law == "constant":
            return 0.0
        return SHAPES[self.law](size) if self.law in SHAPES else size**self.exponent


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The best curve of one shape."""

    constant: float
    factor: float
    missed: float  # Sum of squared relative misses


Points = Mapping[float, Sequence[float]]  # Size to its values, one a repeat


def fit(points: Points) -> Fitted | None:
    """Return the law of positive values over at least two positive sizes; None if there are fewer."""
    usable = {size: values for size, values in sorted(points.items()) if size > 0 and values}
    if len(usable) < 2 or not all(value > 0 for values in usable.values() for value in values):
        return None
    rows = rows_of(usable)
    exponent, free = profile(rows)
    rows = rows_of(usable, lambda size: free[exponent].constant + free[exponent].factor * size**exponent)
    exponent, free = profile(rows)
    named = laws(rows)
    least = min([free[exponent].missed, *(best.missed for best in named.values())])
    most = least + slack(rows, least) + TINY  # laws that explain the values nearly as well as the best curve
    named = {law: best for law, best in named.items() if best.missed <= most}
    means = [row.mean for row in rows]
    if max(means) > GROWN * min(means):
        named.pop("constant", None)
    law, chosen = choose(named, free[exponent])
    if law == "constant":  # beside a constant any exponent of nothing is as good
        exponent, free = profile(rows, pure=True)
    inside = [exponent]
    if law == "power" or chosen.missed >= EXACT:
        least = min(best.missed for best in free.values())
        inside = [p for p, best in free.items() if best.missed <= least + slack(rows, least)]
    if max(inside) - min(inside) > WIDE:
        law, chosen, named = "unknown", free[exponent], {}
    return Fitted(
        law=law,
        exponent=exponent,
        low=min(inside),
        high=max(inside),
        constant=chosen.constant,
        factor=chosen.factor,
        also=tuple(each for each in named if each != law),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is known of one size."""

    size: float
    mean: float
    count: int
    weight: float  # Of one value: over the square of what is expected, so that misses are relative
    within: float  # Sum of the values' squared distances from their mean, times that


Rows = Sequence[Row]


def rows_of(points: Points, expected: Callable[[float], float] | None = None) -> list[Row]:
    """Sizes with the weights that a first curve gives them; without one, that their own means do."""
    rows = []
    for size, values in points.items():
        mean = fmean(values)
        weight = (expected(size) if expected else mean) ** -2
        within = weight * sum((value - mean) ** 2 for value in values)
        rows.append(Row(size=size, mean=mean, count=len(values), weight=weight, within=within))
    return rows


def profile(rows: Rows, *, pure: bool = False) -> tuple[float, dict[float, Best]]:
    """The best exponent, and the best curve of every one; of two sizes, or `pure`, without a constant."""
    width = (HIGHEST - LOWEST) / STEPS
    tried = [round(LOWEST + k * width, 4) for k in range(STEPS + 1)]
    shapes = [[row.size**p for row in rows] for p in tried]
    best = bests(rows, shapes, pure=pure or len(rows) < FEWEST_SIZES)
    found = dict(zip(tried, best, strict=True))
    return min(found, key=lambda p: found[p].missed), found


def laws(rows: Rows) -> dict[Law, Best]:
    """Return the best curve of every law that has a name."""
    if len(rows) < FEWEST_SIZES:
        return {}
    shapes = [[0.0] * len(rows), *([shape(row.size) for row in rows] for shape in SHAPES.values())]
    return dict(zip(("constant", *SHAPES), bests(rows, shapes), strict=True))


def choose(named: Mapping[Law, Best], free: Best) -> tuple[Law, Best]:
    """Return a constant where that will do; else the named law that misses least; else the power itself."""
    if "constant" in named:
        return "constant", named["constant"]
    if named:
        law = min(named, key=lambda each: named[each].missed)
        return law, named[law]
    return "power", free


def bests(rows: Rows, shapes: Sequence[Sequence[float]], *, pure: bool = False) -> list[Best]:
    """Return the best curve of each shape, a number a row: least squares, neither number below zero."""
    import numpy as np

    x = np.asarray(shapes, float)
    y = np.array([row.mean for row in rows])
    weight = np.array([row.weight * row.count for row in rows])
    one, x1, x2 = weight.sum(), x @ weight, (x * x) @ weight
    y1, xy = float(y @ weight), x @ (weight * y)
    nothing = np.zeros(len(x))
    through = np.where(x2 > 0, xy / np.where(x2 > 0, x2, 1.0), 0.0)
    whole = one * x2 - x1 * x1
    solved = whole > SINGULAR * one * x2
    over = np.where(solved, whole, 1.0)
    constant, factor = (y1 * x2 - x1 * xy) / over, (one * xy - x1 * y1) / over
    fits = solved & (constant >= 0) & (factor >= 0)
    chances = [(nothing, np.maximum(through, 0.0))]
    if not pure:
        flat = nothing + y1 / one
        chances += [(flat, nothing), (np.where(fits, constant, flat), np.where(fits, factor, 0.0))]
    within = sum(row.within for row in rows)
    missed = np.stack([within + ((y - a[:, None] - c[:, None] * x) ** 2) @ weight for a, c in chances])
    best = missed.argmin(axis=0)
    a, c = (np.stack([each[k] for each in chances])[best, np.arange(len(x))] for k in (0, 1))
    numbers = zip(a.tolist(), c.tolist(), missed.min(axis=0).tolist(), strict=True)
    return [Best(constant=constant, factor=factor, missed=least) for constant, factor, least in numbers]


def slack(rows: Rows, missed: float) -> float:
    """Return how much more may be unexplained by a curve that is still as good, in 95% of cases.

    Where the curve misses the sizes' means by more than their repeats explain, that is the noise, and there
    is as little of it as there are sizes; then a curve is held to what can be seen by eye, too.
    """
    sizes, count = len(rows), sum(row.count for row in rows)
    numbers = 2 if sizes < FEWEST_SIZES else 3
    within = sum(row.within for row in rows)
    spare, repeats = sizes - numbers, count - sizes
    between = (missed - within) / spare if spare > 0 else 0.0
    own = within / repeats if repeats else math.inf
    if spare > 0 and between > MISFIT * own:
        return min(student(spare) ** 2 * between, max(count * LACK**2, WORSE * missed))
    if count <= numbers:
        return math.inf
    return student(count - numbers) ** 2 * missed / (count - numbers)


def student(freedom: int) -> float:
    """Student's t at 99.5%, to a hundredth."""
    return T[freedom - 1] if freedom <= len(T) else 2.576 + 5.5 / freedom


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossed:
    """Where one curve overtakes another."""

    size: float  # About, between two measured ones
    between: tuple[float, float]


def crossing(a: Points, b: Points) -> Crossed | None:
    """Return where a, which is surely below b at a smaller size, is surely above it from a larger one on."""
    below = [size for size in sorted(a) if size in b and a[size] and max(a[size]) < min(b[size])]
    above = [size for size in sorted(a) if size in b and a[size] and min(a[size]) > max(b[size])]
    if not below or not above or max(below) > min(above):
        return None
    first, last = max(below), min(above)
    gaps = [math.log(median(a[size]) / median(b[size])) for size in (first, last)]
    share = -gaps[0] / (gaps[1] - gaps[0])
    return Crossed(size=first * (last / first) ** share, between=(first, last))


KNEE = 0.9  # Of the best speed: from there on more of the axis brings little
WORTH = 1.2  # How many times as fast the best must be as the first for there to be a knee at all


def knee(speeds: Points) -> float | None:
    """The first size from which the speed stays near its best; None where it rises little, or to the end."""
    ordered = sorted(size for size in speeds if speeds[size])
    if len(ordered) < FEWEST_SIZES:
        return None
    middles = [median(speeds[size]) for size in ordered]
    best = max(middles)
    if best < WORTH * middles[0]:
        return None
    near = [value >= KNEE * best for value in middles]
    at = next(k for k in range(len(near)) if all(near[k:]) or k == len(near) - 1)
    return ordered[at] if at < len(ordered) - 1 else None
