"""Draws docs/images/profile.svg: what `hotloop profile grid/toy` shows on a terminal, from a real run.

    ./.venv/bin/python tools/picture.py

Run it from a clean checkout on a quiet machine: the picture shows machine, commit and spread, as the
command does.
"""

import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from hotloop.core.errors import ExitCode
from hotloop.core.record import Record
from hotloop.core.target import Target
from hotloop.lab.profile.profile import profile
from hotloop.report import terminal
from hotloop.report.sections.notices import notices
from hotloop.report.sections.profile import glance

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs/images/profile.svg"
TARGET = "grid/toy"
COLUMNS = 114
FONT_FILES = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Fonts that would be fetched from elsewhere; a reader's own monospaced font does."""


def draw(record: Record) -> str:
    """Draw a profile's record as a terminal shows it."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, highlight=False)
    console.print(Text.assemble(("$ ", "dim"), (f"./hotloop profile {TARGET}", "bold")))
    console.print(terminal.draw(glance(record)))
    console.print(terminal.draw(notices([record])))
    drawn = console.export_svg(title="hotloop", unique_id="profile")
    return FONT_FILES.sub("", drawn).replace("Fira Code", "ui-monospace, Menlo, Consolas, monospace")


def main() -> int:
    record = profile(Target(TARGET))
    if record.exit_code != ExitCode.FINE:
        print(f"the run is not worth a picture: {record.notices[0].text}", file=sys.stderr)
        return record.exit_code
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(draw(record), encoding="utf-8")
    print(f"wrote {PICTURE.relative_to(ROOT)}: {record.run_id}")
    return ExitCode.FINE


if __name__ == "__main__":
    sys.exit(main())
