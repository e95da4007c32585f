"""Draws the pictures of terminals in docs/images: what commands show, from real runs.

    ./.venv/bin/python tools/picture.py                    # profile.svg
    ./.venv/bin/python tools/picture.py diagnose compare   # others of COMMANDS

Run it from a clean checkout on a quiet machine: a picture shows machine, commit and spread, as the
command does.
"""

import io
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from subprocess import PIPE, run
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.text import Text

from hotloop.core.errors import ExitCode
from hotloop.core.record import Record
from hotloop.core.settings import Target
from hotloop.lab.profile.profile import ProfilePlan, profile
from hotloop.report import terminal
from hotloop.report.kinds.profile import glance
from hotloop.report.section import notices

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs/images/profile.svg"
TARGET = "grid/toy"
COLUMNS = 114
PIPED = 120
"""Columns of a command that does not write to a terminal."""
WRONG = "mkdir wrong && cp examples/orchard_native.py wrong"
MISTAKE = r"s/ & (tree | apple))/ \& tree)/"
ORCHARD = "examples/orchard.py:make"
COMMANDS = {
    "diagnose": (
        f"hotloop profile {ORCHARD} num_envs=64 --time Orchard._observe --time Orchard._fly --steps 4096",
        "hotloop diagnose --quick",
    ),
    "compare": (f'hotloop compare "{ORCHARD} num_envs=64" "examples/orchard_native.py:make num_envs=64"',),
    "validate": (
        f"{WRONG} && sed '{MISTAKE}' examples/orchard.cpp > wrong/orchard.cpp",
        f"hotloop validate wrong/orchard_native.py:make 400 --against {ORCHARD}",
    ),
}
"""What is run in an empty folder for a picture; the last of it is shown."""
FONT_FILES = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Fonts that would be fetched from elsewhere; a reader's own monospaced font does."""


def draw(record: Record) -> str:
    """Draw a profile's record as a terminal shows it."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, highlight=False)
    console.print(Text.assemble(("$ ", "dim"), (f"./hotloop profile {TARGET}", "bold")))
    console.print(terminal.draw(glance(record)))
    console.print(terminal.draw(notices([record])))
    return exported(console, "profile")


def exported(console: Console, name: str) -> str:
    drawn = console.export_svg(title="hotloop", unique_id=name)
    return FONT_FILES.sub("", drawn).replace("Fira Code", "ui-monospace, Menlo, Consolas, monospace")


def shown(commands: Sequence[str]) -> str:
    """What the last of some commands prints on a terminal, in a folder that has our examples."""
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": tools, "FORCE_COLOR": "1"}
    with TemporaryDirectory() as made:
        folder = Path(made) / "orchards"
        folder.mkdir()
        (folder / "examples").symlink_to(ROOT / "examples")
        for command in commands:
            done = run(["bash", "-c", command], cwd=folder, env=env, stdout=PIPE, text=True, check=False)
    return done.stdout


def draw_commands(name: str) -> str:
    console = Console(record=True, width=PIPED, file=io.StringIO(), force_terminal=True, highlight=False)
    console.print(Text.assemble(("$ ", "dim"), (COMMANDS[name][-1], "bold")))
    console.print(Text.from_ansi(shown(COMMANDS[name])))
    return exported(console, name)


def main(names: Sequence[str]) -> int:
    if names:
        for name in names:
            PICTURE.with_stem(name).write_text(draw_commands(name), encoding="utf-8")
        return ExitCode.FINE
    record = profile(ProfilePlan(target=Target(TARGET)))
    if record.exit_code != ExitCode.FINE:
        print(f"the run is not worth a picture: {record.notices[0].text}", file=sys.stderr)
        return record.exit_code
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(draw(record), encoding="utf-8")
    print(f"wrote {PICTURE.relative_to(ROOT)}: {record.run_id}")
    return ExitCode.FINE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
