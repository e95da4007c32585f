"""Trend: past commits of a project, measured in turns, with a record of each.

Every commit is built in a folder of its own and opened in a process of its own. All of them then take turns
of about a millisecond, so that heat, neighbors and load are the same for all.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from hotloop.core.clock import now_ns
from hotloop.core.errors import Code, HotloopError, InputError, Notice, notice
from hotloop.core.machine import code as present_code
from hotloop.core.machine import git
from hotloop.core.progress import Progress, silent
from hotloop.core.record import IN_TURNS, NOISE, Record
from hotloop.core.record.comparison import field_words
from hotloop.core.record.metadata import Ancestry
from hotloop.core.record.metadata import CodeInfo as RanCode
from hotloop.core.settings import Target
from hotloop.judge.judge import judge
from hotloop.lab.compare.commits import Say, resolve
from hotloop.lab.compare.contenders import unlike_widths, workload_differences
from hotloop.lab.compare.process import CommitContender, ProcessSide
from hotloop.lab.gate.measure import Checkouts
from hotloop.lab.measure.loop import Plan, Samples, measure, until_interrupted, warm_up
from hotloop.lab.measure.policy import RANDOM
from hotloop.lab.measure.record import Recorder, describe_method, throughput
from hotloop.lab.measure.settle import AGAIN
from hotloop.options.bench import BenchOptions

USUAL_COMMITS = 16  # Commits that are measured if nothing else is asked for: enough to see a change of level
MOST_COMMITS = 64  # Commits that are open at the same time

# Values that a record keeps: each is the speed over neighboring rounds, the same rounds in every record
GROUPS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCommit:
    """A commit that was built and whose target is open."""

    contender: CommitContender
    side: ProcessSide
    ancestry: Ancestry

    @property
    def sha(self) -> str:
        return self.contender.checkout.commit.sha


def grouped_times(samples: Samples, name: str) -> list[float]:
    """Return the ns of an env-step in each group of rounds, of calm turns if there are any."""
    groups, times = min(GROUPS, samples.count), []
    calm = samples.calm_rounds([name])
    edges = [samples.count * number // groups for number in range(groups + 1)]
    for start, end in pairwise(edges):
        numbers = [number for number in calm if start <= number < end] or range(start, end)
        turns = [samples.turns[name][number] for number in numbers]
        times.append(sum(turn.ns for turn in turns) / sum(turn.env_steps for turn in turns))
    return times


def trend(
    target: Target,
    options: BenchOptions,
    progress: Progress = silent,
    *,
    say: Say,
    project: Path | None = None,
) -> list[Record]:
    """Measure commits of the project in the current folder in turns; returns a record of each, oldest first.

    What cannot be built or opened is left out and named. Ctrl-C leaves the rounds there were, if any.
    """
    with Checkouts(project or Path.cwd(), build=options.build, say=say) as places, ExitStack() as stack:
        line = commits_since(places.root, options.since or "HEAD", options.every)
        begin, turns_ns = now_ns(), round(len(line) * options.trend_s * 1e9)

        def note_builds(done: int) -> None:
            # The builds so far tell how long those that are left take.
            spent = now_ns() - begin
            progress(spent, spent * len(line) // max(done, 1) + turns_ns)

        def note_turns(spent_ns: int, budget_ns: int) -> None:
            spent = now_ns() - begin
            progress(spent, spent + max(budget_ns - spent_ns, 0))

        say(beforehand(places, line, options))
        opened, left_out = open_all(places, target, line, options, note_builds, stack, say=say)
        recorders = {
            each.sha: Recorder("bench", each.contender.spec, code_of(each, places)) for each in opened
        }
        again = stack.enter_context(closing(opened[0].contender.checkout.open()))
        shown, samples = take_turns(opened, again, options, note_turns)
        records = [
            record_of(each, recorders[each.sha], samples, options, told)
            for each, told in zip(opened, changed_outputs(opened, shown), strict=True)
        ]
    named = [notice(Code.COMMITS_LEFT_OUT, commits="; ".join(left_out))] if left_out else []
    # The speeds of the first commit's second instance tell how much one commit differs from itself.
    again_sps = tuple(1e9 / ns for ns in grouped_times(samples, AGAIN))
    records[0] = replace(records[0], values={**records[0].values, NOISE: again_sps})
    records[-1] = replace(records[-1], notices=(*records[-1].notices, *named))
    return [judge(record) for record in records]


def commits_since(root: Path, since: str, every: int | None) -> list[str]:
    """Return one in so many commits from one to HEAD, along first parents, oldest first; both ends are in."""
    first, head = resolve(root, since).sha, resolve(root, "HEAD").sha
    if git(root, "merge-base", "--is-ancestor", first, head) is None:
        raise InputError(f"--since {since} is not among the commits before HEAD: give one that is")
    later = git(root, "rev-list", "--first-parent", "--reverse", f"{first}..{head}") or ""
    line = [first, *later.split()]
    if len(line) < 2:
        raise InputError(f"--since {since} is HEAD: give an earlier commit")
    step = every or -(-(len(line) - 1) // (USUAL_COMMITS - 1))
    chosen = line[::-1][::step][::-1]
    chosen = chosen if chosen[0] == first else [first, *chosen]
    if len(chosen) > MOST_COMMITS:
        fits = -(-(len(line) - 1) // (MOST_COMMITS - 1))
        raise InputError(
            f"--every {step} asks for {len(chosen)} commits, {MOST_COMMITS} are the most: --every {fits} fits"
        )
    return chosen


def beforehand(places: Checkouts, line: Sequence[str], options: BenchOptions) -> str:
    """Say what a trend measures, and what it leaves out."""
    between = git(places.root, "rev-list", "--first-parent", "--count", f"{line[0]}..{line[-1]}")
    dirty = "; uncommitted changes are in no commit" if places.tree().commit.dirty else ""
    return (
        f"{len(line)} of {int(between or 0) + 1} commits since {options.since}: each is built, then all take "
        f"turns for about {len(line) * options.trend_s:.0f} s{dirty}"
    )


def open_all(
    places: Checkouts,
    target: Target,
    line: Sequence[str],
    options: BenchOptions,
    note_builds: Callable[[int], None],
    stack: ExitStack,
    *,
    say: Say,
) -> tuple[list[OpenCommit], list[str]]:
    """Build and open the commits; returns those that can be measured, and why others cannot."""
    opened, left_out = list[OpenCommit](), list[str]()
    for done, sha in enumerate(line, 1):
        try:
            checkout = places.at(sha).checkout(target, places.root, options.gc)
            side = stack.enter_context(closing(checkout.open()))
            contender, before = CommitContender(checkout, side.facts), ancestry(places.root, sha)
            opened.append(OpenCommit(contender=contender, side=side, ancestry=before))
        except HotloopError as error:
            first_line = str(error).partition("\n")[0]  # begins with the commit
            left_out.append(f"{sha[:12]} ({first_line.removeprefix(sha[:12]).lstrip(': ')})")
        note_builds(done)
    newest = opened[-1].contender if opened else None
    for each in [*opened[:-1]]:
        assert newest is not None
        if why := unlike_words(each.contender, newest):
            opened.remove(each)
            left_out.append(f"{each.sha[:12]} ({why})")
    for words in left_out:
        say(f"left out {words}")
    if len(opened) < 2:
        raise InputError(f"fewer than two commits can be measured: {'; '.join(left_out)}")
    return opened, left_out


def unlike_words(one: CommitContender, newest: CommitContender) -> str:
    """Return in what the work of a commit differs from that of the newest; empty if in nothing."""
    agents = (one.spec.agents, newest.spec.agents)
    widths = [f"num_agents {agents[0]:,} against {agents[1]:,}"] if agents[0] != agents[1] else []
    differs = [
        *workload_differences(one, newest, allowed=True),
        *filter(None, [unlike_widths(one, newest)]),
        *widths,
    ]
    return f"other work than in the newest: {'; '.join(differs)}" if differs else ""


def ancestry(root: Path, sha: str) -> Ancestry:
    """Return where a commit stands in its project."""
    committed, _, subject = (git(root, "log", "-1", "--format=%cI%n%s", sha) or "").partition("\n")
    before = git(root, "rev-list", "--first-parent", "--count", sha)
    return {"position": int(before or 0), "committed": committed, "subject": subject}


def code_of(opened: OpenCommit, places: Checkouts) -> RanCode:
    """Return what code ran: for others' targets, the present Hotloop and the commit of their project."""
    ran: RanCode = {**opened.contender.code, "ancestry": opened.ancestry}
    if not opened.contender.checkout.target.is_foreign:
        return ran
    ours = present_code(None)
    return {
        **ours,
        "project": {"commit": opened.sha, "dirty": False, "root": places.root.name},
        "ancestry": opened.ancestry,
    }


def take_turns(
    opened: Sequence[OpenCommit], again: ProcessSide, options: BenchOptions, progress: Progress
) -> tuple[Sequence[Mapping[str, str]], Samples]:
    """Warm all commits up equally far, then let them take turns; returns what each showed in between.

    `again` is a second instance of the first commit, which tells how much one commit differs from itself.
    """
    sides = {**{each.sha: each.side for each in opened}, AGAIN: again}
    plan = Plan(budget_ns=round(options.trend_s * len(sides) * 1e9))
    begin, samples = now_ns(), Samples(sides)
    with until_interrupted(samples):
        plan = replace(plan, length=warm_up(sides, plan.warmup_ns(len(sides))).length)
        shown = [each.side.seen() for each in opened]
        measure(sides, plan, progress, samples=samples, begin_ns=begin)
    if not samples.count:
        raise KeyboardInterrupt
    return shown, samples


def changed_outputs(opened: Sequence[OpenCommit], shown: Sequence[Mapping[str, str]]) -> list[Notice | None]:
    """Return for each commit whether it showed something else than the one before, after as many steps."""
    changed: list[Notice | None] = [None]
    for one, (before, after) in zip(opened, pairwise(shown), strict=False):
        fields = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        told = notice(Code.OUTPUTS_CHANGED, fields=field_words(fields), before=one.sha[:12])
        changed.append(told if fields else None)
    return changed


def record_of(
    opened: OpenCommit, recorder: Recorder, samples: Samples, options: BenchOptions, changed: Notice | None
) -> Record:
    """Return the record of one commit; its values are of the same rounds as everyone's."""
    spec, times = opened.contender.spec, grouped_times(samples, opened.sha)
    gained, made = samples.work[opened.sha].gained, samples.length.env_steps
    return recorder.record(
        method=describe_method(
            spec,
            rounds=len(times),
            iterations=made * samples.count // len(times),
            policy=RANDOM,
            order=IN_TURNS,
            garbage=options.gc,
        ),
        counters=gained,
        values=throughput(spec, made, [round(ns * made) for ns in times], gained),
        notices=[changed] if changed else [],
        partial=samples.partial,
    )
