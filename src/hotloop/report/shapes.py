"""Shapes of the page as SVG: stacked bars, a forest plot, a heat map, and flames."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from math import log

from hotloop.core.record.stacks import Frame, Stack, short
from hotloop.report.section import TIMES, digits, percent, scaled, speed

CHARACTER = 7.5  # Pixels of a letter, about
WIDTH = 1000  # Pixels of bars and forests

BAR_ROW, BAR, BAR_LEFT, LEGEND = 34, 22, 300, 22
SMALLEST = 0.004  # Of the whole; a thinner part is not drawn
# Told apart by color-blind eyes; parts that never stand in one bar may share one.
COLOURS = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6bb1", "#b2df8a",
)  # fmt: skip
REST, REST_COLOUR = "the rest", "#999999"  # What is in no part
ROW, TOP, BOTTOM = 26, 12, 34  # Of a forest
LEFT, RIGHT = 460, 190  # For the days and names, and for the numbers
TICKS = (
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0,
)  # fmt: skip
CLOSEST = 55  # Pixels between two ticks, at least
LONGEST = 54  # Characters of a name that there is room for

HEAT_LEFT, HEAT_TOP, HEAT_BOTTOM = 130, 34, 30
CELL_WIDTH, CELL_HEIGHT = 92, 34
LIGHT, DARK = (222, 235, 247), (8, 48, 107)  # The least and the most: one hue, so that only darkness counts
TURN = 0.45  # Of the way from light to dark, from which on letters are white


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What parts of a whole each took for one target."""

    name: str
    shares: Mapping[str, float]  # Part to its share of the whole, in the order they are drawn
    record: int  # What a click on it opens


def draw_bars(bars: Sequence[Bar]) -> str:
    """Return stacked bars with a legend; the same part has the same color everywhere."""
    if not bars:
        return ""
    colours = colours_of(bars)
    legend, x, line = list[str](), 8.0, 0
    for name, colour in colours.items():
        width = 26 + len(name) * CHARACTER
        if x + width > WIDTH:
            x, line = 8.0, line + 1
        y = 4 + line * LEGEND
        legend.append(
            f'<rect x="{x:.0f}" y="{y}" width="11" height="11" fill="{colour}"/>'
            f'<text x="{x + 16:.0f}" y="{y + 10}">{escape(name)}</text>'
        )
        x += width
    top = 8 + LEGEND * (1 + line)
    rows = [bar_row(bar, top + BAR_ROW * k, colours) for k, bar in enumerate(bars)]
    size = f'viewBox="0 0 {WIDTH} {top + BAR_ROW * len(bars)}"'
    return f'<svg class="shape stacks" {size} font-size="13">{"".join((*legend, *rows))}</svg>'


def colours_of(bars: Sequence[Bar]) -> dict[str, str]:
    """Return a color for every part, in the order they come; none twice in one bar while there are enough."""
    chosen = {REST: REST_COLOUR}
    for name in (name for bar in bars for name in bar.shares if name != REST):
        beside = {other for bar in bars if name in bar.shares for other in bar.shares}
        used = {chosen[other] for other in beside if other in chosen}
        free = [colour for colour in COLOURS if colour not in used] or COLOURS
        chosen.setdefault(name, free[0])
    shown = dict.fromkeys(name for bar in bars for name in bar.shares)
    return {name: chosen[name] for name in shown}


def bar_row(bar: Bar, y: float, colours: Mapping[str, str]) -> str:
    """Return one bar; a part says what it is on itself if there is room."""
    parts, x = list[str](), float(BAR_LEFT)
    for name, share in bar.shares.items():
        width = max(share, 0.0) * (WIDTH - BAR_LEFT)
        words = f"{name} {percent(share)}"
        if share >= SMALLEST:
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{max(width - 1, 0.5):.1f}" height="{BAR}" '
                f'fill="{colours[name]}"><title>{escape(words)}</title></rect>'
            )
        if share >= SMALLEST and len(words) * CHARACTER + 12 <= width:
            place = f'x="{x + 6:.1f}" y="{y + BAR / 2 + 5:.1f}"'
            parts.append(f'<text class="on" {place}>{escape(words)}</text>')
        x += width
    name = bar.name if len(bar.name) <= 38 else bar.name[:37] + "…"
    return (
        f'<g class="opens" data-record="{bar.record}" tabindex="0">'
        f'<text x="{BAR_LEFT - 12}" y="{y + BAR / 2 + 5:.1f}" text-anchor="end">{escape(name)}</text>'
        f"{''.join(parts)}</g>"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One ratio with its interval, a line of a forest plot."""

    name: str
    made: str  # The day
    about: str  # What was measured, and on which machine, as a tooltip
    estimate: float
    low: float
    high: float
    outcome: str
    record: int  # What a click on it opens


def draw_forest(effects: Sequence[Effect]) -> str:
    """Return one ratio a line around the line of no change; above 1 is faster."""
    shown = [each for each in effects if min(each.low, each.estimate, each.high) > 0]
    if not shown:
        return ""
    low = min(0.95, *(each.low for each in shown)) / 1.02
    high = max(1.05, *(each.high for each in shown)) * 1.02
    tall = TOP + ROW * len(shown) + BOTTOM

    def place(ratio: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * log(ratio / low) / log(high / low)

    def axis() -> Iterator[str]:
        """Yield lines at round ratios that are not too close to each other, and the one of no change."""
        bottom, last = tall - BOTTOM, -1000.0
        for tick in TICKS:
            x = place(tick)
            close = tick != 1 and (x - last < CLOSEST or abs(x - place(1.0)) < CLOSEST)
            if close or not low <= tick <= high:
                continue
            last = x
            kind = ' class="one"' if tick == 1 else ""
            yield f'<line{kind} x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>'
            yield f'<text class="soft" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{tick:g}</text>'
        place_of_words = f'x="{(LEFT + WIDTH - RIGHT) / 2}" y="{tall - 2}"'
        words = "times as fast as A"
        yield f'<text class="soft" {place_of_words} text-anchor="middle" font-size="12">{words}</text>'

    def row(effect: Effect, y: float) -> str:
        name = effect.name if len(effect.name) <= LONGEST else effect.name[: LONGEST - 1] + "…"
        numbers = f"{digits(effect.estimate)} [{digits(effect.low)}, {digits(effect.high)}]"
        outcome = effect.outcome.replace(" ", "-")
        return (
            f'<g class="opens" data-record="{effect.record}" tabindex="0"><title>{escape(effect.name)}: '
            f"{escape(effect.outcome)}; {escape(effect.about)}</title>"
            f'<text class="soft" x="0" y="{y + 4:.1f}" font-size="12">{escape(effect.made)}</text>'
            f'<text x="{LEFT - 12}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>'
            f'<line class="whisker" x1="{place(effect.low):.1f}" x2="{place(effect.high):.1f}" '
            f'y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<rect class="{escape(outcome)}" x="{place(effect.estimate) - 5:.1f}" y="{y - 5:.1f}" '
            f'width="10" height="10"/>'
            f'<text class="soft" x="{WIDTH - RIGHT + 12}" y="{y + 4:.1f}">{numbers}</text></g>'
        )

    rows = (row(each, TOP + ROW * index + ROW / 2) for index, each in enumerate(shown))
    body = "".join([*axis(), *rows])
    return f'<svg class="shape forest" viewBox="0 0 {WIDTH} {tall}" font-size="13">{body}</svg>'


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """Values by the values of two settings; a pair that has none is left blank."""

    down: str
    rows: tuple[str, ...]
    across: str
    columns: tuple[str, ...]
    values: Mapping[tuple[str, str], float]
    best: tuple[str, str] | None = None  # The pair that is framed


def draw_heat(drawn: HeatMap) -> str:
    """Return a number for every pair of two settings, the darker the more."""
    left = max(HEAT_LEFT, *(24 + len(name) * CHARACTER for name in (drawn.down, *drawn.rows)))
    wide = left + CELL_WIDTH * len(drawn.columns) + 8
    tall = HEAT_TOP + CELL_HEIGHT * len(drawn.rows) + HEAT_BOTTOM
    middle = HEAT_TOP + CELL_HEIGHT / 2 + 5
    names = (
        *(text(left - 10, middle + CELL_HEIGHT * k, name, "end") for k, name in enumerate(drawn.rows)),
        *(text(left + CELL_WIDTH * (k + 0.5), HEAT_TOP - 10, name) for k, name in enumerate(drawn.columns)),
        text(left - 10, HEAT_TOP - 10, drawn.down, "end"),
        text(left + CELL_WIDTH * len(drawn.columns) / 2, tall - 10, drawn.across),
    )
    cells = (
        cell(drawn, (row, column), left + CELL_WIDTH * x, HEAT_TOP + CELL_HEIGHT * y)
        for y, row in enumerate(drawn.rows)
        for x, column in enumerate(drawn.columns)
    )
    size = f'viewBox="0 0 {wide:.0f} {tall}" width="{wide:.0f}" height="{tall}"'
    return f'<svg class="shape heat" {size} font-size="13">{"".join((*names, *cells))}</svg>'


def text(x: float, y: float, words: str, anchor: str = "middle", colour: str = "") -> str:
    fill = f' style="fill:{colour}"' if colour else ""
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"{fill}>{escape(words)}</text>'


def cell(drawn: HeatMap, at: tuple[str, str], x: float, y: float) -> str:
    """Return one pair's cell, as dark as its value lies between the least and the most."""
    value = drawn.values.get(at)
    if value is None:
        return ""
    low, high = min(drawn.values.values()), max(drawn.values.values())
    warmth = (value - low) / (high - low) if high > low else 1.0
    frame = ' stroke="#d55e00" stroke-width="3"' if at == drawn.best else ""
    box = f'x="{x + 2:.0f}" y="{y + 2:.0f}" width="{CELL_WIDTH - 4}" height="{CELL_HEIGHT - 4}" rx="3"'
    letters = "#ffffff" if warmth > TURN else "#1f2328"
    words = text(x + CELL_WIDTH / 2, y + CELL_HEIGHT / 2 + 5, speed(value), colour=letters)
    title = f"<title>{escape(f'{drawn.down}={at[0]} {drawn.across}={at[1]}: {value:,.0f}')}</title>"
    return f'<g>{title}<rect {box} fill="{colour_of(warmth)}"{frame}/>{words}</g>'


def colour_of(warmth: float) -> str:
    mixed = (round(a + (b - a) * warmth) for a, b in zip(LIGHT, DARK, strict=True))
    return f"#{''.join(f'{part:02x}' for part in mixed)}"


FLAMES_WIDTH, FLAME_ROW, FLAMES_TOP = 1200, 18, 26
SMALLEST_FLAME = 0.001  # Of the whole; what is narrower would not be seen
FLAME_CHARACTER = 6.6  # Pixels of one in the labels' font
MOST_GAINED = 0.2  # Of the whole: from there on the color is at its strongest

Chain = tuple[str, ...]  # A function below its callers, each with its file


@dataclass(slots=True, kw_only=True)
class Node:
    """A function below one chain of callers."""

    name: str
    place: str
    seconds: float = 0.0
    below: dict[str, "Node"] = field(default_factory=dict)

    def child(self, frame: Frame) -> "Node":
        name, file, _ = frame
        where = short(file) if file and file != "~" else ""
        key = f"{name} ({where})" if where else name
        return self.below.setdefault(key, Node(name=name, place=where))


def tree_of(seconds: Mapping[Stack, float]) -> Node:
    """Add the stacks up, line numbers left out."""
    root = Node(name="all", place="")
    for stack, weight in seconds.items():
        node = root
        node.seconds += weight
        for frame in stack:
            node = node.child(frame)
            node.seconds += weight
    return root


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One rectangle: its place as shares of the width, and its depth."""

    node: Node
    left: float
    share: float
    depth: int
    chain: Chain = ()  # Its callers and itself


def boxes(root: Node, least: float = SMALLEST_FLAME) -> Iterator[Box]:
    """Yield every function from the whole inwards, the longest first, down to a least share."""

    def walk(node: Node, left: float, chain: Chain) -> Iterator[Box]:
        share = node.seconds / root.seconds
        if share < least:
            return
        yield Box(node=node, left=left, share=share, depth=len(chain), chain=chain)
        for key, child in sorted(node.below.items(), key=lambda each: -each[1].seconds):
            yield from walk(child, left, (*chain, key))
            left += child.seconds / root.seconds

    if root.seconds > 0:
        yield from walk(root, 0.0, ())


def draw_flames(
    seconds: Mapping[Stack, float],
    title: str,
    *,
    before: Mapping[Stack, float] | None = None,
    script: bool = True,
) -> str:
    """Return an SVG that stands by itself; a click on a box zooms, a click on the top one goes back.

    With what was `before`, the colours say what a function's share of the whole gained or lost since. A page
    that has a script of its own leaves this one's out.
    """
    found = list(boxes(tree_of(seconds)))
    shares = None if before is None else {box.chain: box.share for box in boxes(tree_of(before), least=0.0)}
    deepest = max((box.depth for box in found), default=0)
    height = FLAMES_TOP + (deepest + 1) * FLAME_ROW + 6
    body = "".join(draw_box(box, shares) for box in found)
    live = f"<script><![CDATA[{SCRIPT}]]></script>" if script else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="flames" viewBox="0 0 {FLAMES_WIDTH} {height}" '
        'width="100%" preserveAspectRatio="xMinYMin" '
        'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="11">'
        f"<title>{escape(title)}</title>"
        f'<rect width="{FLAMES_WIDTH}" height="{height}" fill="#ffffff"/>'
        f'<text x="4" y="17" font-size="13" fill="#24292f">{escape(title)}</text>{body}'
        f"{live}</svg>\n"
    )


def draw_box(box: Box, before: Mapping[Chain, float] | None = None) -> str:
    """Return a rectangle with its label, as far as that fits, and all of it when the mouse rests there."""
    x, width, y = box.left * FLAMES_WIDTH, box.share * FLAMES_WIDTH, FLAMES_TOP + box.depth * FLAME_ROW
    node = box.node
    where = f" ({node.place})" if node.place else ""
    told = f"{node.name}{where}: {scaled(node.seconds * 1e9, TIMES)}, {percent(box.share)}"
    fill = flame_colour(node)
    if before is not None:
        gained = box.share - before.get(box.chain, 0.0)
        # Orange for what takes more of the whole than before, blue for what takes less, gray in between.
        hue, strength = 26 if gained > 0 else 205, min(abs(gained) / MOST_GAINED, 1.0)
        told += f", {gained:+.1%} of the whole"
        fill = f"hsl({hue} {round(85 * strength)}% {round(86 - 24 * strength)}%)"
    data = json.dumps([round(box.left, 6), round(box.share, 6)])
    return (
        f'<g class="box" data-at="{data}"><title>{escape(told)}</title>'
        f'<rect x="{x:.2f}" y="{y}" width="{max(width - 0.5, 0.3):.2f}" height="{FLAME_ROW - 1}" rx="2" '
        f'fill="{fill}"/>'
        f'<text x="{x + 4:.2f}" y="{y + 13}" fill="#1b1f24" data-text="{escape(node.name, quote=True)}">'
        f"{escape(fitting_name(node.name, width))}</text></g>"
    )


def fitting_name(name: str, width: float) -> str:
    """Return as many characters as there is room for."""
    room = int((width - 6) / FLAME_CHARACTER)
    return name if len(name) <= room else name[: room - 1] + "…" if room > 2 else ""


def flame_colour(node: Node) -> str:
    """Warm for Python, cool for native and built-in code; the same for a file wherever it stands."""
    digest = sha256(node.place.encode()).digest()
    is_python = ".py" in node.place
    hue = 18 + digest[0] % 36 if is_python else 195 + digest[0] % 30
    if not node.place:
        hue = 210
    return f"hsl({hue} {62 if is_python else 38}% {72 + digest[1] % 10}%)"


SCRIPT = """
(() => {
  var svg = document.currentScript.closest('svg'), W = svg.viewBox.baseVal.width;
  var boxes = Array.prototype.slice.call(svg.querySelectorAll('g.box'));
  function show(left, share) {
    boxes.forEach(function (g) {
      var at = JSON.parse(g.dataset.at), a = (at[0] - left) / share, w = at[1] / share;
      var x0 = Math.max(a, 0), x1 = Math.min(a + w, 1);
      g.style.display = x1 - x0 > 0.0005 ? '' : 'none';
      var x = x0 * W, width = (x1 - x0) * W, rect = g.children[1], text = g.children[2];
      rect.setAttribute('x', x); rect.setAttribute('width', Math.max(width - 0.5, 0.3));
      text.setAttribute('x', x + 4);
      var name = text.dataset.text, room = Math.floor((width - 6) / 6.6);
      text.textContent = name.length <= room ? name : room > 2 ? name.slice(0, room - 1) + '\\u2026' : '';
    });
  }
  boxes.forEach(function (g) {
    g.style.cursor = 'pointer';
    g.addEventListener('click', function () { var at = JSON.parse(g.dataset.at); show(at[0], at[1]); });
  });
})();
"""
