import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.errors import InputError
from hotloop.core.settings import apply, by_role, describe, parameter, parse_pairs, workload_hash


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    agents: int = parameter(24, help="How many.", role="workload", low=1, high=1000)
    density: float = parameter(0.04, help="Share of walls.", role="workload", low=0.0, high=1.0)
    endless: bool = parameter(False, help="Never ends.", role="workload")
    impl: str = parameter("auto", help="Which code.", role="variant", choices=("native", "reference", "auto"))
    window: tuple[int, ...] = parameter((11, 11), help="Cells seen.", role="workload", low=1, high=15)
    profile: bool | None = parameter(None, help="Time phases.", role="variant")
    threads: int = parameter(1, help="Threads.", role="variant", low=1)
    label: str = parameter("", help="Free text.", role="variant")


def test_defaults_stand_where_nothing_is_given():
    assert apply(Sample) == Sample()


def test_text_becomes_the_declared_type():
    made = apply(
        Sample,
        {
            "agents": "1_0",
            "density": "0.5",
            "endless": "yes",
            "window": "3,5",
            "profile": "true",
            "label": "a=b",
        },
    )
    assert made == Sample(agents=10, density=0.5, endless=True, window=(3, 5), profile=True, label="a=b")


def test_later_overrides_win():
    assert apply(Sample, {"agents": 5, "threads": 2}, {"agents": "7"}) == Sample(agents=7, threads=2)


@pytest.mark.parametrize(
    ("word", "value"),
    [("true", True), ("1", True), ("Yes", True), ("false", False), ("0", False), ("NO", False)],
)
def test_a_bool_is_written_in_three_ways(word, value):
    assert apply(Sample, {"endless": word}).endless is value


@pytest.mark.parametrize("word", [None, "none", "None"])
def test_an_optional_parameter_can_be_none(word):
    assert apply(Sample, {"profile": word}).profile is None


def test_numpy_numbers_become_plain_ones():
    made = apply(Sample, {"agents": np.int64(3), "density": np.float32(0.5), "endless": np.True_})
    assert [type(made.agents), type(made.density), type(made.endless)] == [int, float, bool]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("agents", "0", "int from 1 to 1000"),
        ("agents", "1001", "int from 1 to 1000"),
        ("agents", "many", "int from 1 to 1000"),
        ("agents", "1.5", "int from 1 to 1000"),
        ("agents", 1.0, "int from 1 to 1000"),
        ("agents", True, "int from 1 to 1000"),
        ("agents", None, "int from 1 to 1000"),
        ("density", "nan", "float from 0.0 to 1.0"),
        ("density", "inf", "float from 0.0 to 1.0"),
        ("density", 10**400, "float from 0.0 to 1.0"),
        ("endless", "maybe", "true or false"),
        ("endless", 2, "true or false"),
        ("impl", "fast", "one of native, reference, auto"),
        ("window", "3,x", "int,int,... from 1 to 15"),
        ("window", "3,16", "int,int,... from 1 to 15"),
        ("window", "", "int,int,... from 1 to 15"),
        ("window", 3, "int,int,... from 1 to 15"),
        ("profile", "maybe", "true or false or none"),
        ("threads", "0", "int of at least 1"),
        ("label", 3, "str"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_would(key, value, expected):
    with pytest.raises(InputError) as refused:
        apply(Sample, {key: value})
    assert str(refused.value) == f"{key}={value} does not fit: expected {expected}"


def test_an_unknown_key_gets_the_nearest_and_the_list():
    with pytest.raises(
        InputError, match=r"unknown parameter 'agnets': did you mean agents\? .* agents, density,"
    ):
        apply(Sample, {"agnets": 1})


@given(st.integers(1, 1000), st.floats(0, 1), st.booleans(), st.lists(st.integers(1, 15), min_size=1))
def test_settings_survive_being_written_as_text(agents, density, endless, window):
    made = Sample(agents=agents, density=density, endless=endless, window=tuple(window))
    words = [
        f"agents={agents}",
        f"density={density!r}",
        f"endless={endless}",
        f"window={','.join(map(str, window))}",
    ]
    assert apply(Sample, parse_pairs(words)) == made


@given(st.sampled_from(["agents", "density", "endless", "impl", "window", "profile", "label"]), st.text())
def test_any_text_is_converted_or_refused_as_input(key, text):
    with suppress(InputError):
        apply(Sample, {key: text})


def test_pairs_are_split_at_the_first_equals_sign():
    assert parse_pairs(["agents=24", "map=a=b", "label="]) == {"agents": "24", "map": "a=b", "label": ""}


@pytest.mark.parametrize("word", ["agents", "=24", ""])
def test_a_word_that_is_no_pair_is_refused(word):
    with pytest.raises(InputError, match="is not key=value"):
        parse_pairs([word])


def test_a_key_given_twice_is_refused():
    with pytest.raises(InputError, match="agents is given twice, as '1' and '2'"):
        parse_pairs(["agents=1", "agents=2"])


def test_describe_tells_all_about_a_parameter():
    info = describe(Sample)[0]
    assert (info.name, info.type, info.default, info.help) == ("agents", "int", 24, "How many.")
    assert (info.role, info.low, info.high, info.choices) == ("workload", 1, 1000, None)


def test_a_field_without_a_role_is_a_mistake_of_ours():
    @dataclass(frozen=True)
    class Careless:
        agents: int = 3

    with pytest.raises(TypeError, match=r"Careless\.agents is not declared with parameter"):
        apply(Careless)


def test_values_are_told_apart_by_role():
    assert by_role(Sample(), "variant") == {"impl": "auto", "profile": None, "threads": 1, "label": ""}


def test_variants_do_not_change_the_workload():
    assert workload_hash("grid/toy", Sample(threads=8)) == workload_hash("grid/toy", Sample())


@pytest.mark.parametrize(
    "changed", [{"agents": 25}, {"density": 0.05}, {"endless": True}, {"window": (11, 13)}]
)
def test_every_workload_value_changes_the_workload(changed):
    assert workload_hash("grid/toy", Sample(**changed)) != workload_hash("grid/toy", Sample())


def test_the_target_is_part_of_the_workload():
    assert workload_hash("grid/toy", Sample()) != workload_hash("grid/arena", Sample())


def test_the_workload_hash_is_twelve_digits_and_the_same_in_every_process():
    script = "from hotloop.core.settings import workload_hash; print(workload_hash('grid/toy'))"
    seen = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert seen == workload_hash("grid/toy")
    assert len(seen) == 12
    assert int(seen, 16) >= 0


def test_settings_can_be_written_into_a_record():
    assert json.loads(json.dumps(by_role(Sample(), "workload")))["agents"] == 24


@dataclass(frozen=True, slots=True, kw_only=True)
class FromEnvironment:
    threads: int = parameter(1, help="Threads.", role="variant", low=1, env="HOTLOOP_THREADS")
    encoder: str = parameter(
        "optimized",
        help="Which encoder.",
        role="variant",
        choices=("optimized", "original"),
        env="HOTLOOP_OPTIMIZED",
        env_values={"1": "optimized", "0": "original"},
    )
    seed: int = parameter(0, help="Seed.", role="workload")


@pytest.mark.parametrize(
    ("environment", "values"),
    [
        ({}, [None, None, None]),
        ({"HOTLOOP_THREADS": "", "HOTLOOP_OPTIMIZED": ""}, [None, None, None]),
        ({"HOTLOOP_THREADS": "4", "HOTLOOP_OPTIMIZED": "0"}, [4, "original", None]),
    ],
)
def test_an_environment_variable_gives_the_value_it_stands_for(environment, values):
    assert [info.from_environment(environment) for info in describe(FromEnvironment)] == values


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"HOTLOOP_THREADS": "0"}, "threads=0 does not fit: expected int of at least 1"),
        ({"HOTLOOP_OPTIMIZED": "maybe"}, "HOTLOOP_OPTIMIZED=maybe does not fit: expected one of 1, 0"),
    ],
)
def test_an_environment_variable_that_does_not_fit_is_refused(environment, message):
    with pytest.raises(InputError, match=message):
        [info.from_environment(environment) for info in describe(FromEnvironment)]
