"""From a profile to its record: the clean side's speed, the watched side's account, and what it cost."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hotloop.core.notices import Code, Notice, notice
from hotloop.core.record import Record
from hotloop.core.record.comparison import Validation
from hotloop.core.record.profile import Overhead, Phase, Slow
from hotloop.core.time_tree import TimeTree
from hotloop.core.turn_clock import Turn
from hotloop.envs.foreign.phases import Function
from hotloop.envs.foreign.vector import SLOWEST, WAIT
from hotloop.envs.spec import Spec
from hotloop.envs.subject import Subject
from hotloop.lab.loop.account import cuda_runs
from hotloop.lab.measure.loop import Rounds, Samples, shortened_notices
from hotloop.lab.measure.record import Recorder, in_rounds, overhead
from hotloop.lab.measure.sides import Side
from hotloop.stats.intervals import FEWEST

CLEAN, WATCHED = "clean", "watched"

WALLS = ("clean_wall_ns", "instrumented_wall_ns")  # The times of each pair, as a record's values name them

WAITING_SHARE = 0.05

UNEVEN_SHARE = 0.25  # Of the waiting, from which on it is the slowest worker's doing


class Pairs(Samples):
    """The clean and the watched passes, pair by pair."""

    def __init__(self, sides: Mapping[str, Side], rounds: Rounds) -> None:
        super().__init__(sides)
        self.rounds = rounds
        self.steps: list[Mapping[str, int]] = []
        """What the clean side counted in each pair."""

    def note(self, round_: Mapping[str, Turn]) -> None:
        before = self.work[CLEAN].last
        super().note(round_)
        gained = {name: count - before.get(name, 0) for name, count in self.work[CLEAN].last.items()}
        self.steps.append(gained)

    @property
    def walls_ns(self) -> list[tuple[int, int]]:
        """Return the times of the clean and of the watched pass of each pair."""
        return [
            (clean.ns, watched.ns)
            for clean, watched in zip(self.turns[CLEAN], self.turns[WATCHED], strict=False)
        ]

    def overhead(self, mark_ns: float | None, paused_ns: Sequence[int]) -> Overhead | None:
        """Return what watching cost.

        `mark_ns` is what one mark takes, `paused_ns` what each watched pass spent on collecting garbage,
        which clean passes leave to later.
        """
        pairs = [
            (clean_ns, max(1, watched_ns - paused))
            for (clean_ns, watched_ns), paused in zip(self.walls_ns, paused_ns, strict=False)
        ]
        calm = self.calm_rounds([CLEAN], [WATCHED])
        return overhead([pairs[number] for number in calm] if len(calm) >= FEWEST else pairs, mark_ns)

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
        counters=pairs.work[CLEAN].gained,
        values={**pairs.speeds(), **dict(zip(WALLS, walls, strict=True))},
        notices=[*shortened_notices(asked, pairs.rounds), *account.notices, *host_timer(spec)],
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


def loop_remarks(subject: Subject, functions: Sequence[Function], tree: TimeTree) -> list[Notice]:
    """What was named and never called, and what was waited for."""
    shares = defaultdict[str, float](float)
    for row in tree.rows:
        shares[row.name] += row.total_ns / max(tree.total_ns, 1)
    said = [
        notice(Code.NEVER_CALLED, function=function.name)
        for function in functions
        if tree.total_ns and not any(name in shares for name in function.rows)
    ]
    workers, waited = subject.workers, shares[WAIT]
    if workers is not None and waited > WAITING_SHARE:
        worker, last = workers.slowest
        skew = shares[SLOWEST]
        if skew < UNEVEN_SHARE * waited:
            said.append(notice(Code.IDLE_WORKERS, share=waited))
        else:
            said.append(notice(Code.WAITING, share=waited, skew=skew, worker=f"worker {worker}", last=last))
    return said
