import os
from pathlib import Path

import psutil
import pytest

from hotloop.core.errors import InputError, SetupError
from hotloop.core.record import Record
from hotloop.core.record.profile import Finding
from hotloop.core.registry import Obstacle, ProbeError
from hotloop.lab.profile.probes import attach, watch_process
from hotloop.probes import pyspy, samples

FOUND = Finding(probe="pyspy", facts={"samples": 3})


def test_a_look_at_a_process_is_a_record_without_a_speed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "attach", lambda pid, folder, seconds: FOUND)
    record = attach(os.getpid(), tmp_path, 1)
    assert (record.kind, record.target.name) == ("profile", f"pid:{os.getpid()}")
    assert (record.values, record.findings, record.exit_code) == ({}, (FOUND,), 0)
    assert record.target.params["command"] == " ".join(psutil.Process().cmdline())
    assert Record.from_json(record.to_json()) == record


def test_a_process_that_may_not_be_looked_at_is_a_fault_of_the_set_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object) -> Finding:
        raise ProbeError("py-spy may not", "ask root")

    monkeypatch.setattr(samples, "attach", denied)
    monkeypatch.setattr(pyspy, "top", denied)
    with pytest.raises(SetupError, match="py-spy may not: ask root"):
        attach(os.getpid(), tmp_path, 1)
    with pytest.raises(SetupError, match="py-spy may not: ask root"):
        watch_process(os.getpid())


def test_without_py_spy_and_without_a_process_nothing_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyspy, "why_not", lambda: Obstacle(why="no py-spy", remedy="get it"))
    with pytest.raises(SetupError, match="no py-spy: get it"):
        attach(os.getpid(), tmp_path, 1)
    with pytest.raises(InputError, match="there is no process"):
        attach(2**22 + 1, tmp_path, 1)
