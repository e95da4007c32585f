"""From a profile to its record: the clean side's speed, the watched side's account, and what it cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hotloop.core.notices import Code, Notice, notice
from hotloop.core.record.comparison import Validation
from hotloop.core.record.profile import Overhead, Phase, Slow
from hotloop.core.record.record import Record
from hotloop.core.turn_clock import Stretch
from hotloop.envs.foreign.functions import Function
from hotloop.envs.foreign.vector import SLOWEST, WAIT
from hotloop.envs.spec import Spec
from hotloop.envs.subject import Subject
from hotloop.lab.loop.account import cuda_runs
from hotloop.lab.measure.record import Recorder, in_rounds, overhead
from hotloop.lab.measure.rounds import Rounds, shortened
from hotloop.lab.measure.work import Tally
from hotloop.lab.profile.tree import Tree
from hotloop.stats.intervals import FEWEST

WALLS = ("clean_wall_ns", "instrumented_wall_ns")
"""The times of each pair, as a record's values name them."""

WAITING_SHARE = 0.05

UNEVEN_SHARE = 0.25
"""Of the waiting, from which on it is the slowest worker's doing."""


@dataclass(slots=True, kw_only=True)
class Pairs:
    """What is known so far, complete up to the last whole pair."""

    rounds: Rounds
    work: Tally
    walls_ns: list[tuple[int, int]] = field(default_factory=list)
    """Of the clean and of the watched pass of each pair."""
    paused_ns: list[int] = field(default_factory=list)
    """Of each watched pass, what it spent on collecting garbage, which clean passes leave to later."""
    disturbed: list[bool] = field(default_factory=list)
    """Whether another process took the core in either pass of a pair."""
    steps: list[Mapping[str, int]] = field(default_factory=list)
    """What the clean side counted in each pair."""
    partial: bool = True

    def note(self, clean: Stretch, watched: Stretch, paused_ns: int) -> None:
        """Take down a whole pair, and what of the watched one went into collecting garbage."""
        before = self.work.last
        self.work.note()
        self.walls_ns.append((clean.ns, watched.ns))
        self.paused_ns.append(paused_ns)
        self.disturbed.append(clean.disturbed or watched.disturbed)
        self.steps.append({name: count - before.get(name, 0) for name, count in self.work.last.items()})

    def overhead(self, mark_ns: float | None) -> Overhead | None:
        """What watching cost, `mark_ns` being what one mark takes."""
        pairs = [
            (clean_ns, max(1, watched_ns - paused_ns))
            for (clean_ns, watched_ns), paused_ns in zip(self.walls_ns, self.paused_ns, strict=True)
        ]
        calm = [pair for pair, disturbed in zip(pairs, self.disturbed, strict=True) if not disturbed]
        return overhead(calm if len(calm) >= FEWEST else pairs, mark_ns)

    def speeds(self) -> dict[str, list[float]]:
        """Of each clean pass, from the work it counted: a call that only resets an env is no step."""
        turns = [(clean_ns, steps) for (clean_ns, _), steps in zip(self.walls_ns, self.steps, strict=True)]
        return {
            f"{what}_per_s": [steps[what] * 1e9 / ns for ns, steps in turns]
            for what in ("env_steps", "agent_steps")
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What the watched passes came to."""

    phases: tuple[Phase, ...] = ()
    unaccounted_ns: int | None = None
    notices: Sequence[Notice] = ()
    overhead: Overhead | None = None
    slow: Slow
    validation: Validation | None = None


def record_of(
    recorder: Recorder,
    spec: Spec,
    pairs: Pairs,
    account: Account,
    *,
    asked: Rounds,
    policy: str,
    garbage: str,
) -> Record:
    """The record of the pairs there were."""
    walls = [[pair[side] for pair in pairs.walls_ns] for side in (0, 1)]
    return recorder.record(
        method=in_rounds(spec, pairs.rounds, policy, order="ABBA", garbage=garbage),
        counters=pairs.work.gained,
        values={**pairs.speeds(), **dict(zip(WALLS, walls, strict=True))},
        notices=[*shortened(asked, pairs.rounds), *account.notices, *host_timer(spec)],
        partial=pairs.partial,
        phases=account.phases,
        unaccounted_ns=account.unaccounted_ns,
        overhead=account.overhead,
        slow=account.slow,
        validation=account.validation,
    )


def host_timer(spec: Spec) -> list[Notice]:
    """Say whose clock it was where a policy, or somebody's env, used a GPU that works behind its caller."""
    if spec.described.device == "cuda" or not cuda_runs():
        return []
    return [
        notice(
            Code.HOST_TIMER,
            whose="the GPU's",
            remedy="put hotloop.run around the loop: its spans are events there",
        )
    ]


def loop_remarks(subject: Subject, functions: Sequence[Function], tree: Tree) -> list[Notice]:
    """What was named and never called, and what was waited for."""
    said = [
        notice(Code.NEVER_CALLED, function=function.name)
        for function in functions
        if tree.wall_ns and not any(map(tree.has, function.rows))
    ]
    workers = subject.workers
    waited = tree.share(WAIT)
    if workers is not None and waited > WAITING_SHARE:
        worker, last = workers.slowest
        skew = tree.share(SLOWEST)
        if skew < UNEVEN_SHARE * waited:
            said.append(notice(Code.IDLE_WORKERS, share=waited))
        else:
            said.append(notice(Code.WAITING, share=waited, skew=skew, worker=f"worker {worker}", last=last))
    return said
