from hotloop.cli.flags import names_world, targets_of
from hotloop.core.registry import find, presets
from hotloop.core.target import Target


def test_a_preset_stands_for_itself_and_a_world_for_all_its_presets() -> None:
    assert targets_of(Target("grid/toy", {"agents": "3"})) == [Target("grid/toy", {"agents": "3"})]
    assert targets_of(Target("grid")) == [Target(found.target) for found in presets(find("grid").world)]
    assert (names_world("grid"), names_world("grid/toy")) == (True, False)
