"""A reference beside an env inside somebody's loop: what is compared, said and left alone."""

import random
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import hotloop
from hotloop.core.errors import ExitCode, InputError

ZOO = Path(__file__).parents[1] / "zoo/owner_grid"


class Walk(gymnasium.Env[Any, Any]):
    """Moves by its own random numbers and by those of the process."""

    observation_space, action_space = spaces.Box(-99, 99, (2,), np.float64), spaces.Discrete(3)

    def __init__(self, wrong_at: int = 0, counts: bool = False) -> None:
        self.wrong_at, self.steps, self.closed = wrong_at, 0, False
        self.at = np.zeros(2)
        if counts:
            self.counters = lambda: {"fast_steps": self.steps}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.at[:] = self.np_random.integers(0, 5, 2)
        return self.at, {}

    def step(self, action: int) -> Any:
        self.steps += 1
        self.at += [action + self.np_random.normal(), random.random() + np.random.random()]  # noqa: NPY002
        reward = 1.0 + (self.steps == self.wrong_at)
        return self.at, reward, False, self.steps % 20 == 0, {"steps": self.steps}

    def close(self) -> None:
        self.closed = True


def drive(env: Any, steps: int = 50) -> None:
    """A loop that draws from the same global random numbers as its env."""
    env.reset()
    for _ in range(steps):
        _, _, ended, cut, _ = env.step(random.randrange(3))
        np.random.random(3)  # noqa: NPY002
        if ended or cut:
            env.reset()


def shadowed(env: Any, reference: Any, level: str | int = "true", steps: int = 50) -> tuple[Any, list[str]]:
    said: list[str] = []
    with hotloop.shadow(env, reference, level, say=said.append) as shadow:
        drive(gymnasium.wrappers.TimeLimit(env, 1_000), steps)
    return shadow, said


def test_every_reset_and_step_is_compared_whatever_the_loop_draws() -> None:
    shadow, said = shadowed(Walk(), Walk())
    assert shadow.difference is None
    assert shadow.comparisons == 50 + 3
    assert shadow.exit_code == ExitCode.FINE
    assert said[0].startswith("shadow of Walk: 53 comparisons, 0 mismatches, the reference takes ")
    assert set(shadow.validation.fields) >= {"observations", "rewards", "truncations", "infos.steps"}


def test_the_first_difference_is_named_and_the_env_goes_on_alone() -> None:
    env, reference = Walk(wrong_at=37), Walk()
    shadow, said = shadowed(env, reference)
    assert (
        said[0] == "shadow of Walk: MISMATCH at step 37, rewards[0]: 1.0 against 2.0; the env goes on alone"
    )
    assert shadow.exit_code == ExitCode.MISMATCH
    assert (env.steps, reference.steps) == (50, 37)
    assert shadow.validation.mismatches == 1


def test_a_level_ends_the_comparison_and_not_the_loop() -> None:
    env, reference = Walk(), Walk()
    shadow, _ = shadowed(env, reference, 10)
    assert (shadow.comparisons, env.steps, reference.steps) == (10, 50, 9)


def test_a_loop_that_ends_before_its_level_says_how_far_it_came() -> None:
    _, said = shadowed(Walk(), Walk(), "smoke", steps=50)
    assert "  the loop ended after 53 of 10,000 comparisons" in said
    for level in ("true", 10):
        _, said = shadowed(Walk(), Walk(), level)
        assert "ended after" not in " ".join(said)


def test_progress_is_said_after_a_thousand_and_ten_thousand_comparisons() -> None:
    _, said = shadowed(Walk(), Walk(), steps=1_500)
    first, last = (line for line in said if line.startswith("shadow of"))
    assert first.startswith("shadow of Walk: 1,000 comparisons, 0 mismatches")
    assert last.startswith("shadow of Walk: 1,576 comparisons, 0 mismatches")


def test_counters_attest_the_path_and_without_them_it_is_not_known() -> None:
    _, said = shadowed(Walk(counts=True), Walk())
    assert said[1:] == [
        "  counted by the env: fast_steps 50",
        "  counted by the reference: not known: the env has no counters() to say it",
    ]


def test_nothing_of_us_stays_in_the_env() -> None:
    env, reference = Walk(), Walk()
    shadowed(env, reference)
    assert not {"reset", "step"} & vars(env).keys()
    assert reference.closed
    assert not env.closed


def test_an_error_of_the_loop_goes_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    env = Walk()
    monkeypatch.setattr(random, "randrange", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError), hotloop.shadow(env, Walk(), say=said.append):
        drive(env)
    assert said[0].startswith("shadow of Walk: 1 comparisons")


def test_an_env_is_no_reference_of_itself() -> None:
    env = Walk()
    with pytest.raises(InputError, match="make another one"):
        hotloop.shadow(env, env)
    with pytest.raises(InputError, match="has no reset and step"):
        hotloop.shadow(env, object())


def test_sides_that_show_the_same_memory_are_refused() -> None:
    env, reference = Walk(), Walk()
    reference.at = env.at
    with pytest.raises(InputError, match="show the same memory"), hotloop.shadow(env, reference, say=print):
        env.reset()


def test_a_loop_that_compared_nothing_cannot_tell() -> None:
    with hotloop.shadow(Walk(), Walk(), say=lambda _: None) as shadow:
        pass
    assert shadow.exit_code == ExitCode.CANNOT_TELL


def test_the_training_of_stable_baselines3_is_shadowed_through_its_wrappers() -> None:
    sb3 = pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

    class Alone(Walk):
        def step(self, action: int) -> Any:
            self.steps += 1
            self.at += [action + self.np_random.normal(), 0.0]
            return self.at.copy(), 1.0, False, self.steps % 20 == 0, {}

    def made() -> Any:
        return DummyVecEnv([Alone, Alone])

    env, said = made(), list[str]()
    with hotloop.shadow(env, made(), say=said.append) as shadow:
        model = sb3.PPO(
            "MlpPolicy", VecMonitor(env), n_steps=16, batch_size=16, n_epochs=1, seed=1, device="cpu"
        )
        model.learn(64)
    assert shadow.difference is None
    assert shadow.comparisons == 2 * (1 + 32)


@pytest.mark.parametrize(("wrong_after", "code"), [(0, ExitCode.FINE), (3_000, ExitCode.MISMATCH)])
def test_a_loop_of_others_compares_the_encoders_of_its_grid(
    wrong_after: int, code: ExitCode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(ZOO))
    import train  # type: ignore[import-not-found]

    words = ["train.py", "--steps", "400", "--shadow", "true", "--wrong-after", str(wrong_after)]
    monkeypatch.setattr(sys, "argv", words)
    assert train.main() == code
    said = capsys.readouterr().err
    assert ("MISMATCH at step" in said) is bool(wrong_after)
    assert "counted by the env: original_encodes 0, optimized_encodes 6,4" in said
    for name in ("train", "grid"):
        sys.modules.pop(name, None)
