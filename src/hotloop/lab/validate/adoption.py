"""Adoption: where a candidate stands on its way to becoming the default, from records and a comparison."""

from collections.abc import Sequence

from hotloop.core import registry
from hotloop.core.record import Record
from hotloop.core.record.comparison import AdoptionChecklist, Comparison, Configuration, Ratio
from hotloop.core.settings import describe
from hotloop.core.target import Target
from hotloop.envs.spec import BatchSettings
from hotloop.lab.validate.match import Match
from hotloop.lab.validate.validate import SOAK_COMPARISONS, SOAK_RIVALS


def stand(
    match: Match, targets: Sequence[str], records: Sequence[Record], compared: Comparison | None
) -> AdoptionChecklist:
    """Say where a candidate stands; `targets` are what it has to be validated on."""
    ours = [record for record in records if concerns(record, match, targets)]
    configurations = gathered(ours)
    wanted = SOAK_RIVALS if match.rival else SOAK_COMPARISONS
    done = {
        target: sum(each.comparisons for each in configurations if each.target == target)
        for target in targets
    }
    missing = tuple(target for target in targets if done[target] < wanted)
    step, why, command = next_step(match, targets, configurations, missing, compared)
    return AdoptionChecklist(
        candidate=match.candidate.words,
        reference=match.reference.words,
        configurations=configurations,
        wanted=wanted,
        missing=missing,
        outcome=compared.outcome if compared else None,
        alone=alone(match, compared),
        whole=compared.ratio if compared else None,
        part=f"the phase {match.rival.phase}" if match.rival else "the whole step",
        is_default=is_default(match),
        step=step,
        why=why,
        command=command,
    )


def concerns(record: Record, match: Match, targets: Sequence[str]) -> bool:
    """Return whether a record compared this candidate with this reference, in whatever workload."""
    checked = record.validation
    if checked is not None and checked.against is None and record.target.name in targets:
        # a run that had both ways of the phase work, and compared them at every step
        if match.rival is None or match.rival.shadow is None:
            return False
        settings = {**record.target.params, **record.target.variant, **record.target.keys}
        return str(settings.get(match.rival.shadow)).lower() == "true"
    if record.kind != "validate" or checked is None or not checked.against:
        return False
    return record.target.name in targets and alike(checked.against, match.reference)


def alike(words: str, reference: Target) -> bool:
    """Whether a reference was made in the same way, its workload aside."""
    was = Target.parse(words)
    if reference.is_foreign or was.is_foreign:
        return was.name == reference.name
    ways = [rival.parameter for rival in registry.find(reference.name).world.rivals.values()]
    return all(was.keys.get(key) == reference.keys.get(key) for key in ("impl", "device", *ways))


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


def alone(match: Match, compared: Comparison | None) -> Ratio | None:
    """The ratio of what was replaced."""
    if compared is None:
        return None
    if match.rival is None:
        return compared.ratio
    return next((each.ratio for each in compared.phases if each.phase == match.rival.phase), None)


def is_default(match: Match) -> bool:
    """Whether somebody who says nothing gets the candidate already."""
    if match.candidate.is_foreign:
        return False
    world = registry.find(match.candidate.name).world
    defaults = {info.name: info.default for info in [*describe(world.parameters), *describe(BatchSettings)]}
    changed = {
        key: value for key, value in match.candidate.keys.items() if match.reference.keys.get(key) != value
    }
    return all(value == defaults.get(key) or defaults.get(key) == "auto" for key, value in changed.items())


def next_step(
    match: Match,
    targets: Sequence[str],
    configurations: Sequence[Configuration],
    missing: Sequence[str],
    compared: Comparison | None,
) -> tuple[int, str, str]:
    """The first of the four that is not done, why it is not, and the command to run."""
    against = f" --against {quoted(match.against)}"
    for each in configurations:
        if each.difference:
            bundle = each.bundle or "BUNDLE"
            return 1, f"{each.target} differs: {each.difference}", f"hotloop validate --replay {bundle}"
    if missing:
        where = targets[0].partition("/")[0] if list(missing) == list(targets) != [missing[0]] else missing[0]
        return 1, f"too little compared on {', '.join(missing)}", f"hotloop validate {where} soak{against}"
    sides = f"hotloop compare {quoted(match.reference.words)} {quoted(match.candidate.words)} --profile"
    if compared is None or compared.outcome in ("cannot tell", "slower", "same"):
        why = f"{compared.outcome}: {compared.why}" if compared else "it was not timed"
        return 2, why, f"{sides} --thorough"
    if not is_default(match):
        return 3, "equal and faster, and not yet what one gets", f"hotloop bench {match.candidate.words}"
    if match.rival:
        return 4, f"it is the default, and {match.rival.old_way} is still there", match.rival.removal
    return 5, "it is the default; the reference stays, as its specification", sides


def quoted(words: str) -> str:
    return f'"{words}"' if " " in words else words
