import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from hotloop.train.normalize import CLIP, Moments, ObservationScale, RewardScale, scan

CPU = torch.device("cpu")


def rows(count: int, seed: int, *shape: int) -> Tensor:
    return torch.randn(count, *shape, generator=torch.Generator().manual_seed(seed)) * 3 + 5


def test_moments_of_parts_are_those_of_the_whole() -> None:
    parts = [rows(7, 1, 4), rows(1, 2, 4), rows(30, 3, 4)]
    moments = Moments((4,), CPU)
    for part in parts:
        moments.add(part)
    whole = torch.cat(parts).double()
    torch.testing.assert_close(moments.mean, whole.mean(0), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(moments.variance, whole.var(0, correction=0), atol=1e-5, rtol=1e-5)
    assert moments.count == 38


def test_what_a_rollout_saw_scales_the_next_one() -> None:
    scale = ObservationScale((4,), CPU, active=True)
    seen, out = rows(1000, 1, 4), torch.zeros(1000, 4)
    scale.look(seen)
    scale.write(seen, out)
    assert torch.equal(out, seen.clamp(-CLIP, CLIP))
    scale.adopt()
    scale.write(seen, out)
    torch.testing.assert_close(out.mean(0), torch.zeros(4), atol=1e-4, rtol=0)
    torch.testing.assert_close(out.std(0), torch.ones(4), atol=1e-3, rtol=0)


def test_an_observation_far_from_all_others_is_clipped() -> None:
    scale = ObservationScale((1,), CPU, active=True)
    scale.look(rows(1000, 1, 1))
    scale.adopt()
    out = torch.zeros(2, 1)
    scale.write(torch.tensor([[1e6], [-1e6]]), out)
    assert out.flatten().tolist() == [CLIP, -CLIP]


def test_a_number_that_never_changes_is_scaled_to_nothing_large() -> None:
    scale = ObservationScale((1,), CPU, active=True)
    scale.look(torch.full((10, 1), 3.0))
    scale.adopt()
    out = torch.ones(1, 1)
    scale.write(torch.tensor([[3.0]]), out)
    assert out.item() == pytest.approx(0, abs=1e-2)


def test_scaling_that_is_off_copies() -> None:
    scale = ObservationScale((2,), CPU, active=False)
    seen, out = torch.tensor([[100.0, -100.0]]), torch.zeros(1, 2)
    scale.look(seen)
    scale.adopt()
    scale.write(seen, out)
    assert torch.equal(out, seen)


def test_returns_are_those_of_a_loop_over_two_rollouts() -> None:
    rewards, ends = (
        rows(12, 1, 3),
        (torch.rand(12, 3, generator=torch.Generator().manual_seed(2)) < 0.3).float(),
    )
    scale = RewardScale(3, CPU, gamma=0.9, active=True)
    found = []
    for half in (slice(0, 6), slice(6, 12)):
        found.append(scale.returns(rewards[half], ends[half]))
        scale.scale(rewards[half], ends[half])
    running, expected = torch.zeros(3), []
    for reward, end in zip(rewards, ends, strict=True):
        running = reward + 0.9 * running
        expected.append(running)
        running = running * (1 - end)
    torch.testing.assert_close(torch.cat(found), torch.stack(expected), atol=1e-5, rtol=1e-5)


def test_rewards_are_divided_by_the_deviation_of_returns() -> None:
    rewards, ends = rows(50, 1, 4), torch.zeros(50, 4)
    scale = RewardScale(4, CPU, gamma=0.9, active=True)
    deviation = scale.returns(rewards, ends).std(correction=0)
    torch.testing.assert_close(scale.scale(rewards, ends), rewards / deviation, atol=1e-5, rtol=1e-5)


def test_a_terminal_reward_of_minus_100_is_clipped_and_not_lost() -> None:
    rewards = torch.full((1000, 1), 0.001)
    rewards[500] = -100.0
    ends = torch.zeros(1000, 1)
    ends[500] = 1
    found = RewardScale(1, CPU, gamma=0.99, active=True).scale(rewards, ends)
    assert found.min().item() == -CLIP
    assert found[0].item() > 0


def test_rewards_stay_as_they_are_where_that_is_asked() -> None:
    rewards = rows(5, 1, 2)
    assert RewardScale(2, CPU, gamma=0.9, active=False).scale(rewards, torch.zeros(5, 2)) is rewards


@pytest.mark.parametrize("active", [True, False])
def test_a_scale_goes_on_from_its_state(active: bool) -> None:
    one, other = (ObservationScale((4,), CPU, active=active) for _ in range(2))
    one.look(rows(20, 1, 4))
    one.adopt()
    other.restore({name: value.clone() for name, value in one.state().items()})
    for scale in (one, other):
        scale.look(rows(20, 2, 4))
        scale.adopt()
    assert all(
        torch.equal(mine, theirs)
        for mine, theirs in zip(one.state().values(), other.state().values(), strict=True)
    )


def plain(values: torch.Tensor, decays: torch.Tensor) -> torch.Tensor:
    """The recurrence as it is written down."""
    found = values.clone()
    for time in range(len(values) - 2, -1, -1):
        found[time] = values[time] + decays[time] * found[time + 1]
    return found


def test_a_short_recurrence_by_hand() -> None:
    values = torch.tensor([1.0, 2.0, 4.0])
    decays = torch.tensor([0.5, 0.25, 9.0])
    assert scan(values, decays).tolist() == [1 + 0.5 * (2 + 0.25 * 4), 2 + 0.25 * 4, 4]


@given(st.integers(1, 70), st.integers(1, 3), st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_the_scan_is_the_loop_over_time(steps: int, rows: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(steps, rows, generator=generator, dtype=torch.float64)
    decays = torch.rand(steps, rows, generator=generator, dtype=torch.float64)
    decays *= torch.rand(steps, rows, generator=generator) > 0.2
    torch.testing.assert_close(scan(values, decays), plain(values, decays), atol=1e-12, rtol=1e-12)


def test_what_is_given_stays_as_it_was() -> None:
    values, decays = torch.ones(5, 2), torch.full((5, 2), 0.5)
    scan(values, decays)
    assert values.eq(1).all()
    assert decays.eq(0.5).all()
