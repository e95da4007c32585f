import io
from itertools import pairwise
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from hotloop.report.charts import COLOURS, LINE, WIDTH, StepPanel, height, png, round_ticks, spread, svg

PANELS = [
    StepPanel(title="people", curves={"all": [1.0, 5.0, 3.0], "some <of them>": [0.0, 2.0, 3.0]}),
    StepPanel(title="food", curves={"left": [0.0, 0.0, 0.0]}),
]
NAMESPACE = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("highest", "ticks"),
    [(0.0, [0, 1]), (5.0, [0, 1, 2, 3, 4, 5]), (162.0, [0, 50, 100, 150, 200]), (0.07, [0, 0.02, 0.04])],
)
def test_an_axis_has_round_numbers_up_to_what_it_must_show(highest: float, ticks: list[float]) -> None:
    found = round_ticks(highest)
    assert found[: len(ticks)] == pytest.approx(ticks)
    assert found[-1] >= highest
    assert len(found) <= 7


def test_names_never_touch_and_none_is_below_the_panel() -> None:
    placed = spread([100.0, 99.0, 100.0, 20.0], lowest=100.0)
    assert max(placed) == 100.0
    assert placed[3] == 20.0
    ordered = sorted(placed)
    assert min(b - a for a, b in pairwise(ordered)) >= LINE


def test_a_drawing_has_every_curve_from_the_first_step_to_the_last() -> None:
    root = ET.fromstring(svg("a run", PANELS).decode())
    words = [element.text for element in root.iter(f"{NAMESPACE}text")]
    assert {"a run", "people", "food", "step", "all 3", "some <of them> 3", "left 0"} <= set(words)
    curves = [each for each in root.iter(f"{NAMESPACE}polyline") if each.get("stroke-width") == "1.6"]
    assert [len(str(each.get("points")).split()) for each in curves] == [3, 3, 3]


def test_a_drawing_is_as_wide_as_its_longest_name() -> None:
    name = "a step against a new instance's -4.20% a minute [-21.83%, +18.41%]"
    long = [StepPanel(title="x", curves={name: [1.0, 2.0]})]
    root = ET.fromstring(svg("x", long).decode())
    end = next(each for each in root.iter(f"{NAMESPACE}text") if name in str(each.text))
    letters = 6  # pixels of one, at least, at this size
    assert float(root.attrib["width"]) >= float(end.attrib["x"]) + letters * len(str(end.text))
    assert Image.open(io.BytesIO(png("x", long))).size[0] == 2 * int(root.attrib["width"])


def test_a_long_run_is_drawn_with_no_more_points_than_there_are_pixels() -> None:
    long = StepPanel(title="long", curves={"it": [float(k % 7) for k in range(50_000)]})
    assert svg("long", [long]).count(b",") < 2 * WIDTH


def test_pixels_show_the_same_chart() -> None:
    image = Image.open(io.BytesIO(png("a run", PANELS)))
    assert image.size == (2 * WIDTH, 2 * height(PANELS))
    colours = {tuple(pixel) for pixel in np.asarray(image).reshape(-1, 3)[::7].tolist()}
    assert tuple(bytes.fromhex(COLOURS[1][1:])) in colours
