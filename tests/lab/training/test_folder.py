from pathlib import Path

import numpy as np
import pytest

from hotloop.core.errors import InputError, SetupError
from hotloop.core.process import lifeline
from hotloop.core.settings import Target
from hotloop.lab.training import settings as folders


def test_a_run_keeps_what_it_was_told(tmp_path: Path) -> None:
    run = folders.begin_run(tmp_path, "a", "prospector")
    assert not run.folder.exists()
    run.claim(Target("prospector", {"num_envs": "4"}))
    assert folders.find_run(tmp_path, "a").told() == Target("prospector", {"num_envs": "4"})


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    folders.begin_run(tmp_path, "a", "prospector").claim(Target("prospector", {}))
    with pytest.raises(InputError, match="--resume goes on with it"):
        folders.begin_run(tmp_path, "a", "prospector")


def test_two_that_begin_at_once_do_not_share_a_folder(tmp_path: Path) -> None:
    one, other = (folders.begin_run(tmp_path, "a", "prospector") for _ in range(2))
    one.claim(Target("prospector", {}))
    with pytest.raises(InputError, match="never overwritten"):
        other.claim(Target("prospector", {}))


def test_a_run_without_a_name_gets_one_that_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import UTC, datetime

    monkeypatch.setattr(folders, "utc_now", lambda: datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC))
    names = []
    for _ in range(2):
        run = folders.begin_run(tmp_path, None, "grid/guard")
        run.claim(Target("grid/guard", {}))
        names.append(run.name)
    assert names == ["grid-guard-20300102-030405", "grid-guard-20300102-030405-2"]


@pytest.mark.parametrize("name", ["../a", "a/b", ".hidden", "", "a b"])
def test_a_name_that_is_no_folders_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="does not fit"):
        folders.folder_of(tmp_path, name)


def test_what_is_not_there_cannot_be_resumed(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no run b"):
        folders.find_run(tmp_path, "b")
    with pytest.raises(InputError, match="run=NAME"):
        folders.find_run(tmp_path, None)
    run = folders.begin_run(tmp_path, "a", "prospector")
    run.claim(Target("prospector", {}))
    with pytest.raises(InputError, match="no checkpoint"):
        folders.last_checkpoint(run)


@pytest.mark.parametrize("content", ["{", "[]", '{"target": "a"}'])
def test_damaged_settings_are_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/settings.json").write_text(content)
    with pytest.raises(InputError, match=r"settings\.json cannot be read"):
        folders.find_run(tmp_path, "a")


def test_a_run_that_is_being_trained_is_locked(tmp_path: Path) -> None:
    run = folders.begin_run(tmp_path, "a", "prospector")
    run.claim(Target("prospector", {}))
    with run.lock(), pytest.raises(InputError, match="another process"):
        run.lock()
    run.lock().close()


def test_a_folder_that_cannot_be_written_to_is_a_fault_of_the_set_up(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match="cannot write"):
        folders.RunFolder(folder=tmp_path / "file" / "a").claim(Target("prospector", {}))


def test_episodes_under_way_are_kept_beside_their_checkpoint_and_go_with_it(tmp_path: Path) -> None:
    first, second = tmp_path / "checkpoint-1.pt", tmp_path / "checkpoint-2.pt"
    first.touch()
    folders.keep_windows(first, {"lengths": np.array([1, 2])})
    first.unlink()
    second.touch()
    folders.keep_windows(second, {"lengths": np.array([3])})
    kept = folders.read_windows(second)
    assert kept is not None
    assert kept["lengths"].tolist() == [3]
    assert folders.read_windows(first) is None


def test_checkpoints_and_traces_stay_in_the_runs_folder_wherever_an_env_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifeline, "folder", tmp_path)
    monkeypatch.chdir("/")
    run = folders.RunFolder(folder=Path("train_dir/a"))
    assert run.checkpoints == tmp_path / "train_dir/a/checkpoints"
    assert run.trace.parent == run.place == tmp_path / "train_dir/a"
