"""A run around somebody's own loop: its tree, its record, what it leaves behind, and how it ends badly."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from time import sleep
from types import SimpleNamespace
from typing import Any

import pytest
from support.device import Device

import hotloop
from hotloop.cli.main import main
from hotloop.core import spans
from hotloop.core.errors import InputError
from hotloop.core.record import Record, read
from hotloop.core.spans.device import DeviceStream
from hotloop.core.time_tree import TimeTree
from hotloop.lab.loop import record as records
from hotloop.lab.loop import run as runs
from hotloop.lab.loop.run import StreamAccount
from hotloop.probes.resources import ResourceSample

WAIT_S = 0.05

SAMPLE = ResourceSample(
    at_ns=0,
    cpu_ns=0,
    rss_bytes=1,
    read_bytes=0,
    written_bytes=0,
    threads=1,
    processes=1,
    cores=(0.5,),
    gpus=(),
)


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A folder of its own; resources as on a small machine, since who samples takes a second of its own."""
    moments = iter(range(1, 1_000_000))
    from dataclasses import replace

    monkeypatch.setattr(runs, "reader", lambda: lambda: replace(SAMPLE, at_ns=next(moments)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOTLOOP_RUN", raising=False)
    yield
    assert not spans.enabled()


@pytest.fixture
def said() -> list[str]:
    return []


def loop(run: Any, updates: int = 4) -> None:
    for _ in range(updates):
        with hotloop.span("collect"):
            for _ in range(3):
                hotloop.mark("forward")
                hotloop.mark("env.step")
                run.count(steps=8)
        with hotloop.span("learn"):
            run.count(samples=24)
        run.count(updates=1)


def finished(name: str = "mine", **more: Any) -> Record:
    with hotloop.run(name, say=lambda _: None, **more) as run:
        loop(run, more.get("updates") or 8)
    assert run.record is not None
    return run.record


def calls(record: Record) -> dict[str, int]:
    return {phase.path: phase.calls for phase in record.phases}


def codes(record: Record) -> set[str]:
    return {notice.code for notice in record.notices}


def test_the_record_has_the_tree_the_counts_and_a_value_a_window(said: list[str]) -> None:
    with hotloop.run("my-ppo", every=2, params={"lr": 0.1}, say=said.append) as run:
        loop(run, 5)
    record = run.record
    assert record is not None
    assert calls(record) == {
        "wall": 1,
        "wall/collect": 5,
        "wall/collect/forward": 15,
        "wall/collect/env.step": 15,
        "wall/learn": 5,
        "wall/hotloop": 2,
    }
    assert record.kind == "run"
    assert (record.work.env_steps, record.work.updates) == (120, 5)
    assert record.path.counters == {"updates": 5, "env_steps": 120, "samples": 120}
    assert record.values["env_steps"] == (48.0, 48.0, 24.0)
    assert record.values["samples_per_s"][0] == pytest.approx(48e9 / record.values["wall_ns"][0])
    assert record.target.params == {"lr": 0.1}
    assert not record.partial
    assert record.verdict == "pass"


def test_the_rows_add_up_to_the_wall() -> None:
    record = finished(every=3)
    ns = {phase.path: phase.total_ns for phase in record.phases}
    tops = sum(total for path, total in ns.items() if path.count("/") == 1)
    rest = ns["wall"] - tops
    inside = ns["wall/collect"] - ns["wall/collect/forward"] - ns["wall/collect/env.step"]
    assert rest >= 0
    assert inside >= 0
    assert record.unaccounted_ns == rest + inside


def test_spans_have_cpu_time_in_the_record_and_on_the_page_and_marks_have_none(said: list[str]) -> None:
    with hotloop.run("my-ppo", every=2, say=said.append) as run:
        loop(run, 2)
        with hotloop.span("wait"):
            sleep(WAIT_S)
    rows = {phase.path: phase for phase in run.record.phases}
    assert rows["wall/collect/forward"].cpu_ns is None
    assert 0 < rows["wall/collect"].cpu_ns <= rows["wall/collect"].total_ns + 1_000_000
    assert rows["wall/wait"].cpu_ns < WAIT_S * 1e9 / 2
    assert rows["wall"].cpu_ns < rows["wall"].total_ns - WAIT_S * 1e9 / 2
    (page,) = Path(".design").glob("*.md")
    assert "on a core" in page.read_text("utf-8")
    (printed,) = (line for line in said[-2].splitlines() if line.strip().startswith("wait "))
    assert "% CPU" in printed
    assert read(page.with_suffix(".json")).phases == run.record.phases


def test_a_run_that_is_not_to_read_thread_clocks_has_no_cpu_time(said: list[str]) -> None:
    with hotloop.run("my-ppo", cpu=False, every=2, say=said.append) as run:
        loop(run, 2)
    assert {phase.cpu_ns for phase in run.record.phases} == {None}
    assert "CPU" not in "".join(said)


def test_every_so_many_updates_the_tree_of_one_update_is_printed(said: list[str]) -> None:
    with hotloop.run("my-ppo", every=2, say=said.append) as run:
        loop(run, 4)
        assert len(said) == 2
    head, whole, *rows = said[0].splitlines()
    assert head.startswith("my-ppo: 2 updates, 48 steps, ")
    assert whole.startswith("window")
    shown_ms = float(whole.split()[1])
    assert shown_ms == pytest.approx(run.record.values["wall_ns"][0] / 2e6, abs=0.01)
    assert sum("◀ largest" in row for row in rows) == 1


def test_the_page_the_record_and_the_trace_lie_in_the_design_folder(said: list[str]) -> None:
    with hotloop.run("my ppo/1", say=said.append) as run:
        loop(run)
    (page,) = Path(".design").glob("run-my-ppo-1-*.md")
    assert said[-1] == f"saved {page}"
    assert read(page.with_suffix(".json")) == run.record
    assert "## Time of one update" in page.read_text()
    events = json.loads(page.with_suffix(".trace.json").read_text())["traceEvents"]
    names = [event["name"] for event in events if event["ph"] == "X"]
    assert names.count("learn") == 4
    assert names.count("env.step") == 12
    assert page.with_suffix(".speedscope.json").exists()


def test_a_run_that_is_iterated_over_counts_its_updates() -> None:
    run = hotloop.run("mine", updates=3, say=lambda _: None)
    assert list(run) == [0, 1, 2]
    assert run.record is not None
    assert run.record.work.updates == 3
    assert not run.record.partial


def test_a_run_that_is_entered_and_iterated_over_is_one_run() -> None:
    with hotloop.run("mine", updates=3, say=lambda _: None) as run:
        for _ in run:
            run.count(steps=2)
        assert run.record is None
    assert run.record is not None
    assert (run.record.work.updates, run.record.work.env_steps) == (3, 6)


def test_leaving_an_iterated_run_early_leaves_a_partial_record() -> None:
    run = hotloop.run("mine", updates=9, say=lambda _: None)
    for update in run:
        if update == 4:
            break
    assert run.record is not None
    assert run.record.partial
    assert any("after 4 of its 9 updates" in notice.text for notice in run.record.notices)


def test_without_a_number_of_updates_there_is_nothing_to_iterate_over() -> None:
    with pytest.raises(InputError, match="give it updates=N"):
        next(iter(hotloop.run("mine")))


@pytest.mark.parametrize("error", [ValueError("nan in\nthe loss"), KeyboardInterrupt(), SystemExit(3)])
def test_what_ends_the_loop_passes_and_leaves_a_partial_record(error: BaseException) -> None:
    run = hotloop.run("mine", every=2, say=lambda _: None)

    def failing() -> None:
        loop(run, 5)
        with hotloop.span("collect"):
            raise error

    with pytest.raises(type(error)), run:
        failing()
    record = run.record
    assert record is not None
    assert record.partial
    assert (record.verdict, record.exit_code) == ("cannot tell", 130)
    assert codes(record) >= {"raised", "partial"}
    assert calls(record)["wall/collect"] == 6
    assert read(next(Path(".design").glob("*.md")).with_suffix(".json")).partial


def test_runs_are_not_nested_and_the_outer_one_goes_on() -> None:
    with hotloop.run("outer", say=lambda _: None) as outer:
        with (
            pytest.raises(InputError, match="'outer' is open and 'inner' would be inside it"),
            hotloop.run("inner"),
        ):
            pass
        loop(outer)
    assert outer.record is not None
    assert outer.record.work.updates == 4


def test_a_run_is_used_once() -> None:
    with hotloop.run("mine", say=lambda _: None, output=None) as run:
        pass
    with pytest.raises(InputError, match="has ended"), run:
        pass


def test_spans_left_open_count_up_to_the_end_and_are_named() -> None:
    with hotloop.run("mine", say=lambda _: None) as run:
        hotloop.span("outer").__enter__()
        hotloop.span("inner").__enter__()
        run.count(updates=1)
    assert run.record is not None
    assert any("outer, inner" in notice.text for notice in run.record.notices if notice.code == "left-open")
    assert calls(run.record)["wall/outer/inner"] == 1


def test_a_window_may_end_inside_a_span() -> None:
    with hotloop.run("mine", every=1, say=lambda _: None) as run:
        for _ in range(3):
            with hotloop.span("update"):
                with hotloop.span("learn"):
                    pass
                run.count(updates=1)
    assert run.record is not None
    assert calls(run.record)["wall/update"] == 3
    assert calls(run.record)["wall/update/learn"] == 3


def test_spans_of_other_threads_stand_beside_the_wall() -> None:
    def other() -> None:
        with hotloop.span("loader"):
            pass

    with hotloop.run("mine", say=lambda _: None) as run:
        thread = Thread(target=other)
        thread.start()
        thread.join()
        loop(run)
    assert run.record is not None
    assert calls(run.record)["threads/loader"] == 1
    assert "wall/loader" not in calls(run.record)
    assert "## Other threads" in next(Path(".design").glob("*.md")).read_text()


def test_switched_off_it_times_counts_and_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTLOOP_RUN", "off")
    with hotloop.run("mine") as run:
        assert not spans.enabled()
        loop(run)
    assert run.record is None
    assert list(hotloop.run("mine", updates=3)) == [0, 1, 2]
    assert not Path(".design").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"name": "  "}, "needs a name"),
        ({"name": "a", "every": -1}, "every=-1 does not fit"),
        ({"name": "a", "updates": 1.5}, "updates=1.5 does not fit"),
        ({"name": "a", "sinks": ["board"]}, "unknown sink 'board'"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_runs(words: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        hotloop.run(**words)


@pytest.mark.parametrize("timing", ["cuda", "events"])
def test_a_clock_that_there_is_not_is_refused_and_nothing_stays_open(timing: Any) -> None:
    with pytest.raises(InputError, match="timing="), hotloop.run("mine", timing=timing):
        pass
    assert finished("next").work.updates == 8


@pytest.mark.parametrize("bad", [-1, 1.5, "two"])
def test_what_cannot_be_counted_is_refused_where_it_is_counted(bad: Any) -> None:
    run = hotloop.run("mine", say=lambda _: None)
    with pytest.raises(InputError, match="does not fit"), run:
        run.count(steps=bad)
    assert run.record is not None
    assert run.record.partial


def test_a_disk_that_takes_nothing_costs_no_result(said: list[str]) -> None:
    Path("file").touch()
    with hotloop.run("mine", output="file", say=said.append) as run:
        loop(run)
    assert said[-1].startswith("not saved: ")
    assert run.record is not None


def test_memory_does_not_grow_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MOST_WINDOWS", 8)
    with hotloop.run("mine", every=1, say=lambda _: None) as run:
        loop(run, 30)
    assert run.record is not None
    assert run.record.method.rounds < 8
    assert sum(run.record.values["env_steps"]) == 30 * 24


def test_two_runs_are_compared_like_any_other_records(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        finished(every=1)
    a, b = sorted(Path(".design").glob("run-*[0-9].json"))
    assert main(["compare", str(a), str(b)]) in (0, 3, 4)
    assert "mine" in capsys.readouterr().out
    finished(every=1, params={"lr": 1})
    (*_, c) = sorted(Path(".design").glob("run-*[0-9].json"), key=lambda path: path.stat().st_mtime_ns)
    assert main(["compare", str(a), str(c)]) == 64
    assert main(["bench", "--report", ".design"]) == 0


def on(device: Device) -> Callable[..., StreamAccount]:
    return lambda timing, wait: StreamAccount(DeviceStream(device.event, device.wait), device.wait)


def test_on_a_device_windows_are_told_late_and_the_loop_never_waits(
    monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    device = Device()
    monkeypatch.setattr(runs, "open_account", on(device))
    with hotloop.run("mine", every=1, say=said.append) as run:
        for _ in range(3):
            with hotloop.span("matmul"):
                device.launch(40)
            with hotloop.span("copy"):
                device.think(1)
            run.count(updates=1)
        assert device.waits == 0
        assert said == []
        device.think(45)
        run.count(updates=1)
        assert device.waits == 0
        assert len(said) == 1
    assert device.waits == 1
    record = run.record
    assert record is not None
    ns = {phase.path: phase.total_ns for phase in record.phases}
    assert ns["wall/matmul"] == 120e6
    assert ns["wall/copy"] == 0
    assert record.method.clock.endswith("events")
    assert record.values["wall_ns"][0] == 40e6


def test_a_host_clock_around_a_gpus_work_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "cuda_runs", lambda: True)
    assert "host-timer" in codes(finished(timing="host"))


def test_a_gpu_that_comes_later_is_timed_by_events_from_the_next_window_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device, usual = Device(), runs.open_account
    with hotloop.run("mine", every=2, say=lambda _: None) as run:
        loop(run, 1)
        monkeypatch.setattr(runs, "cuda_runs", lambda: True)
        monkeypatch.setattr(runs, "open_account", on(device))
        loop(run, 2)
        with hotloop.span("matmul"):
            device.launch(3)
    monkeypatch.setattr(runs, "open_account", usual)
    assert run.record is not None
    assert {phase.path: phase.total_ns for phase in run.record.phases}["wall/matmul"] == 3e6
    assert "host-timer" in codes(run.record)


def test_what_computes_behind_its_caller_is_waited_for_on_request() -> None:
    waits: list[int] = []
    with hotloop.run("mine", wait=lambda: waits.append(1), say=lambda _: None) as run:
        waits.clear()
        with hotloop.span("jitted"):
            pass
        assert len(waits) == 2
        run.count(updates=1)
    assert run.record is not None
    assert run.record.method.clock == "perf_counter_ns, after waiting at every boundary; regions sync"


def test_what_jax_computes_behind_its_caller_is_said_unless_it_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "host-timer" not in codes(finished())
    bridge = SimpleNamespace(backends_are_initialized=lambda: True)
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", bridge)
    assert any("JAX's work" in notice.text for notice in finished().notices)
    assert "host-timer" not in codes(finished(wait=lambda: None))


def staged(run: Any, *names: str) -> None:
    for name in names:
        run.phase(name)
        loop(run, 2)


def test_phases_that_a_loop_names_have_rows_and_speeds_of_their_own(said: list[str]) -> None:
    with hotloop.run("mine", say=said.append) as run:
        staged(run, "supervised", "ppo", "supervised")
        with run.phase("ppo"), hotloop.span("only here"):
            run.count(steps=1, updates=1)
    record = run.record
    assert [(stage.name, stage.updates) for stage in record.stages] == [("supervised", 4), ("ppo", 3)]
    supervised, ppo = record.stages
    assert supervised.env_steps == 2 * 2 * 24
    rows = [{phase.path for phase in stage.phases} for stage in (supervised, ppo)]
    assert ["wall/only here" in paths for paths in rows] == [False, True]
    assert record.looks is not None
    assert {*record.looks.stages} == {0, 1}
    assert sum(record.looks.env_steps) == record.work.env_steps
    assert any(line.startswith("ppo: 3 updates") for line in "\n".join(said).splitlines())
    (page,) = Path(".design").glob("*.md")
    assert "## Time of one update: supervised" in page.read_text("utf-8")
    assert read(page.with_suffix(".json")) == record


def test_a_phase_needs_a_name() -> None:
    with hotloop.run("mine", say=lambda _: None) as run, pytest.raises(InputError, match="expected a name"):
        run.phase(" ")


def test_a_run_that_is_switched_off_has_no_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTLOOP_RUN", "off")
    with hotloop.run("mine") as run, run.phase("ppo"):
        loop(run, 1)
    assert run.record is None


def test_looks_are_put_together_only_within_a_phase() -> None:
    times = records.add([]) or TimeTree(total_ns=1)
    made = [
        records.LoopLook(
            counts={"updates": 1},
            times=times,
            stage="a" if number < 101 else "b",
            rss_bytes=number,
        )
        for number in range(records.MOST_LOOKS)
    ]
    kept = records.keep_few(made)
    assert len(kept) == records.MOST_LOOKS // 2 + 1
    assert [sum(look.counts["updates"] for look in kept if look.stage == name) for name in "ab"] == [
        101,
        records.MOST_LOOKS - 101,
    ]


def test_torchs_profiler_has_the_spans_in_its_trace_and_its_updates_in_no_speed(said: list[str]) -> None:
    torch = pytest.importorskip("torch")
    profiler = {"wait": 1, "warmup": 1, "active": 2}
    with hotloop.run("mine", every=1, say=said.append, profiler=profiler) as run:
        for _ in range(6):
            with hotloop.span("learn"):
                torch.ones(8).sum()
            run.count(updates=1, steps=8)
    record = run.record
    (trace,) = Path(".design").glob("run-mine-*.torch.trace.json")
    names = {event.get("name") for event in json.loads(trace.read_text())["traceEvents"]}
    assert {"learn", "aten::sum"} <= names
    assert [found.files for found in record.findings] == [(trace.name,)]
    assert len(record.values["env_steps_per_s"]) == 3
    assert record.work.updates == 3
    assert record.resources.pauses is None
    assert "torch's profiler was on in 3 of 6 windows" in "".join(notice.text for notice in record.notices)
    assert f"saved .design/{trace.name}" in "\n".join(said)


def test_a_profiler_that_never_began_says_so() -> None:
    pytest.importorskip("torch")
    record = finished(profiler={"wait": 50, "warmup": 1, "active": 1})
    assert "no-probe" in codes(record)
    assert record.work.updates == 8


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"profiler": {"waits": 2}}, "it takes wait, warmup, active"),
        ({"profiler": {"wait": 2}, "output": None}, "give the run an output folder"),
    ],
)
def test_a_profiler_that_cannot_be_is_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        hotloop.run("mine", **more)
