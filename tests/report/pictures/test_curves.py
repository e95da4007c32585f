import io
from xml.etree import ElementTree as ET

import pytest
from PIL import Image, ImageFont

from hotloop.report.pictures.curves import Curve, Panel, height, png, svg

LONG = "the observations of every agent: a + b n log n"
POINTS = ((1.0, 2.0), (10.0, 30.0))
TEXT = "{http://www.w3.org/2000/svg}text"


@pytest.mark.parametrize("name", ["a", LONG, "resident memory +12.1 MB a minute [+11.9 MB, +12.4 MB]"])
def test_every_name_and_the_title_end_within_the_picture(name: str) -> None:
    panels = [Panel(title="ns", across="n", curves=(Curve(name=name, points=POINTS),))]
    title = (
        "farm/steady index=brute,grid agents=50,100,200,400,800 perception=false num_envs=1 threads=1 policy"
    )
    root = ET.fromstring(svg(title, panels).decode())
    wide, font = float(str(root.get("width"))), ImageFont.load_default(12)
    for each in root.iter(TEXT):
        if each.get("text-anchor") == "start":
            assert float(str(each.get("x"))) + font.getlength(str(each.text)) <= wide


def test_pixels_have_the_size_of_the_drawing() -> None:
    panels = [Panel(title="ns", across="n", curves=(Curve(name=LONG, points=POINTS),))]
    image = Image.open(io.BytesIO(png("t", panels)))
    wide = int(str(ET.fromstring(svg("t", panels).decode()).get("width")))
    assert image.size == (2 * wide, 2 * height(panels))


def test_a_square_is_written_with_letters_that_the_font_of_pixels_has() -> None:
    def drawn(name: str) -> bytes:
        return png("t", [Panel(title="ns", across="n", curves=(Curve(name=name, points=POINTS),))])

    assert drawn("a + b n²") == drawn("a + b n^2")
