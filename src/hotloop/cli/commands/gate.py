"""hotloop gate: budgets of hotloop.toml against what is measured, for CI."""

import json as json_format
import os
from collections.abc import Sequence
from contextlib import chdir
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotloop.cli.console import bar, emit, remark, show, stdout_kept_clean
from hotloop.cli.flags import Json, Words
from hotloop.cli.results import make_room
from hotloop.cli.runner import kept_in
from hotloop.core.clock import utc_now
from hotloop.core.errors import ExitCode, InputError
from hotloop.core.process import lifeline
from hotloop.core.target import Target

if TYPE_CHECKING:
    from hotloop.core.project import Budget, Project
    from hotloop.lab.gate.explain import Profiles
    from hotloop.lab.gate.gate import Result, Row
    from hotloop.lab.gate.measure import How
    from hotloop.report.kinds.gate import Shown
    from hotloop.report.section import Section, Sections

GUARDED = True
"""Targets of budgets are measured by processes of their own, which end with the gate."""

SUMMARY = "GITHUB_STEP_SUMMARY"
"""Of the environment: the file that GitHub shows under a run."""

MOST_S = 3_600

COLOURS = {
    ExitCode.FINE: "green",
    ExitCode.REGRESSION: "red",
    ExitCode.MISMATCH: "red: not equal",
    ExitCode.USAGE: "error",
    ExitCode.FAULT: "error",
}

EXAMPLES = (
    "hotloop gate --init my_env.py:make",
    "hotloop gate",
    "hotloop gate --list",
    "hotloop gate --only speed --bisect",
    "hotloop gate --self-test",
)

Only = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Only this budget; may be repeated.", show_default=False),
]

TargetToBegin = Annotated[
    str | None,
    typer.Argument(metavar="TARGET", help="With --init: what to measure first.", show_default=False),
]

Build = Annotated[
    str | None,
    typer.Option(
        metavar="CMD",
        help="What builds a commit in its checkout.  [default: pip install . where there is something to]",
    ),
]

Seconds = Annotated[
    float, typer.Option("--budget", metavar="S", help="Seconds that one run of a comparison may take.")
]


Unlike = Annotated[
    bool, typer.Option("--unlike", help="The change is meant to change answers: compare speed alone.")
]

Output = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where records go.  [default: artifacts/gate beside hotloop.toml]"),
]


def gate(  # noqa: PLR0913 - one argument a flag
    target: TargetToBegin = None,
    words: Words = None,
    *,
    only: Only = None,
    list: Annotated[  # noqa: A002 - it is the flag's name
        bool, typer.Option("--list", help="Show the budgets and measure nothing.")
    ] = False,
    bisect: Annotated[
        bool, typer.Option("--bisect", help="Find the commit that first missed a budget.")
    ] = False,
    no_explain: Annotated[
        bool, typer.Option("--no-explain", help="Do not profile both commits when a budget is missed.")
    ] = False,
    unlike: Unlike = False,
    build: Build = None,
    budget: Seconds = 6.0,
    init: Annotated[
        bool, typer.Option("--init", help="Measure TARGET and write a first hotloop.toml, with CI jobs.")
    ] = False,
    self_test: Annotated[
        bool,
        typer.Option("--self-test", help="Plant a slow-down, no change and a mismatch: are they told apart?"),
    ] = False,
    output: Output = None,
    json: Json = False,
) -> int:
    """Check the speed budgets of hotloop.toml; for CI.

    A budget is [budget.NAME] with a target, a metric and either limit, or max_change with against (a branch,
    tag, commit or saved baseline); optional are reason, owner, expires and enforce = false (a goal to reach).
    The other commit is built separately, and both take turns; a miss is measured again before it counts, and
    is then explained by phase and function. Exit: 0 all met, 2 an answer changed, 3 a budget is missed or
    expired, 4 cannot tell, for example without a baseline.
    """
    lifeline.endless = True
    if self_test:
        return tested(as_json=json)
    if init:
        return begun(target, words)
    if target is not None:
        raise InputError(f"{target} is given and not used: budgets name their targets; --init takes one")
    from hotloop.core.project import find

    project = find()
    if not project.budgets:
        raise InputError(f"{project.path} has no budget: hotloop gate --init TARGET writes the first")
    from hotloop.lab.gate.gate import FOLDER, chosen

    budgets = chosen(project, only or ())
    asked = Asked(
        unlike=unlike, seconds=budget, build=build, bisect=bisect, explain=not no_explain, as_json=json
    )
    if list:
        return listed(budgets)
    with chdir(project.folder):
        folder = output or FOLDER
        make_room(folder)
        return gated(project, budgets, folder, asked)


def listed(budgets: "Sequence[Budget]") -> int:
    from hotloop.report.kinds.gate import listing
    from hotloop.report.terminal import draw

    show(draw(listing(budgets)))
    return ExitCode.FINE


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How the gate was asked to work."""

    unlike: bool
    seconds: float
    build: str | None
    bisect: bool
    explain: bool
    as_json: bool

    def __post_init__(self) -> None:
        if not 0 < self.seconds <= MOST_S:
            raise InputError(
                f"--budget {self.seconds:g} does not fit: expected seconds, above 0 and up to {MOST_S:,}"
            )


def gated(project: "Project", budgets: "Sequence[Budget]", folder: Path, asked: Asked) -> int:
    """Measure, explain, bisect; keep and tell."""
    from hotloop.lab.gate.bisect import refuse_changes
    from hotloop.lab.gate.explain import Profiles
    from hotloop.lab.gate.gate import run, weaker, with_reasons
    from hotloop.lab.gate.measure import How
    from hotloop.lab.gate.places import Places

    profiles = Profiles(folder=folder / "profiles")
    with Places(Path.cwd(), build=asked.build, say=remark) as places:
        if asked.bisect:
            refuse_changes(places)
        how = How(places=places, today=utc_now().date(), unlike=asked.unlike, seconds=asked.seconds)
        with bar("gate") as progress, stdout_kept_clean():
            result = run(budgets, how, progress, say=remark)
            if asked.explain or asked.bisect:
                result = with_reasons(result, how, profiles)
        result = kept(result, folder)
        found = bisected(result, how, profiles) if asked.bisect else ()
        lost = weaker(project, places)
    tell(result, (found, lost), folder, as_json=asked.as_json)
    return result.code


def kept(result: "Result", folder: Path) -> "Result":
    """Keep the records, and beside one that says what changed the flames of that."""
    return replace(result, rows=tuple(kept_row(row, folder) for row in result.rows))


def kept_row(row: "Row", folder: Path) -> "Row":
    from hotloop.report.files import difference_flames

    if row.record is None:
        return row
    record, flames = difference_flames(row.record)
    path = folder / f"{record.run_id}-{row.budget.name}.json"
    record = kept_in(path, record, *flames)
    return replace(row, record=record, code=ExitCode(record.exit_code))


def bisected(result: "Result", how: "How", profiles: "Profiles") -> "Sections":
    """For each budget that is missed, the commit that did it; what one found is tried first by the next."""
    from hotloop.lab.gate.bisect import bisect
    from hotloop.report.kinds.gate import bisected as sections
    from hotloop.report.section import Note

    told: list[Section] = []
    hint: str | None = None
    for row in (row for row in result.rows if row.is_missed):
        try:
            with bar(f"bisecting {row.budget.name}") as progress, stdout_kept_clean():
                found = bisect(row.budget, how, profiles, progress, say=remark, hint=hint)
        except InputError as error:  # such as an absolute limit: the table is still told
            told.append(Note(words=str(error)))
            continue
        hint = found.suspects[-1][0]
        steps = [(step.commit, step.told, step.why) for step in found.steps]
        told += sections(row.budget.name, found.suspects, steps)
    return tuple(told)


def tell(result: "Result", beside: "tuple[Sections, Sequence[str]]", folder: Path, *, as_json: bool) -> None:
    """Print the records or draw the table; the same as Markdown where CI wants it.

    `beside` are the commits that did it, and the budgets that were weakened.
    """
    from hotloop.report import markdown
    from hotloop.report.facts import notices
    from hotloop.report.kinds.gate import gate as sections
    from hotloop.report.terminal import draw

    found, lost = beside
    headline = COLOURS.get(result.code, "cannot tell")
    drawn = (*sections(shown(result, folder), headline=headline, weaker=lost), *found)
    if as_json:
        emit(f"[{','.join(record.to_json() for record in result.records)}]\n")
        for line in (*(row.error for row in result.rows if row.error), *lost):
            remark(line)
        remark(draw(found))
    else:
        show(draw(drawn))
    remark(draw(notices(result.records)))
    if summary := os.environ.get(SUMMARY):
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(f"## hotloop gate\n\n{markdown.draw(drawn)}\n")


def shown(result: "Result", folder: Path) -> "list[Shown]":
    """Each row with how far its target was in earlier runs."""
    from hotloop.lab.gate.gate import trend
    from hotloop.report.kinds.gate import Shown

    told = []
    for row in result.rows:
        held = row.record.held if row.record else None
        before = trend(folder, row.budget.name) if held and not held.enforced else []
        distances = [each.held.distance for each in before if each.held]
        told.append(
            Shown(
                name=row.budget.name,
                held=held,
                record=row.record,
                error=row.error,
                distances=tuple(each for each in distances if each is not None),
            )
        )
    return told


def begun(target: str | None, words: list[str] | None) -> int:
    """Measure a target and write a first hotloop.toml, and what runs it in CI."""
    from hotloop.lab.gate.init import begin

    if target is None:
        raise InputError("--init needs a target to measure: hotloop gate --init my_env.py:make")
    with bar(f"measuring {target}") as progress, stdout_kept_clean():
        written = begin(Path.cwd(), Target.typed(target, words), progress, say=remark)
    for path, what in written:
        show(f"wrote {path}: {what}")
    show("next: read hotloop.toml, commit these files, and run hotloop gate")
    return ExitCode.FINE


def tested(*, as_json: bool) -> int:
    """Plant what the gate must see, and say whether it did."""
    from hotloop.lab.gate.self_test import self_test

    with bar("self-test") as progress, stdout_kept_clean():
        cases = self_test(progress)
    if as_json:
        emit(json_format.dumps([asdict(case) for case in cases], indent=1) + "\n")
    for case in cases if not as_json else ():
        show(
            f"{'ok' if case.passed else 'FAILED':<7} {case.name}: expected {case.expected}, was {case.found}"
        )
    failed = [case.name for case in cases if not case.passed]
    if failed:
        remark(f"the gate is broken: {', '.join(failed)}; trust no green of it")
    return ExitCode.FAULT if failed else ExitCode.FINE
