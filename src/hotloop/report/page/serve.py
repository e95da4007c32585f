"""The page on localhost: read-only, following what is written, trainings that are under way among it."""

import errno
import json
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from socket import AF_INET, AF_INET6
from threading import Event
from typing import Any
from urllib.parse import parse_qs, urlsplit

from hotloop.core.clock import utc_now
from hotloop.core.errors import InputError
from hotloop.report.files import Shelf, draw_shelf, record_files
from hotloop.report.page.overview import Plot, PlotCurve
from hotloop.report.page.page import draw_page

EVERY_S = 1.0  # Between two looks at the folders
SEEN = "seen"  # The word of an address that says what a page was drawn of
TAKEN = (errno.EADDRINUSE, errno.EACCES)  # What another port may mend

HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


class Site:
    """What is served: the page of some folders, drawn again where they changed."""

    def __init__(self, folders: list[Path], runs: Path, title: str, read: Callable[[], Shelf]) -> None:
        self._folders, self.runs, self._title, self._read = folders, runs, title, read
        self._drawn: tuple[str, str] | None = None
        self.over = Event()

    def signature(self) -> str:
        """Return a digest of the files by name, size and time; one that vanishes meanwhile is left out."""
        found = []
        for path in record_files(self._folders):
            try:
                stat = path.stat()
            except OSError:
                continue
            found.append((str(path), stat.st_size, stat.st_mtime_ns))
        return sha256(repr(found).encode()).hexdigest()[:16]

    def page(self, events: str) -> str:
        """Return the page of what there is now; its address of events says what it was drawn of."""
        now = self.signature()
        if self._drawn is None or self._drawn[0] != now:
            page, _ = draw_shelf(
                self._read(), lambda shelf: draw_page(shelf, self._title, f"{events}{SEEN}={now}")
            )
            self._drawn = now, page
        return self._drawn[1]


class Server(ThreadingHTTPServer):
    """Answers requests for the page under its own address, with the token if there is one."""

    daemon_threads = True

    def __init__(self, host: str, port: int, site: Site) -> None:
        self.site = site
        self.token = "" if is_loopback(host) else secrets.token_urlsafe(16)
        self.address_family = AF_INET6 if ":" in host else AF_INET
        self.host = f"[{host}]" if ":" in host else host
        try:
            super().__init__((host, port), Handler)
        except OSError as error:
            remedy = "choose another --port, 0 for any free one" if error.errno in TAKEN else "look at --host"
            raise InputError(f"cannot listen on {self.host}:{port}: {error.strerror}; {remedy}") from None

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect before the response."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def events(self) -> str:
        """Where a page asks what is new since it was drawn."""
        return f"events?token={self.token}&" if self.token else "events?"

    @property
    def address(self) -> str:
        token = f"?token={self.token}" if self.token else ""
        return f"http://{self.host}:{self.server_port}/{token}"


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Handler(BaseHTTPRequestHandler):
    """GET of the page and of its events; everything else is refused."""

    server: Server
    server_version, sys_version = "hotloop", ""

    def do_GET(self) -> None:
        try:
            asked, ours = urlsplit(self.path), self.is_ours()
        except ValueError as error:
            self.refuse(400, f"no address: {error}")
            return
        if not ours:
            self.refuse(403, "another origin")
        elif self.server.token and not self.has_token(asked.query):
            self.refuse(403, "the token is missing or wrong")
        elif asked.path == "/":
            try:
                page = self.server.site.page(self.server.events)
            except InputError as error:  # there is nothing to show any more
                self.refuse(503, str(error))
            else:
                self.answer(200, "text/html", page)
        elif asked.path == "/events":
            self.follow(parse_qs(asked.query).get(SEEN, [""])[0])
        else:
            self.refuse(404, "there is only the page")

    def is_ours(self) -> bool:
        """Return whether the request is for this address, and from a page of it where it is from a page.

        The name is checked too: another's name that leads here would make its pages ours.
        """
        host = self.headers.get("Host", "")
        name = host.rpartition(":")[0] or host
        known = is_loopback(name.strip("[]")) or name == self.server.host or bool(self.server.token)
        origin = self.headers.get("Origin")
        return known and (origin is None or urlsplit(origin).netloc == host)

    def has_token(self, query: str) -> bool:
        given = parse_qs(query).get("token", [""])[0]
        return secrets.compare_digest(given.encode(), self.server.token.encode())

    def answer(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.begin(status, f"{kind}; charset=utf-8", len(body))
        self.wfile.write(body)

    def refuse(self, status: int, why: str) -> None:
        self.answer(status, "text/plain", f"{why}\n")

    def begin(self, status: int, kind: str, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()

    def follow(self, seen: str) -> None:
        """Send what is new until the client disconnects: records, and what trainings write.

        What is new is what came after the page was drawn, even if before the request.
        """
        self.begin(200, "text/event-stream")
        site, told = self.server.site, ""
        seen = seen or site.signature()
        try:
            while not site.over.wait(EVERY_S):
                now = site.signature()
                running = json.dumps(trainings(site.runs))
                line = ": still here"
                if now != seen:
                    line = "event: records\ndata: {}"
                elif running != told:
                    line = f"event: training\ndata: {running}"
                self.wfile.write(f"{line}\n\n".encode())
                self.wfile.flush()
                seen, told = now, running
        except (BrokenPipeError, ConnectionResetError):
            return

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Keep quiet: no log is wanted."""


LOGS = "*/logs/metrics.jsonl"  # Where runs write what each window came to, below the folder of runs
RUNNING_S = 120  # Seconds since the last line, within which a run is still going
MOST = 400  # Windows that are drawn, the latest

# Numbers of a window that have a plot of their own; losses share one.
DRAWN = {
    "sps": "env-steps/s",
    "return": "return",
    "eval_return": "return in evaluation",
    "agreement": "agreement with the teacher",
}

LOSS, TIME = "loss/", "time/"

Window = Mapping[str, Any]


def trainings(folder: Path) -> list[dict[str, Any]]:
    """Return every run that wrote lately: its title, its tree and its plots."""
    now, told = utc_now().timestamp(), []
    for path in sorted(path for path in folder.glob(LOGS) if now - path.stat().st_mtime < RUNNING_S):
        found = windows(path)
        if found:
            drawn = [plot.data | {"title": f"{words} by env-steps"} for words, plot in plots(found)]
            run = {
                "title": f"{path.parents[1].name}: {found[-1]['steps']:,} steps",
                "about": "where the last window's time went, in ms",
                "tree": "\n".join(tree(found[-1])),
                "plots": drawn,
            }
            told.append(run)
    return told


def windows(path: Path) -> list[Window]:
    """Return the latest lines that are whole; a run that went on leaves out what it had beyond."""
    found: list[Window] = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            window = json.loads(line)
        except ValueError:
            continue
        if not isinstance(window, dict) or not isinstance(window.get("steps"), int):
            continue
        if window.get("resumed"):
            found = [each for each in found if each["steps"] <= window["steps"]]
        else:
            found.append(window)
    return found[-MOST:]


def plots(found: Sequence[Window]) -> Iterator[tuple[str, Plot]]:
    """Yield what each shows, and its curves over the steps."""
    steps = tuple(float(each["steps"]) for each in found)
    for key, words in DRAWN.items():
        if any(key in each for each in found):
            yield words, Plot(x=steps, series=(curve(found, key, words),))
    losses = sorted({key for each in found for key in each if key.startswith(LOSS)})
    if losses:
        series = tuple(curve(found, key, key.removeprefix(LOSS)) for key in losses)
        yield "losses", Plot(x=steps, series=series)


def curve(found: Sequence[Window], key: str, words: str) -> PlotCurve:
    return PlotCurve(name=words, values=tuple(number(each.get(key)) for each in found))


def number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def tree(window: Window) -> Iterator[str]:
    """Yield where the time of the last window went, the whole first."""
    for key, value in window.items():
        if key.startswith(TIME) and (told := number(value)) is not None:
            path = key.removeprefix(TIME)
            name = f"{'  ' * path.count('/')}{path.rpartition('/')[2]}"
            yield f"{name:<34} {told:>12,.2f}"
