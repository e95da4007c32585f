"""The traces of the public game: both implementations follow them, episode after episode."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hotloop
from hotloop.envs.batch import Batch
from hotloop.worlds.prospector.observe import METRICS

TRACES = sorted((Path(__file__).parent / "traces").glob("*.npz"))
every_trace = pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
impls = pytest.mark.parametrize("impl", ["native", "reference"])


def load(path: Path) -> dict[str, NDArray[Any]]:
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def beyond(ours: Any, theirs: Any, absolute: float, relative: float) -> Any:
    """Where ours is farther from theirs than may be."""
    return np.flatnonzero(np.abs(ours - theirs) > absolute + relative * np.abs(theirs))


def begin(trace: dict[str, NDArray[Any]], impl: str) -> Batch:
    """A batch whose every next seed is the last one plus 1000, as in the traces."""
    batch = hotloop.make("prospector", num_envs=1, impl=impl, time_max=int(trace["time_max"]), seed_step=1000)
    batch.reset(seeds=[int(trace["seed"])])
    return batch


def differences(batch: Batch, trace: dict[str, NDArray[Any]], i: int) -> list[str]:
    """What differs in row i of a trace from what a batch shows after that step."""
    ended = bool(batch.terminals[0] or batch.truncations[0])
    seen = (batch.final_observations if ended else batch.observations)[0, 0]
    flags = {
        "terminated": batch.terminals[0],
        "truncated": batch.truncations[0],
        "invalid": batch.infos["invalid"][0],
        "dt": batch.infos["dt"][0],
    }
    wrong = [f"{name} {flag}" for name, flag in flags.items() if flag != trace[name][i]]
    wrong += [f"obs {k}" for k in beyond(seen, trace["obs"][i], 1e-5, 1e-4)]
    if beyond(batch.rewards[0], trace["reward"][i], 1e-5, 1e-4).size:
        wrong.append(f"reward {batch.rewards[0]} is not {trace['reward'][i]}")
    metrics = np.array([batch.infos[name][0] for name in trace["metric_names"].tolist()])
    wrong += [f"metric {trace['metric_names'][k]}" for k in beyond(metrics, trace["metrics"][i], 1e-3, 1e-4)]
    return wrong


def test_there_are_twelve_traces() -> None:
    assert len(TRACES) == 12
    assert tuple(load(TRACES[0])["metric_names"].tolist()) == tuple(METRICS)


@every_trace
@impls
def test_every_step_of_a_trace_is_followed(path: Path, impl: str) -> None:
    trace = load(path)
    batch = begin(trace, impl)
    assert not beyond(batch.observations[0, 0], trace["first_obs"], 1e-5, 1e-4).size
    for i, action in enumerate(trace["actions"]):
        batch.step(np.array([action], np.int32))
        wrong = differences(batch, trace, i)
        assert not wrong, f"step {i}, action {action}: {wrong}"
    assert batch.counters["resets"] == 1 + int((trace["terminated"] | trace["truncated"]).sum())


@pytest.mark.parametrize("kernels", ["scalar", "avx2"])
def test_a_trace_is_followed_by_every_set_of_kernels(kernels: str, has_kernels: Any) -> None:
    if not has_kernels(kernels):
        pytest.skip(f"this processor has no {kernels}")
    trace = load(TRACES[0])
    batch = hotloop.make(
        "prospector", num_envs=1, time_max=int(trace["time_max"]), seed_step=1000, kernels=kernels
    )
    batch.reset(seeds=[int(trace["seed"])])
    for i, action in enumerate(trace["actions"]):
        batch.step(np.array([action], np.int32))
        assert not differences(batch, trace, i)
