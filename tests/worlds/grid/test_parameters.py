"""What the grid refuses to be built from, and how it says so."""

from pathlib import Path

import pytest

import hotloop
from hotloop.core.errors import InputError


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"agnets": 3}, "did you mean agents"),
        ({"agents": 0}, "from 1 to 1000"),
        ({"agents": "many"}, "expected int"),
        ({"agents": 30, "map_size": "7x7", "density": 0}, "25 free cells"),
        ({"density": 0.99}, "0 free cells"),
        ({"window": 4}, "must be odd"),
        ({"window": 17}, "from 1 to 15"),
        ({"map_size": "0x4"}, "from 3 to 255"),
        ({"map_size": "big"}, "HEIGHTxWIDTH"),
        ({"map": "#?#\n#@#"}, "line 1, column 2: unknown character '?'"),
        ({"map": "###\n##"}, "line 2 has 2 characters, line 1 has 3"),
        ({"map": "@#\n##"}, "1 free cells"),
        ({"map": "no/such/file.txt"}, "neither built in nor a readable"),
        ({"directions": 6}, "one of 4, 8"),
        ({"encoder": "fastest"}, "one of optimized, original"),
        ({"seed": -1}, "seed=-1"),
        ({"num_envs": 0}, "num_envs=0"),
        ({"device": "tpu"}, "one of cpu"),
    ],
)
def test_what_cannot_be_built_is_refused_in_one_line(parameters: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as refused:
        hotloop.make("grid/toy", **parameters)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_map_may_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "map.txt"
    file.write_text("####\n#@.#\n####\n")
    batch = hotloop.make("grid/toy", agents=1, map=str(file))
    batch.reset()
    assert batch.spec.agents == 1


@pytest.mark.parametrize(
    ("variable", "word", "key", "value"),
    [
        ("HOTLOOP_OBS_USE_OPTIMIZED", "0", "encoder", "original"),
        ("HOTLOOP_OBS_USE_OPTIMIZED", "1", "encoder", "optimized"),
        ("HOTLOOP_OBS_VALIDATION", "1", "shadow", True),
    ],
)
def test_environment_variables_decide_where_no_key_does(
    monkeypatch: pytest.MonkeyPatch, variable: str, word: str, key: str, value: object
) -> None:
    monkeypatch.setenv(variable, word)
    spec = hotloop.make("grid/toy", num_envs=1).spec
    assert getattr(spec.parameters, key) == value
    assert spec.decided_by[key] == f"environment {variable}"


def test_a_key_wins_over_its_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTLOOP_OBS_USE_OPTIMIZED", "0")
    spec = hotloop.make("grid/toy", num_envs=1, encoder="optimized").spec
    assert (spec.parameters.encoder, spec.decided_by["encoder"]) == ("optimized", "argument")


def test_a_word_the_variable_does_not_know_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTLOOP_OBS_USE_OPTIMIZED", "maybe")
    with pytest.raises(InputError, match="HOTLOOP_OBS_USE_OPTIMIZED=maybe"):
        hotloop.make("grid/toy")
