"""hotloop train: PPO or DQN on a world, with every millisecond accounted for."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli.console import remark, show, stdout_kept_clean
from hotloop.cli.results import check_trust, make_folder, make_room
from hotloop.cli.runner import kept_in, tell_one
from hotloop.core.errors import ExitCode, InputError
from hotloop.core.target import Target
from hotloop.options.train import TrainOptions

if TYPE_CHECKING:
    from hotloop.core.record import Record
    from hotloop.lab.training.run import Asked
    from hotloop.lab.training.settings import Run


OWN = ("network", "teacher")  # Keys that may name code of one's own


def train(options: TrainOptions) -> int:
    """Train, keep and show the record; returns its exit code."""
    target, on = typed(options.target, options.words), options.on
    if on is not None:
        target = target.with_keys({"train.ranks_on": on})
    if options.keys:
        return list_keys(target.name)
    if options.trust is not None and not options.resume:
        raise InputError("--trust is for the settings of a run that --resume goes on with: leave it out")
    if led_by_torchrun(target):
        return ExitCode.FINE
    folder, output = put_aside(options)
    make_folder(folder)
    make_room(output)
    asked = asked_for(target, folder, options.trust, resume=options.resume)
    if on is not None and asked.settings.train.ranks == 1:
        raise InputError(f"--on {on} is for ranks after the first: give train.ranks=2 or more")
    record = run(asked, as_json=options.json)
    return tell_one(kept_in(output, record), as_json=options.json)


def put_aside(options: TrainOptions) -> tuple[Path, Path]:
    """Where the run and its record go: of one that `diagnose --causal` delays, away with all it leaves."""
    from hotloop.lab.diagnose.causal import aside

    away = aside()
    if away is None:
        return options.folder, options.output
    if options.resume:
        raise InputError("a run with delays begins anew: leave out --resume")
    return away / "runs", away / "records"


def led_by_torchrun(target: Target) -> bool:
    """Whether torchrun made this a rank after the first, which has followed by now."""
    from hotloop.lab.training import ranks

    found = ranks.from_torchrun()
    if found is None:
        return False
    rank, size = found
    if rank:
        ranks.follow(rank, size)
    elif size > 1 and "ranks" not in target.keys:
        target.keys.setdefault("train.ranks", str(size))
    return rank > 0


def typed(target: str | None, words: list[str] | None) -> Target:
    """The target; its name is empty where --resume leaves it out, so that the first word is a key."""
    if target is not None and "=" in target:
        return Target.typed("", [target, *(words or ())])
    return Target.typed(target or "", words)


def asked_for(target: Target, root: Path, trusted: Path | None, *, resume: bool) -> "Asked":
    """Check everything that can be checked, then make or find the run's folder."""
    from hotloop.lab.training import settings as folders
    from hotloop.lab.training import settings as training_settings
    from hotloop.lab.training.run import Asked, check_trace
    from hotloop.lab.validate.shadow import comparisons_of

    name, validate = (text(target.keys.pop(key, None)) for key in ("run", "validate"))
    if validate in ("false", "0"):
        validate = None
    if validate is not None:
        comparisons_of(validate)
        if resume:
            raise InputError("validate= begins with a run's first step: leave out --resume, or validate=")
    checkpoint = None
    if resume:
        found = folders.find_run(root, name)
        target = resumed(found, target, trusted)
        checkpoint, damaged = folders.last_checkpoint(found)
        for line in damaged:
            remark(f"{line}; going on from {checkpoint.name}")
    if validate is not None and target.is_foreign:
        raise InputError(f"validate= needs a twin, and {target.name} has none: leave it out")
    if not target.name:
        raise InputError("train needs a TARGET, such as prospector: hotloop train --help says how")
    made = training_settings.read(target)
    check_trace(made.profiler, training_settings.updates_of(made))
    run = found if resume else folders.begin_run(root, name, target.name)
    told = training_settings.with_full_names(target)
    return Asked(settings=made, run=run, told=told, resume=checkpoint, validate=validate)


def resumed(run: "Run", target: Target, trusted: Path | None) -> Target:
    """What a run goes on with: what it was begun with, and over it what is given now.

    What its file alone names, and nobody typed now, is not called unless it is of this project.
    """
    from hotloop.core.registry import find
    from hotloop.lab.training.settings import SETTINGS, with_full_names

    was = run.told()
    if target.name and target.name != was.name and find(target.name).target != find(was.name).target:
        raise InputError(
            f"run {run.name} trains on {was.name}, not on {target.name}: "
            "leave the target out, or begin a new run"
        )
    check_trust(run.folder / SETTINGS, list(only_there(was, target)), trusted)
    return was.with_keys(with_full_names(Target(was.name, target.keys)).keys)


def only_there(was: Target, target: Target) -> Iterator[Target]:
    """What a run's settings name that may be called, and nobody typed now."""
    from hotloop.lab.training.settings import PREFIX

    typed_now = {key.removeprefix(PREFIX) for key in target.keys}
    rest = {key: value for key, value in was.keys.items() if key.removeprefix(PREFIX) not in typed_now}
    yield Target("" if target.name == was.name else was.name, rest)
    for key, value in rest.items():
        if key.removeprefix(PREFIX) in OWN and ":" in str(value):
            yield Target(str(value))


def text(word: object) -> str | None:
    return None if word is None else str(word)


def run(asked: "Asked", *, as_json: bool) -> "Record":
    """Train before a person's eyes, or with a line an epoch where nobody looks."""
    from hotloop.cli.live.training import open_panel
    from hotloop.lab.training.run import train as train_lab

    for notice in asked.settings.notices:
        remark(f"! {notice.text}; {notice.remedy}")
    with open_panel(asked) as watch, stdout_kept_clean():
        return train_lab(asked, watch)


def list_keys(target: str) -> int:
    """Every key, its default and its help."""
    from hotloop.core.settings import describe
    from hotloop.lab.training.settings import PARTS, PREFIX
    from hotloop.report.kinds.listings import keys
    from hotloop.report.terminal import draw

    rows = [
        (f"{PREFIX}{prefix}{info.name}", shown(info.default), f"{info.help} ({info.expected})")
        for prefix, cls in PARTS.values()
        for info in describe(cls)
    ]
    show(draw(keys(rows)))
    remark(f"and the keys of the world: hotloop worlds {(target or 'WORLD').partition('/')[0]}")
    return ExitCode.FINE


def shown(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value).lower()
