"""The tree of a window: it adds up and names what was slow, also on a stream that runs behind its host."""

from collections.abc import Iterator
from itertools import pairwise
from time import sleep
from typing import Any

import numpy as np
import pytest
from support.device import Device

import hotloop
from hotloop.core import spans
from hotloop.core.spans.device import Blocking, DeviceStream
from hotloop.core.time_tree import ENVIRONMENT, TimeTree, add, grow
from hotloop.envs.batch import Batch
from hotloop.train import timing
from hotloop.train.timing import Clock, QuickEvent, choose_how, mark, span


def times(wall_ns: int, **totals: int) -> TimeTree:
    rows = {path.replace("__", "/"): ns for path, ns in totals.items()}
    flat = [TimeTree(path=path, calls=1, total_ns=ns) for path, ns in rows.items()]
    return TimeTree(total_ns=wall_ns, children=grow(flat))


SMALL = times(
    1_000,
    rollout=600,
    rollout__student=100,
    rollout__environment=400,
    rollout__environment__action=150,
    rollout__environment__observations=200,
    learn=300,
    learn__forward=290,
    logging=50,
)


@pytest.fixture
def batch() -> Iterator[Batch]:
    made = hotloop.make("grid/guard", num_envs=4, profile=True)
    made.reset()
    yield made
    spans.disable()
    timing.watch(None)


def play(batch: Batch, calls: int = 20) -> None:
    with span("rollout"):
        for actions in batch.draw(np.random.default_rng(1), calls):
            mark("student")
            batch.step(actions)
            mark("environment")
    with span("learn"):
        pass


def test_unaccounted_is_what_no_part_has_and_the_call_into_the_environment_is_known() -> None:
    assert SMALL.self_ns == 50
    assert SMALL["rollout"].self_ns == 100
    assert SMALL["learn"].self_ns == 10
    assert SMALL[ENVIRONMENT].self_ns == 50
    assert SMALL.unaccounted_ns == 160


def test_the_largest_part_is_a_leaf_and_the_environment_is_one_whatever_its_phases() -> None:
    assert SMALL.largest == SMALL[ENVIRONMENT]
    assert times(10, rollout=9, rollout__student=2, learn=3).largest == TimeTree(
        path="learn", calls=1, total_ns=3
    )
    assert TimeTree(total_ns=1).largest is None


def test_windows_are_added_up_with_children_below_their_parents() -> None:
    later = times(100, rollout=50, rollout__teacher=20, eval=7)
    both = add([SMALL, later])
    assert both is not None
    assert both.total_ns == 1_100
    assert both["rollout"].total_ns == 650
    paths = [region.path for region in both.rows]
    assert paths.index("rollout/teacher") < paths.index("learn")
    assert both.unaccounted_ns == 160 + (50 - 20) + (100 - 50 - 7)
    assert add([]) is None


def test_a_timed_window_adds_up_to_its_wall(batch: Batch) -> None:
    clock = Clock(batch)
    clock.begin()
    play(batch)
    found = clock.end()
    assert sum(region.total_ns for region in found.children) + found.self_ns == found.total_ns
    for region in found.rows:
        parts = region.children
        if parts:
            assert sum(part.total_ns for part in parts) + region.self_ns == region.total_ns
    assert found.self_ns >= 0
    assert found["rollout/environment"].calls == 20


def test_the_phases_of_the_world_stand_below_the_environment_and_are_those_of_the_window(
    batch: Batch,
) -> None:
    clock = Clock(batch)
    windows = []
    for _ in range(2):
        clock.begin()
        play(batch)
        windows.append(clock.end())
    names = {region.name for region in windows[0][ENVIRONMENT].children}
    assert names == {*batch.spec.world.phases, "autoreset"}
    in_all = batch.phase_totals()["observations"]
    assert sum(window[f"{ENVIRONMENT}/observations"].total_ns for window in windows) == in_all
    assert all(window[ENVIRONMENT].self_ns >= 0 for window in windows)


def test_a_batch_that_times_nothing_has_no_phases() -> None:
    batch = hotloop.make("grid/guard", num_envs=4, profile=False)
    batch.reset()
    clock = Clock(batch)
    clock.begin()
    play(batch)
    assert clock.end()[ENVIRONMENT].children == ()


def test_rows_stand_right_below_the_row_they_are_part_of(batch: Batch) -> None:
    clock = Clock(batch)
    clock.begin()
    play(batch)
    found = clock.end()
    for before, after in pairwise(found.rows):
        assert after.above in {"", before.path, before.above, before.above.rpartition("/")[0]}


@pytest.mark.parametrize("slow", ["student", "teacher", "store"])
def test_a_planted_sleep_is_named(batch: Batch, slow: str) -> None:
    clock = Clock(batch)
    clock.begin()
    with span("rollout"):
        for actions in batch.draw(np.random.default_rng(1), 4):
            for name in ("student", "teacher", "store"):
                if name == slow:
                    sleep(0.005)
                mark(name)
            batch.step(actions)
            mark("environment")
    largest = clock.end().largest
    assert largest is not None
    assert largest.path == f"rollout/{slow}"


def test_nothing_is_timed_once_the_clock_has_ended(batch: Batch) -> None:
    clock = Clock(batch)
    clock.begin()
    clock.end()
    assert not spans.enabled()


@pytest.mark.parametrize(
    ("asked", "device", "how"),
    [
        ("auto", "cpu", "sync"),
        ("async", "cpu", "sync"),
        ("auto", "cuda", "events"),
        ("events", "cuda:1", "events"),
        ("async", "cuda", "async"),
        ("sync", "cuda", "sync"),
    ],
)
def test_how_time_is_taken_depends_on_the_device(asked: str, device: str, how: str) -> None:
    assert choose_how(asked, device) == how


def test_phases_that_threads_share_are_means_over_them() -> None:
    batch = hotloop.make("grid/guard", num_envs=64, profile=True, threads=2)
    batch.reset()
    clock = Clock(batch)
    clock.begin()
    play(batch)
    found, totals = clock.end(), batch.phase_totals()
    for region in found[ENVIRONMENT].children:
        assert region.total_ns == totals[region.name] // 2


@pytest.fixture
def device() -> Iterator[Device]:
    yield Device()
    timing.watch(None)
    spans.disable()


def test_work_of_the_device_is_charged_to_who_queued_it_and_not_to_who_waited(device: Device) -> None:
    stream = DeviceStream(device.event, device.wait)
    timing.watch(stream)
    with span("learn"):
        device.launch(30)
        mark("forward")
        device.launch(60)
        mark("backward")
    with span("logging"):
        device.think(1)
        device.wait()
    tops = stream.read()
    rows = {row.path: row.total_ns for top in tops for row in top.walk()}
    assert rows == {
        "learn": 90_000_000,
        "learn/forward": 30_000_000,
        "learn/backward": 60_000_000,
        "logging": 0,
    }


def test_work_of_the_host_alone_is_time_of_the_stream_too(device: Device) -> None:
    stream = DeviceStream(device.event, device.wait)
    timing.watch(stream)
    with span("rollout"):
        device.launch(2)
        device.wait()
        mark("student")
        device.think(5)
        mark("environment")
        device.think(1)
    (rollout,) = stream.read()
    assert [(row.path, row.total_ns) for row in rollout.walk()] == [
        ("rollout", 8_000_000),
        ("rollout/student", 2_000_000),
        ("rollout/environment", 5_000_000),
    ]
    assert rollout.self_ns == 1_000_000


def test_time_before_and_after_a_span_between_two_marks_is_the_marks(device: Device) -> None:
    stream = DeviceStream(device.event, device.wait)
    timing.watch(stream)
    with span("rollout"):
        mark("student")
        device.think(1)
        with span("teacher"):
            device.think(10)
        device.think(2)
        mark("store")
    (rollout,) = stream.read()
    assert {row.path: (row.calls, row.total_ns) for row in rollout.children} == {
        "rollout/student": (1, 0),
        "rollout/teacher": (1, 10_000_000),
        "rollout/store": (1, 3_000_000),
    }


def test_the_tree_adds_up_over_many_turns_and_a_new_window_begins_empty(device: Device) -> None:
    stream = DeviceStream(device.event, device.wait)
    timing.watch(stream)
    for _ in range(3):
        with span("learn"):
            for _ in range(4):
                device.launch(3)
                mark("forward")
            device.think(1)
    (learn,) = stream.read()
    assert (learn.calls, learn.children[0].calls) == (3, 12)
    assert learn.total_ns == learn.self_ns + learn.children[0].total_ns == 36_000_000
    stream.begin()
    assert stream.read() == ()


def test_the_events_make_the_same_tree_as_the_hosts_clock(device: Device) -> None:
    stream = DeviceStream(device.event, device.wait)
    timing.watch(stream)
    spans.enable()
    for _ in range(2):
        with span("rollout"):
            mark("student")
            with span("teacher"), span("calls"):
                pass
            mark("store")
        with span("learn"):
            pass
    seen = [
        [(row.path, row.calls) for top in tops for row in top.walk()]
        for tops in (stream.read(), spans.tree())
    ]
    assert seen[0] == seen[1]


def test_a_region_that_is_still_open_counts_up_to_now(device: Device) -> None:
    stream = DeviceStream(device.event, device.wait)
    timing.watch(stream)
    with span("rollout"):
        device.think(4)
        assert stream.read()[0].total_ns == 4_000_000


def test_waiting_at_every_boundary_is_told_to_the_device(device: Device) -> None:
    timing.watch(Blocking(device.wait))
    with span("learn"):
        mark("forward")
    assert device.waits == 3


def test_without_a_device_the_spans_are_the_hosts_own() -> None:
    assert span("learn") is spans.span("learn")


class TorchEvent:
    """An event as torch has it: it has a handle when it was recorded once."""

    cuda_event = 7

    def __init__(self) -> None:
        self.records = 0

    def record(self) -> None:
        self.records += 1

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: "TorchEvent") -> float:
        return float(end.records)


def test_an_event_is_recorded_by_cuda_itself_once_torch_has_made_it() -> None:
    put: list[tuple[int, int]] = []
    event = QuickEvent(TorchEvent(), lambda handle, stream: put.append((handle, stream)) or 0, lambda: 9)  # type: ignore[func-returns-value]
    for _ in range(3):
        event.record()
    assert (event.event.records, put) == (1, [(7, 9), (7, 9)])
    assert event.query()
    assert event.elapsed_time(event) == 1.0


def test_an_event_that_cuda_refuses_is_an_error() -> None:
    event = QuickEvent(TorchEvent(), lambda *_: 400, lambda: 9)
    event.record()
    with pytest.raises(RuntimeError, match="CUDA refused an event"):
        event.record()


@pytest.mark.parametrize(("refused", "apart", "sound"), [(0, 0, True), (400, 0, False), (0, 1, False)])
def test_where_that_does_not_work_events_are_torchs_own(refused: int, apart: int, sound: bool) -> None:
    event: Any = TorchEvent()
    event.elapsed_time = lambda _: float(apart)
    assert timing.is_sound(QuickEvent(event, lambda *_: refused, lambda: 9), lambda: None) is sound


def test_events_may_be_made_ahead() -> None:
    device = Device()
    stream = DeviceStream(device.event, device.wait, first=5)
    assert device.made == 5
    for _ in range(2):
        stream.open("a")
        stream.close("a")
    assert device.made == 5


def test_without_a_gpu_there_is_no_runtime_to_record_with() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        assert timing.cuda_runtime() is None
