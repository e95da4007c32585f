from hotloop.cli.results import names_several, names_world, targets_of
from hotloop.core.registry import find, presets
from hotloop.core.target import Target


def test_a_preset_stands_for_itself_and_a_world_for_all_its_presets() -> None:
    assert targets_of(Target("grid/toy", {"agents": "3"})) == [Target("grid/toy", {"agents": "3"})]
    assert targets_of(Target("grid")) == [Target(found.target) for found in presets(find("grid").world)]
    assert (names_world("grid"), names_world("grid/toy")) == (True, False)


def test_several_callables_of_one_file_are_a_target_each() -> None:
    named = targets_of(Target("my.py:f,g", {"n": "3"}))
    assert named == [Target("my.py:f", {"n": "3"}), Target("my.py:g", {"n": "3"})]
    assert [names_several(name) for name in ("my.py:f,g", "my.py:f", "grid", "gym:A-v1")] == [
        True,
        False,
        True,
        False,
    ]
