import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.core.machine import changed_sources, code, named_sources, read_sources, unlike_sources
from hotloop.core.record.metadata import own_commit
from hotloop.core.settings import Target
from hotloop.judge.compare import changes_between
from hotloop.lab.bench import Extras, bench
from hotloop.lab.compare.compare import CompareSettings, compare
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure.loop import Plan, Rounds


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with one committed file."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "a.py").write_text("1\n")
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    for words in (["init", "-q"], ["add", "a.py"], [*identity, "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def test_committed_code_is_clean_and_has_its_commit(repository):
    seen = code(None, repository)
    assert len(seen["commit"]) == 40
    assert seen["dirty"] is False


def test_a_changed_file_makes_the_code_dirty(repository):
    (repository / "a.py").write_text("2\n")
    assert code(None, repository)["dirty"] is True


def test_files_that_runs_leave_behind_do_not_make_the_code_dirty(repository):
    (repository / "result.json").write_text("{}")
    assert code(None, repository)["dirty"] is False


def test_outside_a_repository_the_commit_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert code(None, tmp_path)["commit"] == "unknown"
    assert code(None, tmp_path)["dirty"] is False


def test_without_git_the_commit_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert code(None)["commit"] == "unknown"


def test_the_build_tells_its_compiler_and_flags():
    seen = code({"compiler": "gcc 13", "flags": "-O3", "isa": "avx2"})
    assert (seen["compiler"], seen["flags"]) == ("gcc 13", "-O3")
    assert list(seen) == ["version", "commit", "dirty", "compiler", "flags"]


def test_a_target_of_somebody_elses_has_the_commit_of_its_own_project(repository, monkeypatch):
    own = code(None, target=f"{repository}/a.py:make")["project"]
    assert own == {"commit": code(None, repository)["commit"], "dirty": False, "root": repository.name}
    monkeypatch.chdir(repository)
    (repository / "a.py").write_text("2\n")
    assert code(None, target="gym:CartPole-v1")["project"] == own | {"dirty": True}
    assert "project" not in code(None, target="grid/toy")


def test_what_a_repository_ignores_counts_where_it_is_used(repository, tmp_path_factory, monkeypatch):
    (repository / ".gitignore").write_text("installed\n")
    (repository / "installed").mkdir()
    (repository / "installed/b.py").write_text("1\n")
    used = tmp_path_factory.mktemp("used")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(used.parent))
    monkeypatch.chdir(used)
    assert code(None, target=f"{repository}/installed/b.py:make")["project"]["root"] == used.name
    assert code(None, target=f"{repository}/a.py:make")["project"]["root"] == repository.name


def test_outside_every_repository_a_project_is_its_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    own = code(None, target="gym:CartPole-v1")["project"]
    assert own == {"commit": "unknown", "dirty": False, "root": tmp_path.name}


def test_a_number_is_of_the_targets_commit_before_ours():
    ours = code(None)
    theirs = {"commit": "0123", "dirty": True, "root": "game"}
    assert own_commit(ours) == (ours["commit"], ours["dirty"])
    assert own_commit({**ours, "project": theirs}) == ("0123", True)


ENV = """
from pathlib import Path
import {prefix}_helper

class Env:
    num_actions = 2

    def reset(self, seed=None):
        return 0.0, {{}}

    def step(self, action):
        return 0.0, 1.0, False, False, {{}}

def rewriter():
    helper = Path({prefix}_helper.__file__)
    helper.write_text(helper.read_text() + "# more\\n")
    return Env()
"""

BRIEF = CompareSettings(plan=Plan(budget_ns=100_000_000))

ROUNDS = Rounds(count=6, iterations=10, warmup=10, box_iterations=False)


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A name of its own for every test's modules, since an imported one stays."""
    prefix = f"sources_{abs(hash(tmp_path))}"
    (tmp_path / f"{prefix}_env.py").write_text(ENV.format(prefix=prefix))
    (tmp_path / f"{prefix}_helper.py").write_text("")
    (tmp_path / "unused.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield prefix
    for name in [each for each in sys.modules if each.startswith(prefix)]:
        del sys.modules[name]


def codes(record: object) -> list[str]:
    return [each.code for each in record.notices]


def test_the_loaded_files_beside_a_target_are_its_sources(prefix: str) -> None:
    name = f"{prefix}_env.py:Env"
    record = bench(Target(name), ROUNDS)
    assert record.code["project"]["sources"].keys() == {f"{prefix}_env.py", f"{prefix}_helper.py"}
    before = read_sources(name)
    assert named_sources(before, name) == record.code["project"]["sources"]
    assert not changed_sources(before)
    Path(f"{prefix}_helper.py").write_text("more = 1\n")
    assert changed_sources(before) == [f"{prefix}_helper.py"]
    assert unlike_sources(before, read_sources(name)) == [str(Path(f"{prefix}_helper.py").resolve())]


def test_what_is_installed_and_presets_have_no_sources() -> None:
    assert read_sources("gym:CartPole-v1") == {}
    assert read_sources("grid/toy") == {}
    assert read_sources("json.decoder:JSONDecoder") == {}
    assert read_sources("pytest:main") == {}


def test_a_side_that_rewrites_the_other_ones_file_is_a_warning(prefix: str) -> None:
    a, b = (TargetContender(Target(f"{prefix}_env.py:{name}")) for name in ("Env", "rewriter"))
    record = compare(a, b, BRIEF)
    (said,) = [each for each in record.notices if each.code == "sources-changed"]
    assert f"{prefix}_helper.py" in said.text


def test_a_comparison_that_changes_nothing_says_nothing(prefix: str) -> None:
    a, b = (TargetContender(Target(f"{prefix}_env.py:Env")) for _ in "ab")
    record = compare(a, b, BRIEF)
    assert "sources-changed" not in codes(record)
    assert all(
        "sources" in each.code["project"] for each in (record.comparisons[0].a, record.comparisons[0].b)
    )


def test_a_change_since_the_baseline_is_a_warning(prefix: str) -> None:
    target = Target(f"{prefix}_env.py:Env")
    baseline = bench(target, ROUNDS)
    assert not changes_between(baseline, baseline)
    Path(f"{prefix}_helper.py").write_text("more = 1\n")
    later = bench(target, ROUNDS, extras=Extras(baselines=(baseline,)))
    (said,) = [each for each in later.notices if each.code == "sources-differ"]
    assert f"{prefix}_helper.py changed since {baseline.run_id}" in said.text
