"""hotloop bench: how fast a target steps, with its spread."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from hotloop.cli.main import bar, emit, remark, show, stdout_kept_clean
from hotloop.cli.results import (
    Experiment,
    WordPair,
    check_baseline,
    find_baselines,
    make_room,
    measure,
    names_file,
    names_several,
    print_records,
    program_of,
    record_path,
    reporting,
    save_record,
    saver,
    show_folder,
    split_baselines,
    targets_of,
)
from hotloop.core.clock import utc_now
from hotloop.core.errors import InputError
from hotloop.core.files import save
from hotloop.core.settings import ENV_ONLY, Target
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
    from hotloop.lab.sweep.cells import CellResult


def bench(options: BenchOptions) -> int:
    """Measure targets, a suite, past commits or the stages up to training; return the gravest exit code."""
    from hotloop.lab.bench import Extras, wanted_of
    from hotloop.lab.training.sides import check_modes

    if options.report is not None:
        return show_folder(options.report, as_json=options.json)
    if options.suite is not None:
        return run_suite(options.suite, options)
    words = list(options.words or ())
    baselines: WordPair = ((), ())
    if options.baseline:  # those after the first are words of their own on a command line
        baselines = split_baselines([*options.baseline, *(word for word in words if "=" not in word)])
        words = [word for word in words if "=" in word]
    target = Target.typed(options.target or "", words, seed=options.seed, threads=options.threads)
    target = reporting(target, options.phases)
    if options.since is not None:
        return bench_past(target, options)
    trains = any(key.startswith("train.") for key in target.keys)
    modes = check_modes(options.mode or ("trainer" if trains else ENV_ONLY))
    check_single(target, options, baselines)
    records = find_baselines(baselines[0])
    if modes != (ENV_ONLY,):
        check_ladder(modes, options, baselines)
        return climb_all(target, modes, options, records)
    extras = Extras(
        label=options.phase,
        phases=options.profile,
        instructions=options.instructions,
        garbage=options.gc,
        wanted=wanted_of(options),
        baselines=records,
        band=options.band_share,
    )
    return bench_envs(target, options, extras, baselines)


def check_single(target: Target, options: BenchOptions, baselines: WordPair) -> None:
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


def bench_envs(target: Target, options: BenchOptions, extras: "Extras", baselines: WordPair) -> int:
    """Measure the envs by themselves, once they can be; `baselines` are names of records, and commits."""
    from hotloop.lab.measure import target as measured
    from hotloop.report.kinds.bench import bench as sections
    from hotloop.report.kinds.bench import brief

    with closing(measured.Opener()) as opener:
        targets = targets_of(target)
        with stdout_kept_clean():
            measured.check(targets, options.policy, opener=opener, instructions=options.instructions)
        check_baseline(options.save_baseline)
        make_room(options.output)
        experiment = experiment_of(options, extras, opener, baselines)
        records = measure(targets, experiment, saver(options.output, options.save_baseline))
        return print_records(
            records,
            sections(records),
            as_json=options.json,
            as_list=names_several(target.name),
            brief=brief(records),
        )


def experiment_of(
    options: BenchOptions, extras: "Extras", opener: "Opener", baselines: WordPair
) -> Experiment:
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


def check_ladder(modes: Sequence[str], options: BenchOptions, baselines: WordPair) -> None:
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


def climb_all(
    target: Target, modes: Sequence[str], options: BenchOptions, baselines: "Sequence[Record]"
) -> int:
    """Measure the rungs of one preset, or of all of a world; keep every record and show the ladder."""
    from hotloop.lab.training import settings as training_settings
    from hotloop.lab.training.sides import climb
    from hotloop.report.kinds.bench import ladder

    targets, output = targets_of(target), options.output
    if (len(modes) > 1 or len(targets) > 1) and names_file(output):
        raise InputError(f"--output {output} is for one record: name a folder, or one mode of one preset")
    runs = [training_settings.read(each) for each in targets]
    make_room(output)
    ladders: list[list[Record]] = []
    for each in runs:
        with bar(f"{each.target.name} {','.join(modes)}") as progress, stdout_kept_clean():
            records = climb(each, modes, options, progress, baselines=baselines)
        ladders.append([save_record(output, record) for record in records])
        if ladders[-1][0].partial:
            break
    records = [record for rungs in ladders for record in rungs]
    view = [section for rungs in ladders for section in ladder(rungs)]
    is_list = names_several(target.name) or len(modes) > 1
    return print_records(records, view, as_json=options.json, as_list=is_list)


def run_suite(name: str, options: BenchOptions) -> int:
    """Do all that a suite asks for, keep its report as JSON and Markdown; return the gravest item's code."""
    from hotloop.cli.commands.sweeps import open_executor
    from hotloop.lab.measure.loop import Rounds
    from hotloop.lab.sweep import experiments as suites
    from hotloop.lab.sweep.cells import FOLDER, ProcessExecutor, shelf_of, sweep
    from hotloop.report import markdown
    from hotloop.report.kinds.sweep import suite as sections
    from hotloop.report.terminal import draw

    output = options.output
    if names_file(output):
        raise InputError(f"--output {output} is for one record: name a folder for those of a suite")
    found, rounds = suites.find(name), Rounds.from_options(options)
    cells = [suites.cell_of(item, rounds) for item in found.suite.items]
    make_room(output)

    def tell(done: "CellResult") -> None:
        if done.record is not None and not done.kept:
            save(record_path(output, done.record), done.record.to_json())
        elif done.record is None:
            remark(f"failed: {done.cell.target.words}: {done.refused}")

    here = ProcessExecutor(found.folder)
    with open_executor(options.on, cells, here, timed=True) as (executor, machines):
        shelf = shelf_of(FOLDER, f"suite-{name}", cells, resume=options.resume, machines=machines)
        with bar(f"suite {name}") as progress, stdout_kept_clean():
            swept = sweep(cells, executor, shelf, progress, tell)
    ran = suites.summarize_suite(found, cells, swept)
    view = sections(ran)
    page = f"# Suite {ran.name}, {ran.created}\n\n{markdown.draw(view)}"
    path = output / f"suite-{ran.name}-{utc_now():%Y%m%d-%H%M}.json"
    remark(f"saved {save(path, ran.to_json(), ('.md', page))}, and the same as .md")
    if options.json:
        emit(ran.to_json())
    else:
        show(draw(view))
    return ran.code


def bench_past(target: Target, options: BenchOptions) -> int:
    """Measure past commits of a project in turns, keep their records and show one table of all."""
    from hotloop.lab.trend import trend
    from hotloop.report.kinds.record import trend as sections

    if any(key.startswith("train.") for key in target.keys):
        raise InputError(
            "--since measures envs: leave out the train. keys, or compare two commits by --a-ref"
        )
    if len(targets_of(target)) > 1:
        raise InputError(
            f"--since is for one target, and {target.name} has several presets: name one of them"
        )
    output = options.output
    if names_file(output):
        raise InputError(f"--output {output} is for one record, and each commit has its own: name a folder")
    make_room(output)
    with bar(f"{target.name} since {options.since}") as progress, stdout_kept_clean():
        records = trend(target, options, progress, say=remark)
    records = [save_record(output, replace(record, label=options.phase)) for record in records]
    return print_records(records, sections(records), as_json=options.json, as_list=True)


def bench_program(words: tuple[str, ...], options: BenchProgramOptions) -> int:
    """Measure a program, or the rungs of its training; keep and show the records; return the gravest code."""
    from hotloop.lab.programs.launch import metric_of
    from hotloop.lab.training.sides import check_modes

    program, output = program_of(words), options.output
    metric = metric_of(options.metric, less_is_better=options.less_is_better)
    if options.mode is None:
        from hotloop.lab.programs.measure import bench as run
        from hotloop.report.kinds.bench import program_bench as sections

        baselines = find_baselines(options.baseline or ())
        check_baseline(options.save_baseline)
        make_room(output)

        def experiment(_: Target, progress: "Progress") -> "Record":
            return run(program, options, progress, metric=metric, baselines=baselines)

        records = measure([Target(program.name)], experiment, saver(output, options.save_baseline))
        return print_records(records, sections(records[0]), as_json=options.json)
    from hotloop.lab.programs.measure import climb
    from hotloop.report.kinds.bench import ladder

    modes = check_modes(options.mode)
    if len(modes) > 1 and names_file(output):
        raise InputError(f"--output {output} is for one record: name a folder, or one mode")
    make_room(output)
    rounds = options.rounds or (THOROUGH_PROGRAM_ROUNDS if options.thorough else QUICK_PROGRAM_ROUNDS)
    with bar(f"{program.name} {','.join(modes)}") as progress:
        records = climb(program, modes, rounds, progress)
    records = [save_record(output, record) for record in records]
    return print_records(records, ladder(records), as_json=options.json, as_list=len(modes) > 1)
