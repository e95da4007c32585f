import subprocess
import sys
from pathlib import Path

import pytest
from support.gauges import WrittenGauge
from support.projects import Project

from hotloop.core.errors import InputError
from hotloop.core.project import read
from hotloop.core.settings import Target
from hotloop.lab.gate import init
from hotloop.lab.gate.init import GITHUB, GITLAB, begin, branch_of, install_line, stem_of

pytestmark = pytest.mark.usefixtures("gauges")

TARGET = Target("env.py:make", {"size": "5"})


def begun(project: Project, said: list[str] | None = None) -> list[Path]:
    say = (said if said is not None else []).append
    return [path for path, _ in begin(project.root, TARGET, say=say)]


@pytest.fixture(autouse=True)
def valgrind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(init, "which", lambda name: f"/usr/bin/{name}")


def test_the_first_budgets_are_of_what_was_measured(project: Project) -> None:
    written = begun(project)
    assert written == [project.root / name for name in ("hotloop.toml", GITHUB, GITLAB)]
    budgets = read(project.root / "hotloop.toml").budgets
    assert list(budgets) == ["env-make-instructions", "env-make-speed", "env-make-floor", "env-make-goal"]
    counted, speed, floor, goal = budgets.values()
    assert (counted.max_change, counted.against, counted.keys) == (0.02, "main", {"size": "5"})
    assert (speed.max_change, speed.against) == (0.05, "main")
    assert (floor.limit, floor.enforce) == (2_500_000, True)
    assert (goal.limit, goal.enforce) == (6_250_000, False)


def test_what_is_there_stays(project: Project) -> None:
    (project.root / "hotloop.toml").write_text("# ours\n[suite.s]\nitems = [{ target = 'grid/toy' }]\n")
    job = project.root / GITHUB
    job.parent.mkdir(parents=True)
    job.write_text("ours")
    said: list[str] = []
    assert begun(project, said) == [project.root / "hotloop.toml", project.root / GITLAB]
    assert job.read_text() == "ours"
    assert any("stays as it is" in line for line in said)
    assert (project.root / "hotloop.toml").read_text().startswith("# ours\n[suite.s]")
    with pytest.raises(InputError, match="has budget env-make-instructions already"):
        begun(project)


def test_without_valgrind_or_a_branch_there_are_fewer_budgets(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(init, "which", lambda name: None)
    said: list[str] = []
    begun(project, said)
    assert "env-make-instructions" not in read(project.root / "hotloop.toml").budgets
    assert any("valgrind is not here" in line for line in said)
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "env.py").write_text("move = 7\n")
    begin(bare, TARGET, say=said.append)
    assert list(read(bare / "hotloop.toml").budgets) == ["env-make-floor", "env-make-goal"]


def test_what_cannot_be_measured_writes_nothing(project: Project, gauges: type[WrittenGauge]) -> None:
    with pytest.raises(InputError, match=r"there is no gone\.py"):
        begin(project.root, Target("gone.py:make"), say=lambda words: None)
    assert not (project.root / "hotloop.toml").exists()


def test_names_branches_and_installs_are_found(project: Project, tmp_path: Path) -> None:
    assert stem_of(Target("pkg/my_env.py:make")) == "my_env-make"
    assert stem_of(Target("gym:ALE/Pong-v5")) == "pong-v5"
    project.git("checkout", "--quiet", "-b", "feature")
    assert branch_of(project.root) == "main"
    assert branch_of(tmp_path) is None
    assert install_line(project.root) == "python -m pip check"
    (project.root / "requirements.txt").touch()
    assert install_line(project.root) == "python -m pip install --requirement requirements.txt"
    (project.root / "pyproject.toml").touch()
    assert install_line(project.root) == "python -m pip install ."


@pytest.mark.parametrize(
    ("job", "schema"), [(GITHUB, "vendor.github-workflows"), (GITLAB, "vendor.gitlab-ci")]
)
def test_the_jobs_have_the_form_that_their_hosts_expect(project: Project, job: Path, schema: str) -> None:
    pytest.importorskip("check_jsonschema")
    begun(project)
    words = ["-m", "check_jsonschema", "--builtin-schema", schema, str(project.root / job)]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
