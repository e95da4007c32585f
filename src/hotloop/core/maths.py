"""exp, log, sin, cos and pow as polynomials in double, rounded once to float; agrees with maths.h to the bit.

Python's own functions come from the platform's library and differ between machines and devices in the
last bit; these are sums and products in a fixed order, which do not.
"""

import math
from ctypes import c_float

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
COS = tuple((-1.0) ** n / math.factorial(2 * n) for n in range(8))
"""Coefficients, the constant one first; each is one division of whole numbers, rounded once."""


def polynomial(coefficients: tuple[float, ...], x: float) -> float:
    """The polynomial at x, neighbours first (Estrin's order): native code does several pairs at a time."""
    terms = list(coefficients)
    while len(terms) > 1:
        pairs = [low + high * x for low, high in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[len(pairs) * 2 :]
        x *= x
    return terms[0]


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
