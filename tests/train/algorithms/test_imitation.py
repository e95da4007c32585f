from functools import partial

import pytest
import torch
from support.toy_batch import ToyBatch

from hotloop.core.errors import InputError
from hotloop.train.imitation import find_teacher, imitation_loss, phase_at
from hotloop.train.settings import TrainSettings

SETTINGS = TrainSettings(supervised_steps=100, fade_steps=50)


@pytest.mark.parametrize(
    ("steps", "name", "imitating"),
    [
        (0, "imitation", 1.0),
        (99, "imitation", 1.0),
        (100, "fade", 1.0),
        (125, "fade", 0.5),
        (150, "ppo", 0.0),
    ],
)
def test_imitation_then_fading_then_ppo(steps: int, name: str, imitating: float) -> None:
    phase = phase_at(steps, SETTINGS)
    assert (phase.name, phase.imitating) == (name, imitating)


def test_without_imitation_it_is_ppo_from_the_start() -> None:
    assert phase_at(0, TrainSettings()).name == "ppo"


def test_the_loss_is_the_surprise_at_the_labels() -> None:
    log_probs = torch.tensor([[0.5, 0.5], [0.25, 0.75]]).log()
    found = imitation_loss(log_probs, torch.tensor([0, 0]))
    torch.testing.assert_close(found, -torch.tensor([0.5, 0.25]).log().mean())


def test_the_teacher_is_the_worlds_first_player_where_none_is_named() -> None:
    teacher = find_teacher(ToyBatch(), SETTINGS)  # type: ignore[arg-type]
    assert isinstance(teacher, partial)
    assert teacher.args == ("first",)
    assert find_teacher(ToyBatch(), TrainSettings()) is None  # type: ignore[arg-type]


def test_an_unknown_teacher_is_told_the_known_ones() -> None:
    with pytest.raises(InputError, match="teacher=last: expected one of first"):
        find_teacher(ToyBatch(), TrainSettings(supervised_steps=1, teacher="last"))  # type: ignore[arg-type]


def test_a_world_without_players_cannot_be_imitated() -> None:
    batch = ToyBatch()
    batch.players = ("random",)  # type: ignore[assignment]
    with pytest.raises(InputError, match="toy has no player to imitate"):
        find_teacher(batch, SETTINGS)  # type: ignore[arg-type]
