from xml.etree import ElementTree as ET

from hotloop.report.shapes import HeatMap, colour_of, draw_heat

MAP = HeatMap(
    down="num_envs",
    rows=("8", "32"),
    across="<threads>",
    columns=("1", "2"),
    values={("8", "1"): 1e5, ("8", "2"): 3e5, ("32", "1"): 2e5},
    best=("8", "2"),
)


def test_the_most_is_the_darkest_and_framed_and_what_was_not_tried_is_blank() -> None:
    boxes = list(ET.fromstring(draw_heat(MAP)).iter("rect"))
    assert [box.attrib["fill"] for box in boxes] == [colour_of(0.0), colour_of(1.0), colour_of(0.5)]
    assert ["stroke" in box.attrib for box in boxes] == [False, True, False]


def test_names_and_values_are_written_and_escaped() -> None:
    words = [each.text for each in ET.fromstring(draw_heat(MAP)).iter("text")]
    assert {"num_envs", "<threads>", "8", "32", "1", "2", "100 k", "300 k"} <= set(words)


def test_one_value_is_as_dark_as_can_be() -> None:
    assert colour_of(1.0) in draw_heat(
        HeatMap(down="a", rows=("1",), across="b", columns=("1",), values={("1", "1"): 5.0})
    )
