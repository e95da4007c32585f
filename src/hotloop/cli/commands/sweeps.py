"""hotloop scale, tune and soak: long experiments that are resumed, run elsewhere and drawn as curves."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hotloop.cli.isolated import settle_record
from hotloop.cli.main import approximate_time, bar, remark, stdout_kept_clean
from hotloop.cli.results import make_room, print_records, program_of, reporting, save_record
from hotloop.core.errors import InputError, SetupError
from hotloop.core.project import NAME, PROGRAM, SAYABLE, Budget, find_file, put_budget
from hotloop.core.settings import Target
from hotloop.options.sweeps import (
    MOST,
    ScaleOptions,
    SoakOptions,
    SoakProgramOptions,
    TuneOptions,
    TuneProgramOptions,
)

if TYPE_CHECKING:
    from hotloop.core.progress import Progress
    from hotloop.core.record import Record
    from hotloop.lab.sweep.cells import Cell, CellCache, Executor
    from hotloop.lab.sweep.scale import Axes


AnyTuneOptions = TypeVar("AnyTuneOptions", TuneOptions, TuneProgramOptions)

ASK_S = 1_800  # A sweep that would take longer begins only with --yes

CONFIRMED = "the floor of the settings that hotloop tune confirmed"  # Why a budget is there


def scale(options: ScaleOptions) -> int:
    """Measure every size, keep and show the record; return its exit code."""
    from hotloop.lab.sweep import scale as lab

    target = Target.typed(options.target, options.words)
    axes = lab.read(reporting(target, options.phases, options.time), options.grid)
    with bar("forecast") as progress, stdout_kept_clean():
        seconds = lab.forecast(axes, options, progress)
    announce(len(axes.places) * options.repeats, seconds, yes=options.yes)
    make_room(options.output)

    def experiment(progress: "Progress", shelf: "CellCache", executor: "Executor") -> "Record":
        return lab.scale(axes, options, progress, executor=executor, shelf=shelf)

    cells = lab.cells_of(axes, options)
    record = run_cells(axes, "scale", cells, experiment, on=options.on, resume=options.resume)
    return save_with_pictures(record, options.output, as_json=options.json)


def tune(options: TuneOptions) -> int:
    """Search the combinations, keep and show the record and the floor; return its exit code."""
    from hotloop.lab.sweep.combinations import read

    axes = read(reporting(Target.typed(options.target, options.words), options.phases, options.time))
    check_floor(options.write_floor, axes)
    options = announce_search(axes, options)
    make_room(options.output)

    def budget(name: str, chosen: Target, floor: float) -> Budget:
        keys: dict[str, object] = {key: str(value) for key, value in chosen.keys.items()}
        for key, word in chosen.keys.items():
            with suppress(ValueError):
                keys[key] = int(str(word))  # as TOML would have it: a number where it is one
        metric, limit = "env_steps_per_s", float(round(floor))
        return Budget(name=name, target=chosen.name, keys=keys, metric=metric, limit=limit, reason=CONFIRMED)

    return search(axes, options, budget, on=options.on)


def tune_program(words: tuple[str, ...], options: TuneProgramOptions) -> int:
    """Search the settings of a program, keep and show the record and the floor; return its exit code."""
    from hotloop.judge.checks import rounded
    from hotloop.lab.programs.launch import metric_of
    from hotloop.lab.sweep import combinations as programs

    axes = programs.read_program(program_of(words).words, options.present)
    metric = metric_of(options.metric, less_is_better=options.less_is_better)
    metric_of(options.learning_metric)  # refused before anything is run
    check_floor(options.write_floor)
    options = replace(options, rounds=options.rounds or programs.rounds_of(len(axes.places)))
    make_room(options.output)
    if not any(map(programs.VALUES.search, words)):
        remark(f"the shell expanded the braces: {axes.words}; quote them as in '{{8,32}}' to be sure")
    remark(f"present settings: {programs.program_of(axes.present).name}")
    options = announce_search(axes, options)

    def budget(name: str, chosen: Target, floor: float) -> Budget:
        kind = "printed_less" if options.less_is_better else "printed"
        return Budget(
            name=name,
            target=f"{PROGRAM}{programs.program_of(chosen).name}",
            metric=f"{kind}:{metric.name}" if metric else "runs_per_s",
            pattern=metric.pattern.pattern if metric else "",
            limit=float(rounded(1 / floor if options.less_is_better else floor)),
            reason=CONFIRMED,
        )

    return search(axes, options, budget)


def check_floor(name: str | None, axes: "Axes | None" = None) -> None:
    """Refuse, before anything is measured, a budget without a proper name, or that no gate could measure."""
    if name is not None and not SAYABLE.fullmatch(name):
        raise InputError(f"--write-floor {name!r} does not fit: a name has letters, digits, '-', '_' and '.'")
    if name is not None and axes is not None:
        from hotloop.lab.training.settings import is_training

        if any(is_training(axes.target_at(place)) for place in axes.places):
            raise InputError("--write-floor is for envs alone: a gate measures no training; leave it out")


def announce_search(axes: "Axes", options: AnyTuneOptions) -> AnyTuneOptions:
    """Say how long it takes, and at most, before it begins; return the options with that bound."""
    from hotloop.lab.sweep import tune as lab
    from hotloop.lab.sweep.combinations import checked_present

    with stdout_kept_clean():
        seconds = lab.forecast(axes, options)
        learning_s = lab.announced(checked_present(axes), options)
    longest = lab.LONGEST * seconds if options.at_most_s is None else options.at_most_s
    then = f"; then the learning check, about {approximate_time(learning_s)}" if learning_s else ""
    expected = seconds if options.at_most_s is None else min(seconds, options.at_most_s)
    more = f", at most {approximate_time(longest)}{then}"
    announce(len(axes.places), expected, yes=options.yes, more=more)
    return replace(options, minutes=min(longest / 60, MOST))


def search(
    axes: "Axes",
    options: AnyTuneOptions,
    budget: Callable[[str, Target, float], Budget],
    *,
    on: str | None = None,
) -> int:
    """Search, keep and show the record, write the confirmed winner's floor as a budget; return the code."""
    from hotloop.lab.sweep import tune as lab
    from hotloop.lab.sweep.tune import RungRunner

    def experiment(progress: "Progress", shelf: "CellCache", executor: "Executor") -> "Record":
        learners = executor
        if on is not None:
            from hotloop.lab.sweep.on_ray import OnRay

            # Nothing times the trainings of the learning check: they may share a machine.
            learners = replace(executor, timed=False) if isinstance(executor, OnRay) else executor
        return lab.tune(
            axes, options, progress, executor=executor, learners=learners, shelf=shelf, say=remark
        )

    cells = [RungRunner.cell_of(axes, place, 0, options.first_rounds, options) for place in axes.places]
    record = run_cells(axes, "tune", cells, experiment, on=on, resume=options.resume)
    code = save_with_pictures(record, options.output, as_json=options.json)
    if (name := options.write_floor) is None:
        return code
    found = record.tuning
    assert found is not None
    if found.floor is None:
        remark(f"no budget {name} written: nothing was confirmed to be as fast as the present settings")
    else:
        chosen = next(axes.target_at(each) for each in axes.places if each.at == found.winner)
        place = find_file() or Path(NAME)  # the project's file, or a new one here
        put_budget(place, budget(name, chosen, found.floor))
        remark(f"wrote [budget.{name}] into {place}")
    return code


def soak(options: SoakOptions) -> int:
    """Step a target for long, keep and show the record; return its exit code."""
    from hotloop.lab.soak import soak as lab

    target = reporting(Target.typed(options.target, options.words), options.phases)
    seconds = options.seconds
    make_room(options.output)
    remark(f"soak: {f'{options.steps:,} env-steps' if seconds is None else approximate_time(seconds)}")
    if options.on is not None:
        record = soak_on(options.on, target, options)
    else:
        with bar(target.name) as progress, stdout_kept_clean():
            record = lab(target, options, progress)
        record = settle_record(record)
    return save_with_pictures(record, options.output, as_json=options.json)


def soak_on(on: str, target: Target, options: SoakOptions) -> "Record":
    """Soak on another machine, which nothing else of ours is timed on meanwhile."""
    from hotloop.lab.sweep import experiments as seeds
    from hotloop.lab.sweep.cells import Cell, LocalExecutor, sweep

    cell = Cell(target=target, experiment=seeds.SOAK, asked={"options": options.to_plain()})
    with (
        open_executor(on, [cell], LocalExecutor(), timed=True) as (executor, _),
        bar(target.name) as progress,
    ):
        swept = sweep([cell], executor, None, progress)
    if not swept.records:
        raise KeyboardInterrupt if swept.interrupted else seeds.refusal(swept.refused)
    return swept.records[0][1]


def soak_program(words: tuple[str, ...], options: SoakProgramOptions) -> int:
    """Watch a program as it runs, keep and show the record; return its exit code."""
    from hotloop.lab.programs.launch import metric_of
    from hotloop.lab.programs.measure import soak as lab

    program, metric = program_of(words), metric_of(options.metric, less_is_better=options.less_is_better)
    make_room(options.output)
    with bar(program.name) as progress:
        record = lab(program, options, progress, metric=metric)
    return save_with_pictures(record, options.output, as_json=options.json)


def announce(cells: int, seconds: float, *, yes: bool, more: str = "") -> None:
    """Say how long a sweep takes before it begins; refuse one of hours without --yes."""
    told = f"{cells:,} cells, about {approximate_time(seconds)}"
    if seconds > ASK_S and not yes:
        raise InputError(f"{told}: narrow the axes or the repeats, or give --yes")
    remark(told + more)


@contextmanager
def open_executor(
    on: str | None, cells: "Sequence[Cell]", here: "Executor", *, timed: bool
) -> "Iterator[tuple[Executor, frozenset[str] | None]]":
    """Yield what runs cells, and the fingerprints of its machines; the folder travels with user code."""
    if on is None:
        yield here, None
        return
    from hotloop.lab.sweep.on_ray import on_ray

    carry = Path.cwd() if any(cell.names_code for cell in cells) else None
    with on_ray(on, timed=timed, carry=carry, say=remark) as ray:
        hosts = len({node.host for node in ray.nodes})
        cores = sum(node.cores for node in ray.nodes)
        remark(f"on {on}: {len(ray.nodes)} nodes on {hosts} machines, {cores} cores")
        yield ray, ray.fingerprints


def run_cells(
    axes: "Axes",
    kind: str,
    cells: "Sequence[Cell]",
    experiment: "Callable[[Progress, CellCache, Executor], Record]",
    *,
    on: str | None,
    resume: bool,
) -> "Record":
    """Run an experiment of many cells with a bar, their records on a shelf; return its settled record."""
    from hotloop.lab.sweep.cells import FOLDER, LocalExecutor, shelf_of

    with open_executor(on, cells, LocalExecutor(), timed=True) as (executor, machines):
        shelf = shelf_of(FOLDER, kind, cells, resume=resume, machines=machines)
        try:
            with bar(axes.target.name) as progress, stdout_kept_clean():
                record = experiment(progress, shelf, executor)
        except KeyboardInterrupt:
            remark(
                f"interrupted: the cells that are done are in {shelf.folder}, and --resume goes on from there"
            )
            raise
    kept = f"the cells' records are in {shelf.folder}"
    remark(kept if shelf.fault is None else f"not all of {kept}, and cannot be resumed: {shelf.fault}")
    return settle_record(record)


def save_with_pictures(record: "Record", output: Path, *, as_json: bool) -> int:
    """Keep the record and its pictures, without Pillow no PNG, and print or draw it; return its exit code."""
    from hotloop.report.charts import png, svg
    from hotloop.report.kinds.record import record_panels

    drawn: list[tuple[str, bytes]] = []
    if panels := record_panels(record):
        title = record.target.words
        drawn.append((".svg", svg(title, panels)))
        try:
            drawn.append((".png", png(title, panels)))
        except SetupError as error:
            remark(f"no PNG: {error}")
    return print_records([save_record(output, record, *drawn)], as_json=as_json)
