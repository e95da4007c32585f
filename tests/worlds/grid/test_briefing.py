"""What the teacher is told of the rules."""

from pathlib import Path

import pytest

from hotloop.worlds.grid.briefing import BATCH, Briefing, Tier, brief
from hotloop.worlds.grid.rules import Rules, read_rules


def told(name: str) -> tuple[Rules, Briefing]:
    rules = read_rules(name)
    return rules, brief(rules)


def kinds(rules: Rules, briefing: Briefing, tier: Tier) -> list[str]:
    by_tag = {rules.tag(kind): kind for kind in rules.kinds}
    return [by_tag[briefing.tags[task.kind]] for task in briefing.tasks if task.tier == tier]


def test_in_guard_it_charges_delivers_makes_and_fetches() -> None:
    rules, briefing = told("guard")
    assert kinds(rules, briefing, Tier.CHARGE) == ["charger"]
    assert kinds(rules, briefing, Tier.DELIVER) == ["chest"]
    assert kinds(rules, briefing, Tier.MAKE) == ["assembler", "assembler"]
    raw = ("carbon", "oxygen", "germanium", "silicon")
    assert kinds(rules, briefing, Tier.FETCH) == [f"{name}_extractor" for name in raw]


def test_in_arena_it_makes_hearts_of_carbon_and_leaves_weapons_alone() -> None:
    rules, briefing = told("arena")
    assert kinds(rules, briefing, Tier.MAKE) == ["assembler"]
    assert kinds(rules, briefing, Tier.FETCH) == ["carbon_extractor"]
    assert len(briefing.tags) == 2
    assert briefing.fuel == -1


def test_in_toy_there_is_nothing_to_do() -> None:
    _, briefing = told("toy")
    assert (briefing.tasks, briefing.tags) == ((), ())


def test_it_fetches_a_batch_of_the_dearest_recipe_and_no_more_than_fits() -> None:
    rules, briefing = told("guard")
    limits = dict(zip(rules.resources, briefing.limits, strict=True))
    assert limits["carbon"] == BATCH * 4
    assert limits["energy"] == rules.cap("energy")
    assert limits["heart"] == rules.cap("heart")


def test_chains_of_stations_are_followed_to_their_beginning(tmp_path: Path) -> None:
    table = tmp_path / "chain.toml"
    table.write_text("""
        resources = ["ore", "bar", "ring", "dust"]
        rewards = [{ of = "ring", weight = 1.0 }]
        stations = [
          { kind = "mine", gives = { ore = 1 } },
          { kind = "smelter", takes = { ore = 2 }, gives = { bar = 1 } },
          { kind = "jeweller", takes = { bar = 3 }, gives = { ring = 1 } },
          { kind = "broom", gives = { dust = 1 } },
        ]
    """)
    rules, briefing = told(str(table))
    assert kinds(rules, briefing, Tier.MAKE) == ["jeweller"]
    assert kinds(rules, briefing, Tier.FETCH) == ["mine", "smelter"]
    assert briefing.limits == (2 * BATCH, 3 * BATCH, 65535, 0)


@pytest.mark.parametrize("name", ["toy", "arena", "guard"])
def test_native_code_gets_a_row_of_fixed_width_for_each_task(name: str) -> None:
    rules, briefing = told(name)
    width = 4 + 2 * len(rules.resources)
    assert len(briefing.flatten()["teacher.tasks"]) == width * len(briefing.tasks)
