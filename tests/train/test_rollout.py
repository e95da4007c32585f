from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from support.toy_batch import ToyBatch
from torch import Tensor

from hotloop.core import spans
from hotloop.train.arithmetic import find_kernels
from hotloop.train.device.apart import SplitCollector
from hotloop.train.normalize import ObservationScale
from hotloop.train.ppo import bootstrap
from hotloop.train.rollout import Collector, Rollout, stagger
from hotloop.train.settings import TrainSettings

CPU = torch.device("cpu")


def student(seen: Tensor, memory: object, begins: object) -> tuple[Tensor, Tensor, None]:
    """Likes every action alike; a value is 100 * time + 10 * env + agent."""
    values = seen @ torch.tensor([100.0, 10.0, 1.0])
    return torch.zeros(*seen.shape[:-1], 4), values, None


def collector(
    batch: ToyBatch, kind: type[Collector] = Collector, *, steps: int = 5, **given: Any
) -> Collector:
    batch.reset()
    scale = ObservationScale((3,), CPU, active=False)
    kernels = find_kernels(TrainSettings(), 4)
    generator = torch.Generator().manual_seed(1)
    return kind(
        batch,  # type: ignore[arg-type]
        steps=steps,
        device=CPU,
        scale=scale,
        kernels=kernels,
        generator=generator,
        **given,
    )


def test_a_rollout_has_what_was_seen_before_each_step() -> None:
    kept = collector(ToyBatch()).collect(student)
    times = kept.observations.reshape(5, 3, 2, 3)[..., 0]
    assert times[:, 0, 0].tolist() == [0, 1, 0, 1, 0]
    assert times[:, 1, 1].tolist() == [0, 1, 2, 0, 1]
    assert times[:, 2, 0].tolist() == [0, 1, 2, 3, 4]


def test_what_was_stored_as_an_action_is_what_was_done() -> None:
    batch = ToyBatch()
    kept = collector(batch).collect(student)
    assert np.array_equal(kept.actions.numpy().reshape(5, 3, 2), np.stack(batch.taken))
    assert torch.equal(kept.rewards, kept.actions.float())
    assert len(set(kept.actions.flatten().tolist())) > 1


def test_every_agent_of_an_env_ends_with_it() -> None:
    kept = collector(ToyBatch()).collect(student)
    ends = kept.dones.reshape(5, 3, 2)
    assert ends[:, 0].tolist() == [[0, 0], [1, 1], [0, 0], [1, 1], [0, 0]]
    assert ends[:, 1].tolist() == [[0, 0], [0, 0], [1, 1], [0, 0], [0, 0]]
    assert ends[:, 2].sum() == 0


def test_a_memory_is_told_where_an_episode_begins() -> None:
    collecting = collector(ToyBatch())
    collecting.memory = torch.zeros(6, 1), torch.zeros(6, 1)

    def forgetful(seen: Tensor, memory: Any, begins: Any) -> tuple[Tensor, Tensor, Any]:
        return torch.zeros(1, 6, 4), torch.zeros(1, 6), memory

    begins = collecting.collect(forgetful).begins.reshape(5, 3, 2)[..., 0]
    assert begins[:, 0].tolist() == [True, False, True, False, True]
    assert begins[:, 2].tolist() == [True, False, False, False, False]
    again = collecting.collect(forgetful).begins.reshape(5, 3, 2)[..., 0]
    assert again[:, 0].tolist() == [False, True, False, True, False]


def test_log_probabilities_are_those_of_the_actions() -> None:
    kept = collector(ToyBatch()).collect(student)
    torch.testing.assert_close(kept.log_probs, torch.full((5, 6), -np.log(4), dtype=torch.float32))


def test_last_values_are_those_of_what_is_seen_after_the_last_step() -> None:
    kept = collector(ToyBatch()).collect(student)
    assert kept.last_values.tolist() == [100, 101, 210, 211, 520, 521]


def test_truncated_steps_are_promised_what_lay_beyond_them_and_terminated_ones_nothing() -> None:
    kept = collector(ToyBatch()).collect(student)
    promised = bootstrap(student, kept, torch.zeros(5, 6), 0.5).reshape(5, 3, 2)
    assert promised[1, 0].tolist() == [100, 100.5]  # half of 100 * 2 + agent
    assert promised[3, 0].tolist() == [100, 100.5]
    promised[1, 0] = promised[3, 0] = 0
    assert promised.count_nonzero() == 0


def test_rewards_themselves_are_left_alone_by_the_promise() -> None:
    kept = collector(ToyBatch()).collect(student)
    before = kept.rewards.clone()
    bootstrap(student, kept, kept.rewards, 0.5)
    assert torch.equal(kept.rewards, before)


def test_an_env_that_terminates_in_the_step_that_would_truncate_it_is_promised_nothing() -> None:
    batch = ToyBatch()
    collecting = collector(batch)

    step = batch.step

    def both(actions: Any) -> None:
        step(actions)
        batch.terminals |= batch.truncations

    batch.step = both  # type: ignore[method-assign]
    kept = collecting.collect(student)
    assert bootstrap(student, kept, torch.zeros(5, 6), 0.5).count_nonzero() == 0


def test_forbidden_actions_are_not_taken() -> None:
    batch = ToyBatch(mask=(False, True, False, True))
    kept = collector(batch, steps=40).collect(student)
    assert set(kept.actions.flatten().tolist()) == {1, 3}
    torch.testing.assert_close(kept.log_probs, torch.full((40, 6), -np.log(2), dtype=torch.float32))
    assert kept.masks is not None
    assert kept.masks[3, 2].tolist() == [False, True, False, True]


def test_watchers_are_told_of_every_step() -> None:
    class Counter:
        calls = 0

        def step(self, batch: ToyBatch) -> None:
            self.calls += 1

    watcher = Counter()
    collector(ToyBatch(), watchers=[watcher]).collect(student)
    assert watcher.calls == 5


def test_the_teacher_labels_what_the_student_sees() -> None:
    def sure(seen: Tensor, memory: object, begins: object) -> tuple[Tensor, Tensor, None]:
        logits = torch.zeros(len(seen), 4)
        logits[:, 1] = (seen[:, 1] == 0) * 2 - 1  # most likely in env 0 alone
        return logits, torch.zeros(len(seen)), None

    batch = ToyBatch()
    kept = collector(batch).collect(sure, partial(batch.choose, "first"))
    assert kept.labels is not None
    assert kept.labels.eq(1).all()
    assert kept.agreement == pytest.approx(1 / 3)
    assert batch.asked == 5


def test_a_teacher_that_is_off_is_not_asked() -> None:
    batch = ToyBatch()
    collecting = collector(batch)
    collecting.collect(student, partial(batch.choose, "first"))
    kept = collecting.collect(student)
    assert batch.asked == 5
    assert kept.agreement is None
    assert kept.labels is None


def test_a_memory_moves_with_the_steps_and_is_handed_on() -> None:
    def counting(seen: Tensor, memory: Any, begins: Any) -> tuple[Tensor, Tensor, Any]:
        hidden = memory[0] * (1 - begins[0].float()[:, None]) + 1
        return torch.zeros(1, len(hidden), 4), hidden[:, 0][None], (hidden, memory[1])

    collecting = collector(ToyBatch())
    collecting.memory = torch.zeros(6, 1), torch.zeros(6, 1)
    kept: Rollout = collecting.collect(counting)
    values = kept.values.reshape(5, 3, 2)[..., 0]
    assert values[:, 0].tolist() == [1, 2, 1, 2, 1]
    assert values[:, 2].tolist() == [1, 2, 3, 4, 5]
    assert kept.last_values.tolist() == [2, 2, 3, 3, 6, 6]
    assert kept.memory is not None
    assert kept.memory[0].sum() == 0
    promised = bootstrap(counting, kept, torch.zeros(5, 6), 1.0).reshape(5, 3, 2)
    assert promised[1, 0].tolist() == [3, 3]
    assert collecting.collect(counting).memory[0][4:].flatten().tolist() == [5, 5]  # type: ignore[index]


@pytest.mark.parametrize(("envs", "steps"), [(3, 7), (4, 2)])
def test_staggered_envs_begin_at_different_times(envs: int, steps: int) -> None:
    batch = ToyBatch(num_envs=envs, lengths=(100,) * envs, terminal=(False,) * envs)
    batch.reset()
    stagger(batch, steps)  # type: ignore[arg-type]
    begun = [steps - 1 - env * steps // envs for env in range(envs)]
    assert batch.times.tolist() == begun


def test_copies_have_rows_of_their_own_where_envs_and_network_are_apart() -> None:
    batches = [ToyBatch() for _ in range(2)]
    together, apart = collector(batches[0]), collector(batches[1], SplitCollector)
    rows = []
    for each in (together, apart):
        spans.enable()
        each.collect(student)
        rows.append({row.path for row in spans.tree()[0].walk()})
        spans.disable()
    assert rows[1] - rows[0] == {"rollout/observations to device", "rollout/actions to host"}
    for one, other in zip(batches[0].taken, batches[1].taken, strict=True):
        assert np.array_equal(one, other)
