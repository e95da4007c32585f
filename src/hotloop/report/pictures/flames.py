"""Flames: stacks drawn as one picture, the whole on top, each caller over what it calls."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape

from hotloop.core.record.stacks import Frame, Stack, short
from hotloop.report.units import TIMES, percent, scaled

WIDTH, ROW, MARGIN = 1200, 18, 26
SMALLEST = 0.001
"""Of the whole; what is narrower would not be seen."""
CHARACTER = 6.6
"""Pixels of one in the labels' font."""


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


def boxes(root: Node) -> Iterator[Box]:
    """From the whole inwards, the longest first."""

    def walk(node: Node, left: float, depth: int) -> Iterator[Box]:
        share = node.seconds / root.seconds
        if share < SMALLEST:
            return
        yield Box(node=node, left=left, share=share, depth=depth)
        for child in sorted(node.below.values(), key=lambda each: -each.seconds):
            yield from walk(child, left, depth + 1)
            left += child.seconds / root.seconds

    if root.seconds > 0:
        yield from walk(root, 0.0, 0)


def draw(seconds: Mapping[Stack, float], title: str) -> str:
    """An SVG that stands by itself; a click on a box zooms, a click on the top one goes back."""
    return drawn(
        list(boxes(tree_of(seconds))), title, tint=colour, told=lambda node: scaled(node.seconds * 1e9, TIMES)
    )


def drawn(
    found: Sequence[Box], title: str, *, tint: Callable[[Node], str], told: Callable[[Node], str]
) -> str:
    """The boxes in their colours, with what each says when the mouse rests there."""
    deepest = max((box.depth for box in found), default=0)
    height = MARGIN + (deepest + 1) * ROW + 6
    body = "".join(draw_box(box, tint, told) for box in found)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="flames" viewBox="0 0 {WIDTH} {height}" '
        'width="100%" preserveAspectRatio="xMinYMin" '
        'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="11">'
        f"<title>{escape(title)}</title>"
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
        f'<text x="4" y="17" font-size="13" fill="#24292f">{escape(title)}</text>{body}'
        f"<script><![CDATA[{SCRIPT}]]></script></svg>\n"
    )


def draw_difference(then: Mapping[Stack, float], now: Mapping[Stack, float], title: str) -> str:
    """The flames of now, each box as red as it grew and as blue as it shrank, in shares of the whole then.

    Seconds of both are of as much work; what is gone altogether has no box.
    """
    before, after = tree_of(then), tree_of(now)
    marked: dict[int, float] = {}

    def mark(node: Node, old: Node | None) -> None:
        marked[id(node)] = (node.seconds - (old.seconds if old else 0.0)) / (before.seconds or 1.0)
        for key, child in node.below.items():
            mark(child, old.below.get(key) if old else None)

    mark(after, before)
    return drawn(
        list(boxes(after)),
        title,
        tint=lambda node: warmth(marked[id(node)]),
        told=lambda node: f"{marked[id(node)]:+.1%} of the time then",
    )


def warmth(change: float) -> str:
    """Red for what grew, blue for what shrank, white for what stayed; a tenth of the whole is the utmost."""
    depth = min(1.0, abs(change) / 0.1)
    return f"hsl({8 if change > 0 else 212} {round(80 * depth)}% {round(96 - 34 * depth)}%)"


def draw_box(box: Box, tint: Callable[[Node], str], more: Callable[[Node], str]) -> str:
    """A rectangle with its label, as far as that fits, and all of it when the mouse rests there."""
    x, width, y = box.left * WIDTH, box.share * WIDTH, MARGIN + box.depth * ROW
    node = box.node
    where = f" ({node.place})" if node.place else ""
    told = f"{node.name}{where}: {more(node)}, {percent(box.share)}"
    data = json.dumps([round(box.left, 6), round(box.share, 6)])
    return (
        f'<g class="box" data-at="{data}"><title>{escape(told)}</title>'
        f'<rect x="{x:.2f}" y="{y}" width="{max(width - 0.5, 0.3):.2f}" height="{ROW - 1}" rx="2" '
        f'fill="{tint(node)}"/>'
        f'<text x="{x + 4:.2f}" y="{y + 13}" fill="#1b1f24" data-text="{escape(node.name, quote=True)}">'
        f"{escape(fitting(node.name, width))}</text></g>"
    )


def fitting(name: str, width: float) -> str:
    """As many characters as there is room for."""
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
