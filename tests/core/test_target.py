import pytest

from hotloop.core.errors import InputError
from hotloop.core.settings import Target


def test_a_target_is_parsed_from_what_it_says_of_itself() -> None:
    target = Target.parse("grid/toy agents=3 'map=a b'")
    assert target == Target("grid/toy", {"agents": "3", "map": "a b"})
    assert (
        Target("grid/toy", {"agents": 3}).words
        == str(Target("grid/toy", {"agents": 3}))
        == "grid/toy agents=3"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [("", "a side is empty"), ("grid/toy 'x", "a side cannot be read"), ("grid/toy x", "not key=value")],
)
def test_what_is_no_target_is_refused_by_where_it_stands(words: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Target.parse(words, "a side")


def test_other_keys_make_another_target_and_leave_it_as_it_was() -> None:
    toy = Target("grid/toy", {"agents": "3", "seed": "1"})
    assert toy.with_keys({"seed": "2"}) == Target("grid/toy", {"agents": "3", "seed": "2"})
    assert toy.keys["seed"] == "1"


def test_a_name_with_a_colon_is_somebody_elses() -> None:
    assert [Target(name).is_foreign for name in ("grid/toy", "gym:CartPole-v1", "env.py:make")] == [
        False,
        True,
        True,
    ]


def test_flags_join_the_words_and_missing_ones_do_not() -> None:
    assert Target.typed("a", ["agents=3"], seed=7, threads=None).keys == {"agents": "3", "seed": "7"}
    assert Target.typed("a") == Target("a")


def test_a_flag_and_a_word_for_the_same_key_are_refused() -> None:
    with pytest.raises(InputError, match="given twice"):
        Target.typed("a", ["seed=1"], seed=1)


def test_words_may_stand_behind_the_name_in_one_argument() -> None:
    assert Target.typed("a.py:make x=1", ["y=2"]) == Target("a.py:make", {"x": "1", "y": "2"})
    assert Target.typed("my folder/a.py:make") == Target("my folder/a.py:make")
    with pytest.raises(InputError, match="given twice"):
        Target.typed("a x=1", ["x=1"])
