"""hotloop profile: where the time of a step goes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotloop.cli.arguments import Json, Policy, TargetName, Words, given_by, names_world, targets_of
from hotloop.cli.measuring import measure, tell
from hotloop.cli.place import make_room, save
from hotloop.core.clock import utc_now

if TYPE_CHECKING:
    from hotloop.core.record import Record
    from hotloop.lab.progress import Progress

FOLDER = Path(".design")

EXAMPLES = (
    "hotloop profile grid/toy",
    "hotloop profile grid/toy agents=100 encoder=original",
    "hotloop profile grid/toy --steps 1000000 --json",
    "hotloop profile grid",
)


def profile(
    target: TargetName,
    words: Words = None,
    *,
    steps: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Env-steps with and without the instrument, each.  [default: 200000; a slow target fewer]",
        ),
    ] = None,
    policy: Policy = "random",
    json: Json = False,
) -> int:
    """Where the time of a step goes.

    Two batches play the same actions, random ones or those of a policy, in alternation: one timed phase
    by phase, one clean. Throughput comes from the clean one only, and what the instrument cost is said
    with its interval.
    Writes .design/profile-<YYYYMMDD-HHMM>.md and .json (UTC) and never overwrites.
    """
    from hotloop.lab.opening import check

    targets = targets_of(target)
    given = given_by(words)
    check(targets, given, policy)
    make_room(FOLDER)
    return run(target, given, steps, policy, as_json=json)


def run(target: str, given: dict[str, object], steps: int | None, policy: str, *, as_json: bool) -> int:
    from rich.console import Group

    from hotloop.lab import profile as lab
    from hotloop.report import markdown, terminal
    from hotloop.report.shifts import shifts

    def experiment(name: str, progress: "Progress") -> "Record":
        return lab.profile(name, given, steps, progress, policy=policy)

    def keep(record: "Record") -> Path:
        path = FOLDER / f"profile-{utc_now():%Y%m%d-%H%M}.md"
        return save(path, markdown.draw_profile(record), (".json", record.to_json()))

    records = measure(targets_of(target), experiment, keep)
    view = Group(*map(terminal.draw_profile, records), shifts(records))
    return tell(records, view, as_json=as_json, as_list=names_world(target))
