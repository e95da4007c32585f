"""hotloop train: PPO or DQN on a world, with every millisecond accounted for."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotloop.cli.console import remark, show, stdout_kept_clean
from hotloop.cli.flags import Json, Output, Trust
from hotloop.cli.results import FOLDER, check_trust, make_folder, make_room
from hotloop.cli.runner import kept_in, tell_one
from hotloop.core.errors import ExitCode, InputError
from hotloop.core.target import Target

if TYPE_CHECKING:
    from hotloop.core.record.record import Record
    from hotloop.lab.training.folder import Run
    from hotloop.lab.training.run import Asked


ISOLATED = True
"""An env of somebody else's is trained on in a process of its own."""

OWN = ("network", "teacher")
"""Keys that may name code of one's own."""

STOP_S = 600.0
"""An update may take as long until it is over and its checkpoint written."""

EXAMPLES = (
    "hotloop train prospector run=first total_timesteps=1000000",
    "hotloop train grid/guard supervised_steps=200000 fade_steps=100000 train.eval.every=10",
    "hotloop train prospector run=first --resume total_timesteps=2000000",
    "hotloop train prospector train.profiler.enabled=true total_timesteps=200000",
    "hotloop train prospector validate=smoke total_timesteps=100000",
    "hotloop train gym:CartPole-v1 num_envs=8 num_steps=32 minibatch_size=256 total_timesteps=60000",
    "hotloop train gym:CartPole-v1 train.algorithm=dqn total_timesteps=50000",
    "hotloop train my_env.py:make num_envs=64 vector=async train.network=my_net.py:Net",
    "hotloop train prospector run=both train.ranks=2 total_timesteps=1000000",
    "hotloop train prospector train.ranks=4 --on ray://head:10001",
    "torchrun --nproc-per-node 2 --no-python hotloop train prospector run=both",
    "hotloop train prospector --keys",
)

TargetOrNone = Annotated[
    str | None,
    typer.Argument(
        metavar="TARGET", help="A preset such as prospector, gym:ID or my_env.py:make.", show_default=False
    ),
]

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE",
        help="run=NAME, validate=..., keys of the world and of its batch, and train.KEY; --keys lists them.",
        show_default=False,
    ),
]


def train(  # noqa: PLR0913 - one argument a flag
    target: TargetOrNone = None,
    words: Words = None,
    *,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue run=NAME from its last checkpoint.")
    ] = False,
    keys: Annotated[
        bool, typer.Option("--keys", help="List every key and what it is for; train nothing.")
    ] = False,
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="RAY",
            help="Where ranks after the first run: ray (started on this machine for it) or ray://HOST:PORT.",
            show_default=False,
        ),
    ] = None,
    folder: Annotated[Path, typer.Option(metavar="DIR", help="Where runs are kept.")] = Path("train_dir"),
    trust: Trust = None,
    output: Output = FOLDER,
    json: Json = False,
) -> int:
    """Train a policy with PPO or DQN, and show where the time went.

    With supervised_steps it first imitates a scripted player. All files of a run are in train_dir/<run>/:
    logs/script.log and logs/metrics.jsonl, tensorboard/, checkpoints/. Every log_every rollouts it prints a
    tree of the time, which adds up. A run is never overwritten: to use a name again, give --resume, which
    takes the run's own settings and lets new ones override them. Ctrl-C finishes the current update and saves
    a checkpoint and a record marked partial. With validate=true (or smoke, soak, a number of comparisons) the
    world's Python twin checks the first envs while the policy plays; a difference is exit code 2.
    train.timing=off turns timing off. Your env may be a Gymnasium env or a parallel PettingZoo env;
    vector=async steps it in processes; other keys are passed to your function. train.network and
    train.teacher name your own network and teacher. train.ranks=N trains in N processes, here, as started by
    torchrun, or (--on) as Ray tasks on the machines of a cluster, each with its share of envs.
    """
    asked_target = typed(target, words)
    if on is not None:
        asked_target = asked_target.with_keys({"train.ranks_on": on})
    if keys:
        return list_keys(asked_target.name)
    if trust is not None and not resume:
        raise InputError("--trust is for the settings of a run that --resume goes on with: leave it out")
    if led_by_torchrun(asked_target):
        return ExitCode.FINE
    folder, output = put_aside(folder, output, resume=resume)
    make_folder(folder)
    make_room(output)
    asked = asked_for(asked_target, folder, trust, resume=resume)
    if on is not None and asked.settings.train.ranks == 1:
        raise InputError(f"--on {on} is for ranks after the first: give train.ranks=2 or more")
    record = run(asked, as_json=json)
    return tell_one(kept_in(output, record), as_json=json)


def put_aside(folder: Path, output: Path, *, resume: bool) -> tuple[Path, Path]:
    """Where the run and its record go: of one that `diagnose --causal` delays, away with all it leaves."""
    from hotloop.lab.diagnose.causal import aside

    away = aside()
    if away is None:
        return folder, output
    if resume:
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
    from hotloop.lab.training import folder as folders
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
        found = folders.find(root, name)
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
    run = found if resume else folders.begin(root, name, target.name)
    told = training_settings.with_full_names(target)
    return Asked(settings=made, run=run, told=told, resume=checkpoint, validate=validate)


def resumed(run: "Run", target: Target, trusted: Path | None) -> Target:
    """What a run goes on with: what it was begun with, and over it what is given now.

    What its file alone names, and nobody typed now, is not called unless it is of this project.
    """
    from hotloop.core.registry import find
    from hotloop.lab.training.folder import SETTINGS
    from hotloop.lab.training.settings import with_full_names

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
