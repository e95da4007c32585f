"""The ladder of a program: its training as envs alone, as rollouts, whole, and with evaluation.

The program has the callback `hotloop.loops.sb3.RunCallback`, which makes a run the rung that it is asked for.
Each rung is a run of its own, round by round in shuffled order; its start and its first update do not count.
"""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record.record import ENV_STEPS_PER_S, Record
from hotloop.core.rungs import RUNG, RUNG_FILE
from hotloop.judge.judge import judge
from hotloop.lab.ladder import ORDER, POLICIES
from hotloop.lab.programs.launch import Launcher, Program
from hotloop.lab.programs.record import ProgramRecorder, Taken
from hotloop.stats.summary import with_metrics

NO_RUNG = (
    "it told nothing of its training: give model.learn the callback hotloop.loops.sb3.RunCallback(run), "
    "in a `with hotloop.run(...) as run:`"
)


def climb(program: Program, modes: Sequence[str], rounds: int, progress: Progress = silent) -> list[Record]:
    """Measure the rungs; Ctrl-C leaves records of the whole rounds there were."""
    recorder = ProgramRecorder("bench", program)
    taken = {mode: Taken(program) for mode in modes}
    updates: dict[str, list[Updates]] = {mode: [] for mode in modes}
    partial = True
    with Launcher() as launcher:
        try:
            for number in range(rounds):
                for done, mode in enumerate(random.Random(number).sample(list(modes), len(modes)), 1):
                    updates[mode].append(run_once(launcher, program, mode, taken[mode]))
                    progress(number * len(modes) + done, rounds * len(modes))
            partial = False
        except KeyboardInterrupt:
            launcher.close()
    return [record(mode, recorder, taken[mode], updates[mode], partial=partial) for mode in modes]


def run_once(launcher: Launcher, program: Program, mode: str, taken: Taken) -> "Updates":
    """Run the program as one rung."""
    file = launcher.folder / "rung.json"
    file.unlink(missing_ok=True)
    taken.note(launcher.run(program, {RUNG: mode, RUNG_FILE: str(file), "HOTLOOP_RUN": "off"}))
    return read_updates(file, program)


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


def record(
    mode: str, recorder: ProgramRecorder, taken: Taken, updates: Sequence[Updates], *, partial: bool
) -> Record:
    """The record of one rung."""
    speeds = [each.steps * 1e9 / each.ns for each in updates]
    made = recorder.record(
        rounds=len(speeds),
        warmup=max((each.warmup_steps for each in updates), default=0),
        runs=len(taken.runs),
        headline=ENV_STEPS_PER_S,
        values={**taken.values(), ENV_STEPS_PER_S: speeds},
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
