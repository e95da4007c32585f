"""Our trainer on somebody else's env: its answers are the env's own, and what cannot be taken is refused."""

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from hotloop.cli.main import main
from hotloop.core.errors import HotloopError
from hotloop.core.settings import Target
from hotloop.envs.foreign.training import open_trainable

EXAMPLES = Path(__file__).parents[3] / "examples"

IMITATING = ["supervised_steps=1000"]

SMALL = [
    "num_envs=2",
    "num_steps=8",
    "minibatch_size=16",
    "hidden=16",
    "torch_threads=1",
    "tensorboard=false",
    "log_every=2",
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_batch_answers_as_its_envs_do() -> None:
    batch = open_trainable(Target("gym:CartPole-v1", {"num_envs": 2}))
    own = [gymnasium.make("CartPole-v1") for _ in range(2)]
    batch.reset(seeds=[5, 6])
    seen = [env.reset(seed=seed)[0] for env, seed in zip(own, (5, 6), strict=True)]
    assert np.array_equal(batch.observations, seen)
    ended, random = [False, False], np.random.default_rng(1)
    while not all(ended):
        actions = random.integers(2, size=(2, 1), dtype=np.int32)
        batch.step(actions)
        for env in (place for place in range(2) if not ended[place]):
            now, reward, over, cut, _ = own[env].step(int(actions[env, 0]))
            assert (batch.rewards[env, 0], batch.terminals[env], batch.truncations[env]) == (
                reward,
                over,
                cut,
            )
            ended[env] = over or cut
            shown = batch.final_observations if ended[env] else batch.observations
            assert np.array_equal(shown[env], now)
    assert batch.counters["env_steps"] == batch.counters["foreign_steps"] > 0
    batch.close()


def test_envs_have_seeds_of_their_own_that_one_seed_decides() -> None:
    def first(seed: int) -> Any:
        batch = open_trainable(Target("gym:CartPole-v1", {"num_envs": 3, "seed": seed}))
        batch.reset()
        return batch.observations.copy()

    assert np.array_equal(first(1), first(1))
    assert not np.array_equal(first(1), first(2))
    assert len(np.unique(first(1), axis=0)) == 3


def test_a_run_leaves_its_record_and_goes_on() -> None:
    words = ["train", "support.theirs:make", "work=1", *SMALL, "run=mine"]
    assert main([*words, "total_timesteps=64"]) == 0
    assert main(["train", "run=mine", "--resume", "total_timesteps=128"]) == 64  # code of another project
    assert main(["train", "support.theirs:make", "run=mine", "--resume", "total_timesteps=128"]) == 0
    first, second = (
        json.loads(path.read_text())
        for path in sorted(Path("artifacts/throughput").iterdir(), key=lambda path: path.stem)
    )
    assert first["target"]["name"] == "support.theirs:make"
    assert first["path"]["ran"] == {"foreign": 1.0}
    assert first["values"]["episode_length"] == [10.0, 10.0]
    assert (first["work"]["env_steps"], second["work"]["env_steps"]) == (64, 64)
    assert second["values"]["episode_length"] == [10.0, 10.0]  # new episodes, counted from their beginning
    assert "path-mixed" not in {notice["code"] for notice in first["notices"]}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["support.theirs:Plain"], "is a Plain"),
        (["gym:CartPole-v1", "vector=own"], "expected one of sync, threads, async"),
        (["gym:CartPole-v1", "train.network=net.py"], "write my_net.py:Net"),
        (["gym:CartPole-v1", "train.network=support.nets:Narrow"], "outputs [2, 3] and values [2]: expected"),
        (["gym:CartPole-v1", "train.network=support.nets:Alone"], "gave a tensor [2, 2]: expected outputs"),
        (["gym:CartPole-v1", "train.network=support.nets:Broken"], "no such layer"),
        (["gym:CartPole-v1", "train.network=support.nets:number"], "made a int: expected a torch.nn.Module"),
        (["gym:CartPole-v1", "train.network=support.nets:Net", "lstm=8"], "leave out train.network"),
        (["gym:CartPole-v1", *IMITATING, "train.teacher=support.nets:short"], "shape (1,): expected (2,)"),
        (
            ["gym:CartPole-v1", *IMITATING, "train.teacher=support.nets:wild"],
            "gave 7 for row 0: expected 0 to 1",
        ),
        (["gym:CartPole-v1", "validate=smoke"], "validate= needs a twin"),
        (["gym:CartPole-v1", "supervised_steps=10"], "no player to imitate"),
        (["gym:CartPole-v1", "algorithm=dqn", "clip_coef=0.1"], "clip_coef means nothing to algorithm=dqn"),
        (["gym:CartPole-v1", "train_frequency=4"], "train_frequency means nothing to algorithm=ppo"),
        (["gym:CartPole-v1", "algorithm=dqn", "buffer_size=10"], "buffer_size=10 is too small"),
        (["gym:CartPole-v1", "algorithm=sarsa"], "expected one of ppo, dqn, double_dqn"),
    ],
)
def test_what_cannot_be_trained_on_is_refused(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *words, *SMALL, "total_timesteps=64"]) == 64
    assert told in capsys.readouterr().err


def test_an_env_that_raises_is_told_by_its_own_words() -> None:
    batch = open_trainable(Target("support.theirs:make"))
    batch.reset()

    def broken(action: Any) -> Any:
        raise ValueError("out of fuel")

    batch.crew.envs[0].step = broken
    with pytest.raises(HotloopError, match="out of fuel"):
        batch.step(np.zeros((1, 1), np.int32))


def test_a_dqn_of_somebody_elses_env_is_trained_and_resumed(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "algorithm=dqn",
        "num_envs=2",
        "num_steps=16",
        "minibatch_size=16",
        "hidden=8",
        "tensorboard=false",
    ]
    more = ["learning_starts=20", "buffer_size=500", "run=q"]
    assert main(["train", "gym:CartPole-v1", *words, *more, "total_timesteps=64"]) == 0
    assert "insert" in capsys.readouterr().out
    record = json.loads(next(Path("artifacts/throughput").iterdir()).read_text())
    assert record["work"]["updates"] > 0
    assert record["work"]["updates"] == sum(
        count for name, count in record["path"]["counters"].items() if name.startswith("updates.")
    )
    assert main(["train", "run=q", "--resume", "total_timesteps=96"]) == 0


def trained(*words: str) -> dict[str, Any]:
    """The record of a short training that has to succeed."""
    before = set(Path("artifacts/throughput").glob("*.json"))
    assert main(["train", *words, *SMALL]) == 0
    (made,) = set(Path("artifacts/throughput").glob("*.json")) - before
    record: dict[str, Any] = json.loads(made.read_text())
    return record


@pytest.mark.parametrize("target", ["my_arm.py:make", "my_team.py:make", "my_env.py:make"])
def test_the_examples_are_trained_on(target: str) -> None:
    record = trained(f"{EXAMPLES / target}", "total_timesteps=64")
    assert record["work"]["env_steps"] == 64
    assert record["work"]["updates"] == 4
    agents = 3 if "team" in target else 1
    assert 64 < record["work"]["agent_steps"] <= 192 if agents == 3 else record["work"]["agent_steps"] == 64


def test_a_network_and_a_teacher_of_ones_own_take_part() -> None:
    net, teacher = EXAMPLES / "my_net.py:Net", EXAMPLES / "my_teacher.py:Teacher"
    record = trained(
        "gym:CartPole-v1",
        f"train.network={net}",
        f"train.teacher={teacher}",
        "total_timesteps=512",
        "supervised_steps=512",
        "train.learning_rate=0.01",
        "run=taught",
    )
    assert np.mean(record["values"]["agreement"][-8:]) > 0.8
    assert record["target"]["params"]["train.network"] == str(net)
    trust = ["--trust", "train_dir/taught/settings.json"]
    assert main(["train", "run=taught", "--resume", *trust, "total_timesteps=640"]) == 0


def test_the_same_seed_makes_the_same_network_of_ones_own() -> None:
    words = ["gym:CartPole-v1", f"train.network={EXAMPLES / 'my_net.py:Net'}", "total_timesteps=64"]
    one, other = (trained(*words, f"run={name}")["values"]["return_per_agent"] for name in ("one", "two"))
    assert one == other != []


def test_envs_in_workers_train_as_envs_here_do() -> None:
    words = ["gym:CartPole-v1", "total_timesteps=128", "train.eval.every=4", "train.eval.episodes=2"]
    here, workers = (
        trained(*words, *more, f"run=r{place}")
        for place, more in enumerate([[], ["vector=async", "workers=2"]])
    )
    for name in ("return_per_agent", "eval_return"):
        assert here["values"][name] == workers["values"][name] != []
    assert workers["target"]["variant"]["workers"] == 2


def test_the_ladder_climbs_somebody_elses_env() -> None:
    words = ["gym:CartPole-v1", "--mode", "env_only,rollout,trainer", "--rounds", "6", "--iterations", "16"]
    assert main(
        ["bench", *words, "num_envs=2", "num_steps=8", "minibatch_size=16", "hidden=16", "torch_threads=1"]
    ) in (0, 1)
    found = [json.loads(path.read_text()) for path in Path("artifacts/throughput").iterdir()]
    assert {record["label"] for record in found} == {"env_only", "rollout", "trainer"}
    assert all(record["path"]["ran"] == {"foreign": 1.0} for record in found)


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_cartpole_is_learnt_within_100_000_steps(seed: int) -> None:
    words = ["num_envs=8", "num_steps=32", "minibatch_size=256", "update_epochs=20", "learning_rate=0.001"]
    more = ["gamma=0.98", "ent_coef=0", "torch_threads=1", f"train.seed={seed}", "tensorboard=false"]
    assert main(["train", "gym:CartPole-v1", *words, *more, "total_timesteps=100000", f"seed={seed}"]) == 0
    record = json.loads(next(Path("artifacts/throughput").iterdir()).read_text())
    assert max(record["values"]["return_per_agent"]) >= 475


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_cartpole_is_learnt_by_dqn_within_256_000_steps(seed: int) -> None:
    words = ["algorithm=dqn", "num_envs=8", "num_steps=32", "minibatch_size=128", "hidden=120,84"]
    more = ["learning_rate=0.0005", "gamma=0.99", "buffer_size=50000", "learning_starts=5000"]
    rhythm = ["train_frequency=1", "gradient_steps=1", "target_network_frequency=50", "train.log_every=20"]
    last = ["exploration_fraction=0.4", "end_e=0.01", "norm_obs=false", "torch_threads=1"]
    asked = [*words, *more, *rhythm, *last, "tensorboard=false", "total_timesteps=256000"]
    asked += [f"train.seed={seed}", f"seed={seed}"]
    assert main(["train", "gym:CartPole-v1", *asked]) == 0
    record = json.loads(next(Path("artifacts/throughput").iterdir()).read_text())
    assert max(record["values"]["return_per_agent"]) >= 475
