from hotloop.report.shapes import COLOURS, REST, REST_COLOUR, Bar, colours_of, draw_bars


def bar(*names: str) -> Bar:
    return Bar(name=names[0], shares={name: 1 / len(names) for name in names}, record=3)


def test_parts_of_one_bar_have_colours_of_their_own_and_a_part_has_one_everywhere() -> None:
    bars = [bar("a", "b", "c", "d"), bar("e", "f", "g", "h", "i", "j"), bar("j", "a", "e", REST)]
    found = colours_of(bars)
    for each in bars:
        assert len({found[name] for name in each.shares}) == len(each.shares)
    assert found[REST] == REST_COLOUR
    assert list(found) == [*"abcdefghij", REST]


def test_more_parts_than_colours_are_still_drawn() -> None:
    many = bar(*(f"part {k}" for k in range(3 * len(COLOURS))))
    assert draw_bars([many]).count("<title>") == len(many.shares)


def test_names_are_text_a_thin_part_is_left_out_and_nothing_is_drawn_of_nothing() -> None:
    drawn = draw_bars([Bar(name="<x>", shares={"<y>": 0.999, "thin": 0.001}, record=3)])
    assert "<x>" not in drawn
    assert "<y>" not in drawn
    assert drawn.count("<title>") == 1
    assert 'data-record="3"' in drawn
    assert draw_bars([]) == ""
