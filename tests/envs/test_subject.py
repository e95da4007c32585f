"""Subjects: what all of them can be asked, whoever wrote them."""

from typing import Any

import numpy as np
import pytest

from hotloop.core.errors import InputError
from hotloop.core.settings import Target
from hotloop.envs.open import open_target
from hotloop.envs.subject import Proxy, Subject

TARGETS = [
    ("grid/toy", {"num_envs": "3", "agents": "2"}),
    ("support.theirs:ours", {"agents": "2"}),
    ("support.theirs:make", {}),
    ("support.theirs:plain", {}),
    ("gym:CartPole-v1", {"num_envs": "1"}),
    ("gym:CartPole-v1", {"num_envs": "3"}),
    ("pettingzoo:sisl.pursuit_v5", {"n_pursuers": "4"}),
    ("hotloop.envs.adapters.pufferlib:PufferRows", {"target": "grid/toy", "agents": "3", "num_envs": "2"}),
]


@pytest.fixture(params=TARGETS, ids=lambda each: " ".join([each[0], *each[1]]))
def subject(request: pytest.FixtureRequest) -> Any:
    target, given = request.param
    opened = open_target(Target(target, given))
    opened.reset()
    yield opened
    opened.close()


def test_what_is_folded_into_a_tape_is_unfolded_as_it_was(subject: Subject) -> None:
    drawn = subject.draw(np.random.default_rng(3), 4)
    rows = subject.fold(drawn)
    assert rows.shape[:2] == (4, subject.spec.num_envs)
    for row, actions in zip(rows, drawn, strict=True):
        back = subject.unfold(row)
        assert type(back) is type(actions) or isinstance(actions, (int, np.integer))
        np.testing.assert_equal(back, actions)
        subject.step(back)


def test_a_tape_of_nothing_has_its_envs(subject: Subject) -> None:
    assert subject.fold([]).shape[:2] == (0, subject.spec.num_envs)


def test_every_whole_number_is_an_action(subject: Subject) -> None:
    known = subject.whole_numbers
    if known is None:
        pytest.skip("its actions cannot be counted through")
    for action in range(known.start, known.start + known.count):
        subject.step(subject.unfold(np.full(known.shape, action)))


def test_random_can_always_choose_and_nobody_else_who_is_unknown(subject: Subject) -> None:
    assert "random" in subject.players
    subject.step(subject.choose("random"))
    with pytest.raises(InputError, match="unknown player 'nobody'"):
        subject.choose("nobody")


def test_beginning_some_envs_anew_counts_resets_and_none_counts_none(subject: Subject) -> None:
    before = subject.resets
    subject.reset_some([])
    assert subject.resets == before
    subject.reset_some([0])
    assert subject.resets > before


def test_only_what_says_so_can_be_saved(subject: Subject) -> None:
    if subject.can_save:
        before = subject.everything()["digest"].copy()
        saved = subject.save(0)
        subject.step(subject.draw(np.random.default_rng(1), 1)[0])
        subject.load(0, saved)
        assert subject.everything()["digest"][0] == before[0]
        return
    for refused in (lambda: subject.save(0), lambda: subject.load(0, b"")):
        with pytest.raises(InputError, match="not one of our batches"):
            refused()


def test_whoever_stands_in_front_says_the_same(subject: Subject) -> None:
    front = Proxy(subject)
    names = [name for name in dir(Proxy) if not name.startswith("_")]
    assert set(names) >= {name for name in dir(Subject) if not name.startswith("_")}
    values = ("spec", "restarts", "autoreset", "players", "whole_numbers", "spaces", "counters", "resets")
    for name in (*values, "in_spans", "logs_itself", "workers", "can_save"):
        assert getattr(front, name) == getattr(subject, name), name
    assert front.observation is subject.observation
    assert front.everything().keys() == subject.everything().keys()


def test_a_reset_goes_back_to_the_seed_where_it_is_said_to(subject: Subject) -> None:
    first = {name: rows.copy() for name, rows in subject.everything().items()}
    for actions in subject.draw(np.random.default_rng(2), 3):
        subject.step(actions)
    subject.reset()
    again = subject.everything()
    same = all(np.array_equal(rows, again[name]) for name, rows in first.items())
    assert same or not subject.restarts


def test_an_env_whose_turns_have_masks_says_which_actions_are_legal() -> None:
    subject = open_target(Target("pettingzoo:classic.tictactoe_v3", {}))
    subject.reset()
    assert subject.masks is not None
    assert subject.masks.shape == (1, 1, 9)
    subject.step(subject.choose("random"))
    assert subject.masks.sum() == 8
