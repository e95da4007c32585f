"""Rows that may be nobody's carry no loss, no reward and no agent-step."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from support.toy_batch import ToyBatch
from torch import Tensor

import hotloop
from hotloop.envs.tapes import Episodes
from hotloop.train.arithmetic import find_kernels
from hotloop.train.evaluation import EvalSettings, evaluate
from hotloop.train.normalize import ObservationScale, RewardScale
from hotloop.train.ppo import Samples, minibatches
from hotloop.train.rollout import Collector
from hotloop.train.settings import TrainSettings
from hotloop.train.trainer import Trainer
from hotloop.train.windows import Windows

CPU = torch.device("cpu")
LIVED = [[1, 1, 1], [1, 1, 1], [1, 0, 1], [1, 0, 1], [1, 1, 1]]
"""Who was there when each of five steps began."""
DIED = [[0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0], [0, 1, 0]]
"""Row 1 is empty for two steps, row 2 has another owner from one step to the next."""
SMALL = {"num_envs": 2, "perception": False, "max_steps": 40, "agents": 12}
ASKED = TrainSettings(total_timesteps=64, num_steps=16, minibatch_size=160, update_epochs=2, hidden=(8,))


class Visited(ToyBatch):
    """One env of three rows, whose owners come and go; nobody's rewards are as large as they are wrong."""

    def __init__(self, lengths: tuple[int, ...] = (100,)) -> None:
        super().__init__(num_envs=1, agents=3, lengths=lengths, terminal=(False,))
        self.spec.has_empty_rows = True
        self.infos = {"alive": np.array([LIVED[0]], np.bool_), "died": np.zeros((1, 3), np.bool_)}
        self.calls = 0

    def step(self, actions: Any) -> None:
        super().step(actions)
        self.infos["died"][0] = DIED[self.calls]
        self.calls += 1
        self.infos["alive"][0] = LIVED[min(self.calls, 4)]


def watchful(seen: Tensor, memory: Any, begins: Any) -> tuple[Tensor, Tensor, Any]:
    return torch.zeros(*seen.shape[:-1], 4), seen[..., 2] + 1, memory


def collect(batch: Visited, *, memory: bool = False) -> Any:
    batch.reset()
    collecting = Collector(
        batch,  # type: ignore[arg-type]
        steps=5,
        device=CPU,
        scale=ObservationScale((3,), CPU, active=False),
        kernels=find_kernels(TrainSettings(), 4),
        generator=torch.Generator().manual_seed(1),
    )
    collecting.memory = (torch.zeros(3, 1), torch.zeros(3, 1)) if memory else None
    return collecting.collect(watchful)


def test_a_rollout_knows_who_lived_and_whose_life_ended() -> None:
    kept = collect(Visited())
    assert kept.alive.int().tolist() == LIVED
    assert kept.dones.int().tolist() == DIED
    assert kept.agent_steps == 13


def test_the_network_is_asked_only_about_rows_that_are_somebodys() -> None:
    kept = collect(Visited())
    assert kept.values.tolist() == [[lived * (row + 1) for row, lived in enumerate(each)] for each in LIVED]


def test_a_memory_begins_with_every_life() -> None:
    begins = collect(Visited(), memory=True).begins
    assert begins[:, 0].tolist() == [True, False, False, False, False]
    assert begins[:, 1].tolist() == [True, False, True, True, True]
    assert begins[:, 2].tolist() == [True, False, False, True, False]


def test_only_who_lives_on_is_promised_what_lies_beyond_a_cut() -> None:
    cut = collect(Visited(lengths=(2,))).cuts[0]
    assert (cut.steps.tolist(), cut.rows.tolist()) == ([1, 1], [0, 2])


def samples(*, memory: bool) -> Samples:
    """Twelve samples of three rows; nobody's teach nonsense."""
    generator = torch.Generator().manual_seed(3)
    lives = torch.rand(4, 3, generator=generator) < 0.6
    lives[0, 0], lives[1, 1] = True, False
    floats = {name: torch.rand(4, 3, generator=generator) for name in ("log_probs", "advantages", "returns")}
    for each in floats.values():
        each[~lives] = 1e6
    fields: dict[str, Tensor] = {
        "observations": torch.rand(4, 3, 5, generator=generator),
        "actions": torch.randint(0, 4, (4, 3), generator=generator),
        "alive": lives,
        **floats,
    }
    if memory:
        return Samples(**fields, begins=torch.zeros(4, 3), memory=(torch.zeros(3, 2), torch.zeros(3, 2)))
    return Samples(**{name: array.flatten(0, 1) for name, array in fields.items()})


@pytest.mark.parametrize("memory", [False, True])
def test_minibatches_are_of_the_living_alone_and_share_them_out_evenly(memory: bool) -> None:
    asked = replace(ASKED, num_steps=4, minibatch_size=4)
    every = samples(memory=memory)
    drawn = list(minibatches(every, asked, torch.Generator().manual_seed(1)))
    assert every.alive is not None
    living = every.alive.any(0) if memory else every.alive
    assert sorted(torch.cat(drawn).tolist()) == living.nonzero()[:, 0].tolist()
    assert max(map(len, drawn)) - min(map(len, drawn)) <= 1


@pytest.mark.parametrize("kernels", ["native", "torch"])
@pytest.mark.parametrize("memory", [False, True])
def test_nobodys_samples_change_neither_loss_nor_gradient(memory: bool, kernels: str) -> None:
    every = samples(memory=memory)
    assert every.alive is not None
    weights = torch.ones(5, 4, requires_grad=True)

    def student(seen: Tensor, memory: Any, begins: Any) -> tuple[Tensor, Tensor, Any]:
        return seen @ weights, (seen @ weights)[..., 0], memory

    living = every.alive.flatten().nonzero()[:, 0]
    flat = {name: array.flatten(0, 1) for name, array in every.arrays() if memory and name != "begins"}
    alone = Samples(**flat).take(living) if memory else every.take(living)
    found = []
    for part, indices in ((every, torch.arange(3) if memory else living), (alone, torch.arange(len(living)))):
        weights.grad = None
        run = find_kernels(replace(ASKED, kernels=kernels), 4)
        objective = run.objective(student, replace(part, alive=part.alive), indices, ASKED, 0.0)
        objective.backward()
        assert weights.grad is not None
        found.append((float(objective.terms["total"]), weights.grad.clone()))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-5)
    torch.testing.assert_close(found[0][1], found[1][1])


def test_nobodys_rewards_do_not_scale_those_of_others() -> None:
    lives = torch.tensor([[True, False], [True, False]])
    rewards, ends = torch.tensor([[1.0, 0.0], [3.0, 0.0]]), torch.zeros(2, 2)
    alone = RewardScale(1, CPU, gamma=0.5, active=True).scale(rewards[:, :1], ends[:, :1])
    assert torch.equal(RewardScale(2, CPU, gamma=0.5, active=True).scale(rewards, ends, lives)[:, :1], alone)


@pytest.mark.parametrize("lstm", [0, 4])
def test_a_trainer_counts_the_steps_of_those_who_lived(lstm: int) -> None:
    batch = hotloop.make("farm/dev", max_agents=20, **SMALL)
    windows = Windows(batch)
    trainer = Trainer(batch, replace(ASKED, lstm=lstm), watchers=[windows])
    while not trainer.finished:
        update = trainer.update()
    assert update.agent_steps == batch.counters["agent_steps"] < 64 * 20
    window = windows.close()
    assert window.episodes == 0 or window.infos["lives"] >= 12
    assert not {"alive", "serials", "luck"} & {*window.sampled}
    found = evaluate(trainer, batch.spec, EvalSettings(episodes=2, steps=20))
    assert 0 < found.outcomes["lifetime"] <= 20


def test_a_return_is_the_mean_over_all_who_ever_lived() -> None:
    batch = hotloop.make("farm/dev", seed=3, birth_chance=0.2, **SMALL)
    batch.reset()
    windows, episodes, ended = Windows(batch), Episodes(batch), []
    total = np.zeros(2)
    while not ended:
        ended = episodes.step(batch.choose("weighted"))
        windows.step(batch)
        total += batch.rewards.sum(axis=1)
    lives = batch.infos["lives"]
    assert 12 < lives.min() <= lives.max() < 50
    assert [each.return_per_agent for each in ended] == pytest.approx((total / lives).tolist())
    assert windows.close().mean_return == pytest.approx((total / lives).mean())
