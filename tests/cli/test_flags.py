import pytest

from hotloop.cli.flags import given_by, names_world, targets_of
from hotloop.core.errors import InputError
from hotloop.core.registry import find, presets


def test_a_preset_stands_for_itself_and_a_world_for_all_its_presets() -> None:
    assert targets_of("grid/toy") == ["grid/toy"]
    assert targets_of("grid") == [found.target for found in presets(find("grid").world)]
    assert (names_world("grid"), names_world("grid/toy")) == (True, False)


def test_flags_join_the_words_and_missing_ones_do_not() -> None:
    assert given_by(["agents=3"], seed=7, threads=None) == {"agents": "3", "seed": "7"}
    assert given_by(None) == {}


def test_a_flag_and_a_word_for_the_same_key_are_refused() -> None:
    with pytest.raises(InputError, match="given twice"):
        given_by(["seed=1"], seed=1)
