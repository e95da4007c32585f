"""hotloop worlds: what there is to measure, and what can be changed about it."""

import json as json_format
from typing import TYPE_CHECKING, Any

from hotloop.cli.console import emit, show
from hotloop.core.errors import ExitCode
from hotloop.core.registry import components, find, presets
from hotloop.core.registry import worlds as all_worlds
from hotloop.core.settings import describe
from hotloop.options.misc import WorldsOptions

if TYPE_CHECKING:
    from hotloop.core.world import World


# Facts about a parameter, and their headings.
COLUMNS = {"name": "key", "default": "default", "expected": "expected", "role": "role", "help": "what it is"}


def worlds(options: WorldsOptions) -> int:
    """Show all worlds, or one of them."""
    from hotloop.report.kinds import listings
    from hotloop.report.terminal import draw

    chosen = [find(options.name).world] if options.name else with_components()
    known = {world.name: facts(world) for world in chosen}
    if options.json:
        emit(json_format.dumps(known, indent=1) + "\n")
    elif options.name:
        show(draw(listings.world(chosen[0].name, known[chosen[0].name], COLUMNS)))
    else:
        show(draw(listings.worlds(known)))
    return ExitCode.FINE


def with_components() -> "list[World]":
    """Every world, each followed by its components."""
    each = ((world, components(name).values()) for name, world in all_worlds().items())
    return [one for world, parts in each for one in (world, *parts)]


def facts(world: "World") -> dict[str, Any]:
    """Everything that is declared about a world and about any batch, as plain values."""
    from hotloop.envs.spec import BatchSettings

    return {
        "summary": world.summary,
        "presets": {found.target: dict(world.presets[found.preset]) for found in presets(world)},
        "default": presets(world)[0].target,
        "phases": list(world.phases),
        "players": ["random", *world.players],
        "parameters": parameters(world.parameters),
        "batch": parameters(BatchSettings),
    }


def parameters(settings: type) -> list[dict[str, Any]]:
    return [{fact: getattr(info, fact) for fact in (*COLUMNS, "env")} for info in describe(settings)]
