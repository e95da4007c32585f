"""The rules as lists of numbers, in the order config.cpp reads them."""

from collections.abc import Mapping

from hotloop.worlds.grid.rules import AGENT, EFFECTS, REACHES, STATS, Area, Event, Recipe, Reward, Rules

NONE = -1


def flatten(rules: Rules) -> dict[str, object]:
    """Every table of the rules, row after row, each row of a fixed width."""
    return {
        "resources": len(rules.resources),
        "vibes": rules.vibes,
        "attack_vibe": rules.attack_vibe,
        "attack_costs": number(rules, rules.attack_costs),
        "shield": number(rules, rules.shield),
        "freeze": rules.freeze,
        "move_costs": number(rules, rules.move_costs),
        "move_price": rules.move_price,
        "mobile_vibe": rules.mobile_vibe,
        "mobile": area_row(rules, rules.mobile),
        "start": amounts(rules, rules.start),
        "caps": [rules.cap(name) for name in rules.resources],
        "loot": [number(rules, name) for name in rules.loot],
        "changes": [x for c in rules.changes for x in (number(rules, c.resource), c.amount, c.every)],
        "kinds": [x for kind in rules.kinds for x in kind_row(rules, kind)],
        "recipes": [x for row in rules.stations for x in recipe_row(rules, row)],
        "events": [x for event in rules.events for x in event_row(rules, event)],
        "rewards": [x for reward in rules.rewards for x in reward_row(rules, reward)],
        "weights": [float(reward.weight) for reward in rules.rewards],
        "spare_stations": sum(event.amount for event in rules.events if event.effect == "spawn"),
    }


def number(rules: Rules, resource: str) -> int:
    return rules.resources.index(resource) if resource else NONE


def amounts(rules: Rules, held: Mapping[str, int]) -> list[int]:
    return [held.get(name, 0) for name in rules.resources]


def area_row(rules: Rules, area: Area | None) -> list[int]:
    if area is None:
        return [NONE, 0, 0, 0]
    return [area.radius, number(rules, area.resource), area.amount, REACHES.index(area.reach)]


def kind_row(rules: Rules, kind: str) -> list[int]:
    row = rules.first(kind)
    return [rules.tag(kind), row.uses, row.claims, row.stores, *area_row(rules, row.area)]


def recipe_row(rules: Rules, row: Recipe) -> list[int]:
    head = [rules.kinds.index(row.kind), row.cooldown, row.vibe, row.neighbours]
    return [*head, *amounts(rules, row.takes), *amounts(rules, row.gives)]


def event_row(rules: Rules, event: Event) -> list[int]:
    names = [other.name for other in rules.events]
    kind = NONE if event.kind == AGENT else rules.kinds.index(event.kind)
    then = names.index(event.then) if event.then else NONE
    resource = number(rules, event.resource)
    effect = EFFECTS.index(event.effect)
    return [effect, kind, event.at, event.every, event.count, event.amount, resource, then]


def reward_row(rules: Rules, reward: Reward) -> list[int]:
    """A resource's number, or the resources' count plus a stat's."""
    of = reward.of
    source = number(rules, of) if of in rules.resources else len(rules.resources) + STATS.index(of)
    return [source, reward.cap]
