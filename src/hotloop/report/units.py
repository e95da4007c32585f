"""Numbers as people read them."""

from collections.abc import Sequence

Interval = tuple[float, float]
SPARKS = "▁▂▃▄▅▆▇█"
TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
CPU = "on a core"  # The column of how much of its own time a row worked for
LARGE = 1_000  # A number from there on is drawn without a fraction


def speed(per_second: float) -> str:
    """Return three digits and a letter: 8.02 M, 401 k, 73.1."""
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if per_second >= size * 0.9995:
            return three_digits(per_second / size) + letter
    return three_digits(per_second)


def three_digits(value: float) -> str:
    """Return three digits where there is a point, whole numbers above."""
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def speed_interval(interval: Interval | None) -> str:
    return "no interval" if interval is None else f"[{speed(interval[0])}, {speed(interval[1])}]"


def ratio_interval(ratio: float, interval: Interval | None) -> str:
    return f"{ratio:.3f}" + (f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else "")


def percent(share: float) -> str:
    return f"{share:.1%}"


def on_core(worked: float | None) -> str:
    """Return how much of its own time a row was on a core for; empty if not measured."""
    return "" if worked is None else f"{worked:.0%}"


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "es" if noun.endswith("s") else "s")


def plain(value: float) -> str:
    """Return a number of any size to three places, without idle zeros: 1,000, 0.438."""
    return f"{value:z,.3f}".rstrip("0").rstrip(".")


def sparkline(values: Sequence[float], width: int = 40) -> str:
    """Return the last values as a line of blocks, lowest to highest."""
    shown = values[-width:]
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    scale = (len(SPARKS) - 1) / (high - low) if high > low else 0.0
    return "".join(SPARKS[round((value - low) * scale)] for value in shown)


def curve_words(values: Sequence[float], width: int = 40) -> str:
    """Return a series in words: where it ended, where it began, and the line between."""
    ends = f"{plain(values[-1])} at the end, {plain(values[0])} at the beginning"
    return f"{ends}  {sparkline(values, width)}" if width else ends


def plain_float(value: float) -> str:
    """Return four digits, or whole thousands."""
    return f"{value:,.0f}" if abs(value) >= LARGE else f"{value:.4g}"


def scaled(value: float, units: tuple[tuple[float, str], ...]) -> str:
    """Return three digits and the largest unit that leaves something before the point."""
    size, unit = next((each for each in units if abs(value) >= each[0]), units[-1])
    shown = value / size
    return f"{'-' if shown < 0 else ''}{three_digits(abs(shown))} {unit}" if value else f"0 {unit}"


def took(ns: float) -> str:
    """Return a duration as people read it."""
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= size:
            return f"{ns / size:.{1 if ns >= 100 * size else 2}f} {unit}"
    return f"{ns:.0f} ns"


def times(ratio: float) -> str:
    """Return how many times: one place, and none of what is large."""
    return f"{ratio:,.{0 if ratio >= 100 else 1}f}"


def digits(ratio: float) -> str:
    """Return three places around one, three digits of what is far from it, whole numbers of thousands."""
    if ratio >= LARGE:
        return f"{ratio:,.0f}"
    return f"{ratio:.3f}" if 0.1 <= ratio < 100 else f"{ratio:.3g}"
