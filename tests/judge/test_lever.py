"""The lever is the user's function that one would open first, whatever libraries it calls."""

import pytest

from hotloop.core.record.stacks import Frame, Stack
from hotloop.judge.case import find_lever, is_yours, own_stacks

TORCH = ("backward", "/venv/lib/python3.11/site-packages/torch/graph.py", 9)

JSON = ("dumps", "/usr/lib/python3.11/json/__init__.py", 9)

OURS = "/venv/src/hotloop"


def mine(name: str, line: int = 1) -> Frame:
    return name, "/home/me/ecology.py", line


def lever(found: dict[Stack, float]) -> str | None:
    chosen = find_lever(own_stacks(found, OURS))
    return chosen[0] if chosen else None


STEP, ACT, LEARN, SEE = mine("step"), mine("act"), mine("learn"), mine("see")


def test_the_time_of_a_library_counts_for_the_function_that_calls_it() -> None:
    assert (
        lever({(STEP, ACT, LEARN, TORCH): 69.0, (STEP, ACT, SEE, JSON): 20.0, (STEP, ACT): 11.0}) == "learn"
    )


def test_a_function_whose_time_is_in_one_callee_gives_way_to_it() -> None:
    assert lever({(STEP, ACT, LEARN): 99.0, (STEP,): 1.0}) == "learn"


def test_a_function_that_covers_most_is_preferred_to_its_small_parts() -> None:
    assert lever({(STEP, SEE): 40.0, (STEP, SEE, LEARN): 40.0, (STEP, ACT): 20.0}) == "see"


def test_a_function_that_only_calls_others_gives_way_to_the_largest() -> None:
    assert lever({(STEP, ACT): 40.0, (STEP, SEE): 30.0, (STEP, LEARN): 30.0}) == "act"


def test_lines_of_one_function_are_one_function_and_recursion_ends() -> None:
    assert lever({(STEP, mine("see", 4), mine("see", 9)): 60.0, (STEP, mine("see", 5)): 40.0}) == "see"


def test_hotloops_own_frames_are_never_the_lever() -> None:
    played = ("played", f"{OURS}/lab/probes.py", 3)
    assert lever({(played,): 80.0, (played, STEP): 20.0}) == "step"
    assert lever({(played,): 80.0}) is None


def test_an_installed_environment_is_opened_if_no_code_of_the_users_is_there() -> None:
    cartpole = ("CartPoleEnv.step", "/venv/lib/python3.11/site-packages/gymnasium/cartpole.py", 9)
    assert lever({(cartpole, JSON): 90.0, (cartpole,): 10.0}) == "CartPoleEnv.step"


def test_a_general_library_is_no_installed_environment() -> None:
    force = ("World.force", "/venv/lib/python3.11/site-packages/mpe/core.py", 9)
    reduce = ("_wrapreduction", "/venv/lib/python3.11/site-packages/numpy/_core/fromnumeric.py", 9)
    assert lever({(force, reduce): 30.0, (reduce,): 40.0}) == "World.force"
    assert lever({(reduce,): 40.0}) == "_wrapreduction"


@pytest.mark.parametrize(
    ("file", "yours"),
    [
        ("/home/me/env.py", True),
        ("/home/me/lib/python_tools/env.py", True),
        ("/usr/lib/python3.11/json/__init__.py", False),
        ("/venv/lib/python3.11/site-packages/torch/x.py", False),
        ("/usr/lib/python3/dist-packages/numpy/x.py", False),
        ("<frozen importlib._bootstrap>", False),
        ("~", False),
        ("", False),
    ],
)
def test_only_files_of_the_user_are_the_users(file: str, yours: bool) -> None:
    assert is_yours(file) is yours
