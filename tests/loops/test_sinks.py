"""Sinks take each window's numbers; what is not installed or not open is refused before anything runs."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import hotloop
from hotloop.core.errors import InputError, SetupError
from hotloop.loops.run import open_sinks


def loop(sinks: list[Any]) -> None:
    for _ in hotloop.run("mine", updates=2, every=1, sinks=sinks, output=None, say=lambda _: None):
        with hotloop.span("learn"):
            pass


def module(name: str, monkeypatch: pytest.MonkeyPatch, **contents: Any) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(contents)
    monkeypatch.setitem(sys.modules, name, made)
    return made


def test_wandb_gets_the_numbers_of_every_window(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[dict[str, float]] = []
    module("wandb", monkeypatch, run=SimpleNamespace(log=logged.append))
    loop(["wandb"])
    assert [each["hotloop/step"] for each in logged] == [1, 2]
    assert {"hotloop/ms_per_update", "hotloop/updates_per_s", "hotloop/ms_per_update/learn"} <= set(logged[0])


def test_mlflow_gets_them_under_names_that_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[tuple[dict[str, float], int]] = []
    module(
        "mlflow",
        monkeypatch,
        active_run=object,
        log_metrics=lambda values, step: logged.append((values, step)),
    )
    loop(["mlflow"])
    assert [step for _, step in logged] == [1, 2]
    (sink,) = open_sinks(["mlflow"], "mine")
    sink.log({"learn": 1.0, "learn/more+": 2.0}, 3)
    assert logged[-1] == ({"hotloop/learn": 1.0, "hotloop/learn.more_": 2.0}, 3)


def test_tensorboard_gets_a_folder_by_the_runs_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboard")
    monkeypatch.chdir(tmp_path)
    loop(["tensorboard"])
    (events,) = Path("runs/mine").glob("events*")
    assert b"hotloop/ms_per_update/learn" in events.read_bytes()


@pytest.mark.parametrize(
    ("name", "contents", "told"),
    [
        ("wandb", {"run": None}, "call wandb.init before"),
        ("mlflow", {"active_run": lambda: None}, "call mlflow.start_run before"),
    ],
)
def test_a_sink_without_its_own_run_is_refused(
    name: str, contents: dict[str, Any], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module(name, monkeypatch, **contents)
    with pytest.raises(InputError, match=told):
        hotloop.run("mine", sinks=[name])


@pytest.mark.parametrize("name", ["wandb", "mlflow", "tensorboard"])
def test_a_sink_that_is_not_installed_says_what_installs_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SetupError, match=f"{name} is not installed: .*pip install"):
        hotloop.run("mine", sinks=[name])


def test_a_sink_that_fails_gets_no_more_and_the_loop_goes_on() -> None:
    class Full:
        calls = 0

        def log(self, values: Any, step: int) -> None:
            self.calls += 1
            raise OSError("disk full")

        def close(self) -> None:
            raise AssertionError("it was dropped")

    sink, said = Full(), list[str]()
    with hotloop.run("mine", every=1, sinks=[sink], output=None, say=said.append) as run:
        for _ in range(3):
            run.count(updates=1)
    assert sink.calls == 1
    assert "Full gets no more numbers: OSError: disk full" in said
    assert run.record is not None
    assert not run.record.partial
