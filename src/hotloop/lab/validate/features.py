"""Pairs of episodes as rows, and what is compared of them: numbers of each episode, by one lens for both.

A lens is fitted to the rows of both sides together, so that to exchange the two of a pair changes nothing in
it: cuts of marginals, and cells of alike states and actions. Both are a little wider than rounding, which
another order of floating-point operations changes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hotloop.core.machine import need
from hotloop.core.progress import Progress
from hotloop.core.settings import Target
from hotloop.envs.batch import Batch
from hotloop.envs.foreign.training import open_trainable, random_actions
from hotloop.envs.open import make

RETURN, LENGTH = "return", "length"
REWARDS, OBSERVATIONS = "rewards", "observations"
BY_ACTION, BY_STATE = "transitions by action", "transitions by state"

CUTS = np.linspace(0.1, 0.9, 9)  # Quantiles at which a marginal is cut
GRAIN = 1e-4  # Of a spread: what is closer counts as the same state

# Distinct states that are cells of their own; where there are more, those that lie near are one
MOST_STATES = 1_024

NEAR_STATES, NEAR_ACTIONS = 64, 8

MOST_ACTIONS = 32

MOST_COLUMNS = 12_000

# Of an observation that transitions are compared in: its own, or random sums of them where it has more
CHANGES = 8

FEWEST_VISITS = 12  # Pairs in which both sides came to a cell; of others too little is known

# Tiers: a few numbers about everything, and the many about single components and cells; each has half of
# what may be found by chance
COARSE, FINE = 0, 1

MOVED, REWARD, END = "change of observation {}", "reward", "end of the episode"

Numbers = NDArray[np.float64]
Cells = NDArray[np.int64]

ENVS = 32  # Episodes that are played side by side
LIMIT = 500  # Steps after which an episode is cut off
AGENTS = 4  # Of an env whose rows are kept

# Of an observation that are looked at: its own, or as many random sums of them where it has more
COMPONENTS = 32

Moved = Callable[[int], None]  # Told after every step how many episodes have ended in it


class Chooser(Protocol):
    """Plays one wave of episodes."""

    def choose(self) -> NDArray[Any]: ...

    def note(self, ended: list[int]) -> None:
        """Learn in which envs the episode ended; most policies need not."""
        return


Seat = Callable[[Batch, int], Chooser]  # Puts a policy at a batch, with chances of their own for a seed


class RandomSeat(Chooser):
    """Random play; both sides draw the same chances, whatever is legal for each."""

    def __init__(self, batch: Batch, seed: int) -> None:
        self._batch, self._random = batch, np.random.default_rng(seed)

    def choose(self) -> NDArray[Any]:
        batch, layout = self._batch, self._batch.spec.layout
        like = batch.new_actions()
        rows = (batch.spec.num_envs, batch.spec.agents)
        drawn = random_actions(layout, self._random, rows, batch.masks)
        return np.ascontiguousarray(drawn.reshape(like.shape).astype(like.dtype))


class PlayerSeat(Chooser):
    """One of a world's own players."""

    def __init__(self, batch: Batch, _: int, player: str) -> None:
        self._batch, self._player = batch, player

    def choose(self) -> NDArray[Any]:
        return self._batch.choose(self._player)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What one side did: a row a step and agent, all episodes one after another."""

    episodes: int
    episode: NDArray[np.int64]  # Of each row
    seen: NDArray[np.float64]  # [rows, components], before the step
    after: NDArray[np.float64]
    actions: NDArray[np.float64]  # [rows, numbers of an action]
    rewards: NDArray[np.float64]
    ended: NDArray[np.bool_]  # Whether the rules ended the episode with this step
    returns: NDArray[np.float64]  # [episodes], means over agents
    lengths: NDArray[np.int64]


def open_side(target: Target) -> Batch:
    """Open one side with as many envs as are played at a time."""
    keyed = target.with_keys({"num_envs": ENVS})
    return open_trainable(keyed) if keyed.is_foreign else make(keyed.name, **keyed.keys)


def play(batch: Batch, seat: Seat, seeds: NDArray[np.int64], moved: Moved) -> Rows:
    """Play an episode from each seed, in waves; a multiple of ENVS."""
    waves = [play_wave(batch, seat, part, moved) for part in seeds.reshape(-1, ENVS)]
    parts = {
        name: np.concatenate([getattr(each, name) for each in waves])
        for name in ("seen", "after", "actions", "rewards", "ended", "returns", "lengths")
    }
    episode = np.concatenate([each.episode + number * ENVS for number, each in enumerate(waves)])
    return Rows(episodes=len(seeds), episode=episode, **parts)


def play_wave(batch: Batch, seat: Seat, seeds: NDArray[np.int64], moved: Moved) -> Rows:
    """Play one episode of each env, to its end or to the limit."""
    batch.reset(seeds.tolist())
    chooser, keep = seat(batch, int(seeds[0])), Keeper(batch)
    for _ in range(LIMIT):
        before = keep.look(batch.observations)
        actions = np.array(chooser.choose())
        batch.step(actions)
        over = batch.terminals | batch.truncations
        keep.take(before, actions, over)
        chooser.note(np.flatnonzero(over).tolist())
        moved(int(np.count_nonzero(over & keep.live)))
        keep.live &= ~over
        if not keep.live.any():
            break
    moved(int(np.count_nonzero(keep.live)))
    return keep.rows()


class Keeper:
    """Takes down the rows of a wave."""

    def __init__(self, batch: Batch) -> None:
        self._batch, self._agents = batch, min(batch.spec.agents, AGENTS)
        self.live = np.ones(batch.spec.num_envs, bool)
        self._returns = np.zeros(batch.spec.num_envs)
        self._lengths = np.zeros(batch.spec.num_envs, np.int64)
        self._kept: list[tuple[NDArray[Any], ...]] = []
        size = int(np.prod(batch.observations.shape[1:])) // batch.spec.agents
        self._sums = None if size <= COMPONENTS else sums_of(size)
        first = batch.observations.reshape(-1, size)
        self._one_hot = size > 2 and bool(
            ((first == 0).sum(axis=1) == size - 1).all() and (first.max(axis=1) == 1).all()
        )

    def look(self, observations: NDArray[Any]) -> NDArray[np.float64]:
        """[envs, agents, components], a copy."""
        rows = observations.reshape(self._batch.spec.num_envs, self._batch.spec.agents, -1)
        told = rows[:, : self._agents].astype(np.float64)
        some = told if self._sums is None else told @ self._sums
        return np.concatenate([told.argmax(axis=-1)[..., None], some], axis=-1) if self._one_hot else some

    def take(self, before: NDArray[np.float64], actions: NDArray[Any], over: NDArray[np.bool_]) -> None:
        batch, live = self._batch, self.live
        envs = batch.spec.num_envs
        after = self.look(batch.observations)
        if over.any():
            after[over] = self.look(batch.final_observations)[over]
        rewards = batch.rewards.reshape(envs, -1)
        self._returns[live] += rewards[live].mean(axis=1)
        self._lengths[live] += 1
        acted = actions.reshape(envs, batch.spec.agents, -1)[:, : self._agents]
        ended = np.repeat(batch.terminals[:, None], self._agents, axis=1)
        kept = (before, after, acted, rewards[:, : self._agents], ended)
        self._kept.append((np.flatnonzero(live), *(np.array(each[live]) for each in kept)))

    def rows(self) -> Rows:
        """All rows, an episode's in the order of its steps for each agent."""
        envs = np.concatenate([np.repeat(each[0], self._agents) for each in self._kept])
        agents = np.concatenate([np.tile(np.arange(self._agents), len(each[0])) for each in self._kept])
        order = np.lexsort((agents, envs))  # stable, so steps stay in order
        flat = [
            np.concatenate([each[part].reshape(len(each[0]) * self._agents, -1) for each in self._kept])[
                order
            ]
            for part in range(1, 6)
        ]
        seen, after, actions, rewards, ended = flat
        return Rows(
            episodes=self._batch.spec.num_envs,
            episode=envs[order],
            seen=seen,
            after=after,
            actions=actions.astype(np.float64),
            rewards=rewards[:, 0].astype(np.float64),
            ended=ended[:, 0].astype(bool),
            returns=self._returns,
            lengths=self._lengths,
        )


def sums_of(size: int) -> NDArray[np.float64]:
    """Return the weights of random sums of an observation's components, always the same."""
    signs = np.random.default_rng(size).choice([-1.0, 1.0], (size, COMPONENTS))
    told: NDArray[np.float64] = signs / np.sqrt(size)
    return told


STEPS = 64  # Of every env in a rollout

MINIBATCHES = 4


def train_seat(target: Target, steps: int, progress: Progress) -> Seat:
    """Train on one side, with the usual settings of PPO; return what seats the policy."""
    need("torch")
    from hotloop.train.evaluation import PolicyRunner
    from hotloop.train.settings import TrainSettings
    from hotloop.train.trainer import Trainer

    batch = open_side(target)
    samples = ENVS * batch.spec.agents * STEPS
    total = -(-steps // (ENVS * STEPS)) * ENVS * STEPS
    settings = TrainSettings(total_timesteps=total, num_steps=STEPS, minibatch_size=samples // MINIBATCHES)
    trainer = Trainer(batch, settings)
    while not trainer.finished:
        trainer.update()
        progress(trainer.steps, total)
    batch.close()
    return lambda played, seed: PolicyRunner(trainer, played, seed=seed)


def spread_of(values: Numbers) -> Numbers:
    """Return how much columns vary; if they do not, how large they are, or 1."""
    spread: Numbers = values.std(axis=0)
    size = np.abs(values).mean(axis=0)
    return np.where(spread > 1e-9 * np.maximum(size, 1e-12), spread, np.where(size > 0, size, 1.0))


class Cellar:
    """Which of a few cells a row belongs to: its own where rows repeat, else the nearest of some rows."""

    def __init__(self, rows: Numbers, most: int, near: int) -> None:
        self.spread = spread_of(rows)
        grains, first = np.unique(self._grains(rows), axis=0, return_index=True)
        self.exact = len(grains) <= most
        centres = (
            first if self.exact else first[np.random.default_rng(len(first)).permutation(len(first))[:near]]
        )
        self.centres = rows[np.sort(centres)]
        self.count = len(self.centres)
        self._known = {each.tobytes(): number for number, each in enumerate(self._grains(self.centres))}

    def _grains(self, rows: Numbers) -> Cells:
        return np.floor(rows / (GRAIN * self.spread) + 0.1234).astype(np.int64)

    def cells(self, rows: Numbers) -> Cells:
        """The cell of each row; -1 is a state that was not there when it was fitted."""
        if self.exact:
            grains, places = np.unique(self._grains(rows), axis=0, return_inverse=True)
            found = np.array([self._known.get(each.tobytes(), -1) for each in grains], np.int64)
            return found[places.reshape(-1)]
        scaled, centres = rows / self.spread, self.centres / self.spread
        lengths = (centres**2).sum(axis=1)
        nearest = [
            np.argmin(lengths - 2 * part @ centres.T, axis=1)
            for part in np.array_split(scaled, max(len(scaled) // 65_536, 1))
        ]
        return np.concatenate(nearest).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Some things of one kind that are compared."""

    group: str
    tier: int
    names: list[str]
    differences: Numbers  # [pairs, names], candidate less reference
    per: Numbers  # What a mean is divided by to be in its own unit
    spreads: Numbers
    # Pairs that each was seen in, on both sides; 0 where those are too few: it is then nothing but zeros
    seen: Cells


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """What one side's rows led to: which cell each began in, and what came of it."""

    rows: Rows
    cells: Cells
    outcomes: Numbers

    def sums(self, count: int, outcomes: Numbers) -> Numbers:
        """[episodes, cells, outcomes]."""
        inside = self.cells >= 0
        place = (self.rows.episode * count + self.cells)[inside]
        room = self.rows.episodes * count
        summed = [np.bincount(place, each, room) for each in outcomes[inside].T]
        return np.stack(summed, axis=-1).astype(float).reshape(self.rows.episodes, count, -1)


class Lens:
    """Looks at both sides in the same way."""

    def __init__(self, a: Rows, b: Rows) -> None:
        seen, rewards = np.concatenate([a.seen, b.seen]), np.concatenate([a.rewards, b.rewards])
        first = np.concatenate([rows.seen[begins(rows)] for rows in (a, b)])
        self._seen, self._first, self._rewards = Marginal(seen), Marginal(first), Marginal(rewards[:, None])
        self._actions = Cellar(np.concatenate([a.actions, b.actions]), MOST_ACTIONS, NEAR_ACTIONS)
        outcomes = min(seen.shape[1], CHANGES) + 4
        room = max(MOST_COLUMNS // (outcomes * self._actions.count), 4)
        self._states = Cellar(seen, min(MOST_STATES, room), min(NEAR_STATES, room))

    def look(self, a: Rows, b: Rows) -> list[Columns]:
        """Everything that is compared, always in the same places."""
        return [
            of_episodes(RETURN, a.returns, b.returns),
            of_episodes(LENGTH, a.lengths.astype(float), b.lengths.astype(float)),
            self._rewards.columns(
                REWARDS, "reward", COARSE, (a, a.rewards[:, None]), (b, b.rewards[:, None])
            ),
            self._seen.columns(OBSERVATIONS, "observation {}", FINE, (a, a.seen), (b, b.seen)),
            self._first.columns(OBSERVATIONS, "first observation {}", FINE, *map(first_rows, (a, b))),
            *self._transitions(a, b),
            # what is earned on coming to a state
            *followed(
                [
                    Followed(rows=rows, cells=self._states.cells(rows.after), outcomes=rows.rewards[:, None])
                    for rows in (a, b)
                ],
                [REWARD],
                [f"on coming to {self._place(cell)}" for cell in range(self._states.count)],
                ["on coming to any state"],
            ),
        ]

    def _transitions(self, a: Rows, b: Rows) -> Iterator[Columns]:
        """What follows from alike states by alike actions."""
        by = self._actions.count
        sides = []
        for rows in (a, b):
            states, actions = self._states.cells(rows.seen), self._actions.cells(rows.actions)
            inside = (states >= 0) & (actions >= 0)
            moved = rows.after - rows.seen
            if moved.shape[1] > CHANGES:  # some random sums of many components
                moved = moved @ sums_of(moved.shape[1])[:, :CHANGES]
            told = np.column_stack([moved, rows.rewards, rows.ended])
            sides.append(
                Followed(rows=rows, cells=np.where(inside, states * by + actions, -1), outcomes=told)
            )
        count = sides[0].outcomes.shape[1]
        names = [*(MOVED.format(each) for each in range(count - 2)), REWARD, END]
        action = [f"after action {spelled(each)}" for each in self._actions.centres]
        places = [
            f"{action[cell % by]} in {self._place(cell // by)}" for cell in range(self._states.count * by)
        ]
        yield from followed(sides, names, places, action)

    def _place(self, state: int) -> str:
        """A state by its first numbers."""
        return f"{'state' if self._states.exact else 'near'} {spelled(self._states.centres[state])}"


def followed(
    sides: list[Followed], names: list[str], places: list[str], wholes: list[str]
) -> Iterator[Columns]:
    """Outcomes and their spread in each cell, and over all cells that share a last name.

    Of each episode the sum, less what the mean of both sides in the same cells would make it: nothing where
    both do the same, however often each came there.
    """
    count, pairs = len(places), sides[0].rows.episodes
    visits = [each.sums(count, np.ones((len(each.cells), 1)))[:, :, 0] for each in sides]
    both = np.maximum((visits[0] + visits[1]).sum(axis=0), 1)
    means = sum_of(sides, count, [each.outcomes for each in sides]) / both[:, None]
    scale = spread_of(np.concatenate([each.outcomes for each in sides]))
    wide = [np.column_stack([each.outcomes, spreads_in(each, means, scale)]) for each in sides]
    means = sum_of(sides, count, wide) / both[:, None]
    rest = [
        each.sums(count, values) - seen[:, :, None] * means
        for each, values, seen in zip(sides, wide, visits, strict=True)
    ]
    apart = rest[1] - rest[0]
    told = [*names, *(f"spread of {each}" for each in (["the change", REWARD] if len(names) > 1 else names))]
    spreads = spread_of(np.concatenate(wide))
    came = np.minimum(*((each > 0).sum(axis=0) for each in visits))
    known = came >= FEWEST_VISITS
    yield Columns(
        group=BY_STATE,
        tier=FINE,
        names=[f"{name} {place}" for place in places for name in told],
        differences=np.where(known[:, None], apart, 0.0).reshape(pairs, -1),
        per=np.repeat(both / 2 / pairs, len(told)),
        spreads=np.tile(spreads, count),
        seen=np.repeat(np.where(known, came, 0), len(told)),
    )
    together = apart.reshape(pairs, -1, len(wholes), len(told)).sum(axis=1)
    yield Columns(
        group=BY_ACTION,
        tier=COARSE,
        names=[f"{name} {whole}" for whole in wholes for name in told],
        differences=together.reshape(pairs, -1),
        per=np.repeat(both.reshape(-1, len(wholes)).sum(axis=0) / 2 / pairs, len(told)),
        spreads=np.tile(spreads, len(wholes)),
        seen=np.full(len(wholes) * len(told), pairs),
    )


def sum_of(sides: list[Followed], count: int, outcomes: list[Numbers]) -> Numbers:
    """Return the sum over all episodes of both, [cells, outcomes]."""
    parts = [each.sums(count, values).sum(axis=0) for each, values in zip(sides, outcomes, strict=True)]
    total: Numbers = parts[0] + parts[1]
    return total


def spreads_in(side: Followed, means: Numbers, scale: Numbers) -> Numbers:
    """Return how far each row is from the mean of its cell, squared: of the whole change, and the reward."""
    away: Numbers = ((side.outcomes - means[side.cells]) / scale) ** 2
    if away.shape[1] == 1:
        return away
    told: Numbers = np.column_stack([away[:, :-2].mean(axis=1), away[:, -2]])
    return told


def spelled(row: Numbers) -> str:
    """Return a state or an action in few words."""
    shown = " ".join(f"{each:.3g}" for each in row[:4])
    return f"{shown} ..." if len(row) > 4 else shown


def begins(rows: Rows) -> NDArray[np.bool_]:
    """Return which rows are the first of an episode."""
    first: NDArray[np.bool_] = np.diff(rows.episode, prepend=-1) != 0
    return first


def first_rows(rows: Rows) -> tuple[Rows, Numbers]:
    """Return each episode's first row, as if it were all of it."""
    first = begins(rows)
    return replace(rows, episode=rows.episode[first], rewards=rows.rewards[first]), rows.seen[first]


def of_episodes(group: str, a: Numbers, b: Numbers) -> Columns:
    """Return the column of one number per episode."""
    return Columns(
        group=group,
        tier=COARSE,
        names=[group],
        differences=(b - a)[:, None],
        per=np.ones(1),
        spreads=spread_of(np.concatenate([a, b])[:, None]),
        seen=np.array([len(a)]),
    )


class Marginal:
    """How columns are distributed, by a few numbers each: mean, square, changes, shares below cuts."""

    def __init__(self, values: Numbers) -> None:
        self._spreads = spread_of(values)
        self._sizes = np.maximum(np.abs(values).mean(axis=0), self._spreads)
        # a grain above what is seen often, so that rounding does not cross it
        above = 5 * GRAIN * self._spreads
        quantiles = np.quantile(values, CUTS, axis=0) + above
        # cuts further apart than a grain
        self._cuts = [
            column[np.concatenate([[True], np.diff(column) > grain])]
            for column, grain in zip(quantiles.T, above, strict=True)
        ]

    def columns(self, group: str, name: str, tier: int, *sides: tuple[Rows, Numbers]) -> Columns:
        """Means over the rows of each episode."""
        a, b = (self._means(rows, values) for rows, values in sides)
        names, spreads = [], []
        for index, cuts in enumerate(self._cuts):
            each, spread = name.format(index), float(self._spreads[index])
            names += [
                each,
                f"{each} squared",
                f"step of {each}",
                *(f"{each} below {cut:.4g}" for cut in cuts),
            ]
            spreads += [spread, 2 * spread * float(self._sizes[index]), spread, *(0.5 for _ in cuts)]
        return Columns(
            group=group,
            tier=tier,
            names=names,
            differences=b - a,
            per=np.ones(len(names)),
            spreads=np.array(spreads),
            seen=np.full(len(names), sides[0][0].episodes),
        )

    def _means(self, rows: Rows, values: Numbers) -> Numbers:
        steps = np.abs(np.diff(values, axis=0, append=values[-1:]))
        steps[np.diff(rows.episode, append=-1) != 0] = 0
        told = []
        for index, cuts in enumerate(self._cuts):
            column = values[:, index]
            told += [column, column**2, steps[:, index], *(column <= cut for cut in cuts)]
        count = np.maximum(np.bincount(rows.episode, minlength=rows.episodes), 1)
        means = [np.bincount(rows.episode, each, rows.episodes) / count for each in told]
        return np.column_stack(means)
