"""The ladder of a program: its training as envs alone, as rollouts, whole, and with evaluation.

The program has the callback `hotloop.loops.sb3.RunCallback`, which makes a run the rung that it is asked for.
Each rung is a run of its own, round by round in shuffled order; its start and its first update do not count.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record import ENV_STEPS_PER_S, Record
from hotloop.core.target import RUNG, RUNG_FILE
from hotloop.judge.judge import judge
from hotloop.lab.measure.loop import NO_LIMIT, Length, Plan, Samples, measure, until_interrupted
from hotloop.lab.programs.launch import Launcher, Program, Run
from hotloop.lab.programs.record import ProgramRecorder, ProgramSide
from hotloop.lab.training.sides import ORDER, POLICIES
from hotloop.stats.summary import with_metrics

NO_RUNG = (
    "it told nothing of its training: give model.learn the callback hotloop.loops.sb3.RunCallback(run), "
    "in a `with hotloop.run(...) as run:`"
)


@dataclass(frozen=True, slots=True)
class Updates:
    """The updates of one run; the first fills caches and does not count."""

    warmup_steps: int
    steps: int
    ns: int


def read_updates(file: Path, program: Program) -> Updates:
    """What a run told of its updates."""
    updates = json.loads(file.read_text("utf-8")) if file.exists() else []
    if not updates:
        raise InputError(f"{program.name} is no ladder: {NO_RUNG}")
    counted = updates[1:] or updates
    before = updates[0][0] if len(updates) > 1 else 0
    return Updates(before, sum(steps for steps, _ in counted), sum(ns for _, ns in counted))


class RungSide(ProgramSide):
    """Runs of a program as one rung."""

    def __init__(self, program: Program, launcher: Launcher, mode: str) -> None:
        super().__init__(program, launcher)
        self.mode, self.updates = mode, list[Updates]()

    def run(self) -> Run:
        file = self.launcher.folder / "rung.json"
        file.unlink(missing_ok=True)
        environment = {RUNG: self.mode, RUNG_FILE: str(file), "HOTLOOP_RUN": "off"}
        run = self.launcher.run(self.program, environment)
        self.updates.append(read_updates(file, self.program))
        return run

    def keep(self, rounds: int) -> None:
        super().keep(rounds)
        del self.updates[rounds:]


def climb(program: Program, modes: Sequence[str], rounds: int, progress: Progress = silent) -> list[Record]:
    """Measure the rungs; Ctrl-C leaves records of the whole rounds there were."""
    recorder = ProgramRecorder("bench", program)
    with Launcher() as launcher:
        rungs = {mode: RungSide(program, launcher, mode) for mode in modes}
        plan, samples = Plan(rounds=rounds, budget_ns=NO_LIMIT, length=Length(1)), Samples(rungs)
        with until_interrupted(samples):
            measure(rungs, plan, progress, samples=samples)
    for rung in rungs.values():
        rung.keep(samples.count)
    return [record(rung, recorder, partial=samples.partial) for rung in rungs.values()]


def record(rung: RungSide, recorder: ProgramRecorder, *, partial: bool) -> Record:
    """Return the record of one rung."""
    mode, updates = rung.mode, rung.updates
    speeds = [each.steps * 1e9 / each.ns for each in updates]
    made = recorder.record(
        rounds=len(speeds),
        warmup=max((each.warmup_steps for each in updates), default=0),
        runs=len(rung.runs),
        headline=ENV_STEPS_PER_S,
        values={**rung.values(), ENV_STEPS_PER_S: speeds},
        order=ORDER,
        partial=partial,
        label=mode,
    )
    steps = sum(each.steps for each in updates)
    return judge(
        with_metrics(
            replace(
                made,
                run_id=f"{made.run_id}-{mode}",
                method=replace(made.method, policy=POLICIES[mode], iterations=steps // max(len(updates), 1)),
                work=replace(made.work, env_steps=steps),
            )
        )
    )
