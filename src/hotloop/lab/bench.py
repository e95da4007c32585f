"""Bench: how fast a target steps, with its spread; every probe is off."""

from contextlib import closing
from dataclasses import dataclass, field

from hotloop.core.record import Record
from hotloop.envs.batch import Batch
from hotloop.lab.account import Tally
from hotloop.lab.judge import judge
from hotloop.lab.opening import Given, open_batch
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
        closing(open_batch(target, given, profile=False)) as batch,
        closing(play_of(policy, batch)) as script,
        no_collection(),
    ):
        recorder = Recorder("bench", batch)
        batch.reset()
        found = Findings(rounds=rounds, work=Tally(lambda: batch.counters))
        try:
            measure(batch, script, found, progress)
        except KeyboardInterrupt:
            found.partial = True
        return judge(record(batch, recorder, rounds, found, script.policy))


def measure(batch: Batch, script: Play, found: Findings, progress: Progress) -> None:
    """Warm up, then time one round after another, each with fresh actions."""
    rounds = found.rounds = warm_up([batch], script, found.rounds, progress)
    calls = calls_for(rounds.iterations, batch)
    found.work.begin()
    while len(found.wall_ns) < rounds.count:
        found.wall_ns.append(play(batch, script.draw(calls), calls))
        found.work.note()
        progress(rounds.warmup + len(found.wall_ns) * rounds.iterations, rounds.env_steps)
    found.partial = False


def record(batch: Batch, recorder: Recorder, asked: Rounds, found: Findings, policy: str) -> Record:
    return recorder.record(
        method=in_rounds(batch, found.rounds, policy),
        counters=found.work.gained,
        values=throughput(batch, found.rounds.iterations, found.wall_ns),
        notices=shortened(asked, found.rounds),
        partial=found.partial,
    )
