import pytest

from hotloop.core.errors import InputError
from hotloop.core.settings import Target
from hotloop.envs.batch import Batch, OrderError
from hotloop.lab.measure.target import Opener, check, open_subject


def test_the_experiment_decides_about_the_instrument() -> None:
    subject = open_subject(Target("grid/toy", {"num_envs": "2"}), profile=True)
    assert isinstance(subject, Batch)
    assert subject.spec.settings.profile
    with pytest.raises(InputError, match="every probe off"):
        open_subject(Target("grid/toy", {"profile": "1"}), profile=True)


def test_every_target_is_checked_before_any_is_measured() -> None:
    toy = Target("grid/toy", {"num_envs": "2"})
    check([toy], "random")
    with pytest.raises(InputError, match="agnts"):
        check([toy, Target("grid/toy", {"agnts": "2"})], "random")
    with pytest.raises(
        InputError, match=r"unknown player 'techer': did you mean teacher\? grid/toy has random"
    ):
        check([toy], "techer")


def test_what_was_checked_is_what_is_opened() -> None:
    opener, keys = Opener(), {"num_envs": "2"}
    toy, guard = Target("grid/toy", keys), Target("grid/guard", keys)
    check([toy, guard], "random", opener=opener)
    first = opener.open(toy)
    assert opener.open(toy) is not first
    opener.keep(toy, first, played=False)
    assert opener.open(toy.with_keys({"num_envs": "3"})) is not first
    assert opener.open(guard) is not first
    assert opener.open(toy) is first


def test_what_was_played_is_handed_on_only_if_its_reset_goes_back_to_its_seed() -> None:
    opener = Opener()
    for target, handed_on in ((Target("grid/toy"), False), (Target("support.theirs:make"), True)):
        subject = opener.open(target)
        subject.reset()
        opener.keep(target, subject)
        assert (opener.open(target) is subject) == handed_on


def test_what_nobody_asks_for_is_closed() -> None:
    opener, toy = Opener(), Target("grid/toy")
    subject = opener.open(toy)
    opener.keep(toy, subject, played=False)
    opener.close()
    with pytest.raises(OrderError, match="closed"):
        subject.reset()
