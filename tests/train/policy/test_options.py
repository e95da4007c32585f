"""The network for options about objects: what decides a score, and what cannot."""

import numpy as np
import pytest
import torch

import hotloop
from hotloop.core.errors import InputError
from hotloop.envs.batch import Batch
from hotloop.train.networks import default_network
from hotloop.train.normalize import row_shape
from hotloop.train.option_network import OptionsNetwork, join_parts, split, there
from hotloop.train.settings import TrainSettings


@pytest.fixture(scope="module")
def batch() -> Batch:
    """Games under way, with permanents of both sides and several options."""
    batch = hotloop.make("cards/keywords", num_envs=16, villain="none", seed=2)
    batch.reset()
    for _ in range(70):
        batch.step(batch.choose("random"))
    return batch


@pytest.fixture(scope="module")
def network(batch: Batch) -> OptionsNetwork:
    made = default_network(batch.spec, row_shape(batch), TrainSettings(embedding=16, hidden=(32,)))
    assert isinstance(made, OptionsNetwork)
    with torch.no_grad():
        made.policy.weight.mul_(100)
    return made


def rows_of(batch: Batch) -> torch.Tensor:
    return torch.from_numpy(batch.observations.reshape(batch.spec.num_envs, -1).copy())


def test_it_scores_the_options_there_are_and_values_the_row(batch: Batch, network: OptionsNetwork) -> None:
    logits, values, memory = network(rows_of(batch))
    assert (logits.shape, values.shape, memory) == ((16, 20), (16,), None)
    assert batch.masks is not None
    legal = torch.from_numpy(batch.masks[:, 0])
    assert not logits[~legal].any()
    assert logits[legal].std() > 0
    (logits.sum() + values.sum()).backward()
    assert all(each.grad is not None and each.grad.isfinite().all() for each in network.parameters())


def test_the_place_of_an_option_in_its_list_says_nothing(batch: Batch, network: OptionsNetwork) -> None:
    rows = rows_of(batch)
    parts = split(rows, batch.spec.layout.parts)
    counts = parts["actions"][..., -1].sum(-1).long()
    turned = rows.clone()
    mirrored = split(turned, batch.spec.layout.parts)
    for row, count in enumerate(counts.tolist()):
        for name in ("actions", "focus"):
            mirrored[name][row, :count] = parts[name][row, :count].flip(0)
    with torch.no_grad():
        first, second = network(rows)[0], network(turned)[0]
    for row, count in enumerate(counts.tolist()):
        torch.testing.assert_close(first[row, :count].flip(0), second[row, :count])


def test_an_option_is_scored_by_what_it_points_at(batch: Batch, network: OptionsNetwork) -> None:
    rows = rows_of(batch)
    parts = split(rows, batch.spec.layout.parts)
    before = network(rows)[0].detach().clone()
    row = int((parts["focus"][:, 0, 0] >= 0).nonzero()[0, 0])
    pointed = int(parts["focus"][row, 0, 0])
    name, place = ("agent_cards", pointed) if pointed < 60 else ("opponent_cards", pointed - 60)
    parts[name][row, place, 7] += 1.0  # its power
    after = network(rows)[0].detach()
    assert after[row, 0] != before[row, 0]
    others = [each for each in range(16) if each != row]
    assert torch.equal(after[others], before[others])


def test_what_a_second_part_says_is_joined_to_the_object_it_is_about(batch: Batch) -> None:
    parts = split(rows_of(batch), batch.spec.layout.parts)
    found = there(parts["agent_cards"])
    said = join_parts(found, parts["agent_permanents"], 2)
    for row in range(16):
        here = (found.rows == row) & (found.features[:, 2] == 1)
        count = int(parts["agent_permanents"][row, :, -1].sum())
        assert int(here.sum()) == count
        assert torch.equal(said[here], parts["agent_permanents"][row, :count])
    assert not said[found.features[:, 2] == 0].any()
    few = join_parts(found, parts["agent_permanents"][:, :1], 2)
    assert int(few.any(-1).sum()) == int((parts["agent_permanents"][:, 0, -1] != 0).sum())


def test_what_is_not_there_costs_nothing_and_changes_nothing(batch: Batch, network: OptionsNetwork) -> None:
    rows = rows_of(batch)
    one = network(rows[:1])
    many = network(rows)
    torch.testing.assert_close(one[0], many[0][:1])
    nothing = network(torch.zeros_like(rows))
    assert not nothing[0].any()
    assert np.isfinite(nothing[1].detach().numpy()).all()


def test_it_has_no_memory(batch: Batch) -> None:
    with pytest.raises(InputError, match="no memory; leave lstm out"):
        default_network(batch.spec, row_shape(batch), TrainSettings(lstm=8))
