"""hotloop bench: how fast a target steps, with its spread."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli import flags, suites, sweeps, trends
from hotloop.cli.console import bar, remark, stdout_kept_clean
from hotloop.cli.flags import QUICK, THOROUGH, Json, Output, Policy, Words, names_several, targets_of
from hotloop.cli.results import (
    FOLDER,
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
from hotloop.core.errors import InputError
from hotloop.core.files import save
from hotloop.core.rungs import ENV_ONLY
from hotloop.core.target import Target

if TYPE_CHECKING:
    from hotloop.core.progress import Progress
    from hotloop.core.record.record import Record
    from hotloop.judge.judge import Wanted
    from hotloop.lab.bench import Extras
    from hotloop.lab.ladder import Climb
    from hotloop.lab.measure.rounds import Rounds
    from hotloop.lab.measure.target import Opener
    from hotloop.lab.training.settings import RunSettings


ISOLATED = True

EXAMPLES = (
    "hotloop bench grid/toy",
    "hotloop bench grid/toy agents=100 num_envs=16 --rounds 30",
    "hotloop bench grid/toy impl=reference --quick",
    "hotloop bench grid/toy --profile --phase before --output results/before.json",
    "hotloop bench grid/toy --phase after --baseline results/before.json --output results/after.json",
    "hotloop bench my_env.py:make --baseline HEAD~1",
    "hotloop bench my_env.py:make --since v1.0 --every 5",
    "hotloop bench --report results",
    "hotloop bench --suite quick",
    "hotloop bench grid/toy --target-steps-per-sec 100000 --enforce-target",
    "hotloop bench grid --json > grid.json",
    "hotloop bench -- python train.py --steps 1000",
    "hotloop bench prospector --mode env_only,rollout,trainer,trainer_eval train.update_epochs=1",
)

LADDER_ROUNDS, QUICK_ROUNDS, THOROUGH_ROUNDS = 12, 6, 30


def bench(  # noqa: PLR0913 - one argument a flag
    target: flags.TargetOrNone = None,
    words: Words = None,
    *,
    rounds: flags.RoundCount = None,
    iterations: flags.Iterations = None,
    warmup: flags.Warmup = None,
    quick: flags.Quick = False,
    thorough: flags.Thorough = False,
    seed: flags.Seed = None,
    threads: flags.Threads = None,
    policy: Policy = "random",
    mode: flags.Mode = None,
    profile: flags.Phases = False,
    phases: flags.Reports = None,
    instructions: flags.Instructions = False,
    gc: flags.Gc = "between",
    phase: flags.Label = None,
    target_steps_per_sec: flags.TargetSpeed = None,
    enforce_target: flags.Enforce = False,
    baseline: flags.Baselines = None,
    save_baseline: flags.SaveBaseline = None,
    since: flags.Since = None,
    every: flags.Every = None,
    build: flags.Build = None,
    report: flags.Folder = None,
    suite: flags.SuiteName = None,
    resume: flags.ResumeSuite = False,
    on: sweeps.On = None,
    output: Output = FOLDER,
    json: Json = False,
) -> int:
    """Measure how fast a target steps, and how much that varies.

    Actions are random and drawn before the clock starts. my.py:f,g,h measures functions, --mode the stages
    up to training, --suite a list (hotloop.toml's, or farm, worlds, quick), --since past commits. For
    programs: bench --help --. Exit: 1 spread over 20%, 3 slower, 4 unsure.
    """
    from hotloop.lab.ladder import check_modes

    if report is not None:
        return show_folder(check_alone(report, target), as_json=json)
    numbers, goals = (rounds, iterations, warmup), (target_steps_per_sec, enforce_target)
    planned = plan(*numbers, quick=quick, thorough=thorough)
    others = (policy != "random", mode not in (None, ENV_ONLY))
    beyond = (profile, phases, instructions, baseline, save_baseline, *others)
    if suite is not None or resume or on is not None:
        name = check_suite(suite, target, beyond)
        return suites.run(name, planned, output, on=on, resume=resume, as_json=json)
    keys, (kept, refs) = part_words(words, baseline)
    one = flags.reporting(Target.typed(named(target), keys, seed=seed, threads=threads), phases)
    if past := trends.ask(since, every, build, gc, quick=quick, thorough=thorough):
        return trends.run(one, past, phase, beyond_trend(*numbers, *goals, *beyond), output, as_json=json)
    modes = check_modes(mode or usual_mode(one))
    check_single(one, output, [*kept, *refs], save_baseline)
    extras = extras_of(phase, (profile, instructions), gc, goals, kept, thorough=thorough)
    if modes != (ENV_ONLY,):
        climb, alone = plan_climb(*numbers, quick=quick, thorough=thorough), (policy, save_baseline, refs)
        return climb_all(one, modes, climb, extras, output, alone, as_json=json)
    return measured(one, planned, policy, extras, (kept, refs), (output, save_baseline), as_json=json)


def extras_of(
    label: str | None,
    looks: tuple[bool, bool],
    garbage: str,
    goals: tuple[float | None, bool],
    baselines: Sequence[str],
    *,
    thorough: bool,
) -> "Extras":
    """Return what is asked for beside the speed; `looks` are at phases and at instructions."""
    from hotloop.lab.bench import Extras

    return Extras(
        label=label,
        phases=looks[0],
        instructions=looks[1],
        garbage=flags.garbage_of(garbage),
        wanted=wanted(goals[0], enforced=goals[1]),
        baselines=find_baselines(baselines),
        band=band(thorough=thorough),
    )


def usual_mode(target: Target) -> str:
    """Return the mode that fits a target's keys: its training where one of them is the trainer's."""
    trains = any(key.startswith("train.") for key in target.keys)
    return "trainer" if trains else "env_only"


def measured(
    target: Target,
    planned: "Rounds",
    policy: str,
    extras: "Extras",
    baselines: Parted,
    kept: tuple[Path, str | None],
    *,
    as_json: bool,
) -> int:
    """Measure the envs by themselves, once they can be; `kept` is where records go, and as which baseline."""
    from hotloop.lab.measure.target import Opener

    with closing(Opener()) as opener:
        check(targets_of(target), policy, opener, instructions=extras.instructions)
        make_room_for_all(*kept)
        doing = experiment_of(planned, policy, extras, opener, baselines)
        return run(target, doing, keeper(*kept), as_json=as_json)


def experiment_of(
    planned: "Rounds", policy: str, extras: "Extras", opener: "Opener", baselines: Parted = ((), ())
) -> Experiment:
    """What is done with each target; baselines that can be built take turns with the present code after it.

    `baselines` are the names of records, which `extras` holds, and commits.
    """
    from hotloop.lab import bench as lab
    from hotloop.lab.compare.commits import check_asked
    from hotloop.lab.compare.compare import Asked
    from hotloop.lab.compare.present import against_commits, build_all, earlier_of
    from hotloop.lab.measure.loop import Plan

    kept, refs = baselines
    if refs:
        check_asked(policy, beyond_speed=False)
    asked = Asked(plan=Plan(band=extras.band), garbage=extras.garbage, instructions=extras.instructions)

    def experiment(target: Target, progress: "Progress") -> "Record":
        earlier = earlier_of(target, policy, zip(kept, extras.baselines, strict=True), refs)
        with build_all(earlier, target, extras.garbage, remark) as pairs:
            rebuilt = [each.record for each, _, _ in pairs if each.record]
            read = [record for record in extras.baselines if record not in rebuilt]
            chosen = replace(extras, baselines=tuple(read), rebuilt=tuple(rebuilt))
            record = lab.bench(target, planned, progress, policy=policy, extras=chosen, opener=opener)
            return against_commits(record, pairs, asked, progress, say=remark)

    return experiment


def make_room_for_all(output: Path, baseline: str | None) -> None:
    """Refuse, before anything is measured, places that cannot be written to."""
    check_baseline(baseline)
    make_room(output)


def check_ladder(
    modes: Sequence[str], extras: "Extras", policy: str, save_as: str | None, refs: Sequence[str]
) -> None:
    """Refuse what is only for the envs by themselves, and baselines of several rungs."""
    beyond = {
        "--profile": extras.phases,
        "--instructions": extras.instructions,
        "--policy": policy != "random",
        "--save-baseline": save_as is not None,
        f"--baseline {' '.join(refs)}, a commit,": bool(refs),
    }
    asked = [flag for flag, is_asked in beyond.items() if is_asked]
    if asked:
        raise InputError(f"{asked[0]} is for --mode env_only: leave it out; hotloop train shows the tree")
    if extras.baselines and len(modes) > 1:
        raise InputError(f"--baseline is for one mode and {len(modes)} are asked for: name one of them")


def keeper(output: Path, baseline: str | None) -> "Callable[[Record], Path]":
    """What keeps a record where it was asked for, and as a baseline where it is to be one."""

    def keep(record: "Record") -> Path:
        path = save(record_path(output, record), record.to_json())
        keep_baseline(baseline, record)
        return path

    return keep


MOST = 10**12
"""Rounds, or steps of one: what nobody lives to see the end of is a slip of the finger."""


def check_alone(folder: Path, target: str | None) -> Path:
    """Refuse to measure and to report at once."""
    if target is not None:
        raise InputError(f"--report {folder} measures nothing: leave out {target}, or leave out --report")
    return folder


BEYOND_SUITE = "--profile --phases --instructions --baseline --save-baseline --policy --mode".split()
"""Flags that items of a suite do not have."""

SPEED_FLAGS = "--rounds --iterations --warmup --target-steps-per-sec --enforce-target".split()
"""Flags about the speed of the present code."""


def beyond_trend(*values: object) -> dict[str, object]:
    """Return the flags that past commits do not have, with their values."""
    return dict(zip((*SPEED_FLAGS, *BEYOND_SUITE), values, strict=True))


def check_suite(suite: str | None, target: str | None, beyond: Sequence[object]) -> str:
    """Refuse a target beside a suite, flags that its items do not have, and to resume nothing.

    `beyond` holds the values of those flags, in the order of `BEYOND_SUITE`.
    """
    if suite is None:
        raise InputError("--resume goes on with a suite, --on runs one: give --suite NAME too")
    if target is not None:
        raise InputError(f"--suite {suite} has targets of its own: leave out {target}, or leave out --suite")
    given = [flag for flag, value in zip(BEYOND_SUITE, beyond, strict=True) if value]
    if given:
        raise InputError(
            f"{given[0]} is for one target, and --suite {suite} says what to do with its own: leave it out, "
            'or write items with do = "profile", "instructions" or "compare" into hotloop.toml'
        )
    return suite


def named(target: str | None) -> str:
    if target is None:
        raise InputError("bench needs a TARGET, --suite NAME or --report DIR: hotloop bench --help says how")
    return target


def check_single(target: Target, output: Path, baselines: list[str], save_as: str | None) -> None:
    """Refuse a world of several presets where one record is asked for."""
    presets = len(targets_of(target))
    for_one = {
        "--baseline": bool(baselines),
        "--save-baseline": save_as is not None,
        f"--output {output}": names_file(output),
    }
    asked = [flag for flag, is_asked in for_one.items() if is_asked]
    if presets > 1 and asked:
        raise InputError(
            f"{asked[0]} is for one record and {target.name} has {presets} presets: name one of them"
        )


def run(target: Target, experiment: Experiment, keep: "Callable[[Record], Path]", *, as_json: bool) -> int:
    """Measure the targets, keep their records and show them."""
    from hotloop.report.kinds.bench import bench as sections
    from hotloop.report.kinds.bench import brief
    from hotloop.report.terminal import draw

    records = measure(targets_of(target), experiment, keep)
    view, is_list = draw(sections(records)), names_several(target.name)
    return tell(records, view, as_json=as_json, as_list=is_list, brief=brief(records))


def plan_climb(
    rounds: int | None, iterations: int | None, warmup: int | None, *, quick: bool, thorough: bool
) -> "Climb":
    """Rounds as asked; env-steps are made into whole updates where their size is known."""
    from hotloop.lab.ladder import Climb

    usual = QUICK_ROUNDS if quick else THOROUGH_ROUNDS if thorough else LADDER_ROUNDS
    climb = Climb(rounds=rounds or usual, env_steps=iterations)
    if quick:
        climb = replace(climb, warmup=1)
    return climb if warmup is None else replace(climb, warmup_steps=warmup)


def climb_all(
    target: Target,
    modes: Sequence[str],
    climb: "Climb",
    extras: "Extras",
    output: Path,
    alone: "tuple[str, str | None, Sequence[str]]",
    *,
    as_json: bool,
) -> int:
    """Measure the rungs of one preset, or of all of a world; keep every record and show the ladder.

    `alone` are the policy, the baseline to save and the commits, which are for envs by themselves.
    """
    from hotloop.lab.training import settings as training_settings
    from hotloop.report.kinds.bench import ladder
    from hotloop.report.terminal import draw

    check_ladder(modes, extras, *alone)
    several = len(modes) > 1 or len(targets_of(target)) > 1
    if several and names_file(output):
        raise InputError(f"--output {output} is for one record: name a folder, or one mode of one preset")
    asked = replace(climb, extras=extras)
    runs = [training_settings.read(each) for each in targets_of(target)]
    make_room(output)
    ladders: list[list[Record]] = []
    for each in runs:
        ladders.append(one_ladder(each, modes, asked))
        ladders[-1] = [kept_in(output, record) for record in ladders[-1]]
        if ladders[-1][0].partial:
            break
    records = [record for rungs in ladders for record in rungs]
    view = (section for rungs in ladders for section in ladder(rungs))
    return tell(records, draw(view), as_json=as_json, as_list=names_several(target.name) or len(modes) > 1)


def one_ladder(settings: "RunSettings", modes: Sequence[str], asked: "Climb") -> "list[Record]":
    """The rungs of one configuration."""
    from hotloop.lab.ladder import climb

    with bar(f"{settings.target.name} {','.join(modes)}") as progress, stdout_kept_clean():
        return climb(settings, modes, asked, progress)


def plan(
    count: int | None,
    iterations: int | None,
    warmup: int | None,
    *,
    quick: bool = False,
    thorough: bool = False,
) -> "Rounds":
    """Numbers that were asked for are kept whatever it takes; those of a plan may shrink on a slow target."""
    from hotloop.lab.measure.rounds import Rounds

    if quick and thorough:
        raise InputError("--quick and --thorough exclude each other: give one of them")
    for what, number in (("rounds", count), ("iterations", iterations), ("warmup", warmup)):
        if number is not None and number > MOST:
            raise InputError(f"--{what} {number} does not fit: expected at most {MOST:,}")
    usual = Rounds()
    rounds, steps, before = (
        QUICK if quick else THOROUGH if thorough else (usual.count, usual.iterations, usual.warmup)
    )
    return Rounds(
        count=rounds if count is None else count,
        iterations=steps if iterations is None else iterations,
        warmup=before if warmup is None else warmup,
        box_iterations=iterations is None,
        box_warmup=warmup is None,
    )


def band(*, thorough: bool) -> float:
    """How small a change is called the same."""
    from hotloop.lab.measure.settle import THOROUGH as STRICT
    from hotloop.lab.measure.settle import USUAL

    return (STRICT if thorough else USUAL).band


def wanted(env_steps_per_s: float | None, *, enforced: bool) -> "Wanted | None":
    """The speed to hold a run against; None where none was asked for."""
    from hotloop.judge.judge import Wanted

    if env_steps_per_s is not None:
        return Wanted(env_steps_per_s=env_steps_per_s, enforced=enforced)
    if enforced:
        raise InputError("--enforce-target has nothing to enforce: give --target-steps-per-sec N")
    return None
