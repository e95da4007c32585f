"""Tune: which settings are the fastest, found by halving, confirmed in turns, and held to what is learnt.

Combinations that cannot be run are left out before anything runs. Who wins is who can be relied on for most:
the highest lower end of an interval.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from statistics import fmean

from hotloop.core.clock import utc_now
from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.project import PROGRAM
from hotloop.core.record import Record, run_id
from hotloop.core.record.experiments import BENCH, TRAIN, LearningCheck, Tuning
from hotloop.core.record.metadata import own_commit
from hotloop.core.target import Target
from hotloop.judge import sweep as choosing
from hotloop.judge.judge import judge
from hotloop.lab.cells import CellCache, Executor, LocalExecutor
from hotloop.lab.measure.loop import until_interrupted
from hotloop.lab.scale.scale import Axes
from hotloop.lab.training.settings import is_training
from hotloop.lab.tune import programs
from hotloop.lab.tune.combinations import KIND, checked_present, sort, target_at
from hotloop.lab.tune.confirmation import confirm, learn
from hotloop.lab.tune.halving import Deadline, RungRunner, halve, update_s, updates_of
from hotloop.options.tune import SearchOptions
from hotloop.stats.intervals import FEWEST

CELL_S = 5.0  # What a cell of envs alone takes about, over all rungs


# Of programs: three sides in the fewest rounds, after their warm-up, and as much again
CONFIRMING_RUNS = 2 * (3 * FEWEST + 2)

LONGEST = 2.0  # Times what is expected that search and confirmation may take, unless somebody says how long


def confirming_s(axes: Axes, options: SearchOptions) -> float:
    """What the confirmation takes at most the first time: as much again for faster or slower."""
    return 2 * options.confirming_ns(training=is_training(target_at(axes, axes.places[0]))) / 1e9


def reserved_s(axes: Axes, options: SearchOptions) -> float:
    """What the search leaves the confirmation: half of the time at most, and of programs that."""
    half = (options.at_most_s or 0.0) / 2
    return half if isinstance(axes, programs.ProgramAxes) else min(confirming_s(axes, options), half)


def forecast(axes: Axes, options: SearchOptions) -> float:
    """Seconds that the search and its confirmation take about; of a training, by an update or two of it."""
    count, training = len(axes.places), is_training(target_at(axes, axes.places[0]))
    confirming = confirming_s(axes, options)
    if isinstance(axes, programs.ProgramAxes):
        seconds = programs.forecast_s(axes)
        return updates_of(count, options.first_rounds, 0) * seconds + max(
            confirming, CONFIRMING_RUNS * seconds
        )
    if not training:
        return count * CELL_S + confirming
    ends = [target_at(axes, place) for place in (axes.places[0], axes.places[-1])]
    took = [seconds for seconds in map(update_s, ends) if seconds is not None]
    return updates_of(count, options.first_rounds) * (fmean(took) if took else 1.0) + confirming


def tune(
    axes: Axes,
    options: SearchOptions,
    progress: Progress = silent,
    *,
    executor: Executor | None = None,
    learners: Executor | None = None,
    shelf: CellCache | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Record:
    """Search, confirm, check what is learnt; Ctrl-C leaves the cells, for --resume, and what came next.

    The search leaves the confirmation its time. `learners` run trainings, which nobody times; where none are
    given the executor does.
    """
    now, end = utc_now(), Deadline(options.at_most_s)
    over = end.before(reserved_s(axes, options))
    places, skipped = sort(axes)
    present = checked_present(axes)
    sweeping = RungRunner(axes, executor or LocalExecutor(), shelf, progress, over, options=options)
    found = halve(places, sweeping, options.first_rounds, over)
    if not found:
        raise InputError(f"none of the combinations can be measured: {sweeping.skipped[0].why}")
    if over():
        say("search: its time was over, the winner is of what was measured by then")
    tried = choosing.mark_best([each.tried() for each in found])
    won = choosing.winner(tried)
    best = next(each for each in found if each.place.at == won.at)
    chosen, running = target_at(axes, best.place), executor or LocalExecutor()
    confirmed = confirm(present, chosen, options, running, progress, say, end)
    outcomes = {each.outcome for each in confirmed.comparisons} if confirmed else {"same"}
    keep = "slower" in outcomes
    stopped = confirmed is not None and confirmed.partial
    learning: LearningCheck | None = None
    if not (keep or stopped):
        with until_interrupted() as state:
            learning = learn(present, chosen, options, learners or running, progress, say)
        stopped = state.partial
    keep = keep or (learning is not None and learning.outcome == "worse")
    relied_on = won.speeds
    if programs.is_program(chosen):
        relied_on = programs.floor_speeds(won.speeds, confirmed)
    result = Tuning(
        axes=axes.values,
        present=present.words,
        tried=tried,
        skipped=(*skipped, *sweeping.skipped),
        winner=won.at,
        words=line_of(present if keep else chosen, training=is_training(chosen)),
        kept=keep,
        floor=None if keep or stopped or "cannot tell" in outcomes else choosing.floor(relied_on),
        learnt=learning,
    )
    assert best.record is not None
    made = record_of(best.record, confirmed, result, axes, now)
    return judge(replace(made, partial=stopped))


def line_of(target: Target, *, training: bool) -> str:
    """The line to paste: of a program its own."""
    if programs.is_program(target):
        return programs.program_of(target).name
    return f"{TRAIN if training else BENCH} {target.words}"


def record_of(best: Record, confirmed: Record | None, result: Tuning, axes: Axes, now: datetime) -> Record:
    """The winner's record, with all that was tried and how it was confirmed."""
    several = {axis: ",".join(values) for axis, values in axes.values.items()}
    target = replace(best.target, keys={**axes.target.keys, **several})
    if isinstance(axes, programs.ProgramAxes):
        target = replace(best.target, name=axes.target.name.removeprefix(PROGRAM))
    return replace(
        best,
        run_id=run_id(now, *own_commit(best.code), f"{KIND}-{target.words}"),
        kind=KIND,
        created=now.isoformat(timespec="seconds"),
        target=target,
        comparisons=confirmed.comparisons if confirmed else (),
        tuning=result,
    )
