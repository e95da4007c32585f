"""Rounds: how many there are, how long each is, and the warm-up before the first."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Self

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.notices import Code, Notice, notice
from hotloop.core.progress import Progress
from hotloop.envs.subject import Subject
from hotloop.lab.measure.policy import Play
from hotloop.options.bench import USUAL, BenchOptions

WARMUP_NS = 2_000_000_000

# What one round may take where it is boxed: ten seconds for the usual 20 rounds and the warm-up.
ROUND_NS = 400_000_000

DRAWN_AT_ONCE = 256  # Calls of the warm-up whose actions are drawn together


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """A plan of measurement. Steps are env-steps: one batch call makes num_envs of them."""

    count: int = USUAL[0]  # Measured rounds; the round, not the step, is the sample
    iterations: int = USUAL[1]  # Env-steps in one round, rounded up to whole batch calls
    warmup: int = USUAL[2]  # Env-steps before the first round, thrown away and recorded
    # Whether a slow target gets shorter rounds, of as many calls as fit into 0.4 seconds.
    box_iterations: bool = True
    box_warmup: bool = True  # Whether the warm-up ends when its time is over
    of_function: bool = False  # Whether a function is measured, whose boxes are smaller: two seconds in all

    def __post_init__(self) -> None:
        for name, least in (("count", 1), ("iterations", 1), ("warmup", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}: expected at least {least}")

    @classmethod
    def from_options(cls, options: BenchOptions) -> Self:
        """Return rounds; numbers that are given are kept whatever it takes, others shrink on slow targets."""
        count, iterations, warmup = options.plan
        return cls(
            count=count,
            iterations=iterations,
            warmup=warmup,
            box_iterations=options.iterations is None,
            box_warmup=options.warmup is None,
        )

    @property
    def env_steps(self) -> int:
        """Env-steps of the whole run, warm-up included."""
        return self.warmup + self.count * self.iterations

    @property
    def warmup_ns(self) -> int:
        """What a boxed warm-up may take."""
        return WARMUP_NS // 10 if self.of_function else WARMUP_NS

    @property
    def round_ns(self) -> int:
        """What a boxed round may take."""
        return ROUND_NS // 5 if self.of_function else ROUND_NS


def calls_for(env_steps: int, subject: Subject) -> int:
    """The batch calls that make at least this many env-steps."""
    return -(-env_steps // subject.spec.num_envs)


def warm_up(subjects: Sequence[Subject], script: Play, asked: Rounds, progress: Progress) -> Rounds:
    """Step all subjects through the same actions until they are warm; returns the rounds as they fit.

    The slowest call says nothing of how long the others take: it may have compiled them.
    """
    num_envs = subjects[0].spec.num_envs
    calls = calls_for(asked.warmup, subjects[0])
    begin, done, stepping_ns, slowest_ns = now_ns(), 0, 0, 0

    def is_over() -> bool:
        late = now_ns() - begin - slowest_ns > asked.warmup_ns
        return done >= calls or (asked.box_warmup and done > 0 and late)

    while not is_over():
        drawn = script.draw(min(DRAWN_AT_ONCE, calls - done))
        before, start = done, now_ns()
        for actions in drawn:
            called = now_ns()
            for subject in subjects[1:]:
                subject.step(deepcopy(actions))  # a side may change what it is given
            subjects[0].step(actions)
            slowest_ns = max(slowest_ns, now_ns() - called)
            done += 1
            progress(done * num_envs, asked.env_steps)
            if is_over():
                break
        for subject in subjects:
            subject.wait()
        stepping_ns += now_ns() - start
        script.put_back(drawn[done - before :])
    usual_ns = (stepping_ns - slowest_ns) / (done - 1) if done > 1 else stepping_ns
    calls = fit(calls_for(asked.iterations, subjects[0]), asked, usual_ns)
    return replace(asked, warmup=done * num_envs, iterations=calls * num_envs)


def fit(calls: int, asked: Rounds, ns_per_call: float) -> int:
    """Cut the calls of a round down to what the box has room for; one always has."""
    if not asked.box_iterations or not ns_per_call:
        return calls
    return max(1, min(calls, int(asked.round_ns / ns_per_call)))


def shortened(asked: Rounds, ran: Rounds) -> list[Notice]:
    """Say so where a slow target got fewer steps than usual; of a function that is the plan."""
    if asked.of_function:
        return []
    if ran.iterations < asked.iterations and ran.box_iterations:
        return [notice(Code.SHORTENED, iterations=ran.iterations, warmup=ran.warmup)]
    if ran.warmup < asked.warmup:
        return [notice(Code.SHORT_WARMUP, warmup=ran.warmup)]
    return []
