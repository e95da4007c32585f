"""Takes docs/images/page.png: the page of a small project with a history, measured commit by commit.

    ./.venv/bin/python tools/screenshot.py

An arm of some joints gets slower by one commit and fast by another; every point is a real run of
`hotloop bench`. It takes a few minutes, a Chromium and playwright. With `--keep DIR` the project and its page
stay there, with pictures of every tab in both themes and at a phone's width, to be looked at.
"""

import argparse
import io
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from subprocess import run
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs/images/page.png"
HOTLOOP = Path(sys.executable).with_name("hotloop")
WIDTH, NARROW, HEIGHT, PHONE = 1240, 860, 800, 390

COMMITS, SLOWER, FASTER = 16, 6, 11
"""Of the history; from the second on a step takes longer, from the third on it is shorter than ever: of so
few commits a level that only came back would not be told from chance."""

PASSES = 3
"""Over the whole history: what else the machine does in one of them moves no point far."""

BENCH = ("--rounds", "8", "--iterations", "1500", "--warmup", "3000")

TARGET = "arm.py:make joints=4"

ARM = '''"""An arm that reaches for a point."""

import math

import numpy as np


class Arm:
    def __init__(self, joints):
        self.angles = [0.0] * joints
        self.joints = joints
        self.num_actions = 3

    def reset(self, seed=None):
        self.angles = [0.0] * self.joints
        return self.look(), {{}}

    def look(self):
        x = y = turned = 0.0
        for angle in self.angles * {rounds}:
            turned += angle
            x += math.cos(turned)
            y += math.sin(turned)
        return np.array([x, y, turned], np.float32)

    def step(self, action):
        self.angles = [angle + 0.1 * (int(action) - 1) for angle in self.angles]
        seen = self.look()
        return seen, float(seen[0]), False, False, {{}}


def make(joints=4):
    return Arm(int(joints))
'''

BUDGETS = """[budget.arm-floor]
target = "arm.py:make"
keys = { joints = 4 }
metric = "env_steps_per_s"
limit = 60_000
reason = "a rollout waits for it"
owner = "the arm's team"

[budget.arm-goal]
target = "arm.py:make"
keys = { joints = 4 }
metric = "env_steps_per_s"
limit = 1_000_000
enforce = false
"""


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where the project and all pictures stay")
    chosen = parser.parse_args(words)
    with TemporaryDirectory() as scratch:
        project = chosen.keep or Path(scratch) / "arm"
        if not (project / "report.html").exists():
            make_project(project)
        take(project / "report.html", everything=chosen.keep is not None)
    print(f"wrote {PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size >> 10} KiB")
    return 0


def make_project(project: Path) -> None:
    """The history, each commit measured; then a profile, a comparison, budgets and the page."""
    project.mkdir(parents=True)
    git(project, "init", "-q")
    (project / "hotloop.toml").write_text(BUDGETS)
    (project / ".gitignore").write_text("artifacts\n.design\n__pycache__\nreport*\n")
    for number in range(COMMITS):
        rounds = 4 if number < SLOWER else 8 if number < FASTER else 1
        (project / "arm.py").write_text(ARM.format(rounds=rounds) + f"\n# version {number}\n")
        git(project, "add", "-A")
        git(project, "commit", "-q", "-m", f"version {number}")
        git(project, "tag", f"v{number}")
    for number in PASSES * [*range(COMMITS)]:
        git(project, "checkout", "-q", f"v{number}")
        hotloop(project, "bench", *TARGET.split(), *BENCH)
    hotloop(project, "profile", *TARGET.split(), "--steps", "4000", "--probe", "cprofile")
    hotloop(project, "compare", "arm.py:make joints=12", TARGET, "--unlike")
    hotloop(project, "gate", "--only", "arm-floor", "--only", "arm-goal")
    hotloop(project, "report")


def git(project: Path, *words: str) -> None:
    who = ("-c", "user.name=arm", "-c", "user.email=arm@example.org")
    run(["git", "-C", str(project), *who, *words], check=True)


def hotloop(project: Path, *words: str) -> None:
    """A command in the project; what it thinks of a busy machine is no failure here."""
    run([str(HOTLOOP), *words], cwd=project, check=False, stdout=sys.stderr)


def take(page: Path, *, everything: bool) -> None:
    """The picture for the README: the trend; with `everything` all tabs beside the page."""
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        raise SystemExit("no Chromium: apt-get install chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        keep(shown(browser, page, "trend", NARROW, "light", last="figure"), PICTURE)
        for scheme in ("light", "dark") if everything else ():
            for width in (WIDTH, PHONE):
                for tab in tabs(browser, page):
                    keep(
                        shown(browser, page, tab, width, scheme),
                        page.with_name(f"{tab}-{scheme}-{width}.png"),
                    )
        browser.close()


def tabs(browser: Any, page: Path) -> list[str]:
    opened = browser.new_page()
    opened.goto(page.resolve().as_uri())
    names: list[str] = opened.locator("nav a").all_inner_texts()
    opened.close()
    return names


def shown(browser: Any, page: Path, tab: str, width: int, scheme: str, last: str = "") -> bytes:
    """One tab from its top to its end, or to the last that is wanted, each plot drawn."""
    opened = browser.new_page(viewport={"width": width, "height": HEIGHT}, color_scheme=scheme)
    opened.goto(f"{page.resolve().as_uri()}#{tab}")
    opened.wait_for_selector(f"#tab-{tab}.shown")
    for place in opened.locator(f"#tab-{tab} .plot").all():
        place.scroll_into_view_if_needed()
    undrawn = f"#tab-{tab} .plot:not([data-drawn=yes])"
    opened.wait_for_function("selector => !document.querySelector(selector)", arg=undrawn)
    opened.evaluate("scrollTo(0, 0)")
    high = opened.evaluate(f"document.querySelector('#tab-{tab} {last}').getBoundingClientRect().bottom + 20")
    opened.set_viewport_size({"width": width, "height": max(300, min(int(high), 4000))})
    picture: bytes = opened.screenshot()
    opened.close()
    return picture


def keep(picture: bytes, path: Path) -> None:
    """In few colours, as small as it gets."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    sys.exit(main())
