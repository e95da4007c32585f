"""Parts of the farm that are measured alone: native and twin agree, and commands take them."""

import json
from contextlib import closing
from pathlib import Path

import pytest
from support.play import first_difference, tape

import hotloop
from hotloop.cli.main import main
from hotloop.core import registry
from hotloop.core.errors import InputError

SMALL = {"num_envs": 2, "agents": 20, "radius": 2}
NATIVE = ("farm/index", "farm/perception", "farm/resources", "farm/decision")


def test_the_registry_finds_every_component_that_a_world_declares() -> None:
    assert sorted(registry.components("farm")) == sorted((*NATIVE, "farm/log"))
    assert registry.components("grid") == {}
    assert all(part.part_of == "farm" for part in registry.components("farm").values())


@pytest.mark.parametrize("target", NATIVE)
def test_a_component_agrees_with_its_twin(target: str) -> None:
    twin, fast = (hotloop.make(target, impl=impl, **SMALL) for impl in ("reference", "native"))
    assert first_difference(twin, fast, tape(twin.spec, 15)) == ""
    assert fast.counters["agent_steps"] == twin.counters["agent_steps"] == 15 * 40


@pytest.mark.parametrize("index", ["hash", "quadtree", "kdtree"])
def test_every_index_finds_the_same(index: str) -> None:
    grid, other = (hotloop.make("farm/index", **SMALL, index=each) for each in ("grid", index))
    assert first_difference(grid, other, tape(grid.spec, 10)) == ""


@pytest.mark.parametrize("keys", [{"layered": True}, {"layered": True, "resources": "memmap"}], ids=str)
def test_layers_one_after_another_show_the_same(keys: dict[str, object]) -> None:
    whole, layered = (hotloop.make("farm/perception", **SMALL, **more) for more in ({}, keys))
    assert first_difference(whole, layered, tape(whole.spec, 3)) == ""


def test_resources_in_a_file_are_the_same() -> None:
    kept, mapped = (hotloop.make("farm/resources", **SMALL, resources=way) for way in ("list", "memmap"))
    assert first_difference(kept, mapped, tape(kept.spec, 30)) == ""
    assert kept.counters["coverage.regrowth"] > 0


def test_the_log_alone_writes_rows_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with closing(hotloop.make("farm/log", num_envs=1, agents=20, only_states=True)) as batch:
        batch.reset()
        batch.wait()
        before = batch.counters["rows"]
        for _ in range(50):
            batch.step(batch.choose("random"))
        batch.wait()
        nodes = batch.infos["log_nodes"][0]
        first = 1 + 20 + len(nodes) + int((nodes[:, 2] != 30).sum())
        """The episode, its agents, its nodes, and those that were gathered from."""
        assert batch.counters["rows"] - before == 50 * 21 + first
        assert list(tmp_path.glob("hotloop-log-*/run-*.db"))
    assert list(tmp_path.iterdir()) == []


def test_the_log_alone_is_python_by_nature() -> None:
    assert hotloop.make("farm/log", agents=10, num_envs=1).spec.impl == "reference"
    with pytest.raises(InputError, match="Python by nature"):
        hotloop.make("farm/log", impl="native")


def test_an_unknown_component_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"unknown target 'farm/perceptions': did you mean farm/perception\?"
    ):
        hotloop.make("farm/perceptions")


def test_worlds_shows_components(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worlds"]) == 0
    assert "farm/index" in capsys.readouterr().out
    assert main(["worlds", "farm/log", "--json"]) == 0
    assert "only_states" in {
        info["name"] for info in json.loads(capsys.readouterr().out)["farm/log"]["parameters"]
    }


@pytest.mark.parametrize("target", ["farm/index", "farm/log"])
def test_a_component_is_benched_and_profiled(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = ["agents=20", "num_envs=1", "--seed", "1"]
    quick = ["--rounds", "2", "--iterations", "20", "--warmup", "5", "--json", "--output", str(tmp_path)]
    assert main(["bench", target, *keys, *quick]) in (0, 1)
    record = json.loads(capsys.readouterr().out)
    assert record["target"]["name"] == target
    assert record["work"]["agent_steps"] == 2 * 20 * 20
    assert (record["work"]["rows"] > 0) == (target == "farm/log")


def test_deciding_alone_is_played_and_nothing_happens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["agents=20", "num_envs=1", "episodes=1", "steps=7", "player=weighted", "--json"]
    assert main(["sim", "farm/decision", *words, "--output", str(tmp_path)]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["work"]["decisions"] == record["work"]["agent_steps"] == 7 * 20
    assert not any(record["work"]["coverage"].get(name) for name in ("move", "gather", "birth"))
