"""Bench: how fast a target steps, with its spread; every probe is off."""

from contextlib import closing
from dataclasses import dataclass, field

from hotloop.core.record import Record
from hotloop.envs.subject import Subject
from hotloop.lab.account import Tally
from hotloop.lab.judge import judge
from hotloop.lab.opening import Given, open_subject
from hotloop.lab.play import RANDOM, Play, no_collection, play, play_of
from hotloop.lab.progress import Progress, silent
from hotloop.lab.recording import Recorder, in_rounds, throughput
from hotloop.lab.rounds import Rounds, calls_for, shortened, warm_up


@dataclass(slots=True, kw_only=True)
class Findings:
    """What is known so far, complete up to the last whole round."""

    rounds: Rounds
    work: Tally
    wall_ns: list[int] = field(default_factory=list)
    partial: bool = True


def bench(
    target: str, given: Given, rounds: Rounds, progress: Progress = silent, *, policy: str = RANDOM
) -> Record:
    """Measure a target under a policy's play; Ctrl-C leaves a record of the rounds there were."""
    with (
        closing(open_subject(target, given, profile=False)) as subject,
        closing(play_of(policy, subject)) as script,
        no_collection(),
    ):
        recorder = Recorder("bench", subject.spec)
        subject.reset()
        found = Findings(rounds=rounds, work=Tally(lambda: subject.counters))
        try:
            measure(subject, script, found, progress)
        except KeyboardInterrupt:
            found.partial = True
        return judge(record(subject, recorder, rounds, found, script.policy))


def measure(subject: Subject, script: Play, found: Findings, progress: Progress) -> None:
    """Warm up, then time one round after another, each with fresh actions."""
    rounds = found.rounds = warm_up([subject], script, found.rounds, progress)
    calls = calls_for(rounds.iterations, subject)
    found.work.begin()
    while len(found.wall_ns) < rounds.count:
        found.wall_ns.append(play(subject, script.draw(calls), calls))
        found.work.note()
        progress(rounds.warmup + len(found.wall_ns) * rounds.iterations, rounds.env_steps)
    found.partial = False


def record(subject: Subject, recorder: Recorder, asked: Rounds, found: Findings, policy: str) -> Record:
    counted = found.work.gained["env_steps"] // max(
        len(found.wall_ns), 1
    )  # without calls that only reset an env
    return recorder.record(
        method=in_rounds(subject.spec, found.rounds, policy),
        counters=found.work.gained,
        values=throughput(subject.spec, counted, found.wall_ns),
        notices=shortened(asked, found.rounds),
        partial=found.partial,
    )
