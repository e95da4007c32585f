"""Judging a soak: which curves surely rise, by more than a trifle, and to the end."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

from hotloop.core.record.experiments import (
    GPU_BYTES,
    HEAP_BYTES,
    OPEN_FILES,
    OWN,
    PRINTED,
    RSS_BYTES,
    RUNNING,
    SLOWER,
    SLOWER_IN,
    Soak,
    Trend,
)
from hotloop.stats.trend import LIKELY, Slope, slope

FEWEST_LOOKS = 12  # Judged ones, for a slope to be sure of
CUT = 0.2  # Of the looks, at the beginning: there caches fill and pools grow
POINTS = 120  # Of a curve that a record keeps
MINUTE_S = 60.0

# Growth below these thresholds is reported but not judged.
TRIFLES: Mapping[str, float] = {
    SLOWER: 0.02,
    RSS_BYTES: 1 << 20,
    HEAP_BYTES: 1 << 20,
    GPU_BYTES: 1 << 20,
    OPEN_FILES: 3,
    RUNNING: 2,
}

OF_ALL = 0.01  # Of what there is, the same for bytes
WATCHING = 16 << 10  # Bytes a look that the soak itself may leave: what it noted, and its record so far
PHASE_TRIFLE = 0.05

# Of a rise that must have come while the first instance stepped by itself, for it to be its own. It does so
# for two thirds of the time, so of a leak of its steps it is far more.
STEPS_SHARE = 0.2

Curve = Sequence[tuple[float, float]]  # Seconds, and a value


def conclude(found: Soak, curves: Mapping[str, Curve]) -> Soak:
    """Return the soak with the trends of its curves."""
    cut = int(CUT * found.looks)
    enough = found.looks - cut >= FEWEST_LOOKS
    made = [
        trend(name, curve, curves.get(f"{OWN}{name}"), enough=enough)
        for name, curve in curves.items()
        if len(curve) > 2 and not name.startswith(OWN)
    ]
    return replace(found, cut=cut, enough=enough, trends=tuple(each for each in made if each is not None))


def trend(name: str, curve: Curve, own: Curve | None = None, *, enough: bool) -> Trend | None:
    """Return the slope of one curve, its first part cut; `own` is what of it came with the steps."""
    kept = judged(curve)
    if len(kept) < 3:
        return None
    over = slope_of(kept)
    growth = over.estimate * (kept[-1][0] - kept[0][0])
    risen = enough and len(kept) >= FEWEST_LOOKS and rises(name, kept, over, growth)
    by_new = risen and own is not None and not comes_with_steps(judged(own), growth)
    return Trend(
        name=name,
        slope=over.estimate * MINUTE_S,
        low=finite(over.low * MINUTE_S),
        high=finite(over.high * MINUTE_S),
        growth=growth,
        alarm=risen and not by_new,
        by_new=by_new,
        curve=downsample(curve),
    )


def judged(curve: Curve) -> Curve:
    """Return the curve without its first part."""
    return curve[int(CUT * len(curve)) :]


def comes_with_steps(own: Curve, growth: float) -> bool:
    """Whether what came while the first instance stepped by itself surely rises, and is enough of it all."""
    over = slope_of(own)
    return over.low > 0 and over.estimate * (own[-1][0] - own[0][0]) > STEPS_SHARE * growth


def slope_of(curve: Curve, **how: float) -> Slope:
    return slope([at for at, _ in curve], [value for _, value in curve], **how)


def finite(value: float) -> float:
    """Return a bound that JSON can hold: what is without bound is far beyond anything."""
    return max(min(value, 1e300), -1e300) if abs(value) == inf else value


def rises(name: str, curve: Curve, over: Slope, growth: float) -> bool:
    """Return whether it surely goes up, by more than a trifle, and still does in the second half."""
    if name.startswith(PRINTED):  # a speed that sinks
        over, growth = Slope(-over.estimate, -over.high, -over.low), -growth / max(abs(curve[0][1]), 1e-300)
        return over.low > 0 and growth > TRIFLES[SLOWER]
    least = PHASE_TRIFLE if name.startswith(SLOWER_IN) else TRIFLES.get(name, inf)
    if name.endswith("_bytes"):
        least = max(least, OF_ALL * abs(curve[0][1]), WATCHING * len(curve))
    later = slope_of(curve[len(curve) // 2 :], z=LIKELY)
    return over.low > 0 and growth > least and later.estimate > 0 and (later.low > 0 or name == SLOWER)


def downsample(curve: Curve) -> tuple[tuple[float, float], ...]:
    """Return as many points as are worth keeping, the last among them."""
    every = -(-len(curve) // POINTS)
    kept = [*curve[::every]]
    if kept[-1] != curve[-1]:
        kept.append(curve[-1])
    return tuple((round(at, 3), value) for at, value in kept)
