"""Real programs, small and slow: each fault is diagnosed, and is not once it is repaired.

Their rows are told apart by sleeping, so that a busy machine changes little; it still takes a while.
"""

import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.profiles import profile
from support.trainings import small, trained

import hotloop
from hotloop.core.record import Record
from hotloop.core.settings import Target
from hotloop.envs.batch import Batch
from hotloop.judge.case import Case
from hotloop.judge.diagnose import diagnose
from hotloop.lab.alternatives import alternatives
from hotloop.lab.profile.probes import choose
from hotloop.lab.programs.launch import Program
from hotloop.lab.programs.profile import profile as profile_program

pytestmark = pytest.mark.long


def named(record: Record) -> list[str]:
    return [each.rule for each in diagnose(record).candidates]


def own(body: Callable[[Any], None], updates: int = 12, **more: Any) -> Record:
    """A loop of somebody's own; the body is one update."""
    with hotloop.run("own", every=1, output=None, say=lambda _: None, **more) as run:
        for _ in range(updates):
            body(run)
            run.count(updates=1)
    assert run.record is not None
    return run.record


def rows(**ms: float) -> Callable[[Any], None]:
    """An update whose spans sleep for so many milliseconds."""

    def body(run: Any) -> None:
        for name, each in ms.items():
            with hotloop.span(name.replace("_", " ")):
                if each:  # to sleep for no time is to let others by, who may be many
                    time.sleep(each / 1e3)
        run.count(steps=1_000)

    return body


LOOPS: dict[str, tuple[dict[str, float], dict[str, float]]] = {
    "teacher": ({"env": 20, "expert": 20}, {"env": 40, "expert": 0}),
    "eval": ({"env": 20, "eval": 20}, {"env": 40, "eval": 0}),
    "logging": ({"env": 20, "write logs": 20}, {"env": 60, "write logs": 0}),
    "store": ({"env": 20, "store": 20}, {"env": 40, "store": 0}),
    "copies": ({"env": 20, "to_cpu": 20}, {"env": 60, "to_cpu": 0}),
    "barriers": ({"env": 20, "barrier": 20}, {"env": 40, "barrier": 0}),
    "skew": ({"env": 20, "slowest worker": 20}, {"env": 40, "slowest worker": 0}),
}


@pytest.mark.parametrize("rule", LOOPS)
def test_a_row_of_an_own_loop(rule: str) -> None:
    faulty, repaired = LOOPS[rule]
    assert rule in named(own(rows(**faulty)))
    assert rule not in named(own(rows(**repaired)))


def test_an_own_loop_that_waits_and_one_that_works_instead() -> None:
    def works(run: Any) -> None:
        with hotloop.span("env"):
            sum(range(500_000))
        run.count(steps=1_000)

    assert "waiting" in named(own(rows(**{"env": 20, "wait for batch": 20})))
    assert "waiting" not in named(own(works))


def test_an_own_loop_that_is_well_gets_no_advice() -> None:
    found = diagnose(own(rows(env=20, learn=20)))
    assert found.is_healthy
    assert found.bounds[0].name in ("env", "learn")


def test_an_own_loop_with_a_teacher_that_stays_on() -> None:
    params = {"supervised_steps": 1_000, "fade_steps": 1_000}
    assert named(own(rows(env=20, teacher=20), params=params))[0] == "teacher-on"
    assert "teacher-on" in named(own(rows(env=20, teacher=20), params=params))
    short = {"supervised_steps": 12_000, "fade_steps": 0}
    assert "teacher-on" not in named(own(rows(env=20, teacher=20), params=short))


def test_an_own_loop_that_infers_and_inserts_one_at_a_time() -> None:
    def single(run: Any) -> None:
        for _ in range(20):
            with hotloop.span("policy"):
                time.sleep(0.001)
            with hotloop.span("replay.insert"):
                time.sleep(0.001)
        run.count(steps=20)

    def batched(run: Any) -> None:
        with hotloop.span("policy"):
            time.sleep(0.02)
        with hotloop.span("replay.insert"):
            time.sleep(0.002)
        run.count(steps=2_000)

    assert {"small-batch", "inserts"} <= {*named(own(single))}
    assert not {"small-batch", "inserts"} & {*named(own(batched))}


def test_an_own_loop_that_makes_garbage() -> None:
    class Node:
        def __init__(self, at_itself: bool) -> None:
            self.me = self if at_itself else None

    def making(at_itself: bool) -> Callable[[Any], None]:
        def body(run: Any) -> None:
            with hotloop.span("env"):
                for _ in range(20_000):
                    Node(at_itself)
            run.count(steps=1_000)

        return body

    kept = [Node(at_itself=True) for _ in range(300_000)]
    assert "garbage" in named(own(making(at_itself=True)))
    assert "garbage" not in named(own(making(at_itself=False)))
    kept.clear()


def test_an_own_loop_whose_memory_grows() -> None:
    kept: list[Any] = []

    def grows(run: Any) -> None:
        with hotloop.span("env"):
            kept.append(np.ones(4 << 20))
            time.sleep(1)
        run.count(steps=1_000)

    assert "growth" in named(own(grows, updates=16))
    kept.clear()
    assert "growth" not in named(own(rows(env=1_000), updates=16))


def test_an_own_loop_with_time_in_no_row() -> None:
    def body(run: Any) -> None:
        with hotloop.span("env"):
            time.sleep(0.01)
        time.sleep(0.01)
        run.count(steps=1_000)

    assert "unaccounted" in named(own(body))
    assert "unaccounted" not in named(own(rows(env=20)))


def test_an_own_loop_on_one_of_several_cores() -> None:
    def alone(run: Any) -> None:
        with hotloop.span("env"):
            np.dot(ones, ones)
        run.count(steps=1_000)

    def together(run: Any) -> None:
        with hotloop.span("env"):
            [*pool.map(lambda _: np.dot(ones, ones), range(4))]
        run.count(steps=1_000)

    ones = np.ones((400, 400), dtype=np.int64)  # of whole numbers: NumPy itself uses one thread, and no lock
    if (Case(own(alone)).cores or 1) < 2:
        pytest.skip("one core")
    assert "idle-core" in named(own(alone, variant={"threads": 1}))
    with ThreadPoolExecutor(4) as pool:
        assert "idle-core" not in named(own(together, variant={"threads": 1}))


def test_an_own_loop_in_single_precision_on_a_gpu() -> None:
    body = rows(env=10, forward=20, backward=20)
    single, mixed = ({"device": "cuda", "mixed_precision": mixed} for mixed in (False, True))
    assert named(own(body, variant=single)) == ["precision"]
    assert named(own(body, variant=mixed)) == []


ENV = """
import time
import gymnasium
import numpy as np


class Env(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (4,))
    action_space = gymnasium.spaces.Discrete(2)
    made = 0

    def __init__(self, fault=""):
        self.fault, self.age, self.kept, self.steps = fault, 0, [], 0

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.age = 0
        if self.fault == "resets":
            time.sleep(0.01)
        return np.zeros(4, np.float32), {}

    def step(self, action):
        self.age += 1
        self.steps += 1
        if self.fault == "allocation":
            self.last = [[number] for number in range(200)]
        if self.fault == "growth":
            self.kept.append(bytearray(4096))
        time.sleep(0.0005)
        return np.zeros(4, np.float32), 0.0, self.age >= 10, False, {}

    def counters(self):
        native = self.steps // 2 if self.fault == "path" else self.steps
        rebuilds = self.steps if self.fault == "index" else 0
        return {"native_steps": native, "index.rebuilds": rebuilds, "index.queries": self.steps // 10}


def make(fault=""):
    return Env(fault)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "their_env.py").write_text(ENV)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("their_env", None)


def env(fault: str, *probes: str) -> Record:
    return profile(Target("their_env.py:make", {"fault": fault} if fault else {}), 400, probes=choose(probes))


@pytest.mark.parametrize("rule", ["resets", "path", "index"])
def test_a_gymnasium_env(folder: Path, rule: str) -> None:
    assert rule in named(env(rule))
    assert rule not in named(env(""))


@pytest.mark.parametrize("rule", ["allocation", "growth"])
def test_a_gymnasium_env_whose_memory_was_looked_at(folder: Path, rule: str) -> None:
    pytest.importorskip("memray")
    assert rule in named(env(rule, "memory"))
    assert rule not in named(env("", "memory"))


def test_several_gymnasium_envs_stepped_one_by_one() -> None:
    four = profile(Target("gym:CartPole-v1", {"num_envs": "4", "vector": "sync"}), 4_000)
    assert "python" in named(four)
    arrays = profile(Target("gym:CartPole-v1", {"num_envs": "4", "vector": "own"}), 4_000)
    assert "python" not in named(arrays)


def test_a_step_too_short_for_the_instrument_and_one_call_for_many_such_steps(folder: Path) -> None:
    (folder / "quick.py").write_text(
        "class Env:\n    num_actions = 2\n    def __init__(self, moves=1):\n        self.moves = moves\n"
        "    def reset(self, seed=None):\n        return 0\n"
        "    def step(self, action):\n        for _ in range(self.moves):\n            action ^= 1\n"
        "        return action, 0.0, False, False, {}\n"
    )
    assert "instrument" in named(profile(Target("quick.py:Env", {}), 40_000))
    assert "instrument" not in named(profile(Target("quick.py:Env", {"moves": "10000"}), 2_000))


LIFE = """
import numpy as np


class Env:
    num_actions = 2

    def __init__(self, arrays=False):
        self.arrays, self.board = arrays, np.zeros((24, 24), np.uint8)

    def reset(self, seed=None):
        return self.board

    def near(self, row, column):
        return sum(int(self.board[row - down, column - right]) for down in (0, 1) for right in (0, 1))

    def step(self, action):
        if self.arrays:
            turned = [np.roll(self.board, (down, right), (0, 1)) for down in (0, 1) for right in (0, 1)]
            self.board = np.sum(turned, axis=0, dtype=np.uint8)
        else:
            self.board = np.array([[self.near(row, column) for column in range(24)] for row in range(24)])
        return self.board, 0.0, False, False, {}
"""


def test_an_env_in_python_cell_by_cell_and_one_on_arrays(folder: Path) -> None:
    (folder / "life.py").write_text(LIFE)
    for keys, is_slow in (({}, True), ({"arrays": "true"}, False)):
        found = profile(Target("life.py:Env", keys), 200, probes=choose(["cprofile"]))
        assert ("calls" in named(found)) is is_slow


def test_the_slower_of_two_ways_of_a_phase() -> None:
    for encoder, is_slower in (("original", True), ("optimized", False)):
        record = profile(Target("grid/toy", {"encoder": encoder}), 20_000)
        found = diagnose(record, alternatives(record)).candidates
        assert ("rival" in [each.rule for each in found]) is is_slower


WORKS = "def work():\n    sum(range(10**6))\n[work() for _ in range(100)]"

WAITS = """
import time

def fetch():
    time.sleep(0.01)

def work():
    sum(range(10**5))

for _ in range(100):
    work()
    fetch()
"""

LOGS = """
def log_metrics():
    [str(number).encode() for number in range(30_000)]

def work():
    sum(range(10**5))

for _ in range(200):
    work()
    log_metrics()
"""


CROWD = """
import os
import threading
import numpy as np

ones = np.ones((300, 300), dtype=np.int64)  # of whole numbers: without a lock, each on its own thread


def work():
    for _ in range(4):
        np.dot(ones, ones)


threads = [threading.Thread(target=work) for _ in range({threads})]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""

MANY = 16 * (os.cpu_count() or 1) + 4 * int(os.getloadavg()[0])
"""Threads that are too many, whatever else runs here."""


@pytest.mark.parametrize(
    ("rule", "faulty", "repaired"),
    [
        ("waiting", WAITS, WORKS),
        ("logging", LOGS, WORKS),
        ("start", "import numpy, asyncio, unittest.mock, email.mime.text", WORKS),
        ("crowd", CROWD.format(threads=MANY), CROWD.format(threads=1)),
    ],
)
def test_a_program(tmp_path: Path, rule: str, faulty: str, repaired: str) -> None:
    for text, expected in ((faulty, True), (repaired, False)):
        script = tmp_path / f"{expected}.py"
        script.write_text(text)
        record = profile_program(Program((sys.executable, str(script))), files=tmp_path / str(expected))
        assert (rule in named(record)) is expected


def test_a_training_with_a_slow_teacher_an_idle_core_and_an_evaluation_after_every_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose_well = Batch.choose

    def choose_slowly(self: Batch, player: str) -> Any:
        end = time.thread_time_ns() + 3_000_000
        while time.thread_time_ns() < end:
            pass
        return choose_well(self, player)

    monkeypatch.setattr(Batch, "choose", choose_slowly)
    settings: dict[str, Any] = {
        "train__teacher": "greedy",
        "train__supervised_steps": 10**6,
        "train__eval__every": 1,
        "train__eval__episodes": 2,
        "train__hidden": 256,  # so that there is something to learn on both cores
        "train__update_epochs": 16,
    }
    record, _, _ = trained(tmp_path, small(updates=16, **settings))
    found = diagnose(record).candidates
    rules = [each.rule for each in found]
    assert {"teacher", "eval", "idle-core"} <= {*rules}
    gains = [each.gain for each in found if each.gain is not None]
    assert gains == sorted(gains, reverse=True)
    monkeypatch.setattr(Batch, "choose", choose_well)
    well, _, _ = trained(tmp_path, small(updates=16), name="b")
    assert not {"teacher", "eval"} & {each.rule for each in diagnose(well).candidates}


def test_the_queue_of_the_page_is_hidden_work() -> None:
    """What `--causal` is for: a row that waits for a slower thread."""
    seen: queue.Queue[int | None] = queue.Queue(1)

    def infer() -> None:
        while seen.get() is not None:
            time.sleep(0.01)

    def body(run: Any) -> None:
        with hotloop.span("env"):
            time.sleep(0.002)
        with hotloop.span("queue"):
            seen.put(1)
        run.count(steps=1_000)

    thread = threading.Thread(target=infer)
    thread.start()
    assert "waiting" in named(own(body))
    seen.put(None)
    thread.join()
