"""The present code against commits: a baseline that is a commit is measured again, in turns, and not read."""

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from hotloop.core.errors import InputError
from hotloop.core.machine import git, hash_of_file
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.target import Target
from hotloop.judge.judge import judge
from hotloop.lab.compare.commits import (
    NOT_COUNTED,
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
from hotloop.lab.measure.policy import RANDOM
from hotloop.lab.measure.record import both_validations
from hotloop.lab.measure.sides import Garbage
from hotloop.stats.summary import with_metrics

TREE = "working tree"

# Where Hotloop itself writes: its files change no code, even if the project does not ignore them.
NOT_CODE = (":(exclude,glob)**/.design/**", ":(exclude,glob)**/artifacts/**")


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """A baseline whose code can be built again: a commit, or a record that names one."""

    name: str  # As it was typed
    ref: str
    target: Target  # With the keys it had then
    record: Record | None = None  # What was measured then; None of a commit


def earlier_of(
    target: Target, policy: str, records: Iterable[tuple[str, Record]], refs: Sequence[str]
) -> list[Earlier]:
    """Return the code of baselines that can be measured again; of the other records only numbers are left."""
    earlier = [
        Earlier(
            name=name,
            ref=record.code["project"]["commit"],
            target=Target(record.target.name, dict(record.target.keys)),
            record=record,
        )
        for name, record in records
        if policy == RANDOM and "project" in record.code and record.code["project"].get("sources")
    ]
    return [*earlier, *(Earlier(name=ref, ref=ref, target=target) for ref in refs)]


Pair = tuple[Earlier, CommitContender, CommitContender]  # A baseline, its code of then, and the present code


@contextmanager
def build_all(
    baselines: Sequence[Earlier], target: Target, garbage: Garbage, say: Say
) -> Iterator[list[Pair]]:
    """Build the code of each baseline; a record without code to build is left out, and `say` told why."""
    with ExitStack() as stack:
        pairs: list[Pair] = []
        for each in baselines:
            try:
                then, now = stack.enter_context(build_earlier(each, target, garbage, say))
                pairs.append((each, CommitContender(then), CommitContender(now)))
            except InputError as error:
                if each.record is None:
                    raise
                say(f"{each.name} is read, not measured again in turns: {error}")
        yield pairs


@contextmanager
def build_earlier(
    baseline: Earlier, target: Target, garbage: Garbage, say: Say
) -> Iterator[tuple[Checkout, Checkout]]:
    """A baseline's code in a temporary folder, and the working tree; refuses other code than was measured."""
    commit = resolve_earlier(baseline)
    asked = Asked(garbage=garbage)
    with check_out_beside(Path.cwd(), commit, target, asked, say, of_then=baseline.target) as (then, now):
        if changed := lost_sources(baseline, then.place):
            raise InputError(
                f"{', '.join(changed)} had changes that are in no commit; commit, then measure the baseline"
            )
        yield then, now


def resolve_earlier(baseline: Earlier) -> Commit:
    """Return the commit of a baseline, under the name that was typed."""
    root = root_of(Path.cwd())
    if baseline.record is not None and not knows_commit(root, baseline.ref):
        raise InputError(f"its commit {baseline.ref[:12]} is not in {root}")
    return replace(resolve(root, baseline.ref), ref=baseline.name)


def knows_commit(root: Path, ref: str) -> bool:
    return git(root, "cat-file", "-e", f"{ref}^{{commit}}") is not None


def lost_sources(baseline: Earlier, place: Path) -> list[str]:
    """Return the files that were measured and are not so in the checkout of their commit."""
    if baseline.record is None:
        return []
    measured = baseline.record.code["project"].get("sources", {})
    module = baseline.target.name.rpartition(":")[0]
    folders = [place / Path(module).parent] if module.endswith(".py") else [place, place / "src"]
    return [
        name
        for name, told in measured.items()
        if all(hash_of_file(folder / name) != told for folder in folders)
    ]


def against_commits(
    record: Record, pairs: Sequence[Pair], asked: Asked, progress: Progress = silent, *, say: Say
) -> Record:
    """A bench held against code of earlier, which takes turns with the present code."""
    for baseline, then, now in pairs:
        if record.partial:
            return record
        found = compared(then, now, replace(asked, instructions=counts(then, asked, say)), progress, say)
        record = with_commit(record, found, baseline.name)
    return judge(record) if pairs else record


def counts(then: CommitContender, asked: Asked, say: Say) -> bool:
    """Whether the instructions of earlier code are to be counted, and can be."""
    if asked.instructions and not then.checkout.can_count:
        say(NOT_COUNTED.format(name=then.name))
    return asked.instructions and then.checkout.can_count


def with_commit(record: Record, found: Record, name: str) -> Record:
    """The record with one more comparison and its raw values; what is not equal there is not equal here."""
    values = {f"{name}.{key}": raw for key, raw in found.values.items()}
    unequal = found.validation if found.validation and found.validation.mismatches else None
    return with_metrics(
        replace(
            record,
            comparisons=(*record.comparisons, *found.comparisons),
            values=record.values | values,
            validation=both_validations(record.validation, unequal),
            instructions=record.instructions or found.instructions,
            partial=found.partial,
        )
    )


@contextmanager
def check_out_beside(
    project: Path,
    ref: str | Commit,
    target: Target,
    asked: Asked,
    say: Say,
    build: str | None = None,
    *,
    of_then: Target | None = None,
) -> Iterator[tuple[Checkout, Checkout]]:
    """A commit built in a temporary folder, and the working tree as it is.

    `of_then` is the commit's target where its keys are not those of the working tree's.
    """
    root = root_of(project)
    commit = ref if isinstance(ref, Commit) else resolve(root, ref)
    settings, earlier = asked_of(root, target, asked.garbage), of_then or target
    with tempfile.TemporaryDirectory(prefix="hotloop-") as name:
        folder = Path(name)
        place = prepare(root, commit, folder / "a", project.resolve(), build, say)
        then = Checkout(
            commit=commit,
            place=place,
            target=earlier,
            asked=asked_of(root, earlier, asked.garbage),
            environment=apart(place, folder),
        )
        yield then, present(root, project.resolve(), target, settings)


def present(root: Path, project: Path, target: Target, settings: dict[str, object]) -> Checkout:
    """The working tree, opened by the Python that runs this."""
    head = resolve(root, "HEAD")
    changed = bool(git(root, "status", "--porcelain", "--", ".", *NOT_CODE))
    return Checkout(
        commit=Commit(ref=TREE, sha=head.sha, dirty=changed),
        place=project,
        target=target,
        asked={key: value for key, value in settings.items() if key != "tree"},
        environment=dict(os.environ),
        python=Path(sys.executable),
    )
