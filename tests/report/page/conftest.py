"""A real Chromium, and pages opened in it."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-extensions")


@dataclass
class Opened:
    """A page, with all that it complained of and asked for."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def tab(self, name: str) -> Any:
        self.page.click(f'nav a[href="#{name}"]')
        self.page.wait_for_selector(f"#tab-{name}.shown")
        return self.page.locator(f"#tab-{name}")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="NO PAGE IS LOOKED AT: playwright is missing"
    )
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("NO PAGE IS LOOKED AT: there is no Chromium; ./check installs Debian's where it may")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: Any) -> Iterator[Any]:
    """Opens a file or an address in a page of its own."""
    pages = []

    def open_page(where: Path | str, *, width: int = 1280, height: int = 900, **more: Any) -> Opened:
        page = chromium.new_page(viewport={"width": width, "height": height}, **more)
        pages.append(page)
        seen = Opened(page)
        page.on("console", lambda message: seen.complaints.append(message.text))
        page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        page.on("request", lambda request: seen.requests.append(request.url))
        page.goto(where.as_uri() if isinstance(where, Path) else where)
        page.wait_for_selector("html[data-ready=yes]")
        return seen

    yield open_page
    for page in pages:
        page.close()
