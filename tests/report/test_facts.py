from dataclasses import replace

from support.records import MACHINE, PROFILE

from hotloop.report.facts import code_line, machine_line, method_line, path_line, size_line


def test_the_machine_is_named_with_its_load_and_fingerprint() -> None:
    assert machine_line(MACHINE) == "Example CPU, 4 cores, load 0.1, 0123456789ab"
    with_gpu = MACHINE | {"load": None, "gpu": {"name": "Example GPU"}}
    assert machine_line(with_gpu) == "Example CPU, 4 cores, load unknown, Example GPU, 0123456789ab"


def test_the_commit_is_named_with_its_compiler_and_whether_it_is_dirty() -> None:
    assert code_line(PROFILE.code) == "0123abcd, GNU 12, -O3"
    pure = PROFILE.code | {"dirty": True, "compiler": None, "flags": None}
    assert code_line(pure) == "0123abcd (dirty)"


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
