from dataclasses import astuple

from support.drawn import lines, text

from hotloop.lab.doctor import Check
from hotloop.report.kinds.listings import doctor, keys, world, worlds
from hotloop.report.section import Note, Span

KNOWN = {
    "summary": "A small one.",
    "presets": {"tiny/a": {}, "tiny/b": {"size": 2, "fast": True}},
    "default": "tiny/a",
    "phases": ["move", "see"],
    "players": ["random"],
    "parameters": [{"name": "size", "default": 1}],
    "batch": [{"name": "seed", "default": 42}],
}


def test_a_machine_is_unfit_where_a_check_says_so() -> None:
    checks = [astuple(Check(name="load", state="bad", found="9.0", remedy="wait"))]
    shown = lines(doctor(checks, fit=False))
    assert shown[-2:] == ["load bad 9.0 wait", "not fit to measure now"]
    assert doctor(checks, fit=True)[1] == Note(words=Span("fit to measure", "good", strong=True))


def test_worlds_are_a_line_a_preset_with_the_summary_beside_the_default() -> None:
    assert lines(worlds({"tiny": KNOWN}))[-2:] == ["tiny/a A small one.", "tiny/b size=2 fast=True"]


def test_a_world_has_its_presets_its_phases_and_both_groups_of_keys() -> None:
    shown = lines(world("tiny", KNOWN, {"name": "key", "default": "default"}))
    assert shown[:5] == [
        "tiny A small one.",
        "tiny/a the defaults below",
        "tiny/b size=2 fast=True",
        "phases move, see",
        "players random",
    ]
    assert shown[-2:] == ["size 1", "seed 42"]
    assert "\n\n seed" in "\n".join(
        line.rstrip() for line in text(world("tiny", KNOWN, {"name": "key", "default": "d"})).splitlines()
    )


def test_keys_have_their_defaults_and_their_help() -> None:
    assert (
        lines(keys([("train.gamma", "0.99", "How far it looks")]))[-1] == "train.gamma 0.99 How far it looks"
    )
