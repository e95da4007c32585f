import os
import stat
import sys
from errno import EPERM
from pathlib import Path

import pytest

from hotloop.core import files
from hotloop.core.errors import InputError
from hotloop.core.files import free_path, write_new

OLD, NEW = "old text\n", "new text\n" * 1000
KILLED = 9


def call_dying_at_line(number: int, call) -> None:
    """Call a function and leave the process at the n-th line of files.py, as a kill would."""
    lines = iter(range(1, number + 1))

    def trace(frame, event, arg):
        if frame.f_code.co_filename != files.__file__:
            return None
        if event == "line" and next(lines, None) is None:
            os._exit(KILLED)
        return trace

    sys.settrace(trace)
    call()


def visible(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if not path.name.startswith(".")]


def test_a_new_file_has_its_text_and_leaves_nothing_else(tmp_path):
    write_new(tmp_path / "deep" / "a.json", NEW)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["a.json"]
    assert (tmp_path / "deep" / "a.json").read_text() == NEW


def test_bytes_are_written_as_they_are(tmp_path):
    write_new(tmp_path / "a.npz", b"\x00\r\n\xff")
    assert (tmp_path / "a.npz").read_bytes() == b"\x00\r\n\xff"


def test_a_file_that_exists_is_never_overwritten(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(OLD)
    with pytest.raises(InputError, match="exists and is never overwritten"):
        write_new(path, NEW)
    assert path.read_text() == OLD
    assert list(tmp_path.iterdir()) == [path]


def test_a_kill_at_any_line_leaves_the_whole_file_or_none(tmp_path, exit_code_of):
    outcomes = []
    for number in range(100):
        path = tmp_path / str(number) / "a.json"
        path.parent.mkdir()
        code = exit_code_of(lambda n=number, p=path: call_dying_at_line(n, lambda: write_new(p, NEW)))
        outcomes.append(path.exists())
        assert not path.exists() or path.read_text() == NEW
        if code == 0:
            break
    assert code == 0
    assert outcomes[0] is False
    assert len(outcomes) > 5


def test_a_kill_at_any_line_leaves_an_older_file_alone(tmp_path, exit_code_of):
    path = tmp_path / "a.json"
    path.write_text(OLD)
    for number in range(20):
        exit_code_of(lambda n=number: call_dying_at_line(n, lambda: write_new(path, NEW)))
        assert path.read_text() == OLD


@pytest.mark.parametrize("failing", ["fsync", "link"])
def test_an_interruption_leaves_no_file_at_all(tmp_path, monkeypatch, failing):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, failing, interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_new(tmp_path / "a.json", NEW)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def no_hard_links(monkeypatch):
    def refuse(*_):
        raise OSError(EPERM, "no hard links here")

    monkeypatch.setattr(os, "link", refuse)


@pytest.mark.usefixtures("no_hard_links")
def test_without_hard_links_a_file_is_written_all_the_same(tmp_path):
    write_new(tmp_path / "a.json", NEW)
    assert (tmp_path / "a.json").read_text() == NEW
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.usefixtures("no_hard_links")
def test_without_hard_links_nothing_is_overwritten_either(tmp_path):
    (tmp_path / "a.json").write_text(OLD)
    with pytest.raises(InputError, match="never overwritten"):
        write_new(tmp_path / "a.json", NEW)
    assert (tmp_path / "a.json").read_text() == OLD


def test_a_file_has_the_permissions_of_any_other(tmp_path):
    (tmp_path / "plain").touch()
    write_new(tmp_path / "a.json", NEW)
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == stat.S_IMODE(
        (tmp_path / "plain").stat().st_mode
    )


def test_a_free_path_counts_up_from_two(tmp_path):
    path = tmp_path / "profile-20250101-1200.json"
    names = []
    for _ in range(3):
        names.append(free_path(path).name)
        free_path(path).touch()
    assert names == [
        "profile-20250101-1200.json",
        "profile-20250101-1200-2.json",
        "profile-20250101-1200-3.json",
    ]


def test_files_that_share_a_stem_are_free_together(tmp_path):
    (tmp_path / "a.md").touch()
    (tmp_path / "a-2.json").touch()
    assert free_path(tmp_path / "a.json", beside=(".md",)).name == "a-3.json"
