from pathlib import Path

import pytest
from support.profiles import profile

from hotloop.core.settings import Target
from hotloop.lab.profile.profile import PAIRS
from hotloop.lab.profile.trace import CATEGORY, Tracer, merge_torch

pytest.importorskip("torch")

FOREIGN = {
    "baseTimeNanoseconds": 1_700_000_000_000_000_000,
    "traceEvents": [
        {"ph": "M", "name": "thread_name", "pid": 9, "tid": 9, "args": {"name": "python"}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 9, "tid": 9, "ts": 12.5, "dur": 2.25},
        {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 20.0, "dur": 5.0},
        {"ph": "X", "cat": "Trace", "name": "PyTorch", "pid": "Spans", "tid": "all", "ts": 0, "dur": 90},
    ],
}


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotloop.lab.profile.profile.WARMUP", 20)


def test_events_are_put_on_our_clock_and_on_tracks_of_their_own() -> None:
    tracer = Tracer()
    merge_torch(FOREIGN, 1_700_000_000_000_000_000 - 1_000_000, tracer)
    trace = tracer.trace(None, {})
    drawn = [(each.name, each.begin_ns, each.end_ns, trace.tracks[each.track]) for each in trace.slices]
    assert drawn == [
        ("gemm", 1_020_000, 1_025_000, "torch 7"),
        ("aten::add", 1_012_500, 1_014_750, "torch 9"),
    ]
    assert "2 events" in trace.about["torch"]


def test_operators_of_a_policy_lie_inside_its_span() -> None:
    tracer = Tracer()
    steps = 2 * PAIRS
    record = profile(
        Target("support.stalling:make", {}), steps, policy="support.stalling:torch_policy", tracer=tracer
    )
    trace = tracer.trace(record.slow, {})
    policies = [each for each in trace.slices if each.name == "policy"]
    sums = [each for each in trace.slices if each.category == CATEGORY and each.name == "aten::cumsum"]
    assert len(sums) == 20
    near_ns = 8_000  # the two clocks are brought together by a calendar that counts microseconds
    for each in sums:
        assert any(
            around.begin_ns - near_ns <= each.begin_ns and each.end_ns <= around.end_ns + near_ns
            for around in policies
        )
    assert record.slow is not None
    assert record.slow.calls == steps, "what torch's profiler slowed down is in no percentile"
    assert record.work.env_steps == steps


def test_a_policy_without_torch_is_traced_without() -> None:
    tracer = Tracer()
    record = profile(
        Target("support.stalling:make", {}), 2 * PAIRS, policy="support.stalling:third", tracer=tracer
    )
    trace = tracer.trace(record.slow, {})
    assert not [each for each in trace.slices if each.category == CATEGORY]
    assert "caught nothing" in trace.about.get("torch", "caught nothing")


def test_no_trace_of_torch_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    profile(
        Target("support.stalling:make", {}), PAIRS, policy="support.stalling:torch_policy", tracer=Tracer()
    )
    assert list(tmp_path.iterdir()) == []
