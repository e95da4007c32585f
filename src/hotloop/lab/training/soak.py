"""Soak of a training: update after update, beside a training that has just begun."""

from hotloop.core.progress import Progress, silent
from hotloop.core.record.record import Record
from hotloop.core.target import Target
from hotloop.judge.judge import judge
from hotloop.lab.measure.policy import LEARNING
from hotloop.lab.measure.record import Recorder, describe_method
from hotloop.lab.soak import KIND, Asked, SoFar, Watch
from hotloop.lab.training.settings import read
from hotloop.lab.training.sides import TrainSide, spec_of, untimed


def soak(target: Target, asked: Asked, progress: Progress = silent) -> Record:
    """Soak a training; Ctrl-C leaves a record of what was seen."""
    settings = untimed(read(target))
    spec, found = spec_of(settings), SoFar()
    recorder = Recorder(KIND, spec)
    side = TrainSide(target.words, settings)
    try:
        watch = Watch(make=lambda: TrainSide(target.words, settings), asked=asked, progress=progress)
        watch.run(side, found)
        counters = dict(side.counters())
    finally:
        side.close()
    order = "in turns with a training just begun"
    method = describe_method(
        spec, rounds=len(found.rows), iterations=side.grain, policy=LEARNING, garbage="life", order=order
    )
    return judge(
        recorder.record(method=method, counters=counters, values={}, soak=found.soak(), partial=found.partial)
    )
