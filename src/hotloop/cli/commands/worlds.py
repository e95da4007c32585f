"""hotloop worlds: what there is to measure, and what can be changed about it."""

import json as json_format
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotloop.cli.console import emit, show
from hotloop.cli.flags import Json
from hotloop.core.errors import ExitCode
from hotloop.core.registry import find, presets
from hotloop.core.registry import worlds as all_worlds
from hotloop.core.settings import describe

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hotloop.core.world import World


COLUMNS = {"name": "key", "default": "default", "expected": "expected", "role": "role", "help": "what it is"}
"""Facts about a parameter, and their headings."""

EXAMPLES = (
    "hotloop worlds",
    "hotloop worlds grid",
)


def worlds(
    name: Annotated[str | None, typer.Argument(metavar="WORLD", help="Show one world in detail.")] = None,
    *,
    json: Json = False,
) -> int:
    """What there is to measure: worlds, presets, parameters.

    A workload parameter changes results. A variant must not, and is what comparisons are for.
    """
    chosen = [find(name).world] if name else list(all_worlds().values())
    if json:
        emit(json_format.dumps({world.name: facts(world) for world in chosen}, indent=1) + "\n")
    else:
        show(draw_world(chosen[0]) if name else draw_worlds(chosen))
    return ExitCode.FINE


def facts(world: "World") -> dict[str, Any]:
    """Everything that is declared about a world and about any batch, as plain values."""
    from hotloop.envs.settings import BatchSettings

    return {
        "summary": world.summary,
        "presets": {found.target: dict(world.presets[found.preset]) for found in presets(world)},
        "default": f"{world.name}/{world.default_preset}",
        "phases": list(world.phases),
        "players": ["random", *world.players],
        "parameters": parameters(world.parameters),
        "batch": parameters(BatchSettings),
    }


def parameters(settings: type) -> list[dict[str, Any]]:
    return [{fact: getattr(info, fact) for fact in (*COLUMNS, "env")} for info in describe(settings)]


def draw_worlds(chosen: "list[World]") -> "RenderableType":
    """One line a preset, the default first."""
    from hotloop.report.terminal import plain_table

    table = plain_table("target", "changes", "what it is")
    for world in chosen:
        for target, changes in facts(world)["presets"].items():
            is_default = target == facts(world)["default"]
            table.add_row(target, spelled(changes), world.summary if is_default else "")
    return table


def draw_world(world: "World") -> "RenderableType":
    """A world's presets and phases, its parameters, then those of any batch."""
    from rich.console import Group

    from hotloop.report.terminal import fact_table, plain_table

    known = facts(world)
    about = fact_table()
    about.add_row(world.name, world.summary)
    for target, changes in known["presets"].items():
        about.add_row(target, spelled(changes) or "the defaults below")
    about.add_row("phases", ", ".join(world.phases))
    about.add_row("players", ", ".join(known["players"]))
    table = plain_table(*COLUMNS.values())
    for group in ("parameters", "batch"):
        for info in known[group]:
            table.add_row(*(str(info[fact]) for fact in COLUMNS))
        table.add_section()
    return Group(about, table)


def spelled(changes: dict[str, object]) -> str:
    """A preset's changes as they would be typed."""
    return " ".join(f"{key}={value}" for key, value in changes.items())
