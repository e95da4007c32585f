import subprocess

import pytest

from hotloop.core.machine import code
from hotloop.core.record.metadata import own_commit


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
