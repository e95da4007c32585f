"""hotloop doctor: is this machine fit to measure."""

import json as json_format
from dataclasses import asdict
from typing import TYPE_CHECKING

from hotloop.cli.console import emit, show
from hotloop.cli.flags import Json
from hotloop.core.errors import ExitCode

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hotloop.lab.doctor import Check


STYLES = {"ok": "green", "warn": "yellow", "bad": "bold red"}

EXAMPLES = (
    "hotloop doctor",
    "hotloop doctor --json",
)


def doctor(*, json: Json = False) -> int:
    """Is this machine fit to measure, and what is missing.

    Every line is ok, warn or bad, with what to do. A bad line means that numbers measured now would
    mean little: the machine is called unfit and the exit code is 4, cannot tell.
    """
    from hotloop.lab.doctor import examine, gather, is_fit

    facts = gather()
    checks = examine(facts)
    if json:
        answer = {"fit": is_fit(checks), "checks": [asdict(check) for check in checks], "facts": facts}
        emit(json_format.dumps(answer, indent=1) + "\n")
    else:
        show(draw(checks, fit=is_fit(checks)))
    return ExitCode.FINE if is_fit(checks) else ExitCode.CANNOT_TELL


def draw(checks: "list[Check]", *, fit: bool) -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    from hotloop.report.terminal import plain_table

    table = plain_table("", "", "found", "what to do")
    for check in checks:
        table.add_row(check.name, Text(check.state, STYLES[check.state]), check.found, check.remedy)
    verdict = ("fit to measure", "bold green") if fit else ("not fit to measure now", "bold red")
    return Group(table, Text(*verdict))
