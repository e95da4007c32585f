"""Validate by distributions: where bytes cannot be equal, how large a difference can still be.

Both sides play the same policies in pairs of episodes: the same seed, the same chances. What they come to is
compared with intervals that hold for all of it at once; what is found has to be found again in fresh pairs.
With policy transfer, a policy is trained on each side and played on both.
"""

import math
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.record.comparison import Contrast, Group, Statistical
from hotloop.envs.batch import Batch
from hotloop.judge.judge import judge
from hotloop.lab.measure.record import Recorder, describe_method
from hotloop.lab.validate.features import (
    BY_ACTION,
    BY_STATE,
    ENVS,
    LENGTH,
    OBSERVATIONS,
    RETURN,
    REWARDS,
    Columns,
    Lens,
    PlayerSeat,
    RandomSeat,
    Rows,
    Seat,
    open_side,
    play,
    train_seat,
)
from hotloop.lab.validate.match import CUDA, TWIN, Match, rivals
from hotloop.options.validate import SMOKE, SOAK, TRANSFER_STEPS, ValidateOptions
from hotloop.stats.contrasts import ONE_FALSE_IN, Contrasts, contrasts

KIND = "statistical"

PAIRS = {SMOKE: 256, SOAK: 2_048}  # Of episodes of each policy

NEEDED = 32

MARGIN = 1e-3  # Of a spread: what is smaller is rounding, and no difference
MOST_FOUND = 64  # Differences that are looked for again
MOST_TOLD = 3  # Of each kind

KINDS = (RETURN, LENGTH, REWARDS, BY_ACTION, BY_STATE, OBSERVATIONS)

SEED = 20_240_302

RANDOM = "random"


def pairs_of(amount: str) -> int:
    """Return the pairs of episodes of each policy: a number of them fills up batches."""
    return PAIRS.get(amount) or -(-int(amount) // ENVS) * ENVS


def validate(match: Match, options: ValidateOptions, progress: Progress = silent) -> Record:
    """Compare both sides; Ctrl-C leaves nothing, because half of it says nothing."""
    pairs = pairs_of(options.amount)
    trained_steps = TRANSFER_STEPS if options.transfer is None else options.transfer
    if match.against in (TWIN, CUDA, *rivals()):  # two ways of one world have to be the same to the byte
        raise InputError(
            f"--statistical is for sides whose bytes cannot be equal: {match.candidate.name} and its "
            f"{match.against} have to be, so leave it out"
        )
    with ExitStack() as stack:
        a, b = (stack.enter_context(closing(open_side(side))) for side in (match.reference, match.candidate))
        check_alike(match, a, b)
        recorder = Recorder(KIND, b.spec)
        meter = PairsMeter(progress, pairs)
        seats = seats_of(match, a, b, options.policy, trained_steps, meter)
        meter.plan(len(seats))
        found = compare(a, b, seats, pairs, meter)
        method = describe_method(
            b.spec,
            rounds=0,
            iterations=0,
            policy=", ".join(seats),
            order="pairs of episodes, the reference first",
        )
        told = replace(found, against=match.reference.words, trained_steps=trained_steps)
        return judge(recorder.record(method=method, counters=dict(b.counters), values={}, statistical=told))


def check_alike(match: Match, a: Batch, b: Batch) -> None:
    """Refuse sides that no one policy could play."""
    for what, one, other in (
        ("observations", a.observations.shape[1:], b.observations.shape[1:]),
        ("actions", a.new_actions().shape, b.new_actions().shape),
        ("agents", a.spec.agents, b.spec.agents),
        ("number of actions", a.spec.num_actions, b.spec.num_actions),
    ):
        if one != other:
            raise InputError(
                f"{match.reference.words} has {what} {one} and {match.candidate.words} {other}: "
                "what is compared must be alike in that"
            )


class PairsMeter:
    """Turns steps of training and episodes into progress."""

    def __init__(self, progress: Progress, pairs: int) -> None:
        self._progress, self._pairs = progress, pairs
        self._done, self._total = 0, 1

    def plan(self, policies: int) -> None:
        """So many policies, on both sides, and perhaps again."""
        self._done, self._total = 0, 2 * 2 * policies * self._pairs

    def trains(self, done: int, total: int) -> None:
        self._progress(done, 2 * total)

    def __call__(self, episodes: int) -> None:
        self._done += episodes
        self._progress(min(self._done, self._total), self._total)


def seats_of(
    match: Match, a: Batch, b: Batch, policy: str | None, trained_steps: int, meter: PairsMeter
) -> dict[str, Seat]:
    """Return the policies: random play, the world's own players, and those trained on each side."""
    seats: dict[str, Seat] = {RANDOM: RandomSeat}
    players = [name for name in b.players if name != RANDOM and name in a.players]
    if policy is not None and policy not in players:
        raise InputError(f"--policy {policy}: both sides have the players {', '.join(players) or 'none'}")
    for name in [policy] if policy else players:
        seats[name] = partial(PlayerSeat, player=name)
    if trained_steps:
        for side, target in (("reference", match.reference), ("candidate", match.candidate)):
            seats[f"trained on the {side}"] = train_seat(target, trained_steps, meter.trains)
    return seats


Played = dict[str, tuple[Rows, Rows]]


def compare(a: Batch, b: Batch, seats: dict[str, Seat], pairs: int, meter: PairsMeter) -> Statistical:
    """Look once at everything, and at what was found once more in fresh pairs."""
    first = play_pairs(a, b, seats, pairs, 0, meter)
    lenses = {policy: Lens(*sides) for policy, sides in first.items()}
    family = ContrastFamily({policy: lenses[policy].look(*sides) for policy, sides in first.items()})
    judged = contrasts(family.blocks, family.tiers)
    found = family.find_differences(judged)
    summary = Statistical(
        against="",
        pairs=pairs,
        needed=NEEDED,
        policies=tuple(seats),
        one_false_in=ONE_FALSE_IN,
        margin=MARGIN,
        groups=family.groups(judged, found),
    )
    if not found.size or pairs < NEEDED:
        return summary
    second = play_pairs(a, b, seats, pairs, 1, meter)
    again = ContrastFamily({policy: lenses[policy].look(*sides) for policy, sides in second.items()}).only(
        found
    )
    judged = contrasts(again.blocks)
    kept = again.find_differences(judged)
    differences = tuple(again.contrast(judged, place) for place in again.telling(judged, kept))
    return replace(summary, differences=differences, once=int(found.size - kept.size))


def play_pairs(
    a: Batch, b: Batch, seats: dict[str, Seat], pairs: int, stage: int, meter: PairsMeter
) -> Played:
    """Play fresh pairs of episodes of every policy; each stage has seeds of its own."""
    played: Played = {}
    for number, (policy, seat) in enumerate(seats.items()):
        seeds = np.random.default_rng([SEED, stage, number]).integers(2**31 - 1, size=pairs)
        played[policy] = (play(a, seat, seeds, meter), play(b, seat, seeds, meter))
    return played


def rare(pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of episodes with an event from which on it is seen, but for 1 in so many cases.

    Where all pairs are alike, nothing is known of what is rarer: a difference of a spread in so few
    episodes is the least that any number of pairs can exclude.
    """
    told: NDArray[np.float64] = math.log(ONE_FALSE_IN) / np.maximum(pairs, 1)
    return told


def strength(judged: Contrasts) -> NDArray[np.float64]:
    """Return how many of its standard errors each mean is from nothing."""
    sizes: NDArray[np.float64] = np.abs(judged.means) / np.maximum(judged.errors, 1e-300)
    return sizes


class ContrastFamily:
    """Everything that is compared at once, under all policies."""

    def __init__(self, looked: dict[str, list[Columns]]) -> None:
        every = [each for columns in looked.values() for each in columns]
        self.policies = [policy for policy, all_ in looked.items() for each in all_ for _ in each.names]
        self.names = [name for each in every for name in each.names]
        self.kinds = [each.group for each in every for _ in each.names]
        self.tiers = np.repeat([each.tier for each in every], [len(each.names) for each in every])
        self.per = np.concatenate([each.per for each in every])
        self.spreads = np.concatenate([each.spreads for each in every])
        self.seen = np.concatenate([each.seen for each in every])
        self.blocks = [
            np.concatenate([each.differences for each in columns], axis=1) for columns in looked.values()
        ]

    def only(self, places: NDArray[np.intp]) -> "ContrastFamily":
        """The same with some of its columns."""
        kept = ContrastFamily.__new__(ContrastFamily)
        ends = np.cumsum([0, *(block.shape[1] for block in self.blocks)])
        kept.blocks = [
            block[:, places[(places >= first) & (places < last)] - first]
            for block, first, last in zip(self.blocks, ends[:-1], ends[1:], strict=True)
        ]
        for name in ("policies", "names", "kinds"):
            setattr(kept, name, [getattr(self, name)[place] for place in places])
        kept.per, kept.spreads, kept.tiers = self.per[places], self.spreads[places], self.tiers[places]
        return kept

    def find_differences(self, judged: Contrasts) -> NDArray[np.intp]:
        """Return what differs by more than its margin, in the order of places; of many the strongest."""
        beyond = np.flatnonzero(judged.beyond(MARGIN * self.spreads * self.per))
        return np.sort(beyond[np.argsort(-strength(judged)[beyond])[:MOST_FOUND]])

    def telling(self, judged: Contrasts, found: NDArray[np.intp]) -> list[int]:
        """The strongest of each kind: causes before what follows from them."""
        ordered = sorted(found.tolist(), key=lambda place: -strength(judged)[place])
        return [
            place for kind in KINDS for place in [p for p in ordered if self.kinds[p] == kind][:MOST_TOLD]
        ]

    def contrast(self, judged: Contrasts, place: int) -> Contrast:
        per = float(self.per[place])
        return Contrast(
            what=self.names[place],
            policy=self.policies[place],
            difference=float(judged.means[place]) / per,
            low=float(judged.lows[place]) / per,
            high=float(judged.highs[place]) / per,
            seen_from=float(judged.visible[place]) / per,
            spread=float(self.spreads[place]),
        )

    def groups(self, judged: Contrasts, found: NDArray[np.intp]) -> tuple[Group, ...]:
        """One row a kind and policy; what was found does not count into its bound."""
        per = self.per * self.spreads
        least = np.maximum(MARGIN, rare(self.seen))
        bounds = np.maximum(np.maximum(np.abs(judged.lows), np.abs(judged.highs)) / per, least)
        bounds[found] = 0
        return tuple(
            self._group(kind, policy, judged, np.where(self.seen > 0, bounds, 0))
            for policy in dict.fromkeys(self.policies)
            for kind in KINDS
        )

    def _group(self, kind: str, policy: str, judged: Contrasts, bounds: NDArray[np.float64]) -> Group:
        mine = (np.array(self.kinds) == kind) & (np.array(self.policies) == policy)
        worst = int(np.flatnonzero(mine)[np.argmax(bounds[mine])])
        contrast = self.contrast(judged, worst)
        return Group(
            name=kind,
            policy=policy,
            compared=int(np.count_nonzero(mine & (self.seen > 0))),
            bound=float(bounds[worst]),
            seen_from=max(contrast.seen_from / contrast.spread, MARGIN, float(rare(self.seen)[worst])),
            worst=contrast,
        )
