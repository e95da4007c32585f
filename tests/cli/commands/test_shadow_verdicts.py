"""A wrong encoder that the grid's shadow finds is a mismatch of every command that steps the grid."""

from collections.abc import Callable
from typing import Any

import pytest
from support.boxes import shorten_passes
from support.grids import spoil_walls
from support.trainings import SMALL

from hotloop.core.errors import ExitCode
from hotloop.envs import native
from hotloop.envs.batch import Batch

TOY = ("grid/toy", "shadow=true", "num_envs=4", "agents=3")
TRAINED = ("grid/toy", "shadow=true", "agents=3", *(f"{key}={value}" for key, value in SMALL.items()))
EVAL = ("train.eval.every=2", "train.eval.episodes=2", "train.eval.steps=3")
SIDE = " ".join(TRAINED)

Command = Callable[..., Any]

pytestmark = pytest.mark.skipif(native.why_not("grid") is not None, reason="the native module is not built")


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotloop.lab.profile.profile.WARMUP", 8)
    shorten_passes(monkeypatch)
    monkeypatch.setattr("hotloop.lab.measure.loop.WARMUP_NS", 0)


@pytest.fixture
def _wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every batch with a shadow begin with walls that only one encoder sees rightly."""
    real = Batch.reset

    def reset(batch: Batch, *seeds: Any) -> None:
        real(batch, *seeds)
        if getattr(batch.spec.parameters, "shadow", False):
            spoil_walls(batch, 0)

    monkeypatch.setattr(Batch, "reset", reset)


COMMANDS = {
    "bench": ("bench", *TOY, "--rounds", "2", "--iterations", "8", "--warmup", "8"),
    "bench of a warm-up": (
        "bench",
        *TOY,
        "max_steps=4",
        "--rounds",
        "2",
        "--iterations",
        "8",
        "--warmup",
        "40",
    ),
    "bench --profile": ("bench", *TOY, "--profile", "--rounds", "2", "--iterations", "8", "--warmup", "8"),
    "compare": ("compare", " ".join(TOY), " ".join(TOY), "--budget", "0.01"),
    "compare of trainings": ("compare", SIDE, f"{SIDE} train.gamma=0.9", "--budget", "0.01"),
    "profile": ("profile", *TOY, "--steps", "160"),
    "profile of a loop": ("profile", *TOY, "--steps", "160", "--record", "run.tape"),
    "sim": ("sim", *TOY, "episodes=4", "steps=5"),
    "train": ("train", *TRAINED, "total_timesteps=256", "run=a"),
    "train beside its twin": ("train", *TRAINED, "total_timesteps=256", "run=a", "validate=1"),
}


@pytest.mark.usefixtures("_wrong")
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_mismatch_of_the_shadow_is_exit_2_with_the_validation(
    hotloop: Command, words: tuple[str, ...]
) -> None:
    said = hotloop(*words, "--json")
    assert (said.code, said.json["exit_code"]) == (ExitCode.MISMATCH, ExitCode.MISMATCH)
    assert (said.json["verdict"], said.json["partial"]) == ("fail", False)
    assert said.json["validation"]["mismatches"] > 0
    assert [each["code"] for each in said.json["notices"]].count("mismatch") == 1


@pytest.mark.usefixtures("_wrong")
def test_a_mismatch_of_the_shadow_is_one_of_every_rung(hotloop: Command) -> None:
    modes = "env_only,rollout,trainer,trainer_eval"
    said = hotloop("bench", *TRAINED, *EVAL, "--mode", modes, "--rounds", "2", "--json")
    assert said.code == ExitCode.MISMATCH
    assert [each["exit_code"] for each in said.json] == [ExitCode.MISMATCH] * 4
    assert min(each["validation"]["mismatches"] for each in said.json) > 0


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_encoders_that_agree_are_no_mismatch_and_counted(hotloop: Command, words: tuple[str, ...]) -> None:
    said = hotloop(*words, "--json")
    assert said.code in (ExitCode.FINE, ExitCode.UNSTABLE, ExitCode.CANNOT_TELL, ExitCode.REGRESSION)
    checked = said.json["validation"]
    assert (checked["mismatches"], checked["comparisons"] > 0) == (0, True)
