import io
from xml.etree import ElementTree as ET

import pytest
from PIL import Image, ImageFont

from hotloop.report.charts import Panel, PanelCurve, axis_of, height, png, svg

LONG = "the observations of every agent: a + b n log n"
POINTS = ((1.0, 2.0), (10.0, 30.0))
TEXT = "{http://www.w3.org/2000/svg}text"


@pytest.mark.parametrize("name", ["a", LONG, "resident memory +12.1 MB a minute [+11.9 MB, +12.4 MB]"])
def test_every_name_and_the_title_end_within_the_picture(name: str) -> None:
    panels = [Panel(title="ns", across="n", curves=(PanelCurve(name=name, points=POINTS),))]
    title = (
        "farm/steady index=brute,grid agents=50,100,200,400,800 perception=false num_envs=1 threads=1 policy"
    )
    root = ET.fromstring(svg(title, panels).decode())
    wide, font = float(str(root.get("width"))), ImageFont.load_default(12)
    for each in root.iter(TEXT):
        if each.get("text-anchor") == "start":
            assert float(str(each.get("x"))) + font.getlength(str(each.text)) <= wide


def test_pixels_have_the_size_of_the_drawing() -> None:
    panels = [Panel(title="ns", across="n", curves=(PanelCurve(name=LONG, points=POINTS),))]
    image = Image.open(io.BytesIO(png("t", panels)))
    wide = int(str(ET.fromstring(svg("t", panels).decode()).get("width")))
    assert image.size == (2 * wide, 2 * height(panels))


def test_a_square_is_written_with_letters_that_the_font_of_pixels_has() -> None:
    def drawn(name: str) -> bytes:
        return png("t", [Panel(title="ns", across="n", curves=(PanelCurve(name=name, points=POINTS),))])

    assert drawn("a + b n²") == drawn("a + b n^2")


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ((0.895, 180.1), [0, 50, 100, 150, 200]),
        ((1e8, 4.8e9), [0, 1e9, 2e9, 3e9, 4e9, 5e9]),
        ((-0.02, 0.043), [-0.02, 0, 0.02, 0.04, 0.06]),
        ((3.0, 3.0), [3]),
    ],
)
def test_ticks_of_a_plain_axis_are_round_and_hold_all_values(
    values: tuple[float, float], ticks: list[float]
) -> None:
    axis = axis_of(values, 0.0, 100.0, powers=False)
    assert axis.ticks() == pytest.approx(ticks)
    assert all(0 <= axis.at(value) <= 100 for value in values)
