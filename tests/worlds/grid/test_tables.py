"""Tables that cannot be played are refused, in one line that names the row."""

from pathlib import Path

import pytest
from support.grids import table

import hotloop
from hotloop.core.errors import InputError

GOOD = """
resources = ["ore"]
[[stations]]
kind = "mine"
symbol = "m"
gives = { ore = 1 }
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            GOOD + '[[stations]]\nkind = "mill"\ntakes = { oar = 1 }\n',
            "unknown resource 'oar': did you mean ore?",
        ),
        (
            GOOD + '[[stations]]\nkind = "mill"\ntakes = { ore = 1 }\nneighbours = 9\n',
            "station mill: 9 neighbours",
        ),
        (GOOD.replace("gives", "takes"), "station mine takes ore, which nothing gives"),
        ("caps = { ore = 3 }\n" + GOOD + '[[stations]]\nkind = "mill"\ntakes = { ore = 4 }\n', "at most 3"),
        (GOOD + "vibe = 1\n", "station mine asks for vibe 1"),
        (GOOD + "colour = 1\n", "unknown key in stations 'colour'"),
        (GOOD + 'area = { radius = 1, resource = "or", amount = 1 }\n', "unknown resource 'or'"),
        (GOOD + 'area = { radius = 99, resource = "ore", amount = 1 }\n', "area radius 99"),
        (
            GOOD + '[[events]]\nname = "a"\neffect = "spawn"\nkind = "mint"\n',
            "unknown kind of station 'mint'",
        ),
        (GOOD + '[[events]]\nname = "a"\neffect = "explode"\nkind = "mine"\n', "unknown effect 'explode'"),
        (GOOD + '[[events]]\nname = "a"\nkind = "mine"\n', "lacks a key"),
        (
            GOOD
            + '[[events]]\nname = "a"\neffect = "spawn"\nkind = "mine"\nthen = "b"\n'
            + '[[events]]\nname = "b"\neffect = "spawn"\nkind = "mine"\nthen = "a"\n',
            "event a: a -> b -> a is a cycle",
        ),
        (GOOD + '[[rewards]]\nof = "gold"\nweight = 1.0\n', "unknown resource or stat 'gold'"),
        ('resources = ["ore", "ore"]\n', "different ones"),
        ("start = { ore = 1 }\n", "unknown resource 'ore'"),
        ("vibes = 99\n", "vibes=99"),
        ("resources = [", "not a TOML table"),
        (GOOD + 'cooldown = "long"\n', "cooldown in stations is 'long': expected int"),
        (GOOD + "cooldown = 70000\n", "expected at most 65535"),
        (GOOD + "uses = -1\n", "station mine: cooldown, vibe and uses are not below 0"),
        (GOOD * 1 + '[[stations]]\nkind = "mine"\n' * 70, "71 rows: at most 64"),
        (GOOD + '[[changes]]\nresource = "ore"\namount = 1\nevery = 0\n', "every 0 ticks"),
        (GOOD + '[[events]]\nname = "a"\neffect = "clip"\nkind = "mine"\ncount = 999\n', "event a"),
    ],
)
def test_a_table_that_cannot_be_played_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        hotloop.make("grid/toy", rules=table(tmp_path, text))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rules": "no-such-table"}, "neither shipped nor a readable file"),
        ({"teams": 300}, "from 0 to 255"),
        ({"teams": 30}, "more than there are agents"),
        ({"map": "...\n...", "agents": 1}, "no spawn cell"),
    ],
)
def test_what_does_not_go_together_is_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        hotloop.make("grid/toy", **given)
