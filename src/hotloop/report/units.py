"""Numbers as people read them."""

from collections.abc import Sequence

Interval = tuple[float, float]
SPARKS = "▁▂▃▄▅▆▇█"


def speed(per_second: float) -> str:
    """Three digits and a letter: 8.02 M, 401 k, 73.1."""
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if per_second >= size:
            return three_digits(per_second / size) + letter
    return three_digits(per_second)


def three_digits(value: float) -> str:
    """Three digits where there is a point, whole numbers above."""
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def speed_interval(interval: Interval | None) -> str:
    return "no interval" if interval is None else f"[{speed(interval[0])}, {speed(interval[1])}]"


def ratio_interval(ratio: float, interval: Interval | None) -> str:
    return f"{ratio:.3f}" + (f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else "")


def percent(share: float) -> str:
    return f"{share:.1%}"


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "es" if noun.endswith("s") else "s")


def plain(value: float) -> str:
    """A number of any size to three places, without idle zeros: 1,000, 0.438."""
    return f"{value:z,.3f}".rstrip("0").rstrip(".")


def sparkline(values: Sequence[float], width: int = 40) -> str:
    """The last values as a line of blocks, lowest to highest."""
    shown = values[-width:]
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    scale = (len(SPARKS) - 1) / (high - low) if high > low else 0.0
    return "".join(SPARKS[round((value - low) * scale)] for value in shown)
