"""The server over real sockets: the page, what is new, and nobody else's."""

import http.client
import json
import re
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from support.shelves import fill, history, measured

from hotloop.core.errors import InputError
from hotloop.report.files import read_shelf
from hotloop.report.page.serve import Server, Site


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return fill(tmp_path / "records", history(3))


@pytest.fixture
def server(folder: Path, tmp_path: Path) -> Iterator[Server]:
    site = Site([folder], tmp_path / "train_dir", "title", lambda: read_shelf([folder]))
    with Server("127.0.0.1", 0, site) as running:
        thread = Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield running
        site.over.set()
        running.shutdown()
        thread.join()


def asked(server: Server, path: str, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_the_page_is_drawn_again_where_a_record_came(server: Server, folder: Path) -> None:
    assert "3 records" in asked(server, "/")[1]
    fill(folder, [measured(7, 1e6)])
    assert "4 records" in asked(server, "/")[1]


def test_the_first_record_may_be_still_to_come(server: Server, folder: Path) -> None:
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    for path in folder.iterdir():
        path.unlink()
    status, text = asked(server, "/")
    assert status == 200
    assert "No record yet" in text
    for name, content in kept.items():
        (folder / name).write_bytes(content)
    assert "3 records" in asked(server, "/")[1]


@pytest.mark.parametrize(
    "path", ["/../../etc/passwd", "/records/bench-0000.json", "/%2e%2e/x", "//etc/passwd", "/page.js"]
)
def test_nothing_but_the_page_is_given_out(server: Server, path: str) -> None:
    assert asked(server, path) == (404, "there is only the page\n")


def test_an_address_that_is_none_is_said(server: Server) -> None:
    status, text = asked(server, "/", Origin="http://[bad")
    assert (status, text.partition(":")[0]) == (400, "no address")


def test_where_there_is_nothing_to_show_any_more_the_reason_is_shown(
    server: Server, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read() -> Any:
        raise InputError("records holds no record")

    monkeypatch.setattr(server.site, "_read", read)
    assert asked(server, "/") == (503, "records holds no record\n")
    assert capsys.readouterr().err == ""


def test_other_origins_and_other_names_are_answered_nothing(server: Server) -> None:
    assert asked(server, "/", Origin="http://elsewhere.example")[0] == 403
    assert asked(server, "/", Host="elsewhere.example")[0] == 403
    assert asked(server, "/events", Origin="null")[0] == 403
    own = f"127.0.0.1:{server.server_port}"
    assert asked(server, "/", Origin=f"http://{own}")[0] == 200


def test_what_is_written_is_heard(server: Server, folder: Path, tmp_path: Path) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.request("GET", "/events")
    stream = connection.getresponse()
    logs = tmp_path / "train_dir" / "mine" / "logs"
    logs.mkdir(parents=True)
    windows = [{"steps": 100 * k, "sps": 5.0 * k, "loss/value": 0.5, "time/rollout": 1.5} for k in (1, 2)]
    (logs / "metrics.jsonl").write_text("\n".join(map(json.dumps, windows)) + '\n{"torn')
    (run,) = heard(stream, "training")
    assert run["title"] == "mine: 200 steps"
    assert run["plots"][0]["series"][0]["values"] == [5.0, 10.0]
    assert "rollout" in run["tree"]
    fill(folder, [measured(9, 1e6)])
    assert heard(stream, "records") == {}
    connection.close()


def test_what_came_after_a_page_was_drawn_is_told_to_who_listens_later(server: Server, folder: Path) -> None:
    (address,) = set(re.findall(r"events\?seen=\w+", asked(server, "/")[1]))
    fill(folder, [measured(12, 1e6)])
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.request("GET", f"/{address}")
    assert heard(connection.getresponse(), "records") == {}
    connection.close()


def heard(stream: Any, event: str) -> Any:
    """The data of the next event of that name."""
    while stream.readline().decode().strip() != f"event: {event}":
        pass
    return json.loads(stream.readline().decode().removeprefix("data: "))


def test_beyond_this_machine_a_token_is_asked_for(folder: Path, tmp_path: Path) -> None:
    site = Site([folder], tmp_path, "title", lambda: read_shelf([folder]))
    with Server("0.0.0.0", 0, site) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        assert asked(server, "/")[0] == 403
        assert asked(server, "/?token=wrong")[0] == 403
        assert asked(server, f"/?token={server.token}")[0] == 200
        assert server.token in server.address
        server.shutdown()
        thread.join()


def test_a_port_in_use_is_said(server: Server) -> None:
    with pytest.raises(InputError, match="choose another --port"):
        Server("127.0.0.1", server.server_port, server.site)


def test_a_host_that_is_not_this_machine_is_said(server: Server) -> None:
    with pytest.raises(InputError, match="look at --host"):
        Server("192.0.2.1", 0, server.site)


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="this machine has no IPv6")
def test_the_newer_kind_of_address_will_do(server: Server) -> None:
    with Server("::1", 0, server.site) as newer:
        assert newer.address == f"http://[::1]:{newer.server_port}/"


def test_the_served_page_follows(opened: Any, server: Server, folder: Path) -> None:
    seen = opened(server.address)
    fill(folder, [measured(11, 1e6)])
    seen.page.wait_for_selector("text=4 records", timeout=60_000)
    assert seen.complaints == []
