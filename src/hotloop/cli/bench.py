"""hotloop bench: how fast a target steps, with its spread."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli import flags
from hotloop.cli.arguments import Json, Output, Policy, Words, given_by, names_world, targets_of
from hotloop.cli.climbing import climb_all, plan_climb
from hotloop.cli.measuring import Experiment, check, measure, tell
from hotloop.cli.past import check_baseline, find_baselines, keep_baseline, part_words, show_folder
from hotloop.cli.place import FOLDER, make_room, names_file, record_path, save
from hotloop.cli.plans import band, plan, wanted
from hotloop.core.errors import InputError

if TYPE_CHECKING:
    from hotloop.core.record import Record
    from hotloop.lab.bench import Extras
    from hotloop.lab.progress import Progress

EXAMPLES = (
    "hotloop bench grid/toy",
    "hotloop bench grid/toy agents=100 num_envs=16 --rounds 30",
    "hotloop bench grid/toy impl=reference --quick",
    "hotloop bench grid/toy --profile --phase before --output results/before.json",
    "hotloop bench grid/toy --phase after --baseline results/before.json --output results/after.json",
    "hotloop bench --report results",
    "hotloop bench grid/toy --target-steps-per-sec 100000 --enforce-target",
    "hotloop bench grid --json > grid.json",
    "hotloop bench prospector --mode env_only,rollout,trainer,trainer_eval train.update_epochs=1",
)


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
    mode: flags.Mode = "env_only",
    profile: flags.Phases = False,
    instructions: flags.Instructions = False,
    phase: flags.Label = None,
    target_steps_per_sec: flags.TargetSpeed = None,
    enforce_target: flags.Enforce = False,
    baseline: flags.Baselines = None,
    save_baseline: flags.SaveBaseline = None,
    report: flags.Folder = None,
    output: Output = FOLDER,
    json: Json = False,
) -> int:
    """How fast a target steps, with its spread.

    Random play, every probe off, garbage collection off, actions drawn before the clock starts; another
    policy plays ahead of the clock, and its actions are replayed. Steps are env-steps: one batch call
    makes num_envs of them. A record is saved and never overwrites another. With --mode the ladder from envs
    to rollouts, training and evaluation is measured in turns; its keys are those of hotloop train.
    Exit code 1: rounds varied by over 20%; 3: slower than a baseline or an enforced target; 4: cannot tell.
    """
    if report is not None:
        return show_folder(check_alone(report, target), as_json=json)
    from hotloop.lab import bench as lab
    from hotloop.lab.ladder import ENV_ONLY, check_modes

    modes, (keys, baselines) = check_modes(mode), part_words(words, baseline)
    one = check_single(target, output, baselines, save_baseline)
    given = given_by(keys, seed=seed, threads=threads)
    planned = plan(rounds, iterations, warmup, quick=quick, thorough=thorough)
    extras = lab.Extras(
        label=phase,
        phases=profile,
        instructions=instructions,
        wanted=wanted(target_steps_per_sec, enforced=enforce_target),
        baselines=find_baselines(baselines),
        band=band(thorough=thorough),
    )
    if modes != (ENV_ONLY,):
        check_ladder(modes, extras, policy, save_baseline)
        climb = plan_climb(rounds, iterations, warmup, quick=quick, thorough=thorough)
        return climb_all(one, given, modes, climb, extras, output, as_json=json)
    check(targets_of(one), given, policy, phases=profile, instructions=instructions)
    make_room_for_all(output, save_baseline)

    def experiment(name: str, progress: "Progress") -> "Record":
        return lab.bench(name, given, planned, progress, policy=policy, extras=extras)

    return run(one, experiment, keeper(output, save_baseline), as_json=json)


def make_room_for_all(output: Path, baseline: str | None) -> None:
    """Refuse, before anything is measured, places that cannot be written to."""
    check_baseline(baseline)
    make_room(output)


def check_ladder(modes: Sequence[str], extras: "Extras", policy: str, save_as: str | None) -> None:
    """Refuse what is only for the envs by themselves, and baselines of several rungs."""
    beyond = {
        "--profile": extras.phases,
        "--instructions": extras.instructions,
        "--policy": policy != "random",
        "--save-baseline": save_as is not None,
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


def check_alone(folder: Path, target: str | None) -> Path:
    """Refuse to measure and to report at once."""
    if target is not None:
        raise InputError(f"--report {folder} measures nothing: leave out {target}, or leave out --report")
    return folder


def check_single(target: str | None, output: Path, baselines: list[str], save_as: str | None) -> str:
    """Refuse a world of several presets where one record is asked for, and no target at all."""
    if target is None:
        raise InputError("bench needs a TARGET, or --report DIR: hotloop bench --help says how")
    presets = len(targets_of(target))
    for_one = {
        "--baseline": bool(baselines),
        "--save-baseline": save_as is not None,
        f"--output {output}": names_file(output),
    }
    asked = [flag for flag, is_asked in for_one.items() if is_asked]
    if presets > 1 and asked:
        raise InputError(f"{asked[0]} is for one record and {target} has {presets} presets: name one of them")
    return target


def run(target: str, experiment: Experiment, keep: "Callable[[Record], Path]", *, as_json: bool) -> int:
    """Measure the targets, keep their records and show them."""
    from hotloop.report.sections.bench import bench as sections
    from hotloop.report.terminal import draw

    records = measure(targets_of(target), experiment, keep)
    return tell(records, draw(sections(records)), as_json=as_json, as_list=names_world(target))
