"""The present code against commits: a baseline that is a commit is measured again, in turns, and not read."""

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from hotloop.core.code import git
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.target import Target
from hotloop.judge.judge import judge
from hotloop.lab.compare.commits import (
    Checkout,
    Commit,
    CommitContender,
    Say,
    apart,
    asked_of,
    prepare,
    resolve,
    root_of,
)
from hotloop.lab.compare.compare import Asked, compared
from hotloop.lab.measure.work import both_validations
from hotloop.stats.summary import with_metrics

TREE = "working tree"


def against_commits(
    record: Record,
    target: Target,
    refs: Sequence[str],
    asked: Asked,
    progress: Progress = silent,
    *,
    say: Say,
) -> Record:
    """A bench held against the same target at some commits, each in turns with the present code."""
    for ref in refs:
        if record.partial:
            return record
        with check_out_beside(Path.cwd(), ref, target, asked, say) as checkouts:
            then, now = (CommitContender(each) for each in checkouts)
            record = with_commit(record, compared(then, now, asked, progress, say), ref)
    return judge(record) if refs else record


def with_commit(record: Record, found: Record, ref: str) -> Record:
    """The record with one more comparison and its raw values; what is not equal there is not equal here."""
    values = {f"{ref}.{name}": raw for name, raw in found.values.items()}
    unequal = found.validation if found.validation and found.validation.mismatches else None
    return with_metrics(
        replace(
            record,
            comparisons=(*record.comparisons, *found.comparisons),
            values=record.values | values,
            validation=both_validations(record.validation, unequal),
            partial=found.partial,
        )
    )


@contextmanager
def check_out_beside(
    project: Path, ref: str, target: Target, asked: Asked, say: Say, build: str | None = None
) -> Iterator[tuple[Checkout, Checkout]]:
    """A commit built in a temporary folder, and the working tree as it is."""
    root = root_of(project)
    commit, settings = resolve(root, ref), asked_of(root, target, asked.garbage)
    with tempfile.TemporaryDirectory(prefix="hotloop-") as name:
        folder = Path(name)
        place = prepare(root, commit, folder / "a", project.resolve(), build, say)
        then = Checkout(
            commit=commit, place=place, target=target, asked=settings, environment=apart(place, folder)
        )
        yield then, present(root, project.resolve(), target, settings)


def present(root: Path, project: Path, target: Target, settings: dict[str, object]) -> Checkout:
    """The working tree, opened by the Python that runs this."""
    head = resolve(root, "HEAD")
    changed = bool(git(root, "status", "--porcelain"))
    return Checkout(
        commit=Commit(ref=TREE, sha=head.sha, dirty=changed),
        place=project,
        target=target,
        asked={key: value for key, value in settings.items() if key != "tree"},
        environment=dict(os.environ),
        python=Path(sys.executable),
    )
