"""The modules that a command runs are counted in all its processes."""

import sys
from pathlib import Path

import pytest

from walk import hotloop, walk

CHILDREN = """
import os
import subprocess
import sys

from hotloop.core.files import free_path
from pathlib import Path

if len(sys.argv) == 1:
    subprocess.run([sys.executable, __file__, "child"])
    free_path(Path("a"))
else:
    from hotloop.core.record import file_name

    file_name("a")
    os._exit(0)
"""


def test_a_child_that_leaves_at_once_is_counted_too(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(CHILDREN)
    found = walk([sys.executable, "program.py"], tmp_path)
    assert found.processes == 2
    assert ("core/files.py", "free_path") in found.functions
    assert ("core/record/__init__.py", "file_name") in found.functions
    assert {"core/files.py", "core/record/__init__.py"} <= set(found.modules)


def test_modules_that_are_only_imported_are_not_counted(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import hotloop.core.clock\n")
    assert "core/clock.py" not in walk([sys.executable, "program.py"], tmp_path).modules


@pytest.mark.slow
def test_the_process_of_a_users_env_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOTLOOP_IN_PROCESS")
    pytest.importorskip("gymnasium")
    (tmp_path / "env.py").write_text(
        "import gymnasium\n\n\ndef make():\n    return gymnasium.make('CartPole-v1')\n"
    )
    found = walk(hotloop("bench env.py:make --quick"), tmp_path)
    assert found.exit_code in (0, 1)
    assert found.processes >= 2
    assert "lab/bench.py" in found.modules
