from dataclasses import replace

from support.records import MACHINE, PROFILE

from hotloop.core.record import Record
from hotloop.report.section import (
    code_line,
    machine_line,
    mean_line,
    measured,
    method_line,
    pace_line,
    path_line,
    size_line,
    work_line,
)


def with_values(**values: tuple[float, ...]) -> Record:
    return replace(PROFILE, values=values)


def test_the_machine_is_named_with_its_load_and_fingerprint() -> None:
    assert machine_line(MACHINE) == "Example CPU, 4 cores, load 0.1, 0123456789ab"
    with_gpu = MACHINE | {"load": None, "gpu": {"name": "Example GPU"}}
    assert machine_line(with_gpu) == "Example CPU, 4 cores, load unknown, Example GPU, 0123456789ab"


def test_the_commit_is_named_with_its_compiler_and_whether_it_is_dirty() -> None:
    assert code_line(PROFILE.code) == "0123abcd, GNU 12, -O3"
    pure = PROFILE.code | {"dirty": True, "compiler": None, "flags": None}
    assert code_line(pure) == "0123abcd (dirty)"
    theirs = {**PROFILE.code, "project": {"commit": "4567cdef", "dirty": True, "root": "game"}}
    assert code_line(theirs) == "4567cdef (dirty) of game, Hotloop 0123abcd, GNU 12, -O3"


def test_the_path_says_what_ran_and_what_was_asked_for() -> None:
    assert path_line(PROFILE) == "native 100.0% of 10 env-steps (asked for auto)"
    nothing = replace(PROFILE, path=replace(PROFILE.path, ran={}))
    assert path_line(nothing).startswith("nothing")


def test_the_method_says_how_it_was_measured() -> None:
    assert (
        method_line(PROFILE) == "8 pairs of passes of 10 env-steps after 5 of warm-up, random play, 1 thread"
    )
    single = replace(PROFILE, method=replace(PROFILE.method, order="single", threads=2))
    assert method_line(single) == "8 rounds of 10 env-steps after 5 of warm-up, random play, 2 threads"


def test_the_size_is_that_of_the_batch() -> None:
    assert size_line(PROFILE) == "5 envs of 2 agents"


def test_a_mean_stands_with_its_interval_and_extremes_or_says_why_not() -> None:
    few = with_values(length=(1.0, 2.5))
    assert mean_line(few, "length", "steps") == "1.75 (too few for an interval) steps, from 1 to 2.5"
    many = mean_line(with_values(length=(1.0, 2.0) * 20), "length", "steps")
    assert many.startswith("1.5 [1.3")
    assert many.endswith("] steps, from 1 to 2")


def test_a_mean_of_equal_values_is_said_once() -> None:
    assert mean_line(with_values(length=(1_000.0,) * 6), "length", "steps") == "1,000 steps, always"
    assert mean_line(with_values(length=(3.0,)), "length", "steps") == "3 steps"
    assert mean_line(with_values(), "length", "steps") == "nothing ended"


def test_work_and_pace_are_of_the_whole_run() -> None:
    record = with_values(wall_ns=(2.5e9,), env_steps_per_s=(4.0,), agent_steps_per_s=(8_000.0,))
    assert work_line(record) == "10 env-steps, 20 agent-steps in 2.50 s"
    assert pace_line(record) == "4.00 env-steps/s, 8.00 k agent-steps/s"


def test_the_path_of_what_is_not_ours_is_no_choice() -> None:
    foreign = replace(PROFILE, path=replace(PROFILE.path, requested="foreign", ran={"foreign": 1.0}))
    assert path_line(foreign) == "your own code, 10 env-steps"


def test_how_much_of_the_time_was_worked_is_said_and_waiting_where_it_is_much() -> None:
    works, waits, unknown = (
        dict(measured([replace(PROFILE, values=values)])).get("CPU")
        for values in ({"cpu_share": (0.97, 0.98, 0.99)}, {"cpu_share": (0.2, 0.3, 0.4)}, {})
    )
    assert works == "98.0% of one core"
    assert waits == "30.0% of one core; 70.0% of the time it waited, or had none"
    assert unknown is None
