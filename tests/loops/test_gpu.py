"""On a GPU: work that a host only queues is charged to the span that queued it, and nothing waits for it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hotloop
from hotloop.core import spans
from hotloop.core.record import Record

torch = pytest.importorskip("torch")

WHY_NOT = None if torch.cuda.is_available() else "torch finds no GPU"
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"EVENTS ARE NOT TESTED ON A GPU: {WHY_NOT}")

SIZE = 4_096
PRODUCTS = 20


@pytest.fixture
def matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.chdir(tmp_path)
    made = torch.randn(SIZE, SIZE, device="cuda")
    multiply(made)
    torch.cuda.synchronize()
    yield made
    assert not spans.enabled()


def multiply(matrix: Any) -> Any:
    """Work of tens of milliseconds, queued in no time."""
    product = matrix
    for _ in range(PRODUCTS):
        product = (product @ matrix) / SIZE
    return product


def known_ms(matrix: Any) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    multiply(matrix)
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end))


def planted(matrix: Any, timing: Any) -> Record:
    with hotloop.run("planted", every=1, timing=timing, say=lambda _: None) as run:
        for _ in range(5):
            with hotloop.span("matmul"):
                product = multiply(matrix)
            with hotloop.span("copy"):
                product[0].cpu()
            run.count(updates=1, steps=1)
    assert run.record is not None
    return run.record


def ms(record: Record) -> dict[str, float]:
    return {phase.path: phase.total_ns / 1e6 / max(phase.calls, 1) for phase in record.phases}


def test_a_planted_matmul_is_charged_to_its_span_by_events_and_to_the_copy_by_the_host(matrix: Any) -> None:
    cost = known_ms(matrix)
    events, host = planted(matrix, "auto"), planted(matrix, "host")
    assert ms(events)["wall/matmul"] == pytest.approx(cost, rel=0.3)
    assert ms(events)["wall/copy"] < cost / 4
    assert ms(host)["wall/copy"] > cost / 2
    assert ms(host)["wall/matmul"] < cost / 2
    assert "host-timer" in {notice.code for notice in host.notices}
    assert "host-timer" not in {notice.code for notice in events.notices}
    assert events.method.clock.endswith("events")
    assert events.resources is not None
    assert events.resources.gpu is not None


def test_waiting_at_every_boundary_tells_the_same(matrix: Any) -> None:
    cost = known_ms(matrix)
    assert ms(planted(matrix, "sync"))["wall/matmul"] == pytest.approx(cost, rel=0.3)


def test_nothing_is_synchronised_in_the_loop(matrix: Any, tmp_path: Path) -> None:
    with hotloop.run("planted", every=1, say=lambda _: None) as run:
        with torch.profiler.profile(acc_events=True) as profiler:
            for _ in range(5):
                with hotloop.span("matmul"):
                    multiply(matrix)
                run.count(updates=1)
        profiler.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    waits = [event["name"] for event in events if "Synchronize" in event.get("name", "")]
    # torch's own profiler waits once, when it stops.
    assert len([name for name in waits if name != "cudaDeviceSynchronize"]) == 0
    assert len(waits) <= 1


def test_outside_a_run_a_span_that_asks_for_it_has_the_works_time(matrix: Any) -> None:
    cost = known_ms(matrix)
    spans.enable()
    with hotloop.span("matmul", device=True):
        multiply(matrix)
    with hotloop.span("copy", device=True):
        matrix[0].cpu()
    [matmul, copy] = spans.device_tree()
    spans.disable()
    assert matmul.total_ns / 1e6 == pytest.approx(cost, rel=0.3)
    assert copy.total_ns / 1e6 < cost / 4
