"""Rollout: where a candidate stands on its way to becoming the default, from records and a comparison."""

from collections.abc import Sequence

from hotloop.core import registry
from hotloop.core.record import Comparison, Ratio, Record
from hotloop.core.rollout import Configuration, Rollout
from hotloop.core.settings import describe
from hotloop.core.validation import Recipe
from hotloop.envs.options import BatchSettings
from hotloop.lab.pairs import Pair
from hotloop.lab.validate import SOAK_COMPARISONS, SOAK_RIVALS


def stand(
    pair: Pair, targets: Sequence[str], records: Sequence[Record], compared: Comparison | None
) -> Rollout:
    """Say where a candidate stands; `targets` are what it has to be validated on."""
    ours = [record for record in records if concerns(record, pair, targets)]
    configurations = gathered(ours)
    wanted = SOAK_RIVALS if pair.rival else SOAK_COMPARISONS
    done = {
        target: sum(each.comparisons for each in configurations if each.target == target)
        for target in targets
    }
    missing = tuple(target for target in targets if done[target] < wanted)
    step, why, command = next_step(pair, targets, configurations, missing, compared)
    return Rollout(
        candidate=pair.candidate.words,
        reference=pair.reference.words,
        configurations=configurations,
        wanted=wanted,
        missing=missing,
        outcome=compared.outcome if compared else None,
        alone=alone(pair, compared),
        whole=compared.ratio if compared else None,
        part=f"the phase {pair.rival.phase}" if pair.rival else "the whole step",
        is_default=is_default(pair),
        step=step,
        why=why,
        command=command,
    )


def compared_of(target: str, configurations: Sequence[Configuration]) -> int:
    return sum(each.comparisons for each in configurations if each.target == target)


def concerns(record: Record, pair: Pair, targets: Sequence[str]) -> bool:
    """Whether a record is a validation of this candidate against this reference, in whatever workload."""
    checked = record.validation
    if record.kind != "validate" or checked is None or not checked.against:
        return False
    return record.target.name in targets and alike(checked.against, pair.reference)


def alike(words: str, reference: Recipe) -> bool:
    """Whether a reference was made in the same way, its workload aside."""
    target, *pairs = words.split()
    given = dict(pair.partition("=")[::2] for pair in pairs)
    if registry.names_callable(reference.target) or registry.names_callable(target):
        return target == reference.target
    ways = [rival.parameter for rival in registry.find(reference.target).world.rivals.values()]
    return all(given.get(key) == reference.given.get(key) for key in ("impl", "device", *ways))


def gathered(records: Sequence[Record]) -> tuple[Configuration, ...]:
    """The records of each workload together, the oldest first."""
    by_workload: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda each: each.created):
        by_workload.setdefault(record.target.workload_hash, []).append(record)
    return tuple(configuration(each) for each in by_workload.values())


def configuration(records: Sequence[Record]) -> Configuration:
    found = [record.validation for record in records if record.validation]
    last = records[-1]
    return Configuration(
        target=last.target.name,
        keys=last.target.params,
        comparisons=sum(each.comparisons for each in found if not each.mismatches),
        mismatches=sum(each.mismatches for each in found),
        runs=len(found),
        difference=found[-1].difference,
        bundle=found[-1].bundle,
    )


def alone(pair: Pair, compared: Comparison | None) -> Ratio | None:
    """The ratio of what was replaced."""
    if compared is None:
        return None
    if pair.rival is None:
        return compared.ratio
    return next((each.ratio for each in compared.phases if each.phase == pair.rival.phase), None)


def is_default(pair: Pair) -> bool:
    """Whether somebody who says nothing gets the candidate already."""
    if registry.names_callable(pair.candidate.target):
        return False
    world = registry.find(pair.candidate.target).world
    defaults = {info.name: info.default for info in [*describe(world.parameters), *describe(BatchSettings)]}
    changed = {
        key: value for key, value in pair.candidate.given.items() if pair.reference.given.get(key) != value
    }
    return all(value == defaults.get(key) or defaults.get(key) == "auto" for key, value in changed.items())


def next_step(
    pair: Pair,
    targets: Sequence[str],
    configurations: Sequence[Configuration],
    missing: Sequence[str],
    compared: Comparison | None,
) -> tuple[int, str, str]:
    """The first of the four that is not done, why it is not, and the command to run."""
    against = f" --against {quoted(pair.against)}"
    for each in configurations:
        if each.difference:
            bundle = each.bundle or "BUNDLE"
            return 1, f"{each.target} differs: {each.difference}", f"hotloop validate --replay {bundle}"
    if missing:
        where = targets[0].partition("/")[0] if list(missing) == list(targets) != [missing[0]] else missing[0]
        return 1, f"too little compared on {', '.join(missing)}", f"hotloop validate {where} soak{against}"
    sides = f"hotloop compare {quoted(pair.reference.words)} {quoted(pair.candidate.words)} --profile"
    if compared is None or compared.outcome in ("cannot tell", "slower", "same"):
        why = f"{compared.outcome}: {compared.why}" if compared else "it was not timed"
        return 2, why, f"{sides} --thorough"
    if not is_default(pair):
        return 3, "equal and faster, and not yet what one gets", f"hotloop bench {pair.candidate.words}"
    if pair.rival:
        return 4, f"it is the default, and {pair.rival.old_way} is still there", pair.rival.removal
    return 5, "it is the default; the reference stays, as its specification", sides


def quoted(words: str) -> str:
    return f'"{words}"' if " " in words else words
