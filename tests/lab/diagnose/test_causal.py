"""Delays in one part at a time: the arithmetic on a clock that stands still, and once on real loops."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotloop.core import spans
from hotloop.core.errors import InputError
from hotloop.judge.expect import Trial, causal, compared
from hotloop.lab.causal import (
    BLOCK,
    FIRST,
    SWITCH,
    Block,
    Delays,
    Experiment,
    SelfTimes,
    drop_small_parts,
    order_blocks,
    read_trials,
    run_experiment,
    trials,
)
from hotloop.lab.programs.launch import Program

MS = 1_000_000


class Loop:
    """Two parts, one after the other or side by side, on a clock of its own."""

    def __init__(self, parts: dict[str, int], *, beside: bool = False) -> None:
        self.parts, self.beside = parts, beside
        self.ns = self.waited = self.queued = 0
        self.totals = dict.fromkeys(parts, (0, 0))
        self.experiment = Experiment(
            clock=lambda: self.ns + self.queued,
            queued=lambda: self.queued,
            delays=Delays(lambda: self.waited, self.wait, lambda: 0),
            read=lambda: dict(self.totals),
            seed=1,
        )

    def wait(self, seconds: float) -> None:
        self.waited += round(seconds * 1e9)

    def update(self) -> None:
        took = []
        for name, ns in self.parts.items():
            before = self.waited
            self.experiment.delays.close(name)
            took.append(ns + self.waited - before)
            calls, total = self.totals[name]
            self.totals[name] = calls + 1, total + took[-1]
        self.ns += max(took) if self.beside else sum(took)
        self.experiment.turn()

    def trials(self, updates: int) -> list[Trial]:
        self.experiment.begin()
        try:
            for _ in range(updates):
                self.update()
        finally:
            self.experiment.end()
        return trials(self.experiment.blocks)


@pytest.fixture(autouse=True)
def nobody_delays() -> Iterator[None]:
    yield
    spans.delay_by(None)


PARTS = {"env": 3 * MS, "inference": 8 * MS}


def test_a_busy_machine_that_gives_back_a_core_sooner_to_who_slept_hides_no_delay() -> None:
    class Crowded(Loop):
        """Waits for a core as long as it worked, but for what it slept before."""

        def update(self) -> None:
            before = self.waited
            super().update()
            self.queued += max(0, sum(self.parts.values()) - 2 * (self.waited - before))

    for each in causal(Crowded(PARTS).trials(400)):
        assert each.slope == pytest.approx(1.0)
        assert each.said == "as predicted"


def test_in_a_serial_loop_a_delay_costs_what_it_takes_and_amdahl_is_right() -> None:
    found = {each.part: each for each in causal(Loop(PARTS).trials(600))}
    for each in found.values():
        assert each.slope == pytest.approx(1.0)
        assert each.seen == pytest.approx(each.predicted)
        assert each.said.startswith("as predicted")
    assert found["env"].predicted == pytest.approx(11 / 9.5)


def test_a_part_behind_a_slower_one_is_worth_nothing_whatever_its_share() -> None:
    first, second = causal(Loop(PARTS, beside=True).trials(600))
    assert (first.part, second.part) == ("inference", "env")
    assert second.share == pytest.approx(3 / 8)
    assert second.predicted == pytest.approx(1 / (1 - 3 / 16))
    assert second.seen == 1.0
    assert second.said.startswith("hidden")
    assert first.slope == pytest.approx(1.0)


def test_parts_are_learnt_first_and_those_of_no_time_are_not_tried() -> None:
    loop = Loop({**PARTS, "tiny": 1_000})
    loop.trials(FIRST)
    assert [*loop.experiment.parts] == ["inference", "env"]
    assert not loop.experiment.blocks


def test_a_loop_without_parts_is_let_be() -> None:
    loop = Loop({})
    assert loop.trials(10 * FIRST) == []


def test_an_update_in_which_the_tree_was_begun_anew_is_left_out_of_what_parts_take() -> None:
    own = SelfTimes({"env": (5, 50)})
    for now in ({"env": (6, 60)}, {"log": (1, 1)}, {"log": (1, 1), "env": (1, 12)}):
        own.note(now)
    assert own.of_update() == {"env": (1.0, 11.0)}


def test_every_delayed_block_stands_beside_one_without_a_delay() -> None:
    order = order_blocks(["a", "b"], random.Random(3))
    pairs = [{next(order), next(order)} for _ in range(40)]
    assert all(None in pair and len(pair) == 2 for pair in pairs)
    assert sum({None, "a"} == pair for pair in pairs) == 20


def test_what_is_called_often_is_delayed_in_some_of_its_calls() -> None:
    waited: list[float] = []
    delays = Delays(lambda: 0, waited.append)
    delays.give("a", 300_000, 3)
    for _ in range(7):
        delays.close("a")
        delays.mark("b")
    assert waited == [0.0003, 0.0003]


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        (None, "too few turns"),
        ((0.9, 1.1), "as predicted"),
        ((-0.2, 0.1), "hidden"),
        ((0.3, 0.45), "partly hidden"),
        ((0.1, 1.2), "cannot tell yet"),
    ],
)
def test_the_interval_decides_what_is_said(ends: tuple[float, float] | None, said: str) -> None:
    assert compared(ends) == said


def test_few_turns_have_no_interval_and_are_told_so() -> None:
    (first, *_) = causal(Loop(PARTS).trials(FIRST + 4 * BLOCK))
    assert first.slope_interval is None
    assert first.said == "too few turns"


def test_a_delay_is_inside_the_span_that_it_is_given_to() -> None:
    delays = Delays(wait=lambda _: None)
    told: list[str] = []

    class Listening(Delays):
        def close(self, name: str) -> None:
            told.append(name)

    delays.give("part", 1, 1)
    spans.watch(Listening())
    spans.delay_by(delays)
    spans.enable()
    try:
        with spans.span("part"):
            pass
    finally:
        spans.disable()
        spans.watch(None)
    assert told == ["part"]
    assert delays.inserted_ns > 0


def test_nothing_is_delayed_where_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    with run_experiment() as turn:
        turn()


def test_what_a_loop_leaves_is_read_again(tmp_path: Path) -> None:
    blocks = [
        Block(
            part=None,
            wall_ns=(10, 12, 11),
            unqueued_ns=(10, 12, 11),
            inserted_ns=(0, 0, 0),
            own_ns={"a": 5.0},
        ),
        Block(
            part="a",
            wall_ns=(14, 16, 15),
            unqueued_ns=(14, 16, 15),
            inserted_ns=(4, 4, 4),
            own_ns={"a": 9.0},
        ),
    ]
    plain = [{name: getattr(block, name) for name in block.__slots__} for block in blocks]
    (tmp_path / "1.json").write_text(json.dumps(plain))
    (trial,) = read_trials(tmp_path)
    assert (trial.part, trial.base_ns, trial.slope) == ("a", 11, 1.0)


SERIAL = """
import time, hotloop
for update in hotloop.run("serial", updates=700, every=100, say=lambda text: None):
    with hotloop.span("env"):
        time.sleep(0.003)
    with hotloop.span("learn"):
        time.sleep(0.005)
"""

HIDDEN = """
import queue, threading, time, hotloop
observations, actions = queue.Queue(1), queue.Queue(2)
def infer():
    while (seen := observations.get()) is not None:
        with hotloop.span("inference"):
            time.sleep(0.008)
        actions.put(seen)
with hotloop.run("hidden", every=100, say=lambda text: None) as run:
    thread = threading.Thread(target=infer)
    thread.start()
    observations.put(0)
    for update in range(700):
        with hotloop.span("env"):
            time.sleep(0.003)
        observations.put(update)
        actions.get()
        run.count(updates=1, steps=1)
    observations.put(None)
    thread.join()
"""


@pytest.mark.long
def test_on_real_loops_the_hidden_part_is_found_and_the_serial_ones_agree(tmp_path: Path) -> None:
    from hotloop.lab.causal import delay_program

    files = {name: tmp_path / f"{name}.py" for name in ("serial", "hidden")}
    files["serial"].write_text(SERIAL)
    files["hidden"].write_text(HIDDEN)
    serial, hidden = (
        {each.part: each for each in causal(delay_program(Program((sys.executable, str(file))), 40, 4))}
        for file in files.values()
    )
    for each in serial.values():
        assert each.seen_interval is not None
        assert each.predicted_interval is not None
        assert each.seen_interval[0] <= each.predicted_interval[1]
        assert each.predicted_interval[0] <= each.seen_interval[1]
    assert hidden["env"].predicted > 1.15
    assert hidden["env"].said.startswith("hidden")
    assert hidden["inference"].seen > hidden["env"].seen


def test_a_program_without_a_loop_is_told_what_it_needs(tmp_path: Path) -> None:
    from hotloop.lab.causal import delay_program

    with pytest.raises(InputError, match=r"needs hotloop\.run around its loop"):
        delay_program(Program((sys.executable, "-c", "pass")), 6, 1)


def test_a_delayed_loop_leaves_its_blocks_and_no_record(tmp_path: Path) -> None:
    left = tmp_path / "left"
    left.mkdir()
    code = SERIAL.replace("updates=700", "updates=40").replace("0.003", "0").replace("0.005", "0")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={SWITCH: str(left), "PATH": ""}, check=False
    )
    assert done.returncode == 0
    assert len([*left.glob("*.json")]) == 1
    assert not (tmp_path / ".design").exists()


def delayed(part: str, slope: float, share: float = 0.3) -> Trial:
    return Trial(
        part=part, own_ns=share * 1000, base_ns=1000.0, delayed_ns=1000 + 200 * slope, inserted_ns=200.0
    )


def test_what_would_be_enough_is_said_where_it_cannot_be_told() -> None:
    slopes = [0.3, 0.5, 0.7, 0.9, 1.1, 1.3, 1.5]
    [wide] = causal([delayed("env", slope) for slope in slopes])
    assert (wide.said, wide.slope) == ("cannot tell yet", pytest.approx(0.9))
    assert wide.enough == 16  # from 0.3 to 0.9: half as far again as to the line, so 2.25 times as many
    [sure] = causal([delayed("env", 1.0) for _ in slopes])
    assert (sure.said, sure.enough) == ("as predicted", None)


def test_a_part_that_is_next_to_nothing_over_all_runs_is_not_waited_for() -> None:
    found = [delayed("env", 1.0), delayed("logs", 1.0, share=0.01), delayed("logs", 1.0, share=0.03)]
    assert [trial.part for trial in drop_small_parts([*found, delayed("logs", 1.0, share=0.01)])] == ["env"]
