"""What can be seen of somebody's model is enough to tell a wrong one from a right one."""

from collections import deque
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.ecology import World
from support.replays import replay_both

from hotloop.core.settings import Target
from hotloop.envs.foreign.outputs import everything, state_of
from hotloop.envs.open import open_target
from hotloop.lab.validate.shadow import Shadowing

SEEDED = {"seed": "3"}


class Colour(Enum):
    RED = 1


@dataclass(slots=True)
class Slotted:
    x: int
    _own: int = 0


def shown(**held: Any) -> dict[str, Any]:
    seen = everything({"s": state_of(SimpleNamespace(**held))})
    return {name: rows[0].tolist() for name, rows in seen.items()}


@pytest.mark.parametrize(
    ("held", "seen"),
    [
        (3, {"s.it": 3}),
        ("text", {"s.it": "'text'"}),
        (Colour.RED, {"s.it": "'RED'"}),
        ([[1.0, 2.0], [3.0, 4.0]], {"s.it": [[1.0, 2.0], [3.0, 4.0]]}),
        ([[1], [2, 3]], {"s.it.0": [1], "s.it.1": [2, 3]}),
        (deque([1, 2]), {"s.it": [1, 2]}),
        (["a", "b"], {"s.it": ["a", "b"]}),
        ({"b", "a"}, {"s.it": ["a", "b"]}),
        ({(1, 2): 5.0}, {"s.it.(1, 2)": 5.0}),
        ({object(): 5.0}, {"s.it": [5.0]}),
        ([Slotted(1), Slotted(2)], {"s.it.count": 2, "s.it.x": [1, 2]}),
        (Slotted(4), {"s.it.x": 4}),
        ([Fraction(1, 3)], {"s.it": ["Fraction(1, 3)"]}),
        (10**30, {"s.it": [repr(10**30)]}),
        ({Slotted}, {"s.it.count": 1}),
        (print, {}),
        (np, {}),
    ],
)
def test_what_an_attribute_holds_is_seen(held: Any, seen: dict[str, Any]) -> None:
    assert shown(it=held) == seen


def test_what_is_private_or_leads_back_is_not_looked_into() -> None:
    model = SimpleNamespace(_own=1, part=SimpleNamespace(x=1))
    model.part.model = model
    assert set(everything({"s": state_of(model)})) == {"s.part.x"}


def test_a_property_called_agents_is_looked_at() -> None:
    class Model:
        agents = property(lambda self: [Slotted(7)])

    assert state_of(Model())["agents"]["x"] == [7]


@pytest.mark.parametrize(
    ("name", "field"), [("Hungry", "infos.animals.count"), ("Grazed", "infos.grass"), ("Same", None)]
)
def test_two_ecologies_are_equal_only_where_what_lives_in_them_is(name: str, field: str | None) -> None:
    sides = [open_target(Target(f"support.ecology:{each}", SEEDED)) for each in ("World", name)]
    found = replay_both(*sides, steps=60)
    assert {"infos.animals.energy", "infos.animals.at", "infos.grass", "infos.seen"} <= {*found.fields}
    difference = found.difference
    assert (difference if field is None else getattr(difference, "field", None)) == field


def test_a_shadow_leaves_each_side_the_random_numbers_it_would_have_alone() -> None:
    sides = [open_target(Target(f"support.ecology:{each}", SEEDED)) for each in ("World", "Same")]
    shadowing = Shadowing(*sides)
    shadowing.reset()
    for _ in range(40):
        shadowing.step(None)
    assert (shadowing.difference, shadowing.comparisons) == (None, 41)
    alone = World(seed=3)  # each episode begins with its seed
    for _ in range(10):
        alone.step()
    assert shadowing.answered["infos.animals.energy"][0].tolist() == [each.energy for each in alone.animals]


def opened(name: str, **keys: str) -> Any:
    return open_target(Target(f"support.ecology:{name}", {**SEEDED, **keys}))


def test_settings_are_arguments_of_constructors_and_no_part_of_what_lives() -> None:
    assert opened("Tuned").settings == {"infos.drift", "infos.store.path", "infos.store.buffer"}
    assert opened("Declared").settings == frozenset()


@pytest.mark.parametrize("keys", [{"db": "x.db"}, {"db": "x.db", "drift": "7"}])
def test_sides_that_were_given_other_settings_are_equal(keys: dict[str, str]) -> None:
    found = replay_both(opened("Tuned"), opened("Tuned", **keys), steps=40)
    assert found.difference is None
    assert {"infos.store.path"} <= {*found.left_out} <= {"infos.store.path", "infos.drift"}
    assert "infos.store.buffer" in found.fields


def test_a_setting_that_a_step_changes_is_a_state() -> None:
    found = replay_both(opened("Drifting"), opened("Drifting", drift="7"), steps=40)
    assert found.difference is not None
    assert (found.difference.field, found.difference.step) == ("infos.drift", 1)


def test_a_shadow_leaves_out_settings_until_a_step_changes_them() -> None:
    def played(name: str) -> Shadowing:
        shadowing = Shadowing(opened(name), opened(name, db="x.db", drift="7"))
        shadowing.reset()
        shadowing.step(None)
        return shadowing

    assert played("Tuned").difference is None
    changed = played("Drifting").difference
    assert changed is not None
    assert changed.field == "infos.drift"


def test_a_model_that_declares_its_outputs_shows_nothing_else() -> None:
    subject = opened("Declared")
    subject.reset()
    subject.step(None)
    assert {each for each in subject.everything() if each.startswith("infos")} == {
        "infos.alive",
        "infos.energy",
    }


def test_agents_of_a_model_are_counted_as_they_come_and_go() -> None:
    subject = opened("Tuned")
    subject.reset()
    lived = 0
    for _ in range(20):
        lived += len(subject.env.animals)
        subject.step(None)
    assert lived < 20 * 12
    assert (subject.counters["env_steps"], subject.counters["agent_steps"]) == (20, lived)
