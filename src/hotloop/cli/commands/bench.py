"""hotloop bench: how fast a target steps, with its spread."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli import suites, trends
from hotloop.cli.console import bar, remark, stdout_kept_clean
from hotloop.cli.results import (
    Parted,
    check_baseline,
    find_baselines,
    keep_baseline,
    make_room,
    names_file,
    part_words,
    record_path,
    show_folder,
)
from hotloop.cli.runner import Experiment, check, kept_in, measure, tell
from hotloop.cli.targets import metric_of, names_several, program_of, reporting, targets_of
from hotloop.core.errors import InputError
from hotloop.core.files import save
from hotloop.core.target import ENV_ONLY, Target
from hotloop.options.bench import (
    QUICK_PROGRAM_ROUNDS,
    THOROUGH_PROGRAM_ROUNDS,
    BenchOptions,
    BenchProgramOptions,
)

if TYPE_CHECKING:
    from hotloop.core.progress import Progress
    from hotloop.core.record import Record
    from hotloop.lab.bench import Extras
    from hotloop.lab.measure.target import Opener
    from hotloop.lab.programs.launch import Program


def bench(options: BenchOptions) -> int:
    """Measure targets, a suite, past commits or the stages up to training; returns the gravest exit code."""
    from hotloop.lab.measure.loop import Rounds
    from hotloop.lab.training.sides import check_modes

    if options.report is not None:
        return show_folder(options.report, as_json=options.json)
    if options.suite is not None:
        return suites.run(options.suite, Rounds.from_options(options), options)
    words, baselines = part_words(options.words, options.baseline)
    target = Target.typed(options.target or "", words, seed=options.seed, threads=options.threads)
    target = reporting(target, options.phases)
    if options.since is not None:
        return trends.run(target, options)
    trains = any(key.startswith("train.") for key in target.keys)
    modes = check_modes(options.mode or ("trainer" if trains else ENV_ONLY))
    check_single(target, options, baselines)
    extras = extras_of(options, baselines[0])
    if modes != (ENV_ONLY,):
        check_ladder(modes, options, baselines)
        return climb_all(target, modes, options, extras.baselines)
    return measured(target, options, extras, baselines)


def extras_of(options: BenchOptions, baselines: Sequence[str]) -> "Extras":
    """Return what is asked for beside the speed; `baselines` are names of records."""
    from hotloop.lab.bench import Extras, wanted_of

    return Extras(
        label=options.phase,
        phases=options.profile,
        instructions=options.instructions,
        garbage=options.gc,
        wanted=wanted_of(options),
        baselines=find_baselines(baselines),
        band=options.band_share,
    )


def measured(target: Target, options: BenchOptions, extras: "Extras", baselines: Parted) -> int:
    """Measure the envs by themselves, once they can be; `baselines` are names of records, and commits."""
    from hotloop.lab.measure.target import Opener
    from hotloop.report.kinds.bench import bench as sections
    from hotloop.report.kinds.bench import brief
    from hotloop.report.terminal import draw

    with closing(Opener()) as opener:
        targets = targets_of(target)
        check(targets, options.policy, opener, instructions=options.instructions)
        make_room_for_all(options.output, options.save_baseline)
        experiment = experiment_of(options, extras, opener, baselines)
        records = measure(targets, experiment, keeper(options.output, options.save_baseline))
        view, is_list = draw(sections(records)), names_several(target.name)
        return tell(records, view, as_json=options.json, as_list=is_list, brief=brief(records))


def experiment_of(options: BenchOptions, extras: "Extras", opener: "Opener", baselines: Parted) -> Experiment:
    """Return what is done with each target; commits take turns with the present code after it."""
    from hotloop.lab import bench as lab
    from hotloop.lab.compare.commits import against_commits, build_all, earlier_of
    from hotloop.lab.compare.compare import CompareSettings
    from hotloop.lab.compare.process import check_asked
    from hotloop.lab.measure.loop import Plan, Rounds

    policy, (kept, refs) = options.policy, baselines
    if refs:
        check_asked(policy, beyond_speed=False)
    asked = CompareSettings(
        plan=Plan(band=extras.band), garbage=extras.garbage, instructions=extras.instructions
    )

    def experiment(target: Target, progress: "Progress") -> "Record":
        earlier = earlier_of(target, policy, zip(kept, extras.baselines, strict=True), refs)
        with build_all(earlier, target, extras.garbage, remark) as pairs:
            rebuilt = [each.record for each, _, _ in pairs if each.record]
            read = [record for record in extras.baselines if record not in rebuilt]
            chosen = replace(extras, baselines=tuple(read), rebuilt=tuple(rebuilt))
            rounds = Rounds.from_options(options)
            record = lab.bench(target, rounds, progress, policy=policy, extras=chosen, opener=opener)
            return against_commits(record, pairs, asked, progress, say=remark)

    return experiment


def make_room_for_all(output: Path, baseline: str | None) -> None:
    """Refuse, before anything is measured, places that cannot be written to."""
    check_baseline(baseline)
    make_room(output)


def check_ladder(modes: Sequence[str], options: BenchOptions, baselines: Parted) -> None:
    """Refuse what is only for the envs by themselves, and baselines of several rungs."""
    given = {
        "--profile": options.profile,
        "--instructions": options.instructions,
        "--policy": options.policy != "random",
        "--save-baseline": options.save_baseline is not None,
        f"--baseline {' '.join(baselines[1])}, a commit,": bool(baselines[1]),
    }
    flags = [flag for flag, is_given in given.items() if is_given]
    if flags:
        raise InputError(f"{flags[0]} is for --mode env_only: leave it out; hotloop train shows the tree")
    if baselines[0] and len(modes) > 1:
        raise InputError(f"--baseline is for one mode and {len(modes)} are asked for: name one of them")


def keeper(output: Path, baseline: str | None) -> "Callable[[Record], Path]":
    """What keeps a record where it was asked for, and as a baseline where it is to be one."""

    def keep(record: "Record") -> Path:
        path = save(record_path(output, record), record.to_json())
        keep_baseline(baseline, record)
        return path

    return keep


def check_single(target: Target, options: BenchOptions, baselines: Parted) -> None:
    """Refuse a world of several presets where one record is asked for."""
    presets = len(targets_of(target))
    for_one = {
        "--baseline": any(baselines),
        "--save-baseline": options.save_baseline is not None,
        f"--output {options.output}": names_file(options.output),
    }
    given = [flag for flag, is_given in for_one.items() if is_given]
    if presets > 1 and given:
        raise InputError(
            f"{given[0]} is for one record and {target.name} has {presets} presets: name one of them"
        )


def climb_all(
    target: Target, modes: Sequence[str], options: BenchOptions, baselines: "Sequence[Record]"
) -> int:
    """Measure the rungs of one preset, or of all of a world; keep every record and show the ladder."""
    from hotloop.lab.training import settings as training_settings
    from hotloop.lab.training.sides import climb
    from hotloop.report.kinds.bench import ladder
    from hotloop.report.terminal import draw

    targets, output = targets_of(target), options.output
    if (len(modes) > 1 or len(targets) > 1) and names_file(output):
        raise InputError(f"--output {output} is for one record: name a folder, or one mode of one preset")
    runs = [training_settings.read(each) for each in targets]
    make_room(output)
    ladders: list[list[Record]] = []
    for each in runs:
        with bar(f"{each.target.name} {','.join(modes)}") as progress, stdout_kept_clean():
            records = climb(each, modes, options, progress, baselines=baselines)
        ladders.append([kept_in(output, record) for record in records])
        if ladders[-1][0].partial:
            break
    records = [record for rungs in ladders for record in rungs]
    view = (section for rungs in ladders for section in ladder(rungs))
    is_list = names_several(target.name) or len(modes) > 1
    return tell(records, draw(view), as_json=options.json, as_list=is_list)


def bench_program(words: tuple[str, ...], options: BenchProgramOptions) -> int:
    """Measure a program, keep and show the record; returns its exit code."""
    from hotloop.lab.programs import measure as programs
    from hotloop.report.kinds.bench import program_bench as sections
    from hotloop.report.terminal import draw

    program, metric = program_of(words), metric_of(options)
    if options.mode is not None:
        return climb_program(program, options.mode, options)
    baselines = find_baselines(options.baseline or ())
    make_room_for_all(options.output, options.save_baseline)

    def experiment(_: Target, progress: "Progress") -> "Record":
        return programs.bench(program, options, progress, metric=metric, baselines=baselines)

    keep = keeper(options.output, options.save_baseline)
    records = measure([Target(program.name)], experiment, keep)
    return tell(records, draw(sections(records[0])), as_json=options.json, as_list=False)


def climb_program(program: "Program", mode: str, options: BenchProgramOptions) -> int:
    """Measure the rungs of a program's training, keep every record and show the ladder."""
    from hotloop.lab.programs.measure import climb
    from hotloop.lab.training.sides import check_modes
    from hotloop.report.kinds.bench import ladder
    from hotloop.report.terminal import draw

    modes, output = check_modes(mode), options.output
    if len(modes) > 1 and names_file(output):
        raise InputError(f"--output {output} is for one record: name a folder, or one mode")
    make_room(output)
    rounds = options.rounds or (THOROUGH_PROGRAM_ROUNDS if options.thorough else QUICK_PROGRAM_ROUNDS)
    with bar(f"{program.name} {','.join(modes)}") as progress:
        records = climb(program, modes, rounds, progress)
    records = [kept_in(output, record) for record in records]
    return tell(records, draw(ladder(records)), as_json=options.json, as_list=len(modes) > 1)
