from collections.abc import Callable
from typing import Any

from hotloop.core.errors import ExitCode
from hotloop.core.registry import components, presets, worlds

Command = Callable[..., Any]


def test_every_preset_of_every_world_is_listed(hotloop: Command) -> None:
    said = hotloop("worlds")
    assert said.code == ExitCode.FINE
    for world in worlds().values():
        for found in presets(world):
            assert found.target in said.out


def test_one_world_is_shown_with_its_parameters_roles_and_phases(hotloop: Command) -> None:
    said = hotloop("worlds", "grid")
    words = " ".join(said.out.split())
    for part in (
        "agents 20 int from 1 to 1000 workload",
        "threads 1 int from 1 to 256 variant",
        "collectives",
        "players random, teacher",
    ):
        assert part in words


def test_json_is_an_object_of_worlds(hotloop: Command) -> None:
    parts = [part for world in worlds() for part in components(world)]
    assert hotloop("worlds", "--json").json.keys() == {*worlds(), *parts}
    grid = hotloop("worlds", "grid", "--json").json["grid"]
    agents = next(parameter for parameter in grid["parameters"] if parameter["name"] == "agents")
    assert (agents["default"], agents["role"]) == (20, "workload")
    assert {"num_envs", "impl", "seed"} <= {parameter["name"] for parameter in grid["batch"]}
    assert grid["default"] in grid["presets"]


def test_an_unknown_world_is_wrong_input(hotloop: Command) -> None:
    said = hotloop("worlds", "grif")
    assert said.code == ExitCode.USAGE
    assert "did you mean grid?" in said.err
