"""Rerun: one slow step of a profile, come to again by the same actions and timed again."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.record.metadata import Code, own_commit
from hotloop.core.record.profile import Repeated, RerunResult, Slow, SlowStep
from hotloop.core.spans import span
from hotloop.envs.spec import Spec
from hotloop.envs.subject import Subject
from hotloop.judge.judge import judge
from hotloop.lab.measure.loop import until_interrupted
from hotloop.lab.measure.policy import Actions, Actor, RandomPlay, Watched, is_live, load, play_again, play_of
from hotloop.lab.measure.record import Recorder, describe_method
from hotloop.lab.measure.sides import no_collection, play_in_laps
from hotloop.lab.measure.target import open_subject
from hotloop.lab.profile.tree import LOOP
from hotloop.lab.profile.watch import Watch, fingerprint

LOADED_TIMES = 11

# How often the step is run: from the same saved state, or each time at the end of a fresh run.
FRESH_TIMES = 3

BUDGET_NS = 60_000_000_000  # After which no further fresh run is begun
NEAR = 1_000  # Steps before it whose median is what a step takes now

SAVED = "saved before the step and loaded again"

FRESH = "a fresh run each time"


@dataclass(slots=True, kw_only=True)
class Rerun:
    """What was seen of the step so far."""

    wall_ns: list[int] = field(default_factory=list)
    gc_ns: list[int] = field(default_factory=list)
    phases: list[dict[str, int]] = field(default_factory=list)
    near_ns: list[float] = field(default_factory=list)  # The median of the steps before it, once a run
    same_way: bool | None = None
    how: str = FRESH
    counters: dict[str, int] = field(default_factory=dict)
    partial: bool = True

    @property
    def is_over(self) -> bool:
        return len(self.wall_ns) >= (LOADED_TIMES if self.how == SAVED else FRESH_TIMES)

    def saw(self, watch: Watch) -> None:
        """Take in the step that the watch looked at last."""
        step = watch.last_step
        assert step is not None, "the watch has looked at it"
        self.wall_ns.append(step.wall_ns)
        self.gc_ns.append(step.gc_ns)
        self.phases.append(step.phases)


def find(record: Record, rank: int) -> tuple[Slow, SlowStep]:
    """The slow step of a rank; InputError where the record has none."""
    if record.slow is None or record.kind != "profile":
        raise InputError(
            f"{record.run_id} keeps no slow steps: expected a record of hotloop profile, made by this version"
        )
    known = {step.rank: step for step in (*record.slow.steps, *record.slow.resets, *record.slow.warmup)}
    if not known:
        raise InputError(f"{record.run_id} was broken off before it saw a step: profile again, to the end")
    if rank not in known:
        raise InputError(f"there is no slow step #{rank}: {record.run_id} has #1 to #{max(known)}")
    return record.slow, known[rank]


def rerun(record: Record, rank: int = 1, progress: Progress = silent) -> Record:
    """Come to a slow step again and time it; Ctrl-C leaves a record of the times there were."""
    slow, step = find(record, rank)
    attempt = Rerun()
    with ExitStack() as stack, no_collection() as collects:
        clean = stack.enter_context(closing(open_subject(slow.asked, profile=False)))
        refuse_other_workload(record, clean.spec)
        recorder = Recorder("replay", clean.spec)
        with until_interrupted(attempt):
            run_all(Run(slow=slow, step=step, collects=collects), attempt, progress)
        return judge(rerun_record(recorder, clean, record, step, attempt))


def refuse_other_workload(record: Record, spec: Spec) -> None:
    """Refuse settings that have changed since, such as an environment variable's."""
    then, now = record.target, spec.described
    if then.workload_hash != now.workload_hash:
        changed = [f"{key}={value}" for key, value in then.params.items() if now.params.get(key) != value]
        raise InputError(
            f"{then.name} is not what {record.run_id} ran: it had {', '.join(changed) or 'another workload'}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is to be come to."""

    slow: Slow
    step: SlowStep
    collects: bool


def run_all(run: Run, attempt: Rerun, progress: Progress) -> None:
    """Run the step as often as there is time for: from its saved state, or each time anew."""
    begin = now_ns()
    while not attempt.is_over and now_ns() - begin < BUDGET_NS:
        run_once(run, attempt, progress)
    attempt.partial = False


def can_load(subject: Subject, slow: Slow) -> bool:
    """Whether a state can be put back: all of it is in the envs of a batch, and no policy remembers."""
    return subject.can_save and not is_live(slow.policy)


def run_once(run: Run, attempt: Rerun, progress: Progress) -> None:
    """Play up to the step, time it, and see whether the run came to the same."""
    with ExitStack() as stack:
        subject = stack.enter_context(closing(open_subject(run.slow.asked, profile=True)))
        by_laps = not subject.logs_itself or is_live(run.slow.policy)
        times = LOADED_TIMES if can_load(subject, run.slow) else 1
        attempt.how = SAVED if times > 1 else FRESH
        watch = stack.enter_context(Watch(subject, by_laps=by_laps, collects=run.collects))
        player: Subject = Watched(subject, keep=False) if by_laps else subject
        script = actions_of(run, subject, stack)
        if is_live(run.slow.policy):
            player = Actor(player, load(run.slow.policy, timed=True))
        subject.reset()
        warming = watch.warming(player)
        near = step_until(warming, script, run.step.step - 1, progress)
        attempt.near_ns.append(near)
        watch.begin()
        chosen = next(script)
        states = [subject.save(env) for env in range(subject.spec.num_envs)] if times > 1 else []
        for turn in range(times):
            for env, state in enumerate(states if turn else ()):
                subject.load(env, state)
            look(watch, player, chosen, by_laps=by_laps)
            attempt.saw(watch)
        compare_check(run.step, subject, player, script, attempt)
        attempt.counters = subject.counters


def actions_of(run: Run, subject: Subject, stack: ExitStack) -> Iterator[Actions]:
    """The actions of the profile, as far as the state is compared."""
    live = is_live(run.slow.policy)
    play = RandomPlay(Actor(subject, load(run.slow.policy))) if live else play_of(run.slow.policy, subject)
    script = stack.enter_context(closing(play))
    return play_again(script, run.slow.draws, run.step.check_step)


def step_until(subject: Subject, script: Iterator[Actions], calls: int, progress: Progress) -> float:
    """Play the steps before it; returns the median ns of the nearest."""
    near = np.zeros(NEAR, np.int64)
    for call in range(calls):
        chosen = next(script)
        begin = now_ns()
        subject.step(chosen)
        near[call % NEAR] = now_ns() - begin
        if call % NEAR == 0:
            progress(call, calls)
    return float(median(near[: min(calls, NEAR)].tolist())) if calls else 0.0


def look(watch: Watch, player: Subject, chosen: Actions, *, by_laps: bool) -> None:
    """Time the one step."""
    with watch.look():
        if by_laps:
            with span(LOOP):
                play_in_laps(player, [chosen], watch.counted)
        else:
            player.step(chosen)
    watch.note(1)


def compare_check(
    step: SlowStep, subject: Subject, player: Subject, script: Iterator[Actions], attempt: Rerun
) -> None:
    """Play on to where the profile looked at the state, and compare; one run that differs is enough."""
    for chosen in script:
        player.step(chosen)
    attempt.same_way = fingerprint(subject) == step.check and attempt.same_way is not False


def rerun_record(recorder: Recorder, clean: Subject, of: Record, step: SlowStep, attempt: Rerun) -> Record:
    slow, spec = of.slow, clean.spec
    assert slow is not None, "`find` found the step in it"
    typical_then = (slow.typical_reset_ns if step.resets else None) or slow.typical_ns or 0.0
    typical = float(median(attempt.near_ns)) if attempt.near_ns else 0.0
    setting = recorder.setting(of.method.policy)
    beyond = [ns - typical for ns in attempt.wall_ns]
    again = RerunResult(
        run_id=of.run_id,
        slow=step,
        typical_ns=typical,
        typical_then_ns=typical_then,
        wall_ns=tuple(attempt.wall_ns),
        gc_ns=tuple(attempt.gc_ns),
        phases=middle_of(attempt),
        how=attempt.how,
        same_way=attempt.same_way,
        unlike=tuple(unlike(of, setting.machine, recorder.code)),
        outcome=repeated(step.wall_ns - typical_then, beyond, attempt.same_way),
    )
    return recorder.record(
        method=describe_method(
            spec,
            rounds=len(attempt.wall_ns),
            iterations=spec.num_envs,
            policy=of.method.policy,
            warmup=(step.step - 1) * spec.num_envs,
        ),
        counters=attempt.counters,
        values={"slow_step_ns": attempt.wall_ns},
        notices=() if attempt.partial else clean.faults(),
        again=again,
        partial=attempt.partial,
    )


def repeated(excess_ns: float, again_ns: Sequence[float], same_way: bool | None) -> Repeated:
    """Slow again: half of what it took beyond a usual step, or more, is there again."""
    if not again_ns or same_way is False or excess_ns <= 0:
        return "cannot tell"
    return "slow again" if median(again_ns) >= excess_ns / 2 else "not slow again"


def middle_of(attempt: Rerun) -> dict[str, int]:
    """The phases of the run that took the median time."""
    if not attempt.wall_ns:
        return {}
    order = sorted(range(len(attempt.wall_ns)), key=attempt.wall_ns.__getitem__)
    return attempt.phases[order[len(order) // 2]]


def unlike(of: Record, machine: Any, code: Code) -> Iterator[str]:
    """What a reader must know before comparing the two times."""
    if of.machine["fingerprint"] != machine["fingerprint"]:
        yield f"another machine: {of.machine['cpu']} then, {machine['cpu']} now"
    for part in ("version", "commit"):
        if of.code[part] != code[part]:
            yield f"another {part}: {of.code[part][:12]} then, {code[part][:12]} now"
    (then, was_dirty), (now, is_dirty) = own_commit(of.code), own_commit(code)
    if "project" in code and then != now:
        yield f"another commit of the target: {then[:12]} then, {now[:12]} now"
    if of.code["dirty"] or code["dirty"] or was_dirty or is_dirty:
        yield "code that was not committed"
