from pathlib import Path

import pytest
from support.gauges import ENV, WrittenGauge
from support.projects import Project

from hotloop.lab.gate import gate, init, measure


@pytest.fixture
def gauges(monkeypatch: pytest.MonkeyPatch) -> type[WrittenGauge]:
    """Have nothing measured: costs are read from the project."""
    for module in (gate, init, measure):
        monkeypatch.setattr(module, "RemoteMeasurer", WrittenGauge)
    WrittenGauge.asked, WrittenGauge.layouts = [], []
    return WrittenGauge


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A repository on its main branch, with the env in it, as the current folder."""
    made = Project(tmp_path / "project")
    made.git("checkout", "--quiet", "-b", "main")
    made.commit(env=ENV)
    monkeypatch.chdir(made.root)
    return made
