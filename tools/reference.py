"""Writes the reference pages of docs/ from what the code declares.

python tools/reference.py            write docs/commands.md and docs/warnings.md
python tools/reference.py --check    fail if a page is not what the code declares now
"""

import inspect
import sys
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from string import Formatter

from hotloop.core.errors import Code, ExitCode
from hotloop.options.option import HOMES, PROGRAMS, OptionInfo, Options, ProcessOptions, describe, options_of

DOCS = Path(__file__).parent.parent / "docs"

GENERATED = "<!-- written by tools/reference.py -->"

GROUPS = {
    "Find out": ("profile", "bench", "diagnose", "top"),
    "Change safely": ("validate", "compare", "scale", "tune", "soak"),
    "Keep it": ("gate", "report"),
    "Play and train": ("sim", "train", "worlds", "new"),
    "This machine and your tools": ("doctor", "mcp", "guide"),
}

CODES = {
    ExitCode.FINE: "fine",
    ExitCode.UNSTABLE: "unstable: the speed varied by more than 20% between rounds",
    ExitCode.MISMATCH: "outputs differ",
    ExitCode.REGRESSION: "slower, or a target or budget is missed",
    ExitCode.CANNOT_TELL: "cannot tell",
    ExitCode.USAGE: "wrong usage or input, a missing package or device, a full disk",
    ExitCode.FAULT: "an internal error",
    ExitCode.INTERRUPTED: "interrupted; what was measured is saved",
}


def cell(text: str) -> str:
    """Return a text that fits into one cell of a table."""
    return " ".join(text.split()).replace("|", r"\|")


def spelled(name: str, about: OptionInfo) -> str:
    """Return how an option is typed."""
    words = about.metavar or "|".join(about.choices)
    if about.is_argument:
        return f"`{about.metavar or name.upper()}`"
    return f"`{about.flags[-1]}{f' {words}' if words else ''}`"


def default_of(default: object) -> str:
    """Return a default as it is typed; nothing if there is none."""
    if default is MISSING or default is None or isinstance(default, bool) or default == []:
        return ""
    return f"`{default}`"


def options_table(kind: type[Options]) -> Iterator[str]:
    """Yield the table of a command's options."""
    defaults = {each.name: each.default for each in fields(kind)}
    yield from ("| option | meaning | default |", "| --- | --- | --- |")
    for name, about in describe(kind).items():
        help_text, _, stated = about.help.partition("[default: ")
        default = stated.rstrip("]") if stated else default_of(defaults[name])
        yield f"| {spelled(name, about)} | {cell(help_text)} | {cell(default)} |"


def command_section(name: str) -> Iterator[str]:
    """Yield all that is declared of a command."""
    kind = options_of(name)
    summary, _, more = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")
    yield from (f"### hotloop {name}", "", summary, "", *more.splitlines(), "")
    if kind.examples:
        yield from ("```text", *kind.examples, "```", "")
    yield from (*options_table(kind), "")
    if kind.isolated:
        yield from ("It also takes the [options of a process of its own](#processes).", "")
    if name in PROGRAMS:
        yield from (f"#### hotloop {name} -- PROGRAM", "", *options_table(options_of(name, program=True)), "")


def commands_page() -> str:
    """Return the page of all commands."""
    lines = [
        GENERATED,
        "",
        "# Commands",
        "",
        "`hotloop`, `./hotloop` and `python -m hotloop` are the same. `key=value` says what to",
    ]
    lines += ["measure, and flags say how. `--json` prints the record and nothing else on stdout.", ""]
    for title, names in GROUPS.items():
        lines += [f"## {title}", ""]
        for name in names:
            lines += command_section(name)
    lines += [
        "## Processes",
        "",
        "User code runs in a process of its own.",
        "",
        *options_table(ProcessOptions),
        "",
    ]
    return "\n".join(lines)


def plain(text: str) -> str:
    """Return a notice's text with the names of its facts instead of their values."""
    parts = Formatter().parse(text)
    return cell("".join(before + (f"`{name}`" if name else "") for before, name, _, _ in parts))


def warnings_page() -> str:
    """Return the page of exit codes and warnings."""
    lines = [
        GENERATED,
        "",
        "# Exit codes and warnings",
        "",
        "## Exit codes",
        "",
        "| code | meaning |",
        "| --- | --- |",
    ]
    lines += [f"| {code.value} | {words} |" for code, words in CODES.items()]
    lines += [
        "",
        "If several hold: 2, then 3, 4 and 1. 64, 70 and 130 replace all of them but 2.",
        "",
        "## Warnings",
        "",
        "A record keeps them as `notices`, each with its code. A word in `this type` stands for a value.",
        "",
    ]
    for code in sorted(Code, key=str):
        lines += [f"### {code.value}", "", f"{plain(code.text)}.", "", f"Hint: {plain(code.remedy)}.", ""]
    return "\n".join(lines)


PAGES = {"commands.md": commands_page, "warnings.md": warnings_page}


def main(words: Sequence[str]) -> int:
    """Write the pages, or tell which of them are not current."""
    missing = {*HOMES} ^ {name for names in GROUPS.values() for name in names}
    if missing:
        print(
            f"tools/reference.py: GROUPS and the commands differ in {', '.join(sorted(missing))}",
            file=sys.stderr,
        )
        return 1
    stale = []
    for name, page in PAGES.items():
        path, text = DOCS / name, page()
        if "--check" in words:
            stale += [name] * (not path.exists() or path.read_text("utf-8") != text)
        else:
            path.write_text(text, "utf-8")
    if stale:
        print(f"not as the code declares: {', '.join(stale)}; run python tools/reference.py", file=sys.stderr)
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
