import math

import pytest
import torch
from support.samples import samples
from torch import Tensor

from hotloop.train import ppo
from hotloop.train.ppo import minibatches
from hotloop.train.settings import TrainSettings

GAMMA, LAMBDA = 0.9, 0.8


def loop_advantages(rewards: Tensor, values: Tensor, ends: Tensor, last: Tensor) -> Tensor:
    """GAE as it is usually written: a loop backwards over time."""
    found = torch.zeros_like(rewards)
    running = torch.zeros_like(last)
    following = last
    for time in range(len(rewards) - 1, -1, -1):
        goes_on = 1 - ends[time]
        surprise = rewards[time] + GAMMA * following * goes_on - values[time]
        running = surprise + GAMMA * LAMBDA * goes_on * running
        found[time], following = running, values[time]
    return found


def test_advantages_of_two_steps_by_hand() -> None:
    found = ppo.gae(
        torch.tensor([[1.0], [2.0]]),
        torch.tensor([[0.5], [0.25]]),
        torch.zeros(2, 1),
        torch.tensor([4.0]),
        gamma=GAMMA,
        gae_lambda=LAMBDA,
    )
    second = 2 + 0.9 * 4 - 0.25
    first = 1 + 0.9 * 0.25 - 0.5 + 0.9 * 0.8 * second
    torch.testing.assert_close(found, torch.tensor([[first], [second]]))


def test_nothing_is_expected_beyond_the_end_of_an_episode() -> None:
    found = ppo.gae(
        torch.tensor([[1.0], [2.0]]),
        torch.tensor([[0.5], [100.0]]),
        torch.tensor([[1.0], [0.0]]),
        torch.tensor([4.0]),
        gamma=GAMMA,
        gae_lambda=LAMBDA,
    )
    assert found[0].item() == 0.5


def test_advantages_are_those_of_the_plain_loop() -> None:
    generator = torch.Generator().manual_seed(1)
    rewards, values = torch.randn(2, 50, 7, generator=generator)
    ends = (torch.rand(50, 7, generator=generator) < 0.1).float()
    last = torch.randn(7, generator=generator)
    found = ppo.gae(rewards, values, ends, last, gamma=GAMMA, gae_lambda=LAMBDA)
    torch.testing.assert_close(found, loop_advantages(rewards, values, ends, last), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss"),
    [
        (1.1, 2.0, -2.2),  # inside the clip
        (1.5, 2.0, -2.4),  # a gain is cut off at 1.2
        (1.5, -2.0, 3.0),  # a loss is not
        (0.5, 2.0, -1.0),
        (0.5, -2.0, 1.6),
    ],
)
def test_the_clipped_loss_by_hand(ratio: float, advantage: float, loss: float) -> None:
    found = ppo.policy_loss(torch.tensor([ratio]), torch.tensor([advantage]), 0.2)
    assert found.item() == pytest.approx(loss)


def test_beyond_the_clip_nothing_pulls_any_more() -> None:
    ratio = torch.tensor([1.5], requires_grad=True)
    ppo.policy_loss(ratio, torch.tensor([1.0]), 0.2).backward()  # type: ignore[no-untyped-call]
    assert ratio.grad is not None
    assert ratio.grad.item() == 0


def test_the_value_loss_is_half_the_squared_error() -> None:
    assert ppo.value_loss(torch.tensor([1.0, 5.0]), torch.tensor([3.0, 4.0])).item() == (4 + 1) / 4


def test_standardised_values_have_mean_0_and_deviation_1() -> None:
    found = ppo.standardize(torch.tensor([3.0, 5.0, 10.0]))
    assert found.mean().item() == pytest.approx(0, abs=1e-6)
    assert found.std().item() == pytest.approx(1)


class Table:
    """A student whose answers are a linear function of what it sees."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(6)
        self.weights = torch.randn(3, 4, generator=generator)
        self.critic = torch.randn(3, generator=generator)

    def __call__(self, seen: Tensor, memory: object, begins: object) -> tuple[Tensor, Tensor, None]:
        return seen @ self.weights, seen @ self.critic, None


def by_hand(student: Table, given: ppo.Samples, settings: TrainSettings) -> dict[str, float]:
    """The terms of the objective, sample by sample in plain Python."""
    logits, values, _ = student(given.observations, None, None)
    weights = given.advantages.tolist()
    mean = sum(weights) / len(weights)
    deviation = math.sqrt(sum((w - mean) ** 2 for w in weights) / (len(weights) - 1))
    policy = value = entropy = imitation = 0.0
    for row, (logit, action) in enumerate(zip(logits.tolist(), given.actions.tolist(), strict=True)):
        total = sum(map(math.exp, logit))
        probabilities = [math.exp(x) / total for x in logit]
        ratio = probabilities[action] / math.exp(given.log_probs[row].item())
        weight = (weights[row] - mean) / deviation if settings.norm_adv else weights[row]
        clipped = min(max(ratio, 1 - settings.clip_coef), 1 + settings.clip_coef)
        policy -= min(ratio * weight, clipped * weight)
        value += 0.5 * (values[row].item() - given.returns[row].item()) ** 2
        entropy -= sum(p * math.log(p) for p in probabilities)
        imitation -= math.log(probabilities[given.labels[row]])  # type: ignore[index]
    count = len(weights)
    return {
        "policy": policy / count,
        "value": value / count,
        "entropy": entropy / count,
        "imitation": imitation / count,
    }


@pytest.mark.parametrize("norm_adv", [True, False])
@pytest.mark.parametrize("imitating", [0.0, 0.3, 1.0])
def test_the_objective_is_that_of_a_plain_loop(norm_adv: bool, imitating: float) -> None:
    student, given = Table(), samples()
    settings = TrainSettings(norm_adv=norm_adv, vf_coef=0.7, ent_coef=0.05)
    terms, plain = ppo.losses(student, given, settings, imitating), by_hand(student, given, settings)
    total = 0.7 * plain["value"]
    if imitating < 1:
        total += (1 - imitating) * (plain["policy"] - 0.05 * plain["entropy"])
    total += imitating * plain["imitation"]
    assert terms["total"].item() == pytest.approx(total, abs=1e-6, rel=1e-6)
    expected = {name for name in plain if name in terms}
    for name in expected:
        assert terms[name].item() == pytest.approx(plain[name], abs=1e-6, rel=1e-6)
    assert ("policy" in terms) == (imitating < 1)
    assert ("imitation" in terms) == (imitating > 0)


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
