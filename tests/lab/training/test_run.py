"""A training run around its trainer: windows, logs, the tree of its time, checkpoints, Ctrl-C."""

import json
import sys
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from support.trainings import STEPS_PER_UPDATE, Presses, ctrl_c_heard, run_of, small, trained

from hotloop.core import spans
from hotloop.core.errors import Code, ExitCode, HotloopError, InputError, SetupError
from hotloop.core.record import Record
from hotloop.core.time_tree import ENVIRONMENT
from hotloop.envs.batch import Batch
from hotloop.judge.course import views
from hotloop.judge.expect import configuration
from hotloop.lab.training import settings as folders
from hotloop.lab.training.run import TrainingWindow, TrainRequest, train
from hotloop.report.kinds.train import training_facts
from hotloop.train.rollout import Collector
from hotloop.train.windows import METRICS, SCRIPT, Logs, read_metrics

BLINK = 0.005
"""Seconds of a planted sleep."""


def what_was_learnt(windows: list[TrainingWindow]) -> list[Any]:
    return [(window.steps, window.losses, window.episodes) for window in windows]


def test_windows_add_up_to_what_the_batch_counted(tmp_path: Path) -> None:
    record, windows, _ = trained(tmp_path, small(updates=5))
    assert [window.env_steps for window in windows] == [128, 128, 64]
    assert record.work.env_steps == record.path.counters["env_steps"] == 320
    assert (record.work.updates, record.method.rounds, record.partial) == (5, 3, False)
    assert record.path.ran == {"native": 1.0}
    assert (record.kind, record.label, record.exit_code, record.verdict) == ("train", "a", 0, "pass")


def test_the_speed_that_is_printed_is_counted_steps_over_wall(tmp_path: Path) -> None:
    record, windows, _ = trained(tmp_path, small(updates=6))
    walls, steps = record.values["wall_ns"], record.values["env_steps"]
    for window, speed, wall, count in zip(
        windows, record.values["env_steps_per_s"], walls, steps, strict=True
    ):
        assert speed == window.sps == pytest.approx(count * 1e9 / wall)
    assert windows[-1].mean_sps == pytest.approx(sum(steps) * 1e9 / sum(walls))
    logged = read_metrics(tmp_path / "a" / METRICS)
    assert [line["sps"] for line in logged] == [window.sps for window in windows]
    assert [line["steps"] for line in logged] == [128, 256, 384]
    script = (tmp_path / "a" / SCRIPT).read_text()
    assert script.count(" sps=") == 3
    assert script.count("◀ largest") == 3


def test_the_windows_of_a_run_leave_no_time_out(tmp_path: Path) -> None:
    _, windows, _ = trained(tmp_path, small(updates=6))
    for window in windows:
        times = window.times
        assert times is not None
        assert times.total_ns == window.wall_ns
        assert times.self_ns >= 0
        parts = sum(part.total_ns for part in times.children)
        assert parts + times.self_ns == times.total_ns
    names = {region.path for region in windows[1].times.rows}  # type: ignore[union-attr]
    assert {
        *("rollout", "rollout/student", ENVIRONMENT, f"{ENVIRONMENT}/observations", "rollout/store"),
        *("rollout/watch", "learn", "learn/advantages", "learn/forward", "learn/backward"),
        *("learn/optimiser", "logging"),
    } <= names
    assert not spans.enabled()


def test_the_record_keeps_the_tree(tmp_path: Path) -> None:
    record, windows, _ = trained(tmp_path, small(updates=4))
    rows = {phase.path: phase.total_ns for phase in record.phases}
    assert rows["wall"] == sum(window.wall_ns for window in windows)
    assert rows["wall/learn"] == sum(window.times["learn"].total_ns for window in windows if window.times)
    assert record.unaccounted_ns == sum(window.times.unaccounted_ns for window in windows if window.times)
    assert record.method.clock.endswith(" sync")
    assert Record.from_json(record.to_json()) == record


def slowed(function: Any) -> Any:
    def slow(*args: Any, **kwargs: Any) -> Any:
        sleep(BLINK)
        return function(*args, **kwargs)

    return slow


@pytest.mark.parametrize(
    ("owner", "name", "where"),
    [
        (Batch, "choose", "rollout/teacher/calls"),
        (Collector, "store", "rollout/store"),
        (Batch, "step", ENVIRONMENT),
    ],
)
def test_a_planted_sleep_is_named_by_the_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, where: str
) -> None:
    monkeypatch.setattr(owner, name, slowed(getattr(owner, name)))
    made = small(updates=2, train__supervised_steps=1000)
    _, (window,), _ = trained(tmp_path, made)
    assert window.times is not None
    assert window.times.largest is not None
    assert window.times.largest.path == where
    assert window.times.largest.total_ns >= 16 * BLINK * 1e9


def test_a_planted_sleep_in_logging_is_named_in_the_next_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Logs.write

    def slow(self: Any, *args: Any) -> None:
        for _ in range(100):
            sleep(BLINK)
        write(self, *args)

    monkeypatch.setattr(Logs, "write", slow)
    _, windows, _ = trained(tmp_path, small(updates=4))
    assert windows[1].times is not None
    assert windows[1].times.largest is not None
    assert windows[1].times.largest.path == "logging"


def test_looking_on_changes_nothing_that_is_learnt(tmp_path: Path) -> None:
    looks = {"train__eval__every": 2, "train__eval__episodes": 4, "train__eval__steps": 20}
    _, plain, _ = trained(tmp_path, small(train__timing="off"), name="plain")
    record, seen, _ = trained(tmp_path, small(**looks), name="seen")
    assert what_was_learnt(plain) == what_was_learnt(seen)
    assert all(window.times is None for window in plain)
    assert [window.evaluation is not None for window in seen] == [True] * 3
    assert len(record.values["eval_return"]) == 3
    assert all(window.times["eval"].calls == 1 for window in seen if window.times)


def test_a_run_that_is_resumed_goes_on_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    _, whole, _ = trained(tmp_path, small(updates=8, train__anneal_lr="false"), name="whole")
    _, first, _ = trained(tmp_path, small(updates=4, train__anneal_lr="false"), name="parts")
    checkpoint = folders.last_checkpoint(run_of(tmp_path, "parts"))[0]
    longer = small(updates=8, train__anneal_lr="false")
    record, second, _ = trained(tmp_path, longer, name="parts", resume=checkpoint)
    assert what_was_learnt([*first, *second]) == what_was_learnt(whole)
    assert sum(window.episodes.episodes for window in whole) > 8
    assert record.work.env_steps == 4 * STEPS_PER_UPDATE
    wall = sum(record.values["wall_ns"])
    assert second[-1].mean_sps == pytest.approx(4 * STEPS_PER_UPDATE * 1e9 / wall)
    steps = [line["steps"] for line in read_metrics(tmp_path / "parts" / METRICS)]
    assert steps == [128, 256, 384, 512]


def test_a_run_with_all_its_steps_made_is_not_resumed(tmp_path: Path) -> None:
    trained(tmp_path, small(updates=2))
    checkpoint = folders.last_checkpoint(run_of(tmp_path))[0]
    with pytest.raises(InputError, match="larger total_timesteps"):
        trained(tmp_path, small(updates=2), resume=checkpoint)


def test_ctrl_c_finishes_the_update_and_leaves_a_checkpoint_and_a_partial_record(tmp_path: Path) -> None:
    with ctrl_c_heard():
        record, windows, said = trained(tmp_path, small(updates=50), watchers=(Presses(20),))
    assert (record.partial, record.exit_code) == (True, ExitCode.INTERRUPTED)
    assert record.work.env_steps == 3 * STEPS_PER_UPDATE == windows[-1].steps
    assert "Ctrl-C again" in said[0]
    checkpoint = folders.last_checkpoint(run_of(tmp_path))[0]
    assert checkpoint.name == "checkpoint-000000000192.pt"
    assert any(notice.code == "partial" for notice in record.notices)
    _, more, _ = trained(tmp_path, small(updates=4), resume=checkpoint)
    assert more[-1].steps == 4 * STEPS_PER_UPDATE


def test_a_second_ctrl_c_leaves_the_windows_there_were(tmp_path: Path) -> None:
    with ctrl_c_heard():
        record, windows, _ = trained(tmp_path, small(updates=50), watchers=(Presses(35, 36),))
    assert (record.partial, record.exit_code) == (True, ExitCode.INTERRUPTED)
    assert [window.steps for window in windows] == [128, 256]
    assert record.work.env_steps == 256
    assert not spans.enabled()


def test_checkpoints_come_when_they_are_due_and_at_the_end(tmp_path: Path) -> None:
    _, windows, _ = trained(tmp_path, small(updates=5, train__checkpoint_every=2))
    names = sorted(path.name for path in run_of(tmp_path).checkpoints.glob("*.pt"))
    assert names == ["checkpoint-000000000256.pt", "checkpoint-000000000320.pt"]
    assert all(window.times["checkpoint"].calls == 1 for window in windows[1:] if window.times)


def test_a_kill_right_after_a_checkpoint_loses_no_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """What nobody hears of."""

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(folders, "keep_windows", killed)
        with pytest.raises(Killed):
            trained(tmp_path, small(updates=5, train__checkpoint_every=2))
    checkpoint, _ = folders.last_checkpoint(run_of(tmp_path))
    trained(tmp_path, small(updates=5, train__checkpoint_every=2), resume=checkpoint)
    logged = read_metrics(tmp_path / "a" / METRICS)
    assert [line["steps"] for line in logged] == [128, 256, 320]


def test_a_checkpoint_in_the_middle_of_a_window_ends_it_so_that_no_update_is_lost(tmp_path: Path) -> None:
    every = {"train__checkpoint_every": 3, "train__log_every": 5, "train__anneal_lr": "false"}
    _, whole, _ = trained(tmp_path, small(updates=8, **every), name="whole")
    assert [window.steps // STEPS_PER_UPDATE for window in whole] == [3, 6, 8]
    _, first, _ = trained(tmp_path, small(updates=3, **every), name="parts")
    checkpoint = folders.last_checkpoint(run_of(tmp_path, "parts"))[0]
    _, second, _ = trained(tmp_path, small(updates=8, **every), name="parts", resume=checkpoint)
    assert what_was_learnt([*first, *second]) == what_was_learnt(whole)


def test_the_teacher_is_off_once_imitation_is_over(tmp_path: Path) -> None:
    made = small(updates=6, train__supervised_steps=128, train__fade_steps=64, train__teacher="greedy")
    record, windows, _ = trained(tmp_path, made)
    assert [window.update.phase for window in windows] == ["imitation", "fade", "ppo", "ppo"]
    assert record.path.counters["decisions.greedy"] == 3 * STEPS_PER_UPDATE
    assert [window.agreement is not None for window in windows] == [True, True, False, False]


def test_a_training_of_several_phases_has_rows_and_speeds_of_each(tmp_path: Path) -> None:
    made = small(updates=6, train__supervised_steps=128, train__teacher="greedy", train__timing="sync")
    record, _, _ = trained(tmp_path, made)
    assert [stage.name for stage in record.stages] == ["imitation", "ppo"]
    imitation, ppo = views(record)
    assert "wall/rollout/teacher" in {phase.path for phase in imitation.phases}
    assert "wall/rollout/teacher" not in {phase.path for phase in ppo.phases}
    assert imitation.work.env_steps + ppo.work.env_steps == record.work.env_steps
    assert configuration(record)[0] == "supervised, then PPO"
    assert [configuration(each)[0] for each in (imitation, ppo)] == ["supervised", "PPO"]


def test_the_speed_of_a_training_is_of_the_windows_without_torchs_profiler(tmp_path: Path) -> None:
    made = small(updates=4, train__log_every=1, train__profiler__enabled=True)
    record, windows, _ = trained(tmp_path, made)
    assert [window.is_profiled for window in windows] == [False, True, True, False]
    assert len(record.values["env_steps_per_s"]) == 2
    assert record.resources is not None
    assert record.resources.pauses is None
    [said] = [each.text for each in record.notices if each.code == Code.PROFILED]
    assert said == "torch's profiler was on in 2 of 4 windows: the speed and the rows are of the others"


@pytest.mark.parametrize(("words", "said"), [({}, []), ({"threads": 2}, ["threads-split"])])
def test_a_split_that_is_not_clean_is_said(tmp_path: Path, words: dict[str, object], said: list[str]) -> None:
    record, _, _ = trained(tmp_path, small(updates=1, **words))
    assert [notice.code for notice in record.notices if notice.code == "threads-split"] == said


def test_a_difference_from_the_twin_ends_the_run_with_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, calls = Batch.step, iter(range(1000))

    def off(self: Batch, actions: Any) -> None:
        step(self, actions)
        if self.spec.impl == "native" and next(calls) == 11:
            self.rewards[2] += 1

    monkeypatch.setattr(Batch, "step", off)
    record, windows, _ = trained(tmp_path, small(updates=20), validate="true")
    assert (record.exit_code, record.verdict) == (ExitCode.MISMATCH, "fail")
    checked = record.validation
    assert checked is not None
    assert checked.difference is not None
    assert (checked.difference.step, checked.difference.field, checked.difference.env) == (12, "rewards", 2)
    assert windows[-1].steps == 2 * STEPS_PER_UPDATE
    assert checked.bundle is not None
    assert Path(checked.bundle).exists()


def test_every_window_says_how_much_was_compared(tmp_path: Path) -> None:
    record, windows, _ = trained(tmp_path, small(updates=8, num_envs=16), validate="200")
    compared = [window.validation.comparisons for window in windows if window.validation]
    assert compared == [8 + 128, 200]
    assert record.validation is not None
    assert (record.validation.comparisons, record.validation.mismatches, record.exit_code) == (200, 0, 0)
    _, alone, _ = trained(tmp_path, small(updates=8, num_envs=16), name="alone")
    assert what_was_learnt(alone) == what_was_learnt(windows)


def test_episodes_that_began_in_a_staggered_start_do_not_count(tmp_path: Path) -> None:
    given = {"train__stagger": 5, "target": "grid/guard", "max_steps": 12, "train__minibatch_size": 128}
    record, (window, *_), _ = trained(tmp_path, small(updates=4, **given), validate="true")
    assert window.episodes.episodes == 0
    assert record.validation is not None
    assert record.validation.mismatches == 0
    assert record.work.env_steps == 4 * STEPS_PER_UPDATE


def test_a_trace_of_some_updates_lands_in_the_runs_folder(tmp_path: Path) -> None:
    made = small(updates=4, train__profiler__enabled="true")
    _, windows, said = trained(tmp_path, made)
    events = json.loads((tmp_path / "a/trace.json").read_text())["traceEvents"]
    names = {str(event.get("name")) for event in events}
    assert {"native forward", "native backward"} <= names or "aten::addmm" in names
    assert said == [f"saved {tmp_path}/a/trace.json: open it in https://ui.perfetto.dev"]
    assert any(window.times["profiler"].calls for window in windows if window.times)


def test_a_run_that_diverges_stops_and_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step, calls = Batch.step, iter(range(1000))

    def spoilt(self: Batch, actions: Any) -> None:
        step(self, actions)
        if next(calls) == 20:
            self.rewards[2] = float("nan")

    monkeypatch.setattr(Batch, "step", spoilt)
    with pytest.raises(HotloopError, match="update 2"):
        trained(tmp_path, small(updates=9, train__norm_reward="false"))
    assert "stopped: update 2" in (tmp_path / "a" / SCRIPT).read_text()
    assert list((tmp_path / "a").glob("diverged-*.pt"))
    assert not spans.enabled()


def test_a_missing_package_is_named_with_what_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(SetupError, match=r"tensorboard is not installed: .*pip install"):
        trained(tmp_path, small(train__tensorboard="true"))
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_made_where_the_trainer_refuses(tmp_path: Path) -> None:
    made = small(train__supervised_steps=10, train__teacher="nobody")
    with pytest.raises(InputError, match="nobody"):
        train(TrainRequest(settings=made, run=run_of(tmp_path), told=made.target))
    assert list(tmp_path.iterdir()) == []


def test_where_a_gpu_learns_its_use_is_in_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert trained(tmp_path / "host", small(updates=2))[0].resources.gpu is None  # type: ignore[union-attr]
    monkeypatch.setattr("hotloop.lab.training.run.is_cuda", lambda _: True)
    monkeypatch.setattr("hotloop.probes.resources.gpu_reader", lambda: lambda: ((0.5, 1 << 30),))
    record, _, _ = trained(tmp_path / "gpu", small(updates=2))
    assert record.resources is not None
    assert record.resources.gpu == {"devices": [{"busy_share": 0.5, "peak_bytes": 1 << 30}]}
    assert "50.0% busy, 1.00 GiB" in " ".join(str(each) for each in training_facts(record).rows)
