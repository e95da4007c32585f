"""Trends: past commits of a project measured in turns, their records kept, one table of all."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli.console import bar, remark, stdout_kept_clean
from hotloop.cli.flags import garbage_of, targets_of
from hotloop.cli.results import make_room, names_file
from hotloop.cli.runner import kept_in, tell
from hotloop.core.errors import InputError
from hotloop.core.target import Target

if TYPE_CHECKING:
    from hotloop.lab.trend import Asked

QUICK_S, USUAL_S, THOROUGH_S = 0.5, 2.0, 10.0
"""Seconds of turns, for each commit."""


def check(target: Target, output: Path, beyond: Mapping[str, object]) -> None:
    """Refuse what past commits cannot be asked; `beyond` holds the values of flags they do not have."""
    given = [flag for flag, value in beyond.items() if value]
    if given:
        raise InputError(
            f"{given[0]} is for the present code, and --since measures past commits: leave it out"
        )
    if any(key.startswith("train.") for key in target.keys):
        raise InputError(
            "--since measures envs: leave out the train. keys, or compare two commits by --a-ref"
        )
    if len(targets_of(target)) > 1:
        raise InputError(
            f"--since is for one target, and {target.name} has several presets: name one of them"
        )
    if names_file(output):
        raise InputError(f"--output {output} is for one record, and each commit has its own: name a folder")


def ask(
    since: str | None, every: int | None, build: str | None, garbage: str, *, quick: bool, thorough: bool
) -> "Asked | None":
    """Return what a trend is to be about; None if none is asked for."""
    if since is None:
        if every is not None or build is not None:
            raise InputError("--every and --build are for past commits: give --since REF too")
        return None
    from hotloop.lab.trend import Asked

    seconds = QUICK_S if quick else THOROUGH_S if thorough else USUAL_S
    return Asked(since=since, every=every, build=build, seconds=seconds, garbage=garbage_of(garbage))


def run(
    target: Target,
    asked: "Asked",
    label: str | None,
    beyond: Mapping[str, object],
    output: Path,
    *,
    as_json: bool,
) -> int:
    """Measure the commits, keep their records and show the table."""
    from hotloop.lab.trend import trend
    from hotloop.report.kinds.overview import trend as sections
    from hotloop.report.terminal import draw

    check(target, output, beyond)
    make_room(output)
    with bar(f"{target.name} since {asked.since}") as progress, stdout_kept_clean():
        records = trend(target, asked, progress, say=remark)
    records = [kept_in(output, replace(record, label=label)) for record in records]
    return tell(records, draw(sections(records)), as_json=as_json, as_list=True)
