import re
from xml.etree import ElementTree as ET

import pytest

from hotloop.report.shapes import FLAMES_WIDTH, boxes, draw_flames, fitting_name, flame_colour, tree_of

RUN, STEP, SQRT = ("run", "/a/loop.py", 1), ("step<T>", "/a/env.py", 9), ("<built-in sqrt>", "~", 0)
SECONDS = {(RUN,): 1.0, (RUN, STEP): 1.0, (RUN, ("step<T>", "/a/env.py", 11)): 1.0, (RUN, STEP, SQRT): 1.0}
SVG = "{http://www.w3.org/2000/svg}"


def test_lines_of_one_function_are_one_box_and_callees_lie_inside_their_callers() -> None:
    found = {box.node.name: box for box in boxes(tree_of(SECONDS))}
    assert [*found] == ["all", "run", "step<T>", "<built-in sqrt>"]
    assert [box.depth for box in found.values()] == [0, 1, 2, 3]
    assert [box.share for box in found.values()] == pytest.approx([1.0, 1.0, 0.75, 0.25])


def test_siblings_stand_side_by_side_the_longest_first() -> None:
    found = {box.node.name: box for box in boxes(tree_of({(SQRT,): 1.0, (STEP,): 3.0}))}
    assert (found["step<T>"].left, found["<built-in sqrt>"].left) == (0.0, 0.75)


def test_what_could_not_be_seen_is_left_out() -> None:
    names = [box.node.name for box in boxes(tree_of({(STEP,): 1.0, (SQRT,): 0.0001}))]
    assert names == ["all", "step<T>"]


def test_the_picture_is_whole_xml_that_asks_nobody_for_anything() -> None:
    picture = draw_flames(SECONDS, "mine & yours")
    root = ET.fromstring(picture)
    assert root.find(f"{SVG}title").text == "mine & yours"  # type: ignore[union-attr]
    rectangles = root.findall(f"{SVG}g/{SVG}rect")
    assert [float(each.attrib["width"]) for each in rectangles] == pytest.approx(
        [FLAMES_WIDTH - 0.5, FLAMES_WIDTH - 0.5, 0.75 * FLAMES_WIDTH - 0.5, 0.25 * FLAMES_WIDTH - 0.5]
    )
    told = [each.text for each in root.findall(f"{SVG}g/{SVG}title")]
    assert told[2] == "step<T> (a/env.py): 3.00 s, 75.0%"
    assert re.findall(r"https?://[^\"' ]+", picture) == ["http://www.w3.org/2000/svg"]


def test_no_samples_are_an_empty_picture() -> None:
    assert ET.fromstring(draw_flames({}, "nothing")).findall(f"{SVG}g") == []


def test_a_label_is_cut_to_its_box() -> None:
    assert fitting_name("observations", 1_000) == "observations"
    assert fitting_name("observations", 60) == "observa…"
    assert fitting_name("observations", 15) == ""


def test_python_is_warm_and_native_code_is_cool() -> None:
    python, native = (
        tree_of({((name, file, 1),): 1.0}).below.popitem()[1]
        for name, file in (("f", "/a/b.py"), ("g", "/lib/c.so"))
    )
    hues = [int(re.findall(r"\d+", flame_colour(node))[0]) for node in (python, native)]
    assert hues[0] < 60
    assert hues[1] > 190
