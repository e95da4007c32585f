"""Bundles: a difference with all it takes to see it again, replayed and shrunk; and the steps of adoption."""

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core import registry
from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.files import check_room, free_path, whole_bytes, write_new
from hotloop.core.machine import version
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.record.codec import ForeignError, from_plain
from hotloop.core.record.codec import parse as read_json
from hotloop.core.record.comparison import (
    BUNDLE_FORMAT,
    AdoptionChecklist,
    BundleFacts,
    Comparison,
    Configuration,
    Difference,
)
from hotloop.core.settings import Target, describe
from hotloop.envs.spec import BatchSettings
from hotloop.envs.subject import Subject
from hotloop.envs.tapes import DAMAGES, check_actions
from hotloop.lab.validate.equal import closeness_of
from hotloop.lab.validate.match import Match, open_aligned, takes
from hotloop.lab.validate.shadow import Saved, ShadowedTape, Shadowing, load_both, saved_of

SUFFIX = ".bundle"

# What a soak compares, and an adoption needs
SOAK_COMPARISONS = 100_000
SOAK_RIVALS = 1_000_000  # Beside another way of the same world, which is native code too


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bundle:
    """A tape that two sides answer differently."""

    facts: BundleFacts
    actions: NDArray[Any]  # [steps, num_envs, ...], the last step the one that differs
    start: Saved | None = None  # The states the tape begins in; None where it begins with a reset
    last_good: Saved | None = None  # Both sides before the last step; None where they cannot be saved


def write_bundle(bundle: Bundle, path: Path) -> Path:
    """Write a bundle whole or not at all, under the first free name."""
    free = free_path(path)
    arrays: dict[str, Any] = {"facts": np.array(json.dumps(asdict(bundle.facts))), "actions": bundle.actions}
    for name, saved in (("start", bundle.start), ("last_good", bundle.last_good)):
        for side, states in enumerate(saved or ()):
            # `last_good.0.3` is the fourth env of the reference
            arrays |= {
                f"{name}.{side}.{env}": np.frombuffer(each, np.uint8) for env, each in enumerate(states)
            }
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_new(free, buffer.getvalue())
    return free


def unpack_states(name: str, arrays: Mapping[str, NDArray[Any]], keys: Sequence[str]) -> Saved | None:
    """Return the states of both sides by their name in a file; None unless both have some."""
    sides: list[tuple[bytes, ...]] = []
    for side in range(2):
        count = sum(key.startswith(f"{name}.{side}.") for key in keys)
        sides.append(tuple(arrays[f"{name}.{side}.{env}"].tobytes() for env in range(count)))
    return (sides[0], sides[1]) if sides[0] and sides[1] else None


def read_bundle(path: Path) -> Bundle:
    """Read a bundle; InputError where there is none, where it is damaged, or of another version."""
    try:
        content = whole_bytes(path)
    except OSError as error:
        raise InputError(f"cannot read the bundle {path}: {error.strerror}") from None
    if not zipfile.is_zipfile(io.BytesIO(content)):
        raise InputError(f"{path} is not a bundle of Hotloop: validate writes one where two sides differ")
    try:
        check_room(content)
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return parse_bundle(path, arrays)
    except InputError:
        raise
    except DAMAGES as error:
        raise InputError(f"{path} is not a whole bundle of Hotloop: {error}; validate again") from None


def parse_bundle(path: Path, arrays: Any) -> Bundle:
    """Put a bundle together; refuses one whose code was another, since its states mean something else."""
    if "facts" not in arrays.files:
        raise InputError(f"{path} is not a bundle of Hotloop: validate writes one where two sides differ")
    plain = read_json(str(arrays["facts"]))
    if not isinstance(plain, dict):
        raise TypeError("its facts are no object")
    # older bundles spell a target's name and keys `target` and `given`
    for side in ("reference", "candidate"):
        if isinstance(plain.get(side), dict) and "given" in plain[side]:
            plain[side] = {"name": plain[side].get("target"), "keys": plain[side]["given"]}
    wrote, wrote_format = plain.get("version"), plain.get("format")
    if (wrote, wrote_format) != (version(), BUNDLE_FORMAT):
        raise InputError(
            f"{path} is from another version, Hotloop {wrote} (format {wrote_format}), "
            f"and this is {version()} (format {BUNDLE_FORMAT}): replay it with that one, or validate again"
        )
    try:
        facts = from_plain(BundleFacts, plain)
    except ForeignError as error:
        raise InputError(f"{path} is not a whole bundle of Hotloop: {error}; validate again") from None
    check_actions(arrays["actions"])
    return Bundle(
        facts=facts,
        actions=arrays["actions"],
        start=unpack_states("start", arrays, arrays.files),
        last_good=unpack_states("last_good", arrays, arrays.files),
    )


def bundle_of(
    shadowing: Shadowing, *, tape: str, reference: Target | None = None, candidate: Target | None = None
) -> Bundle:
    """Return the bundle of a difference that was found; the targets of our own batches need not be given."""
    assert shadowing.difference is not None
    played = shadowing.played
    facts = BundleFacts(
        version=version(),
        reference=reference or target_of(shadowing.reference),
        candidate=candidate or target_of(shadowing.candidate),
        tape=tape,
        mode=shadowing.closeness.mode,
        ignore=shadowing.ignore,
        difference=shadowing.difference,
        steps_before=played.steps_before,
        resets=tuple(played.resets),
    )
    actions = shadowing.candidate.fold(played.actions)
    return with_last_good(Bundle(facts=facts, actions=actions, start=played.start))


def target_of(subject: Subject) -> Target:
    """Return the target that a batch of ours was made from."""
    made_from = subject.spec.made_from
    if made_from is None:
        raise InputError(f"how {subject.spec.name} was made is not known: give its target")
    return made_from


def play_bundle(bundle: Bundle, steps: int | None = None, progress: Progress = silent) -> Shadowing:
    """Play a bundle's tape on two new sides, or its first steps; the caller closes them."""
    facts = bundle.facts
    shadowing = open_both(facts)
    check_fits(bundle, shadowing)
    if bundle.start:
        load_both(shadowing.reference, shadowing.candidate, bundle.start)
        shadowing.played = ShadowedTape(start=bundle.start, steps_before=facts.steps_before)
        shadowing.steps = facts.steps_before
        shadowing.begin()
    else:
        shadowing.reset()
    follow(shadowing, bundle.actions, facts.resets, steps, progress)
    return shadowing


def check_fits(bundle: Bundle, shadowing: Shadowing) -> None:
    """Refuse actions, resets and states that are not of the envs which the bundle's own targets make."""
    made = tuple(side.spec.num_envs for side in (shadowing.reference, shadowing.candidate))
    saved = (states for states in (bundle.start, bundle.last_good) if states)
    fits = all((len(ours), len(theirs)) == made for ours, theirs in saved)
    inside = all(env < made[1] for _, env in bundle.facts.resets)
    if not fits or not inside or bundle.actions.shape[1] != made[1]:
        raise InputError(
            f"the bundle is damaged: its targets make {made[0]} and {made[1]} envs, not those it has"
        )


def unfolded(subject: Subject, row: NDArray[Any]) -> Any:
    """Return a bundle's actions in the form a subject takes; InputError if they do not fit."""
    try:
        return subject.unfold(row)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
        raise InputError(f"the bundle is damaged: its actions do not fit: {error}") from None


def follow(
    shadowing: Shadowing,
    actions: NDArray[Any],
    resets: Sequence[tuple[int, int]],
    steps: int | None = None,
    progress: Progress = silent,
) -> None:
    """Step both sides through a tape until they differ."""
    begun = resets_by_step(resets)
    last = len(actions) if steps is None else steps
    for number in range(last + 1):
        if number in begun and (steps is None or number < last):
            shadowing.reset_many(begun[number])
        if shadowing.difference or number == last:
            return
        shadowing.step(unfolded(shadowing.candidate, actions[number]))
        progress(number, last)


def resets_by_step(resets: Sequence[tuple[int, int]]) -> dict[int, list[int]]:
    """Return the envs that are begun anew before each step."""
    begun: dict[int, list[int]] = {}
    for before, env in resets:
        begun.setdefault(before, []).append(env)
    return begun


def open_both(facts: BundleFacts) -> Shadowing:
    """Open the two sides of a bundle, one beside the other."""
    reference, candidate = open_aligned(facts.reference, facts.candidate)
    return Shadowing(reference, candidate, closeness=closeness_of(facts.mode), ignore=facts.ignore)


def with_last_good(bundle: Bundle) -> Bundle:
    """Add both sides' states before the last step or reset, where they can be saved and still agree there."""
    after_reset = bundle.facts.difference.after_reset
    before = max(len(bundle.actions) - (0 if after_reset else 1), 0)
    with closing(play_bundle(bundle, before)) as shadowing:
        saved = None if shadowing.difference else saved_of(shadowing.reference, shadowing.candidate)
    return replace(bundle, last_good=saved)


def from_last_good(bundle: Bundle) -> Difference | None:
    """Return what one step or reset from the last good state shows; None if both agree or were not saved."""
    saved: Saved | None = bundle.last_good
    found, last = bundle.facts.difference, len(bundle.actions)
    if saved is None or not last:
        return None
    with closing(open_both(bundle.facts)) as shadowing:
        load_both(shadowing.reference, shadowing.candidate, saved)
        shadowing.steps = found.step - (0 if found.after_reset else 1)
        shadowing.begin()
        if shadowing.difference is None and found.after_reset:
            shadowing.reset_many([env for before, env in bundle.facts.resets if before == last])
        elif shadowing.difference is None:
            shadowing.step(unfolded(shadowing.candidate, bundle.actions[-1]))
        return shadowing.difference


BUDGET_NS = 15_000_000_000  # What shrinking may take


@dataclass(slots=True, kw_only=True)
class ShrinkSearch:
    """The smallest bundle so far, and how much time is left."""

    best: Bundle
    end_ns: int
    budget_ns: int
    progress: Progress

    @property
    def has_time(self) -> bool:
        left = max(self.end_ns - now_ns(), 0)
        self.progress(self.budget_ns - left, self.budget_ns)
        return left > 0

    def attempt(self, smaller: Bundle) -> bool:
        """Keep a bundle if its sides still differ, cut off where they do."""
        seen = differing(smaller)
        if seen is None:
            return False
        self.best = seen
        return True


def shrink(bundle: Bundle, budget_ns: int | None = None, progress: Progress = silent) -> Bundle:
    """Return the smallest bundle that is found in the time: fewest envs and agents first, then steps.

    A difference that does not come again by itself is kept as it is.
    """
    budget_ns = BUDGET_NS if budget_ns is None else budget_ns
    search = ShrinkSearch(best=bundle, end_ns=now_ns() + budget_ns, budget_ns=budget_ns, progress=progress)
    if bundle.start is not None or not search.attempt(bundle):
        return bundle
    for reduce in (fewer_envs, fewer_agents, fewer_steps):
        reduce(search)
    for each in search.best.facts.resets:
        if search.has_time:
            resets = tuple(other for other in search.best.facts.resets if other != each)
            search.attempt(replace(search.best, facts=replace(search.best.facts, resets=resets)))
    best = search.best
    sizes = zip(("steps", "envs", "agents"), bundle.actions.shape, best.actions.shape, strict=False)
    story = tuple(f"{was:,} {name} to {now:,}" for name, was, now in sizes if now < was)
    return with_last_good(replace(best, facts=replace(best.facts, story=story)))


def differing(bundle: Bundle) -> Bundle | None:
    """Return the bundle cut off at its first difference; None if there is none, or it cannot be played."""
    # our own sides refuse to be made so small; user code may fail anyhow
    sides = (bundle.facts.reference, bundle.facts.candidate)
    refusals = Exception if any(side.is_foreign for side in sides) else InputError
    try:
        with closing(play_bundle(bundle)) as shadowing:
            found, played = shadowing.difference, len(shadowing.played.actions)
    except refusals:
        return None
    if found is None:
        return None
    resets = tuple(each for each in bundle.facts.resets if each[0] <= played)
    facts = replace(bundle.facts, difference=found, resets=resets)
    return replace(bundle, facts=facts, actions=bundle.actions[:played], last_good=None)


def fewer_envs(search: ShrinkSearch) -> None:
    """Only the env that differs; or it and those before it, whose number decides its seed."""
    bundle = search.best
    wrong = bundle.facts.difference.env
    if bundle.actions.shape[1] == 1 or wrong is None or not both_take(bundle, "num_envs"):
        return
    for first in (wrong, 0):
        resets = tuple((at, env - first) for at, env in bundle.facts.resets if first <= env <= wrong)
        facts = replace(with_key(bundle, "num_envs", wrong + 1 - first).facts, resets=resets)
        fewer = replace(bundle, facts=facts, actions=bundle.actions[:, first : wrong + 1], start=None)
        if search.has_time and search.attempt(fewer):
            return


def fewer_agents(search: ShrinkSearch) -> None:
    """As few agents as still differ, the smallest numbers first."""
    if search.best.actions.ndim < 3 or not both_take(search.best, "agents"):
        return
    now = search.best.actions.shape[2]
    for agents in (count for count in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128) if count < now):
        fewer = with_key(search.best, "agents", agents)
        if search.has_time and search.attempt(replace(fewer, actions=fewer.actions[:, :, :agents])):
            return


def fewer_steps(search: ShrinkSearch) -> None:
    """Leave out stretches of the tape, large ones first, as long as the rest still differs."""
    size = max(len(search.best.actions) // 2, 1)
    while size >= 1:
        first = 0
        while first + size < len(search.best.actions) and search.has_time:
            bundle = search.best
            # resets in the stretch come where it was
            moved = tuple((at - min(max(at - first, 0), size), env) for at, env in bundle.facts.resets)
            actions = np.concatenate([bundle.actions[:first], bundle.actions[first + size :]])
            search.attempt(replace(bundle, facts=replace(bundle.facts, resets=moved), actions=actions))
            if len(search.best.actions) == len(bundle.actions):
                first += size
        size //= 2


def both_take(bundle: Bundle, key: str) -> bool:
    """Return whether both sides can be made with another value of a key."""
    return takes(bundle.facts.reference, key) and takes(bundle.facts.candidate, key)


def with_key(bundle: Bundle, key: str, value: object) -> Bundle:
    """Return a bundle whose sides are made with another value of a key."""
    reference, candidate = (
        side.with_keys({key: value}) for side in (bundle.facts.reference, bundle.facts.candidate)
    )
    return replace(bundle, facts=replace(bundle.facts, reference=reference, candidate=candidate))


def stand(
    match: Match, targets: Sequence[str], records: Sequence[Record], compared: Comparison | None
) -> AdoptionChecklist:
    """Return where a candidate stands; `targets` are what it has to be validated on."""
    by_workload: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda each: each.created):
        if concerns(record, match, targets):
            by_workload.setdefault(record.target.workload_hash, []).append(record)
    configurations = tuple(map(configuration, by_workload.values()))
    wanted = SOAK_RIVALS if match.rival else SOAK_COMPARISONS
    done = {
        target: sum(each.comparisons for each in configurations if each.target == target)
        for target in targets
    }
    missing = tuple(target for target in targets if done[target] < wanted)
    step, why, command = next_step(match, targets, configurations, missing, compared)
    alone = compared.ratio if compared else None
    if compared and match.rival:
        phases = (each.ratio for each in compared.phases if each.phase == match.rival.phase)
        alone = next(phases, None)
    return AdoptionChecklist(
        candidate=match.candidate.words,
        reference=match.reference.words,
        configurations=configurations,
        wanted=wanted,
        missing=missing,
        outcome=compared.outcome if compared else None,
        alone=alone,
        whole=compared.ratio if compared else None,
        part=f"the phase {match.rival.phase}" if match.rival else "the whole step",
        is_default=is_default(match),
        step=step,
        why=why,
        command=command,
    )


def concerns(record: Record, match: Match, targets: Sequence[str]) -> bool:
    """Return whether a record compared this candidate with this reference, whatever the workload."""
    checked = record.validation
    if checked is not None and checked.against is None and record.target.name in targets:
        # a run that had both ways of the phase work, and compared them at every step
        if match.rival is None or match.rival.shadow is None:
            return False
        settings = {**record.target.params, **record.target.variant, **record.target.keys}
        return str(settings.get(match.rival.shadow)).lower() == "true"
    if record.kind != "validate" or checked is None or not checked.against:
        return False
    if record.target.name not in targets:
        return False
    was, reference = Target.parse(checked.against), match.reference
    if reference.is_foreign or was.is_foreign:
        return was.name == reference.name
    ways = [rival.parameter for rival in registry.find(reference.name).world.rivals.values()]
    return all(was.keys.get(key) == reference.keys.get(key) for key in ("impl", "device", *ways))


def configuration(records: Sequence[Record]) -> Configuration:
    """Return what the records of one workload come to together; they are sorted, the oldest first."""
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


def is_default(match: Match) -> bool:
    """Return whether the candidate is what a target without keys gets already."""
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
    """Return the number of the first step that is not done, why it is not, and the command to run."""
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
    """Return words as a shell takes them as one argument."""
    return f'"{words}"' if " " in words else words
