"""Flames: stacks drawn as one picture, the whole on top, each caller over what it calls."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape

from hotloop.core.record.stacks import Frame, Stack, short
from hotloop.report.units import TIMES, percent, scaled

WIDTH, ROW, MARGIN = 1200, 18, 26
SMALLEST = 0.001  # Of the whole; what is narrower would not be seen
CHARACTER = 6.6  # Pixels of one in the labels' font


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
    chain: tuple[str, ...] = ()  # Its callers and itself


def boxes(root: Node) -> Iterator[Box]:
    """From the whole inwards, the longest first."""

    def walk(node: Node, left: float, chain: tuple[str, ...]) -> Iterator[Box]:
        share = node.seconds / root.seconds
        if share < SMALLEST:
            return
        yield Box(node=node, left=left, share=share, depth=len(chain), chain=chain)
        for key, child in sorted(node.below.items(), key=lambda each: -each[1].seconds):
            yield from walk(child, left, (*chain, key))
            left += child.seconds / root.seconds

    if root.seconds > 0:
        yield from walk(root, 0.0, ())


def draw(
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
    shares = dict(shares_of(tree_of(before))) if before is not None else None
    deepest = max((box.depth for box in found), default=0)
    height = MARGIN + (deepest + 1) * ROW + 6
    body = "".join(draw_box(box, shares) for box in found)
    live = f"<script><![CDATA[{SCRIPT}]]></script>" if script else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="flames" viewBox="0 0 {WIDTH} {height}" '
        'width="100%" preserveAspectRatio="xMinYMin" '
        'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="11">'
        f"<title>{escape(title)}</title>"
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
        f'<text x="4" y="17" font-size="13" fill="#24292f">{escape(title)}</text>{body}'
        f"{live}</svg>\n"
    )


Chain = tuple[str, ...]  # A function below its callers, each with its file


def shares_of(root: Node) -> Iterator[tuple[Chain, float]]:
    """Yield every function of a tree, and its share of the whole."""

    def walk(node: Node, chain: Chain) -> Iterator[tuple[Chain, float]]:
        yield chain, node.seconds / root.seconds
        for key, child in node.below.items():
            yield from walk(child, (*chain, key))

    if root.seconds > 0:
        yield from walk(root, ())


def draw_box(box: Box, before: Mapping[Chain, float] | None = None) -> str:
    """Return a rectangle with its label, as far as that fits, and all of it when the mouse rests there."""
    x, width, y = box.left * WIDTH, box.share * WIDTH, MARGIN + box.depth * ROW
    node = box.node
    where = f" ({node.place})" if node.place else ""
    told = f"{node.name}{where}: {scaled(node.seconds * 1e9, TIMES)}, {percent(box.share)}"
    fill = colour(node)
    if before is not None:
        gained = box.share - before.get(box.chain, 0.0)
        told, fill = f"{told}, {gained:+.1%} of the whole", gain_colour(gained)
    data = json.dumps([round(box.left, 6), round(box.share, 6)])
    return (
        f'<g class="box" data-at="{data}"><title>{escape(told)}</title>'
        f'<rect x="{x:.2f}" y="{y}" width="{max(width - 0.5, 0.3):.2f}" height="{ROW - 1}" rx="2" '
        f'fill="{fill}"/>'
        f'<text x="{x + 4:.2f}" y="{y + 13}" fill="#1b1f24" data-text="{escape(node.name, quote=True)}">'
        f"{escape(fitting(node.name, width))}</text></g>"
    )


def fitting(name: str, width: float) -> str:
    """Return as many characters as there is room for."""
    room = int((width - 6) / CHARACTER)
    return name if len(name) <= room else name[: room - 1] + "…" if room > 2 else ""


def colour(node: Node) -> str:
    """Warm for Python, cool for native and built-in code; the same for a file wherever it stands."""
    digest = sha256(node.place.encode()).digest()
    is_python = ".py" in node.place
    hue = 18 + digest[0] % 36 if is_python else 195 + digest[0] % 30
    if not node.place:
        hue = 210
    return f"hsl({hue} {62 if is_python else 38}% {72 + digest[1] % 10}%)"


MOST_GAINED = 0.2  # Of the whole: from there on the colour is at its strongest


def gain_colour(gained: float) -> str:
    """Orange for what takes more of the whole than before, blue for what takes less, grey in between."""
    strength = min(abs(gained) / MOST_GAINED, 1.0)
    hue = 26 if gained > 0 else 205
    return f"hsl({hue} {round(85 * strength)}% {round(86 - 24 * strength)}%)"


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
