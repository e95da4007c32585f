import re
from pathlib import Path

import numpy as np
import pytest
from support.grids import spoil_walls

import hotloop
from hotloop.envs import native
from hotloop.envs.batch import Batch
from hotloop.envs.native import milestone_after, timing_ratio

pytestmark = pytest.mark.skipif(native.why_not("grid") is not None, reason="the native module is not built")


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def toy(**keys: object) -> Batch:
    batch = hotloop.make("grid/toy", **{"num_envs": 2, "agents": 4, "shadow": True, "impl": "native"} | keys)
    batch.reset()
    return batch


def stand_still(batch: Batch, steps: int = 1) -> None:
    for _ in range(steps):
        batch.step(np.zeros((batch.spec.num_envs, batch.spec.agents), np.int32))


def test_progress_is_said_at_a_thousand_ten_thousand_and_every_hundred_thousand(
    capsys: pytest.CaptureFixture[str],
) -> None:
    batch = toy(num_envs=10, agents=100)
    stand_still(batch, 299)
    lines = capsys.readouterr().err.splitlines()
    form = re.compile(r"shadow of grid/toy: ([\d,]+) comparisons, 0 mismatches, original takes .*")
    said = map(form.fullmatch, lines)
    assert [found and found[1] for found in said] == ["1,000", "10,000", "100,000", "200,000", "300,000"]


@pytest.mark.parametrize(
    ("done", "following"),
    [(0, 1_000), (1_000, 10_000), (9_999, 10_000), (10_000, 100_000), (100_000, 200_000), (250_000, 300_000)],
)
def test_the_next_milestone_is_ahead(done: int, following: int) -> None:
    assert milestone_after(done) == following


@pytest.mark.parametrize("encoder", ["optimized", "original"])
def test_mismatches_are_logged_by_place_and_the_log_is_named(
    encoder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    batch = toy(encoder=encoder)
    spoil_walls(batch, 1)
    capsys.readouterr()
    stand_still(batch)
    (log,) = Path("artifacts/validation").glob("*.log")
    assert capsys.readouterr().err == f"shadow of grid/toy: MISMATCH, written to {log.resolve()}\n"
    title, *lines = log.read_text().splitlines()
    assert title == "grid/toy: the original encoder's byte against the optimized one's"
    found = re.fullmatch(
        r"tick 1, env 1, agent 0, observations\[1, 0, (\d+), 2\]: 1 against 65, episode seed \d+", lines[0]
    )
    assert found is not None
    assert batch.observations[1, 0, int(found[1]), 2] == (65 if encoder == "optimized" else 1)
    assert batch.counters["shadow.mismatches"] == 4


def test_the_log_goes_on_and_holds_an_env_s_first_mismatches_once() -> None:
    batch = toy(agents=3)
    spoil_walls(batch, 0)
    stand_still(batch)
    spoil_walls(batch, 1)
    stand_still(batch, 3)
    (log,) = Path("artifacts/validation").glob("*.log")
    envs = re.findall(r"tick (\d+), env (\d)", log.read_text())
    assert envs == [("1", "0")] * 3 + [("2", "0")] + [("2", "1")] * 3 + [("3", "1")]
    assert batch.counters["shadow.mismatches"] == 3 * 4 + 3 * 3


def test_a_run_without_mismatches_leaves_no_file() -> None:
    stand_still(toy(), 5)
    assert list(Path().iterdir()) == []


def test_both_encoders_are_timed_whichever_is_primary() -> None:
    for encoder in ("optimized", "original"):
        batch = toy(encoder=encoder, num_envs=8, agents=20)
        stand_still(batch, 20)
        counters = batch.counters
        original, optimized = counters["shadow.reference_ticks"], counters["shadow.candidate_ticks"]
        assert min(original, optimized) > 0
        assert timing_ratio(counters) == original / optimized
    assert timing_ratio({}) is None


def test_what_is_wrong_with_actions_is_said_as_without_a_shadow() -> None:
    with pytest.raises(ValueError, match="have the shape"):
        toy().step(np.zeros((3, 4), np.int32))
    batch = toy()
    batch.step(np.zeros((2, 4), np.int64))
    assert batch.counters["actions_converted"] == 1


def test_a_log_that_cannot_be_written_does_not_end_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    Path("artifacts").write_text("in the way")
    batch = toy()
    spoil_walls(batch, 1)
    stand_still(batch)
    assert "MISMATCH, and no log of it: " in capsys.readouterr().err
    assert batch.counters["shadow.mismatches"] == 4
