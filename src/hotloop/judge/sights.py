"""Sights: what all rules see in a record, or in each phase of a run that has several."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from hotloop.core.record.record import Record
from hotloop.judge.case import Case
from hotloop.judge.evidence import Sight
from hotloop.judge.rules import RULES, Rule
from hotloop.judge.stages import views, weight, where

WORTH = 1.02  # Times as fast, below which a change is not worth a word
Seen = tuple[Rule, Sight]


def find_sights(case: Case) -> Iterator[Seen]:
    """Return what every rule sees; of a run in phases, in the phase where it matters most."""
    stages = views(case.record)
    if not stages:
        yield from look(case, set(), RULES)
        return
    claimed = set[str]()
    yield from look(case, claimed, [rule for rule in RULES if rule.is_of_run])
    found = staged(case, stages, claimed)
    yield from found
    known = {rule.name for rule, _ in found}
    rest = [rule for rule in RULES if not (rule.is_of_stage or rule.is_of_run or rule.name in known)]
    yield from (seen for seen in look(case, set(), rest) if seen[1].row is None)


def staged(case: Case, stages: Sequence[Record], claimed: set[str]) -> list[Seen]:
    """Return what rules see in each phase, with gains of the whole run, and each advice once."""
    best: dict[tuple[str, str | None], Seen] = {}
    for stage in stages:
        of_run = weight(case.record, stage)
        there = f"{where(case.record, stage)} ({of_run:.0%} of the run)"
        for rule, sight in look(Case(stage, case.alternatives), set(claimed), RULES):
            part = sight.part.scaled(of_run) if sight.part else None
            seen = replace(sight, part=part, said=f"{there}: {sight.said}")
            bought = WORTH if seen.gain is None else seen.gain
            key = rule.name, sight.row.path if sight.row else None
            if bought >= WORTH and (key not in best or bought > (best[key][1].gain or 0.0)):
                best[key] = rule, seen
    return list(best.values())


def look(case: Case, claimed: set[str], rules: Iterable[Rule]) -> Iterator[Seen]:
    """Return what rules see; a row is claimed by the first that sees it."""
    for rule in rules:
        for sight in rule.look(case) if is_looked_at(rule, case) else ():
            path = sight.row.path if sight.row else None
            bought = sight.gain
            if (path and is_claimed(path, claimed)) or (bought is not None and bought < WORTH):
                continue
            claimed.update([path] if path else [])
            yield rule, sight


def is_looked_at(rule: Rule, case: Case) -> bool:
    """Return whether a rule gives advice here: it matters, and its evidence is there."""
    return not rule.is_note and rule.concerns(case) and rule.has(case)


def is_claimed(path: str, claimed: Iterable[str]) -> bool:
    """Return whether a row, one above it or one below it has its advice already: time is saved once."""
    return any(f"{path}/".startswith(f"{each}/") or each.startswith(f"{path}/") for each in claimed)
