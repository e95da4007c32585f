"""What two sides must show alike before their speeds are compared, on other people's programs."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hotloop.core.errors import ExitCode, InputError
from hotloop.core.record import Record
from hotloop.core.settings import Target
from hotloop.envs import env_by_env
from hotloop.lab.compare.compare import CompareSettings, compare
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure.loop import Plan
from hotloop.lab.validate import equal
from hotloop.lab.validate.equal import Agreement, Reach

ZOO = Path(__file__).parents[2] / "zoo"
PLAN = Plan(budget_ns=400_000_000, fewest=6)

SECOND = 1_000_000_000


def reach_for(steps: int) -> Reach:
    """Return the reach of a comparison that has no time and is asked for so many steps."""
    return CompareSettings(plan=Plan(budget_ns=0), equal_steps=steps).reach


@pytest.fixture(autouse=True)
def _modules_of_the_zoo_are_left_out() -> None:
    """The zoo has modules called `base` and `traps`, which other tests may have too."""
    for name in ("base", "traps", "vec", "cheats"):
        sys.modules.pop(name, None)


def contender(words: str, ignore: tuple[str, ...] = ()) -> TargetContender:
    name, *pairs = words.split()
    name = name if name.startswith("gym:") else f"{ZOO}/{name}"
    return TargetContender(Target(name, dict(pair.split("=") for pair in pairs)), ignore)


def compared(a: str, b: str, asked: CompareSettings | None = None) -> Record:
    return compare(contender(a), contender(b), asked or CompareSettings(plan=PLAN))


def agreement(a: str, b: str, reach: Reach = equal.USUAL) -> Agreement:
    one, other = contender(a), contender(b)
    try:
        return one.agreement(other, reach)
    finally:
        one.close()
        other.close()


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Let the clock of the replay go on by what envs sleep, and by nothing else."""
    clock = [SECOND]

    def sleep(seconds: float) -> None:
        clock[0] += round(seconds * SECOND)

    def now_ns() -> int:
        clock[0] += 1
        return clock[0]

    monkeypatch.setattr("time.sleep", sleep)
    monkeypatch.setattr(equal, "now_ns", now_ns)
    return lambda: clock[0]


def test_envs_in_this_process_and_in_workers_are_alike_in_all_that_was_compared() -> None:
    record = compared("gym:CartPole-v1 num_envs=2 vector=sync", "gym:CartPole-v1 num_envs=2 vector=async")
    assert record.validation is not None
    assert record.validation.mismatches == 0
    assert "random.np_random" in record.validation.left_out
    assert not {*record.validation.left_out} & {*record.validation.fields}
    assert record.comparisons[0].difference is None


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("vec.py:V num_envs=32", "vec.py:V num_envs=32 cheat=1"),
        ("vec.py:V num_envs=32", "vec.py:V num_envs=32 cheat=2"),
        ("vec.py:V", "vec.py:V num_envs=32 cheat=1"),
        ("vec.py:V num_envs=4", "vec.py:V num_envs=32 cheat=1"),
        ("base.py:Honest", "vec.py:V num_envs=32 cheat=1"),
        ("vec.py:V num_envs=32 cheat=1", "base.py:Honest"),
    ],
)
def test_an_env_that_is_not_simulated_is_named(a: str, b: str) -> None:
    record = compared(a, b)
    assert record.exit_code == ExitCode.MISMATCH
    assert (record.comparisons[0].difference or "").startswith("step 0, observations[1, 0]: ")


@pytest.mark.parametrize("batch", ["nextstep", "samestep", "disabled"])
def test_a_batch_is_like_as_many_single_envs_through_the_ends_of_episodes(batch: str) -> None:
    found = agreement("traps.py:Base", f"traps.py:{batch}", Reach(needed=120, episodes=False))
    assert (found.difference, found.envs, found.all_envs) == (None, 3, 3)
    assert found.steps >= 120


@pytest.mark.parametrize("batch", ["nextstep", "samestep", "disabled"])
def test_a_fault_in_a_later_episode_of_one_env_of_a_batch_is_named(
    monkeypatch: pytest.MonkeyPatch, batch: str
) -> None:
    one, other = contender("traps.py:Base"), contender(f"traps.py:{batch}")
    with other.borrowed() as subject:
        third = subject.env.envs[2]  # type: ignore[attr-defined]
    real, calls = third.step, iter(range(10_000))

    def step(action: object) -> object:
        seen, reward, *rest = real(action)
        return seen, reward + (next(calls) == 110), *rest

    monkeypatch.setattr(third, "step", step, raising=False)
    found = one.agreement(other, Reach(needed=200, episodes=False))
    assert isinstance(found.difference, equal.Difference)
    assert (found.difference.field, found.difference.index) == ("rewards", (2,))


def test_a_batch_that_stops_after_the_replay_is_caught_beside_a_single_env_too() -> None:
    """Alone it is honest for 600 calls."""
    record = compared("base.py:Honest", "vec.py:V cheat=2", CompareSettings(plan=Plan(budget_ns=3 * SECOND)))
    assert record.exit_code == ExitCode.MISMATCH
    assert "between timed turns" in (record.comparisons[0].difference or "")


UNSEEDED = """
class Fixed:
    num_actions = 3

    def reset(self):
        self.at = self.steps = 0
        return self.at

    def step(self, action):
        self.at, self.steps = self.at + int(action), self.steps + 1
        return self.at, float(action), False, self.steps == 50, {}
"""


def test_sides_of_unlike_seeds_take_unlike_actions_and_are_not_looked_at_between_turns(
    tmp_path: Path,
) -> None:
    (tmp_path / "unseeded.py").write_text(UNSEEDED)
    a, b = (TargetContender(Target(f"{tmp_path}/unseeded.py:Fixed", keys)) for keys in ({"seed": 1}, {}))
    record = compare(a, b, CompareSettings(plan=PLAN))
    assert record.comparisons[0].difference is None
    assert record.comparisons[0].ratio is not None


def test_autoreset_modes_that_differ_are_named() -> None:
    with pytest.raises(
        InputError, match=r"autoreset conventions: .*nextstep.*'NextStep'.*samestep.*'SameStep'"
    ):
        compared("traps.py:nextstep", "traps.py:samestep")


def test_unlike_numbers_of_envs_are_held_against_each_other_and_then_refused() -> None:
    with pytest.raises(InputError, match=r"num_envs 1 against 4.*answer alike, env by env.*--unlike"):
        compared("gym:CartPole-v1", "gym:CartPole-v1 num_envs=4")
    with pytest.raises(InputError, match=r"num_envs 2 against 5.*--unlike"):
        compare(
            *(TargetContender(Target("grid/toy", {"num_envs": n})) for n in (2, 5)),
            CompareSettings(plan=PLAN),
        )


def test_speeds_of_unlike_numbers_of_envs_are_compared_if_asked_and_equality_is_still_known() -> None:
    record = compared("vec.py:V", "vec.py:V num_envs=8", CompareSettings(plan=PLAN, unlike=True))
    assert record.validation is not None
    assert record.validation.comparisons >= 8 * 200
    assert record.exit_code != ExitCode.MISMATCH
    assert record.comparisons[0].unlike == ("num_envs 1 against 8",)
    assert record.comparisons[0].ratio is not None
    cheat = compared("vec.py:V", "vec.py:V num_envs=8 cheat=1", CompareSettings(plan=PLAN, unlike=True))
    assert cheat.exit_code == ExitCode.MISMATCH
    assert cheat.comparisons[0].outcome == "cannot tell"


def test_envs_without_a_counterpart_leave_the_answer_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env_by_env, "MOST_ENVS", 3)
    record = compared("vec.py:V", "vec.py:V num_envs=8", CompareSettings(plan=PLAN, unlike=True))
    assert record.validation is not None
    assert record.validation.envs_not_compared == 5
    assert record.exit_code == ExitCode.CANNOT_TELL
    assert record.comparisons[0].why == "equality: 3 of 8 envs were compared"
    with pytest.raises(
        InputError, match=r"as far as they were compared \(equality: 3 of 8 envs were .*--unlike"
    ):
        compared("vec.py:V", "vec.py:V num_envs=8")


def test_a_first_step_that_compiles_does_not_use_up_the_replay(slept: Callable[[], int]) -> None:
    begin = slept()
    found = agreement("traps.py:Base", "traps.py:FCW", Reach(box_ns=SECOND, most_ns=SECOND))
    assert slept() - begin >= 3 * SECOND
    assert str(found.difference).startswith("step 37, rewards[0]: ")


@pytest.mark.usefixtures("slept")
def test_a_replay_that_is_too_short_says_what_would_do() -> None:
    """A step takes 2 s on either side: 60 s are 15 more than the first."""
    missing = agreement("traps.py:Slow2", "traps.py:Slow2").too_few
    assert missing is not None
    assert (missing.steps, missing.needed) == (16, 200)
    assert missing.needed_s == pytest.approx(800, rel=0.01)
    assert agreement("traps.py:Slow2", "traps.py:Slow2", reach_for(20)).too_few is None


@pytest.mark.usefixtures("slept")
def test_one_whole_episode_of_every_env_suffices() -> None:
    """Episodes of 50 steps; without a limit the replay ends with the first of them."""
    found = agreement("traps.py:Slow2", "traps.py:Slow2", Reach(most_ns=None))
    assert (found.steps, found.too_few) == (50, None)


def test_steps_that_are_asked_for_are_replayed() -> None:
    assert agreement("traps.py:Base", "traps.py:Base", reach_for(620)).steps == 620


@pytest.mark.parametrize("words", ["agents=4", "agents=4 db={instance}.db"])
def test_an_ecology_is_equal_to_itself_whatever_settings_it_has(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its instances draw from Python's own random numbers, which each would have alone."""
    monkeypatch.chdir(tmp_path)
    found = compared("ecology.py:make agents=4", f"ecology.py:make {words}").comparisons[0]
    assert (found.difference, found.outcome == "not equal") == (None, False)


def test_a_setting_that_differs_is_called_a_setting_and_not_something_to_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    record = compared("ecology.py:make agents=4", "ecology.py:make agents=4 batch=2")
    [setting] = [each for each in record.notices if "infos.spatial.batch" in each.text]
    assert setting.code == "not-compared"
    assert setting.remedy.startswith("it is a setting")
