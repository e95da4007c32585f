import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from hotloop.core import cluster
from hotloop.core.errors import InputError, SetupError


@pytest.mark.parametrize("word", ["rya", "ray://", "http://head:1", ""])
def test_what_is_no_address_is_refused(word: str) -> None:
    with pytest.raises(InputError, match="expected ray or ray://HOST:PORT"):
        cluster.check_address(word)


def test_the_port_is_ray_s_own_where_none_is_given() -> None:
    assert cluster.place_of("ray://head") == ("head", 10_001)
    assert cluster.place_of("ray://head:7") == ("head", 7)
    with pytest.raises(InputError, match="x is no port"):
        cluster.place_of("ray://head:x")


def test_a_cluster_that_does_not_answer_is_said_before_ray_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "load", lambda: pytest.fail("nobody is there"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        port = taken.getsockname()[1]
        with pytest.raises(SetupError, match=r"cannot be reached: .*Connection refused"):
            cluster.connected(f"ray://127.0.0.1:{port}").__enter__()


def test_ray_that_is_not_installed_is_said_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SetupError, match=r"ray is not installed: .*pip install .*\[ray\]'"):
        cluster.connected("ray").__enter__()


class BusyRay:
    """Fails to start as often as it is told."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors, self.ended = list(errors), 0

    def init(self, **_: object) -> None:
        if self.errors:
            raise self.errors.pop(0)

    def shutdown(self) -> None:
        self.ended += 1


SLOW = Exception("The current node timed out during startup. This could happen because")


def test_ray_that_starts_too_slowly_is_started_again() -> None:
    ray = BusyRay(SLOW, SLOW)
    cluster.begin(ray, "ray", None, 2)
    assert ray.ended == 2


@pytest.mark.parametrize("errors", [[SLOW] * cluster.CONNECTS, [Exception("no disk")]])
def test_ray_that_does_not_start_is_one_line(errors: list[Exception]) -> None:
    with pytest.raises(SetupError, match=r"^ray cannot be used: (no disk|The current node timed out)"):
        cluster.begin(BusyRay(*errors), "ray", None, 2)


def test_a_cluster_of_this_machine_leaves_nothing_and_takes_what_the_dead_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = Path(tempfile.mkdtemp(dir="/tmp"))  # whose name is short enough
    monkeypatch.setenv("RAY_TMPDIR", str(root))
    dead = root / f"{cluster.FOLDER}dead"
    dead.mkdir()
    (dead / cluster.LOCK).touch()
    with cluster.own_folder() as first, cluster.own_folder() as second:
        assert sorted(root.iterdir()) == sorted([first, second])
        (first / "session").mkdir()
    assert list(root.iterdir()) == []
    root.rmdir()


WRITING = """
import os, sys
session, written = os.path.join(sys.argv[1], "session"), 0
while os.path.isdir(sys.argv[1]):
    for name in ("", "a", "b"):
        try:
            os.mkdir(os.path.join(session, name))
        except OSError:
            pass
    written += 1
    if written == 9:
        print("writes", flush=True)
"""


def test_what_ray_still_writes_after_its_end_goes_to_the_next_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "ENDING_S", 0.2)
    monkeypatch.setattr(cluster, "LONGEST", 1_000)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    with cluster.own_folder() as made:
        words = [sys.executable, "-c", WRITING, str(made)]
        writer = subprocess.Popen(words, stdout=subprocess.PIPE)
        assert writer.stdout is not None
        assert writer.stdout.readline()
    with writer:
        writer.kill()
    with cluster.own_folder() as second:
        assert list(tmp_path.iterdir()) == [second]
    assert list(tmp_path.iterdir()) == []


def test_ray_that_is_interrupted_while_it_starts_is_ended() -> None:
    ray = BusyRay(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        cluster.begin(ray, "ray", None, 2)
    assert ray.ended == 1


def test_sockets_have_short_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_TMPDIR", "/" + "far/" * 20)
    with cluster.own_folder() as found:
        assert found.parent == Path("/tmp")


def test_what_ray_prints_of_lost_workers_is_kept_back_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    ray = SimpleNamespace(print_to_stdstream=said.append)
    monkeypatch.setitem(sys.modules, "ray._private.worker", ray)
    with cluster.silence_ray():
        ray.print_to_stdstream("a paragraph")
    ray.print_to_stdstream("a word")
    assert said == ["a word"]


def test_who_hears_signals_stays_who_it_was() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with cluster.signals_kept():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGTERM) is before


def test_an_error_of_others_is_one_line() -> None:
    assert cluster.ray_error_text(ValueError("first.\n  at x\nlast.")) == "first: last"
    assert cluster.ray_error_text(ValueError()) == "ValueError"
