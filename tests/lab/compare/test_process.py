import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from support.sides import first_difference

from hotloop.core.errors import InputError
from hotloop.envs import native
from hotloop.lab.compare.process import ProcessSide, replay_both
from hotloop.lab.validate.equal import Reach

needs_native = pytest.mark.skipif(native.why_not("grid") is not None, reason="the native module is not built")

LOUD = """
import os, sys

class Env:
    num_actions = 2

    def reset(self):
        print('{"ns": 1}')
        sys.stdout.flush()
        return sys.stdin.read()

    def step(self, action):
        os.write(1, b'{"error": "no"}')
        if os.environ.get("CRASH"):
            print("goodbye", file=sys.stderr, flush=True)
            os._exit(3) if os.environ["CRASH"] == "exit" else os.kill(os.getpid(), 9)

def batch():
    import hotloop
    return hotloop.make("grid/toy", num_envs=2, agents=3)

class Short:
    num_actions = 1

    def reset(self):
        self.steps = 0
        return 0

    def step(self, action):
        self.steps += 1
        return 0, 0.0, self.steps == 12, False, {}

class half:
    def step(self, action):
        return 1

def number(times=2):
    return 3 * times
"""


MEETING = """
from pathlib import Path
from time import monotonic

class Env:
    num_actions = 2

    def __init__(self, mine, other):
        self.mine, self.other = Path(mine), Path(other)

    def reset(self):
        pass

    def step(self, action):
        self.mine.touch()
        begin = monotonic()
        while not self.other.exists():
            assert monotonic() - begin < 60, "nobody came"
"""
"""An env whose step ends only once another's has begun."""


@pytest.fixture
def sides(tmp_path: Path) -> Iterator[Any]:
    (tmp_path / "loud.py").write_text(LOUD)
    with ExitStack() as stack:

        def opened(target: str, environment: dict[str, str] | None = None, **keys: object) -> ProcessSide:
            asked = {"target": {"name": target, "keys": keys}, "seed": 3}
            side = ProcessSide("side", Path(sys.executable), tmp_path, asked, environment)
            return stack.enter_context(closing(side))

        yield opened


def test_what_a_program_prints_and_reads_is_not_taken_for_answers_and_commands(sides: Any) -> None:
    side = sides("loud.py:Env")
    assert side.turn(10).env_steps == 10
    assert side.counters()["env_steps"] == 11


def test_several_take_their_turns_at_the_same_time(sides: Any, tmp_path: Path) -> None:
    (tmp_path / "meeting.py").write_text(MEETING)
    met = [sides("meeting.py:Env", mine=mine, other=other) for mine, other in ("ab", "ba")]
    for side in met:
        side.begin_turn(1)
    assert [side.end_turn().env_steps for side in met] == [1, 1]


@pytest.mark.parametrize(("crash", "how"), [("exit", "ended with exit code 3"), ("kill", "ended by SIGKILL")])
def test_a_program_that_ends_leaves_its_last_words(sides: Any, crash: str, how: str) -> None:
    side = sides("loud.py:Env", {"CRASH": crash})
    with pytest.raises(InputError, match=rf"(?s)side: the program .*{how}; it said: .*goodbye"):
        side.turn(10)
    with pytest.raises(InputError, match=how):
        side.counters()


def test_what_has_no_reset_is_refused(sides: Any) -> None:
    with pytest.raises(InputError, match="half made a half, which has no reset"):
        sides("loud.py:half")


def test_a_function_that_makes_no_env_is_measured_itself(sides: Any) -> None:
    side, other = sides("loud.py:number"), sides("loud.py:number", times="3")
    assert side.turn(10).env_steps == 10
    assert first_difference(side, sides("loud.py:number", times=2), 3) is None
    assert first_difference(side, other, 3) == "step 1: answer differ"


def test_a_batch_of_ours_that_a_callable_made_is_known_as_one(sides: Any) -> None:
    side = sides("loud.py:batch")
    assert (side.facts["num_envs"], side.facts["agents"]) == (2, 3)
    assert side.turn(5).env_steps == 6
    assert side.counters()["agent_steps"] == 3 * side.counters()["env_steps"] == 3 * (6 + 2)


@needs_native
def test_native_and_twin_answer_the_same_in_processes_of_their_own(sides: Any) -> None:
    shared = {"num_envs": "2", "agents": "3", "max_steps": "9"}
    fast, slow = (sides("grid/toy", impl=impl, **shared) for impl in ("native", "reference"))
    assert fast.facts["target"]["impl"] == fast.facts["impl"] == "native"
    assert fast.facts["build"]["compiler"]
    assert slow.facts["build"] is None
    told = fast.replay(Reach(steps=20, needed=20)).steps
    assert len(told) == 21
    assert {"observations", "rewards", "terminals", "truncations", "digest"} <= told[0].keys()
    assert first_difference(fast, slow, 20) is None
    other = sides("grid/toy", impl="native", **shared | {"seed": "4"})
    assert str(first_difference(fast, other, 20)).startswith("the reset: observations differ (and ")


def test_a_replay_of_two_processes_says_what_it_compared_and_what_is_missing(sides: Any) -> None:
    one, other = sides("loud.py:Short"), sides("loud.py:Short")
    brief = replay_both(one, other, Reach(most_ns=0))
    assert (brief.steps, brief.difference) == (1, None)
    assert brief.too_few is not None
    assert brief.too_few.needed == 200
    whole = replay_both(one, other, Reach(box_ns=0))
    assert (whole.steps, whole.too_few) == (12, None)
    assert {"observations", "rewards"} <= {*whole.fields}
    longer = replay_both(one, other, Reach(box_ns=0, needed=30, episodes=False))
    assert (longer.steps, longer.too_few) == (30, None)


def test_a_replay_leaves_the_side_as_it_was(sides: Any) -> None:
    one, other = (sides("grid/toy", num_envs="2", agents="3") for _ in range(2))
    one.replay(Reach(steps=5, needed=5))
    for side in (one, other):
        side.turn(8)
    assert one.counters() == other.counters()
