"""hotloop train: PPO on a world, with every millisecond accounted for."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotloop.cli.arguments import Json, Output, given_by
from hotloop.cli.output import emit, remark, show, stdout_kept_clean
from hotloop.cli.place import FOLDER, make_folder, make_room, record_path, save
from hotloop.core.errors import ExitCode, InputError
from hotloop.core.settings import parse_pairs

if TYPE_CHECKING:
    from hotloop.core.record import Record
    from hotloop.lab.training import Asked

EXAMPLES = (
    "hotloop train prospector run=first total_timesteps=1000000",
    "hotloop train grid/guard supervised_steps=200000 fade_steps=100000 train.eval.every=10",
    "hotloop train prospector run=first --resume total_timesteps=2000000",
    "hotloop train prospector train.profiler.enabled=true total_timesteps=200000",
    "hotloop train prospector validate=smoke total_timesteps=100000",
    "hotloop train prospector --keys",
)

Target = Annotated[
    str | None,
    typer.Argument(metavar="TARGET", help="A preset such as prospector or grid/guard.", show_default=False),
]
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE",
        help="run=NAME, validate=..., keys of the world and of its batch, and train.KEY; --keys lists them.",
        show_default=False,
    ),
]


def train(
    target: Target = None,
    words: Words = None,
    *,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with run=NAME from its last checkpoint.")
    ] = False,
    keys: Annotated[
        bool, typer.Option("--keys", help="List every key and what it is for; train nothing.")
    ] = False,
    folder: Annotated[Path, typer.Option(metavar="DIR", help="Where runs are kept.")] = Path("train_dir"),
    output: Output = FOLDER,
    json: Json = False,
) -> int:
    """Train a policy by PPO, after imitating a scripted player if asked, and say where the time went.

    Everything of a run is in train_dir/<run>/: logs/script.log and logs/metrics.jsonl, tensorboard/,
    checkpoints/. Every log_every rollouts there is a tree of the time, which adds up. A run is never
    overwritten: the same name needs --resume, which takes the run's own words and those given now over
    them. Ctrl-C finishes the update under way, saves a checkpoint and a record marked partial.
    validate=true (or smoke, soak, a number of comparisons) lets the world's Python twin shadow the first
    envs while the policy plays; a difference is exit code 2. With train.timing=off nothing is timed.
    """
    target, given = own_words(target, words)
    if keys:
        return list_keys(target)
    make_folder(folder)
    make_room(output)
    asked = asked_for(target, given, folder, resume=resume)
    record = run(asked, as_json=json)
    remark(f"saved {save(record_path(output, record), record.to_json())}")
    return tell(record, as_json=json)


def own_words(target: str | None, words: list[str] | None) -> tuple[str | None, dict[str, object]]:
    """The target and the keys; with --resume the target may be left out, and the first word is a key."""
    if target is not None and "=" in target:
        return None, dict(parse_pairs([target, *(words or ())]))
    return target, given_by(words)


def asked_for(target: str | None, words: dict[str, object], root: Path, *, resume: bool) -> "Asked":
    """Check everything that can be checked, then make or find the run's folder."""
    from hotloop.lab import regimen, runs
    from hotloop.lab.shadowed import comparisons_of
    from hotloop.lab.traced import check_trace
    from hotloop.lab.training import Asked

    name, validate = (text(words.pop(key, None)) for key in ("run", "validate"))
    if validate in ("false", "0"):
        validate = None
    if validate is not None:
        comparisons_of(validate)
        if resume:
            raise InputError("validate= begins with a run's first step: leave out --resume, or validate=")
    checkpoint = None
    if resume:
        found = runs.find(root, name)
        target, words = resumed_words(found, target, words)
        checkpoint = runs.last_checkpoint(found)
    if target is None:
        raise InputError("train needs a TARGET, such as prospector: hotloop train --help says how")
    made = regimen.read(target, words)
    check_trace(made.profiler, regimen.updates_of(made))
    run = found if resume else runs.begin(root, name, target)
    told = regimen.full_names(target, words)
    return Asked(regimen=made, run=run, words=told, resume=checkpoint, validate=validate)


def resumed_words(
    run: "object", target: str | None, words: dict[str, object]
) -> tuple[str, dict[str, object]]:
    """What a run goes on with: what it was begun with, and over it what is given now."""
    from hotloop.core.registry import find
    from hotloop.lab import regimen, runs

    assert isinstance(run, runs.Run)
    was, told = run.told()
    if target is not None and find(target).target != find(was).target:
        raise InputError(
            f"run {run.name} trains on {was}, not on {target}: leave the target out, or begin a new run"
        )
    return was, {**told, **regimen.full_names(was, words)}


def text(word: object) -> str | None:
    return None if word is None else str(word)


def run(asked: "Asked", *, as_json: bool) -> "Record":
    """Train before a person's eyes, or with a line an epoch where nobody looks."""
    from hotloop.cli.panel import open_panel
    from hotloop.lab.training import train as train_lab

    for notice in asked.regimen.notices:
        remark(f"! {notice.text}; {notice.remedy}")
    with open_panel(asked) as watch, stdout_kept_clean():
        return train_lab(asked, watch)


def tell(record: "Record", *, as_json: bool) -> int:
    from hotloop.report.sections.notices import notices
    from hotloop.report.sections.train import train as sections
    from hotloop.report.terminal import draw

    if as_json:
        emit(record.to_json())
    else:
        show(draw(sections(record)))
    remark(draw(notices([record])))
    return record.exit_code


def list_keys(target: str | None) -> int:
    """Every key, its default and its help."""
    from hotloop.core.settings import describe
    from hotloop.lab.regimen import PARTS, PREFIX
    from hotloop.report.sections.listings import keys
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
