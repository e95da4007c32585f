"""The arithmetic of DQN, by hand; and the algorithm: resumed to the bit, batched or not, masks and lives."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from torch import Tensor

import hotloop
from hotloop.core.errors import InputError
from hotloop.core.settings import Target
from hotloop.envs import callables
from hotloop.envs.batch import Batch
from hotloop.envs.foreign.training import open_trainable
from hotloop.envs.tapes import Episodes
from hotloop.stats.summary import mean_interval
from hotloop.train import checkpoint
from hotloop.train.algorithm import DivergedError
from hotloop.train.dqn import DQN, Transitions, choose, epsilon_at, targets, td_loss
from hotloop.train.evaluation import EvalSettings, evaluate, seat
from hotloop.train.networks import ByType
from hotloop.train.settings import TrainSettings
from hotloop.train.trainer import Trainer

SMALL: dict[str, Any] = {
    "algorithm": "dqn",
    "num_steps": 8,
    "minibatch_size": 16,
    "hidden": (16,),
    "embedding": 8,
    "buffer_size": 1_000,
    "learning_starts": 32,
    "train_frequency": 2,
    "target_network_frequency": 3,
    "total_timesteps": 1_000,
}
FARM: dict[str, Any] = {"num_envs": 2, "perception": False, "max_steps": 30}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def trainer_of(
    batch: Batch, *, resume: Path | None = None, folder: Path | None = None, **given: Any
) -> Trainer:
    place = folder or Path("train_dir")
    return Trainer(batch, TrainSettings(**{**SMALL, **given}), resume=resume, folder=place)


def off_policy(trainer: Trainer) -> DQN:
    assert isinstance(trainer.algorithm, DQN)
    return trainer.algorithm


def table(rows: list[list[float]]) -> Any:
    """A student whose Q-values are those of the row that an observation names."""

    def student(seen: Tensor, memory: Any, begins: Any) -> tuple[Tensor, Tensor, None]:
        return torch.tensor(rows)[seen[:, 0].long()], torch.zeros(len(seen)), None

    return student


def part(**given: Any) -> Transitions:
    usual: dict[str, Any] = {
        "observations": torch.tensor([[0.0], [1.0]]),
        "actions": torch.tensor([0, 2]),
        "rewards": torch.tensor([1.0, 2.0]),
        "ends": torch.tensor([0.0, 1.0]),
        "next_observations": torch.tensor([[1.0], [0.0]]),
        "next_masks": None,
    }
    return Transitions(**usual | given)


STUDENT = table([[0.0, 0.0, 0.0], [3.0, 1.0, 2.0]])
TARGET = table([[9.0, 9.0, 9.0], [5.0, 8.0, 7.0]])


def test_dqn_wants_the_reward_and_the_targets_maximum_and_at_an_end_the_reward_alone() -> None:
    assert targets(part(), STUDENT, TARGET, gamma=0.5, double=False).tolist() == [1 + 0.5 * 8, 2]


def test_double_dqn_lets_the_student_choose_what_the_target_values() -> None:
    assert targets(part(), STUDENT, TARGET, gamma=0.5, double=True).tolist() == [1 + 0.5 * 5, 2]


@pytest.mark.parametrize(("double", "worth"), [(False, 7.0), (True, 7.0)])
def test_what_is_forbidden_next_is_worth_nothing(double: bool, worth: float) -> None:
    masks = torch.tensor([[False, False, True], [True, True, True]])
    found = targets(part(next_masks=masks), STUDENT, TARGET, gamma=1.0, double=double)
    assert found[0].item() == 1 + worth


def test_the_loss_is_of_the_actions_that_were_taken() -> None:
    loss, q_taken = td_loss(part(), table([[1.5, 0, 0], [0, 0, 12.0]]), torch.tensor([1.0, 2.0]))
    assert q_taken.tolist() == [1.5, 12.0]
    assert loss.item() == pytest.approx((0.5**2 + 10**2) / 2)


def test_exploration_falls_in_a_line_and_stays() -> None:
    settings = TrainSettings(total_timesteps=1000, exploration_fraction=0.5, start_e=1.0, end_e=0.2)
    assert [epsilon_at(steps, settings) for steps in (0, 250, 500, 900)] == pytest.approx([1, 0.6, 0.2, 0.2])


def test_any_legal_action_is_drawn_and_no_other() -> None:
    masks = torch.tensor([[True, False, True, True]]).expand(3000, -1)
    uniforms = torch.rand(2, 3000, generator=torch.Generator().manual_seed(3))
    counts = torch.bincount(choose(torch.zeros(3000, 4), masks, 1.0, uniforms), minlength=4).tolist()
    assert counts[1] == 0
    assert min(counts[0], counts[2], counts[3]) > 900


def test_the_best_legal_action_is_taken_where_nothing_is_explored() -> None:
    q = torch.tensor([[1.0, 5.0, 3.0]])
    uniforms = torch.tensor([[0.5], [0.99]])
    assert choose(q, torch.tensor([[True, False, True]]), 0.4, uniforms).item() == 2
    assert choose(q, None, 0.6, uniforms).item() == 2  # any of three, by the second number
    assert choose(q, None, 0.0, uniforms).item() == 1


CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "vectors": ("prospector/short", {"num_envs": 3}, {}),
    "tokens": ("grid/guard", {"num_envs": 2, "max_steps": 20}, {"algorithm": "double_dqn"}),
    "lives and types": ("farm/dev", FARM, {}),
    "a small ring": ("farm/dev", FARM, {"buffer_size": 400}),
    "one network": ("farm/dev", FARM, {"networks": "one"}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_resumed_run_goes_on_to_the_bit(name: str, tmp_path: Path) -> None:
    target, world, given = CASES[name]
    with closing(hotloop.make(target, **world)) as batch, closing(hotloop.make(target, **world)) as fresh:
        going = trainer_of(batch, **given)
        for _ in range(4):
            going.update()
        assert going.algorithm.learned > 3
        resumed = trainer_of(fresh, resume=going.save(tmp_path), **given)
        for _ in range(4):
            assert going.update() == resumed.update()
        for one, other in zip(going.network.parameters(), resumed.network.parameters(), strict=True):
            assert torch.equal(one, other)
        one, other = off_policy(going).replay.arrays(), off_policy(resumed).replay.arrays()
        filled = off_policy(going).replay.filled
        assert all(np.array_equal(one[key][:filled], other[key][:filled]) for key in one)
        assert (batch.digest() == fresh.digest()).all()


def test_a_checkpoint_is_no_larger_than_the_ring_allows(tmp_path: Path) -> None:
    with closing(hotloop.make("farm/dev", **FARM)) as batch:
        trainer = trainer_of(batch, buffer_size=400)
        sizes = []
        for _ in range(3):
            for _ in range(2):
                trainer.update()
            sizes.append(trainer.save(tmp_path).stat().st_size)
        replay = sum(array.nbytes for array in off_policy(trainer).replay.arrays().values())
    assert off_policy(trainer).replay.filled == 400
    assert max(sizes) - min(sizes) < 0.1 * replay
    assert len(list(tmp_path.glob("*.pt"))) == checkpoint.KEPT


@pytest.mark.parametrize("name", ["vectors", "lives and types"])
def test_asking_for_all_agents_at_once_changes_no_result(name: str) -> None:
    target, world, given = CASES[name]
    finals, digests = [], []
    for batched in (True, False):
        with closing(hotloop.make(target, **world)) as batch:
            trainer = trainer_of(batch, batched=batched, start_e=0.2, **given)
            updates = [trainer.update() for _ in range(5)]
            finals.append((updates, [each.detach().clone() for each in trainer.network.parameters()]))
            digests.append(batch.digest())
    assert finals[0][0] == finals[1][0]
    assert all(torch.equal(a, b) for a, b in zip(finals[0][1], finals[1][1], strict=True))
    assert (digests[0] == digests[1]).all()


def test_only_those_who_live_are_in_the_replay_and_their_type_decides_their_network() -> None:
    with closing(hotloop.make("farm/dev", **FARM)) as batch:
        trainer = trainer_of(batch)
        algorithm = off_policy(trainer)
        alive = int(batch.infos["alive"].sum())
        assert isinstance(trainer.network, ByType)
        assert trainer.update().agent_steps <= alive * 8 * 2
        replay = algorithm.replay
        assert replay.filled < batch.spec.num_envs * batch.spec.agents * 8
        assert replay.filled >= trainer.agent_steps
        assert set(replay.observations[: replay.filled, -1]) == {0.0, 1.0, 2.0}
        rows = torch.from_numpy(replay.observations[:6].copy())
        rows[:, :-1] = rows[0, :-1]
        said = trainer.student(rows, None, None)[0]
    assert torch.allclose(said[0], said[3], atol=1e-6)  # settlers are of three types in turn
    assert not torch.allclose(said[0], said[1], atol=1e-6)


def test_illegal_actions_are_never_taken() -> None:
    keys = {"num_envs": 2}
    with closing(hotloop.make("cards/mirror", **keys)) as batch:
        refused: list[int] = []

        class Watching:
            def step(self, batch: Batch) -> None:
                masks = before[-1]
                rows = np.arange(len(masks))
                refused.append(int((~masks[rows, trainer.algorithm.acting.reshape(-1)]).sum()))  # type: ignore[attr-defined]
                before.append(batch.masks.reshape(len(masks), -1).copy())  # type: ignore[union-attr]

        trainer = Trainer(batch, TrainSettings(**SMALL), watchers=[Watching()])
        assert batch.masks is not None
        before = [batch.masks.reshape(keys["num_envs"], -1).copy()]
        for _ in range(3):
            trainer.update()
    assert trainer.algorithm.learned > 0
    assert sum(refused) == 0


def test_an_update_says_how_often_it_learned_and_what_it_expects() -> None:
    with closing(hotloop.make("prospector/short", num_envs=4)) as batch:
        trainer = trainer_of(batch, gradient_steps=3)
        assert trainer.update().phase == "explore"
        told = trainer.update()
    assert told.phase == "dqn"
    assert {"total", "q", "target", "grad_norm", "epsilon", "replay"} <= set(told.losses)
    assert sum(trainer.counters.values()) == trainer.algorithm.learned == 3 * 4


def test_the_critic_is_not_trained_and_every_other_weight_is() -> None:
    with closing(hotloop.make("farm/dev", **FARM)) as batch:
        trainer = trainer_of(batch)
        before = {name: each.detach().clone() for name, each in trainer.network.named_parameters()}
        for _ in range(4):
            trainer.update()
        same = {name for name, each in trainer.network.named_parameters() if torch.equal(each, before[name])}
    assert same == {name for name in before if ".value." in name}


def test_a_loss_that_is_no_number_leaves_what_it_takes_to_see_why(tmp_path: Path) -> None:
    with closing(hotloop.make("prospector/short", num_envs=4)) as batch:
        trainer = trainer_of(batch, folder=tmp_path)
        for _ in range(2):
            trainer.update()
        off_policy(trainer).replay.rewards[:] = float("nan")
        with pytest.raises(DivergedError, match=r"gradient step \d+: first in rewards.*diverged-2.pt"):
            trainer.update()
    (path,) = tmp_path.glob("diverged-*.pt")
    assert torch.load(path, weights_only=True)["samples"]["actions"].shape == (16,)


def test_a_run_plays_what_it_finds_best(tmp_path: Path) -> None:
    with closing(hotloop.make("farm/dev", **FARM)) as batch:
        trainer = trainer_of(batch)
        for _ in range(4):
            trainer.update()
        path = trainer.save(tmp_path)
        asked = EvalSettings(episodes=2)
        found = [evaluate(trainer, batch.spec, each).returns for each in (asked, asked)]
    assert found[0] == found[1]
    with closing(hotloop.make("farm/dev", **FARM)) as other:
        other.reset()
        actor = seat(path, other, seed=1, threads=1)
        seen = off_policy(trainer).view.typed(
            torch.from_numpy(other.observations).reshape(100, -1), torch.arange(100)
        )
        seen[:, -1] = torch.from_numpy(other.infos["breeds"]).reshape(-1)
        expected = trainer.student(off_policy(trainer).scale_rows(seen), None, None)[0].argmax(-1)
        alive = other.infos["alive"].reshape(-1)
        assert (actor.choose().reshape(-1)[alive] == expected.numpy()[alive]).all()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"lstm": 8}, "has no memory: leave lstm out"),
        ({"kernels": "graphs"}, "is not recorded"),
        ({"buffer_size": 20}, "too small for minibatch_size=16 and 4 rows a step: use 28 or more"),
        ({"learning_starts": 999}, "never has learning_starts=999: use at most 988"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], told: str) -> None:
    with (
        closing(hotloop.make("prospector/short", num_envs=4)) as batch,
        pytest.raises(InputError, match=told),
    ):
        trainer_of(batch, **given)


def test_a_checkpoint_of_another_algorithm_is_refused(tmp_path: Path) -> None:
    with closing(hotloop.make("prospector/short", num_envs=4)) as batch:
        path = trainer_of(batch).save(tmp_path)
        with pytest.raises(InputError, match="learned by algorithm=dqn, and this run's is ppo"):
            trainer_of(batch, algorithm="ppo", resume=path)


class Corridor(gymnasium.Env[Any, Any]):
    """Five places in a row; the way to the right is worth it, and takes as long as it takes."""

    observation_space = gymnasium.spaces.Box(0, 1, (5,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.at, self.steps = 0, 0
        return np.eye(5, dtype=np.float32)[0], {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.at, self.steps = max(self.at + (1 if action else -1), 0), self.steps + 1
        arrived = self.at == 4
        return np.eye(5, dtype=np.float32)[self.at], float(arrived), arrived, self.steps >= 30, {}


@pytest.mark.parametrize("algorithm", ["dqn", "double_dqn"])
def test_the_way_down_a_corridor_is_learned_and_what_each_place_is_worth(algorithm: str) -> None:
    with closing(open_trainable(Target(callables.lend(Corridor), {"num_envs": 2}))) as batch:
        given = {"hidden": (32,), "learning_rate": 5e-3, "gamma": 0.9, "norm_obs": False}
        settings = {"total_timesteps": 1_200, "num_steps": 30, "train_frequency": 1, "minibatch_size": 32}
        trainer = trainer_of(batch, algorithm=algorithm, target_network_frequency=20, **given, **settings)
        while not trainer.finished:
            trainer.update()
        q = trainer.student(torch.eye(5), None, None)[0]
    assert (q[:4].argmax(-1) == 1).all()
    assert q[:4, 1].tolist() == pytest.approx([0.9**3, 0.9**2, 0.9, 1], abs=0.15)


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["dqn", "double_dqn"])
def test_agents_learn_to_outlive_weighted_play(algorithm: str) -> None:
    """The documented run but for the images: agents see their own state alone."""
    world = {"perception": False, "max_steps": 1_000}
    with closing(hotloop.make("farm/dev", seed=1_000_003, num_envs=16, **world)) as batch:
        batch.reset()
        episodes = Episodes(batch)
        played = [each for _ in range(1_000) for each in episodes.step(batch.choose("weighted"))]
    with closing(hotloop.make("farm/dev", num_envs=8, **world)) as batch:
        given = {"num_steps": 32, "total_timesteps": 40_960, "minibatch_size": 128, "hidden": (64, 64)}
        more = {"train_frequency": 4, "gradient_steps": 2, "target_network_frequency": 100}
        trainer = trainer_of(
            batch,
            algorithm=algorithm,
            buffer_size=50_000,
            max_grad_norm=10.0,
            anneal_lr=False,
            **given,
            **more,
        )
        while not trainer.finished:
            trainer.update()
        learned = evaluate(trainer, batch.spec, EvalSettings(episodes=16))
    mine, theirs = (
        mean_interval([each.outcomes["lifetime"] for each in ended]) for ended in (learned.episodes, played)
    )
    assert mine is not None
    assert theirs is not None
    assert mine[0] > theirs[1]
