import torch
from support.samples import samples

from hotloop.train import ppo
from hotloop.train.ppo import minibatches
from hotloop.train.settings import TrainSettings


def test_every_sample_is_learned_from_once_an_epoch() -> None:
    settings = TrainSettings(minibatch_size=4)
    given = samples()
    parts = list(minibatches(given, settings, torch.Generator().manual_seed(1)))
    assert [len(part) for part in parts] == [4, 4, 4]
    assert sorted(torch.cat(parts).tolist()) == list(range(12))
    assert torch.cat(parts).tolist() != list(range(12))


def test_of_a_network_with_a_memory_whole_rows_are_taken() -> None:
    steps, rows = 5, 6
    arrays = {name: torch.arange(steps * rows).reshape(steps, rows) for name in ("actions", "log_probs")}
    given = ppo.Samples(
        observations=torch.zeros(steps, rows, 2),
        advantages=torch.zeros(steps, rows),
        returns=torch.zeros(steps, rows),
        memory=(torch.arange(rows)[:, None].float(), torch.arange(rows)[:, None].float()),
        **arrays,
    )
    settings = TrainSettings(minibatch_size=10, num_steps=steps, lstm=1)
    parts = list(minibatches(given, settings, torch.Generator().manual_seed(1)))
    assert [len(part) for part in parts] == [2, 2, 2]
    part = given.take(parts[0])
    assert part.actions.shape == (5, 2)
    assert part.actions[0].tolist() == parts[0].tolist()
    assert part.memory is not None
    assert part.memory[0][:, 0].tolist() == parts[0].tolist()
