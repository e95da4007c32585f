"""Legal actions: random play, tapes and adversarial courses keep to what an env says is legal."""

from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from support.profiles import profile

from hotloop.core.errors import InputError, TheirError
from hotloop.core.settings import Target
from hotloop.envs import tapes
from hotloop.envs.foreign.inside import mask_in
from hotloop.envs.open import open_target
from hotloop.envs.subject import Subject
from hotloop.lab import bench as benching
from hotloop.lab.compare.compare import CompareSettings, compare
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure.loop import Plan, Rounds
from hotloop.lab.measure.policy import PolicySubject, acting, load
from hotloop.lab.validate.match import ADVERSARIAL, actions_of

ROUNDS = Rounds(count=6, iterations=20, warmup=20, box_iterations=False)

PLAN = Plan(budget_ns=50_000_000, fewest=6)


def opened(name: str, /, **keys: object) -> Subject:
    subject = open_target(Target(f"support.masked:{name}", keys))
    subject.reset()
    return subject


def play(subject: Subject, calls: int = 60) -> None:
    for actions in subject.draw(np.random.default_rng(0), calls):
        subject.step(actions)


@pytest.mark.parametrize("says", ["info", "observation", "method"])
@pytest.mark.parametrize("envs", [None, 3])
def test_random_play_is_legal_wherever_the_mask_is_told(says: str, envs: int | None) -> None:
    subject = opened("make", says=says, **({} if envs is None else {"num_envs": envs}))
    play(subject)
    assert subject.counters["resets"] >= 8


@pytest.mark.parametrize("name", ["wrapped", "parts", "both"])
def test_so_it_is_in_wrappers_in_parts_and_with_agents_at_once(name: str) -> None:
    subject = opened(name)
    play(subject)
    assert subject.counters["env_steps"] == 60


@pytest.mark.parametrize("name", ["connect_four_v3", "tictactoe_v3", "rps_v2"])
def test_turns_are_legal_and_can_be_taped(name: str, tmp_path: Path) -> None:
    if name != "tictactoe_v3":
        pytest.importorskip("rlcard" if name == "texas" else "pygame")
    subject = open_target(Target(f"pettingzoo:classic.{name}", {"api": "aec"}))
    subject.reset()
    played = []
    for actions in islice(acting("random", subject), 60):
        subject.step(actions)
        played.append(actions)
    tapes.write_played(tmp_path / "turns.tape", subject, played)
    again = open_target(Target(f"pettingzoo:classic.{name}", {"api": "aec"}))
    again.reset()
    for actions in tapes.read_for(tmp_path / "turns.tape", again):
        again.step(actions)
    assert all(np.array_equal(again.answers()[name], rows) for name, rows in subject.answers().items())


def test_every_legal_action_is_as_likely_as_every_other() -> None:
    subject = opened("make")
    play(subject, 4_000)
    taken: list[int] = subject.env.taken  # type: ignore[attr-defined]
    first = [action for step, action in enumerate(taken) if step % 7 == 0]
    assert set(first) == {0, 1}
    assert 0.4 < np.mean(first) < 0.6


def test_an_adversarial_course_keeps_to_what_is_legal() -> None:
    subject = opened("make")
    for actions in islice(actions_of(ADVERSARIAL, subject), 60):
        subject.step(actions)
    assert set(subject.env.taken) == {0, 1, 2, 3, 4}  # type: ignore[attr-defined]


def test_an_env_that_refuses_an_action_is_said_so_with_the_remedy() -> None:
    subject = opened("silent")
    with pytest.raises(InputError, match=r'illegal move .*info\["action_mask"\].*--policy'):
        play(subject)


def test_a_bug_is_not_called_a_refusal() -> None:
    subject = open_target(Target("support.theirs:faulty", {"fault": "raises"}))
    subject.reset()
    with pytest.raises(InputError, match="no such cell") as raised:
        play(subject)
    assert "action_mask" not in str(raised.value)


def test_a_policy_may_ask_for_the_mask() -> None:
    subject = opened("make")
    actor = PolicySubject(subject, load("support.masked:lowest"))
    for _ in range(7):
        actor.step(None)
    assert subject.env.taken == [0, 1, 2, 3, 0, 0, 1]  # type: ignore[attr-defined]


@pytest.mark.parametrize("policy", ["support.masked:fourth", "tape"])
def test_with_a_policy_not_one_random_action_is_played(policy: str, tmp_path: Path) -> None:
    target = Target("support.masked:strange")
    if policy == "tape":
        subject = opened("strange")
        tapes.write_played(tmp_path / "run.tape", subject, [4] * 20)
        policy = f"tape:{tmp_path / 'run.tape'}"
    records: list[Any] = [
        benching.bench(target, ROUNDS, policy=policy),
        profile(target, steps=40, policy=policy),
        compare(TargetContender(target), TargetContender(target), CompareSettings(plan=PLAN, policy=policy)),
    ]
    for record in records:
        assert not [each.text for each in record.notices if each.code == "interface"], record.kind
    assert records[2].validation.mismatches == 0


class Elsewhere:
    """An array of another library, each element of which is a call of it."""

    def __init__(self, rows: Any) -> None:
        self.rows = np.asarray(rows)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.rows

    def __getitem__(self, at: Any) -> Any:
        pytest.fail("looked at element by element")


def test_the_mask_of_another_library_is_taken_whole() -> None:
    assert mask_in({"action_mask": Elsewhere([[0, 1]])}).tolist() == [[0, 1]]
    told = [True, False]
    assert mask_in({}, {"action_mask": told}) is told


class Listed(gymnasium.Env[Any, Any]):
    """Its masks are lists, and the infos of a reset have none, so a vector env has None in their place."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def __init__(self, entries: int = 3, length: int = 2) -> None:
        self.entries, self.length = entries, length

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.t = 0
        self.length += int(self.np_random.integers(3))
        return np.zeros(1, np.float32), {} if self.length % 2 else {"action_mask": [False] * self.entries}

    def step(self, action: Any) -> Any:
        self.t += 1
        over = self.t >= self.length
        return np.zeros(1, np.float32), 0.0, over, False, {"action_mask": [True] * self.entries}


def listed(entries: int = 3) -> Any:
    return gymnasium.vector.SyncVectorEnv(
        [partial(Listed, entries, length) for length in (2, 3)],
        autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP,
    )


def test_an_env_of_several_that_says_no_mask_plays_what_was_drawn() -> None:
    subject = open_target(Target(f"{__name__}:listed"))
    subject.reset()
    for actions in subject.draw(np.random.default_rng(0), 40):
        subject.step(actions)
    assert subject.counters["env_steps"] == 80
    subject.close()


def test_masks_that_do_not_fit_are_not_called_a_fault_of_the_step() -> None:
    subject = open_target(Target(f"{__name__}:listed", {"entries": "1"}))
    subject.reset()
    actions = subject.draw(np.random.default_rng(0), 40)
    with pytest.raises(InputError, match="Hotloop cannot apply the action masks") as refused:
        subject.play(actions)
    assert not isinstance(refused.value, TheirError)
    subject.close()


def test_a_fault_of_hotloop_beside_a_step_is_not_the_envs(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise AttributeError("ours")

    monkeypatch.setattr("hotloop.envs.foreign.vector.settled", broken)
    subject = open_target(Target(f"{__name__}:listed"))
    subject.reset()
    actions = subject.draw(np.random.default_rng(0), 40)
    with pytest.raises(InputError, match=r"Hotloop cannot apply .*ours") as refused:
        subject.play(actions)
    assert not isinstance(refused.value, TheirError)
    subject.close()
