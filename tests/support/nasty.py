"""Values that nobody should give, for every flag and key of every command by the type it declares."""

import random
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from support.records import BENCH, PROFILE

from hotloop.cli.app import commands
from hotloop.core import registry
from hotloop.core.record import write
from hotloop.core.settings import describe
from hotloop.envs.spec import BatchSettings
from hotloop.lab.sim.sim import SimSettings
from hotloop.train.settings import EvalSettings, TrainSettings

Line = tuple[str, ...]

NUMBERS = ("", "-1", "9" * 23, "nan", "inf", "-inf", "1e400", "\uff19", "0x10", "1.5.2", "seven", "None", " ")
WHOLE = (*NUMBERS, "1.5", "18446744073709551616", "-9223372036854775809")
WORDS = (
    "",
    " ",
    "-",
    "=",
    ",",
    "nobody",
    "../../x",
    "a" * 5_000,
    "\x1b[31mred",
    "a\nb",
    ".json",
    "no/such/place",
    "{}",
)
SWITCHES = ("", "maybe", "2", "truefalse", "\uff11")

BASES: dict[str, Line] = {
    "bench": ("grid/toy", "num_envs=1", "--rounds", "1", "--iterations", "1", "--warmup", "0"),
    "compare": ("grid/toy num_envs=1", "grid/toy num_envs=1", "--budget", "0.01"),
    "profile": ("grid/toy", "num_envs=1", "--steps", "20"),
    "sim": ("grid/toy", "episodes=1", "max_steps=4"),
    "train": ("grid/toy", "run=nasty", "num_envs=1", "train.total_timesteps=64", "train.num_steps=64"),
    "validate": ("grid/toy", "4"),
    "scale": ("grid/toy", "num_envs=1,2", "--repeats", "1", "--steps", "1", "--no-phases"),
    "soak": ("grid/toy", "num_envs=1", "--steps", "500"),
    "tune": ("grid/toy", "num_envs=1,2", "--rounds", "1", "--confirm", "0.01"),
    "gate": ("--list",),
    "report": ("../../../kept",),
    "diagnose": ("../../../kept/profile.json", "--quick"),
}
"""Lines that are soon done, to which one nasty thing is added; three folders up is what they read."""

BUDGETS = """
[budget.speed]
target = "grid/toy"
metric = "env_steps_per_s"
limit = 1
"""


def furnish(folder: Path) -> None:
    """Put there what the lines read."""
    (folder / "hotloop.toml").write_text(BUDGETS)
    write(folder / "kept" / "bench.json", BENCH)
    write(folder / "kept" / "profile.json", PROFILE)


def values_for(kind: Any) -> tuple[str, ...]:
    """The nasty ones of a declared type."""
    text = str(kind)
    if "bool" in text:
        return SWITCHES
    if "int" in text:
        return WHOLE
    return NUMBERS if "float" in text else WORDS


def flag_lines() -> Iterator[Line]:
    """Every flag that takes a value, of every command."""
    for name, function in commands().items():
        for each, kind in typing.get_type_hints(function, include_extras=True).items():
            option = option_of(kind)
            if option is None or kind.__args__[0] is bool:
                continue
            flag = next(iter(option.param_decls or ()), f"--{each.replace('_', '-')}")
            for value in values_for(kind.__args__[0]):
                yield (name, *BASES.get(name, ()), flag, value)


def option_of(kind: Any) -> Any:
    """What typer was told of a parameter, where it is a flag."""
    extras = getattr(kind, "__metadata__", ())
    return next((each for each in extras if isinstance(each, type(typer.Option()))), None)


def key_lines() -> Iterator[Line]:
    """Every key of every world, of a batch, and of the commands that have keys of their own."""
    for world in registry.worlds().values():
        for info in (*describe(world.parameters), *describe(BatchSettings)):
            for value in values_for(info.annotation):
                yield (
                    "bench",
                    world.name + "/" + world.default_preset,
                    *BASES["bench"][1:],
                    f"{info.name}={value}",
                )
    for prefix, command, kind in (
        ("sim.", "sim", SimSettings),
        ("train.", "train", TrainSettings),
        ("eval.", "train", EvalSettings),
    ):
        for info in describe(kind):
            for value in values_for(info.annotation):
                yield (command, *BASES[command], f"{prefix}{info.name}={value}")


def sample(lines: Iterator[Line], count: int, seed: int) -> list[Line]:
    """Some of them, the same every time."""
    every = list(lines)
    return random.Random(seed).sample(every, min(count, len(every)))
