"""What a ratio and its interval allow to be said: faster, slower, the same, or nothing yet."""

import math

from hotloop.core.record import Outcome, Ratio

MOST_TIMES = 100
"""How many times narrower an interval can be hoped to become: ten thousand times the rounds."""


def outcome(ratio: Ratio, band: float) -> Outcome:
    """Faster or slower where the whole interval is beyond the band, the same where it is inside."""
    upper = 1 + band
    if ratio.low > upper:
        return "faster"
    if ratio.high < 1 / upper:
        return "slower"
    return "same" if 1 / upper <= ratio.low and ratio.high <= upper else "cannot tell"


def agrees_slower(ratio: Ratio, band: float) -> bool:
    """Whether a second run found B slower too: beyond the band at its best guess, and surely not equal."""
    return ratio.estimate < 1 / (1 + band) and ratio.high < 1


def half_width(ratio: Ratio) -> float:
    """Half the interval's width, as a share: 0.01 is plus or minus 1%."""
    return math.sqrt(ratio.high / ratio.low) - 1


def visible(ratio: Ratio, band: float) -> float:
    """The smallest change that this many pairs, as noisy as these, would have shown beyond the band."""
    return (1 + band) * (1 + half_width(ratio)) - 1


def more_pairs(ratio: Ratio, band: float) -> int | None:
    """How many more would bring the interval to one side of the edge of the band; None where none would.

    An interval narrows with the square root of the pairs. It has to become narrower than the distance of
    the estimate from the nearest edge.
    """
    edge = math.log1p(band)
    distance = abs(abs(math.log(ratio.estimate)) - edge)
    width = math.log1p(half_width(ratio))
    if width > distance * MOST_TIMES:
        return None
    return max(0, math.ceil(ratio.pairs * (width / distance) ** 2) - ratio.pairs) if distance else None
