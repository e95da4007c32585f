"""Players, and a game whose two seats play by themselves: what `hero=` and `villain=` make of a target.

A step of it is one decision: whose turn it is chooses, then the env steps. So bench, compare and profile
measure whole games, inference included, as they measure any other subject.
"""

import random as standard
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError, Notice, TheirError
from hotloop.core.machine import need
from hotloop.core.registry import find
from hotloop.core.settings import Target, hash_of, names_callable
from hotloop.core.spans import span
from hotloop.envs import callables, tapes
from hotloop.envs.batch import Batch
from hotloop.envs.foreign.inside import BROKEN, ENV_STEP, raised
from hotloop.envs.foreign.zoo import HERO, seats_of
from hotloop.envs.open import open_target
from hotloop.envs.projects import is_apart, new_apart, parameters
from hotloop.envs.spec import Spec
from hotloop.envs.subject import Proxy, Subject
from hotloop.lab.measure.policy import RANDOM, TAPE, Choose, checkpoint_of, is_trained, load
from hotloop.lab.measure.target import check_player
from hotloop.lab.validate.equal import States, read_global_rng, set_global_rng


class BatchPlayer(Protocol):
    """Chooses the actions of every env of a batch."""

    @property
    def forward_ns(self) -> int:
        """In a network, since the beginning."""

    @property
    def select_ns(self) -> int:
        """In choosing by what it says, or without any."""

    def choose(self, envs: NDArray[np.intp] | None = None) -> NDArray[np.int32]:
        """Actions of every env, or at least of those that are named."""

    def note(self, ended: Sequence[int]) -> None:
        """Learn after a step in which envs the episode ended; most players see that by themselves."""
        return


class TapePlayer(BatchPlayer):
    """What was recorded, step by step."""

    forward_ns = select_ns = 0

    def __init__(self, batch: Batch, path: Path) -> None:
        self._actions = iter(tapes.read_for(path, batch))

    def choose(self, envs: NDArray[np.intp] | None = None) -> NDArray[np.int32]:
        """The next step's; StopIteration where the tape has ended."""
        actions: NDArray[np.int32] = next(self._actions)
        return actions


class OwnPlayer(BatchPlayer):
    """One of the batch's own."""

    forward_ns = select_ns = 0

    def __init__(self, batch: Batch, name: str) -> None:
        check_player(batch, name)
        self._batch, self._name = batch, name

    def choose(self, envs: NDArray[np.intp] | None = None) -> NDArray[np.int32]:
        start = now_ns()
        actions = self._batch.choose(self._name)
        self.select_ns += now_ns() - start
        return actions


class CallablePlayer(BatchPlayer):
    """A function from observations to actions, or a model with `forward` and `select`."""

    forward_ns = select_ns = 0

    def __init__(self, batch: Batch, name: str) -> None:
        self._batch, self._name, self._choose = batch, name, load(name)

    def choose(self, envs: NDArray[np.intp] | None = None) -> NDArray[np.int32]:
        start, spec = now_ns(), self._batch.spec
        try:
            chosen = np.asarray(self._choose(self._batch), np.int32).reshape(spec.num_envs, spec.agents)
        except BROKEN as error:
            raise raised(f"the player {self._name}", error) from error
        self.select_ns += now_ns() - start
        return chosen


class BothSeats(BatchPlayer):
    """Two players at a batch whose both seats are played from outside."""

    def __init__(self, batch: Batch, first: BatchPlayer, second: BatchPlayer) -> None:
        contest = batch.spec.world.contest
        assert contest is not None
        self._seat, self._players = batch.infos[contest.seat], (first, second)
        self._actions = np.zeros((batch.spec.num_envs, batch.spec.agents), np.int32)

    @property
    def forward_ns(self) -> int:
        return sum(player.forward_ns for player in self._players)

    @property
    def select_ns(self) -> int:
        return sum(player.select_ns for player in self._players)

    def choose(self, envs: NDArray[np.intp] | None = None) -> NDArray[np.int32]:
        for seat, player in enumerate(self._players):
            mine = np.flatnonzero(self._seat == seat)
            if mine.size:
                self._actions[mine] = player.choose(mine)[mine]
        return self._actions

    def note(self, ended: Sequence[int]) -> None:
        for player in self._players:
            player.note(ended)


def find_player(batch: Batch, name: str) -> BatchPlayer:
    """Return a player by its name, `run:NAME` for a run's last checkpoint, `tape:FILE` for a recording."""
    if name.startswith(TAPE):
        return TapePlayer(batch, Path(name.removeprefix(TAPE)))
    if names_callable(name) and not is_trained(name):
        return CallablePlayer(batch, name)
    if not is_trained(name):
        return OwnPlayer(batch, name)
    need("torch")
    from hotloop.train.evaluation import seat

    return seat(checkpoint_of(name), batch, seed=batch.spec.seed, threads=batch.spec.threads)


def find_players(batch: Batch, first: str, second: str) -> BatchPlayer:
    """Return what chooses all actions; `second` is empty if the world plays the other seat, or has none."""
    if not second:
        return find_player(batch, first)
    return BothSeats(batch, find_player(batch, first), find_player(batch, second))


INFERENCE = "inference"  # The row of a tree in which the player whose turn it is chooses

KEYS = ("hero", "villain")

GAMES_KEYS = ("num_games", "episodes")  # Keys that say how many games are played
THREADS = "num_threads"  # The owners' word for `threads`

USUAL_GAMES, MOST_GAMES = 64, 1_000_000

TURN_STEPS = 32

MOST_ENVS = 64  # Games of one of our worlds that are played at once if no key says how many


@dataclass(frozen=True, slots=True, kw_only=True)
class GameOver:
    """One game that was played to its end."""

    env: int
    length: int  # Decisions of both seats, or steps of a batch
    steps: int  # Env-steps, with those that only pass
    won: float  # 1 if the hero won, 0 if the villain did, 0.5 for a draw
    began: bool  # Whether the hero had the first turn


def seated_spec(spec: Spec, target: Target) -> Spec:
    """Return the spec of an env with the two players among its keys."""
    players = {key: target.keys[key] for key in KEYS if key in target.keys}
    described = replace(
        spec.described,
        params={**spec.described.params, **players},
        workload_hash=hash_of(spec.described.workload_hash, players),
        keys={**spec.described.keys, **players},
    )
    made_from = target if spec.made_from else None
    return replace(spec, described=described, same_work=target, made_from=made_from)


class Seated(Proxy):
    """A subject with a player in each seat; actions that are handed to `step` are not looked at."""

    # Whose random numbers the global generators of this process hold
    last_to_play: ClassVar["Seated | None"] = None

    # It puts back its own before it plays, so that code that steps several subjects need not
    keeps_random_numbers = True

    def __init__(self, subject: Subject, target: Target) -> None:
        super().__init__(subject)
        self._target = target
        # The games that ended since `keep_games`; None before it
        self.games: list[GameOver] | None = None
        self._is_fresh = False
        # Envs whose game began before `keep_games`; it does not count
        self._halfway: set[int] = set()
        # The global random numbers as its last turn left them; None while it is the last to play
        self.rng: States | None = None

    @property
    def spec(self) -> Spec:
        return seated_spec(self._subject.spec, self._target)

    @property
    def env_spec(self) -> Spec:
        """The spec of the env alone, without the players."""
        return self._subject.spec

    @property
    def policy(self) -> str:
        """What a record says of the players."""
        hero, villain = (self._target.keys.get(key, RANDOM) for key in KEYS)
        return f"{hero} against {villain}"

    def keep_games(self) -> None:
        """Keep account of every game that begins from now on."""
        self.games = []
        self._halfway = set(self.envs_halfway())

    def envs_halfway(self) -> Sequence[int]:
        """Return the envs that are in the middle of a game."""
        raise NotImplementedError

    def _keep(self, game: GameOver) -> None:
        if game.env in self._halfway:
            self._halfway.remove(game.env)
        elif self.games is not None:
            self.games.append(game)

    def faults(self, actions: Iterable[Any] | None = None) -> tuple[Notice, ...]:
        """Return what the env does that its interface forbids, under random play."""
        return self._subject.faults()

    def reset(self) -> None:
        """Begin from the seed, with players that have seen nothing and global random numbers to match."""
        super().reset()
        if not self._is_fresh:
            self._sit_down()
        self._is_fresh, self._halfway = True, set()

    def _sit_down(self) -> None:
        """Seat new players."""
        raise NotImplementedError

    def draw(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
        return [None] * calls

    def settle(self, actions: Any) -> Any:
        return None

    @property
    def draws_legal(self) -> bool:
        return True

    def step(self, actions: Any) -> None:
        """Let the player whose turn it is choose, and step the env."""
        self._is_fresh = False
        self._play_turn()

    def _play_turn(self) -> None:
        raise NotImplementedError


class SeatedEnv(Seated):
    """One env of any kind with a player in each seat."""

    def __init__(self, subject: Subject, target: Target) -> None:
        super().__init__(subject, target)
        self._seats = seats_of(subject)
        self._players: tuple[Choose, ...] = ()
        self._length = self._steps = 0
        self._first = HERO

    def reset(self) -> None:
        super().reset()
        self._length = self._steps = 0
        self._seats.check()

    def envs_halfway(self) -> Sequence[int]:
        return [0] if self._steps else []

    @property
    def grain(self) -> int:
        """Env-steps of the shortest turn of a comparison: enough decisions of both seats."""
        return TURN_STEPS

    def _sit_down(self) -> None:
        names = [str(self._target.keys.get(key, RANDOM)) for key in KEYS]
        for seat, name in enumerate(names):
            if names_callable(name) and not is_trained(name):
                with self._named(seat):
                    callables.find(name)  # imports what has random numbers of its own before they are seeded
        self._take_over()
        # the generators that players share with the whole process
        seed = self._subject.spec.seed
        standard.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002 - players may draw from it
        if (torch := sys.modules.get("torch")) is not None:
            torch.manual_seed(seed)
        players = []
        for seat, name in enumerate(names):
            with self._named(seat):
                players.append(player_of(name, self._subject, seat, timed=self.in_spans))
        self._players = tuple(players)

    @contextmanager
    def _named(self, seat: int) -> Iterator[None]:
        """Name the seat in an error about its player."""
        try:
            yield
        except InputError as error:
            raise type(error)(f"{self._name(seat)}: {error}") from error

    def _play_turn(self) -> None:
        subject, seats, begun = self._subject, self._seats, self._subject.resets
        seat = seats.to_move()
        self._take_over()
        action = None
        if seat is not None:
            if not self._length:
                self._first = seat
            self._length += 1
            try:
                action = self._players[seat](subject)
            except BROKEN as error:
                raise raised(self._name(seat), error) from error
        try:
            subject.step(action)
        except TheirError as error:
            raise error if seat is None else self._blamed(error, seat, action) from error
        self._steps += 1
        seats.note(seat)
        if subject.resets != begun:
            score, began = seats.score(), self._first == HERO
            self._keep(GameOver(env=0, length=self._length, steps=self._steps, won=score, began=began))
            self._length = self._steps = 0

    def _name(self, seat: int) -> str:
        return f"{KEYS[seat]}={self._target.keys.get(KEYS[seat], RANDOM)}"

    def _blamed(self, error: TheirError, seat: int, action: Any) -> TheirError:
        """Return the error of a step with the player's move that led to it."""
        mask, start = self._subject.told.get("action_mask"), first_action(self._subject)
        legal = [] if mask is None or start is None else (np.flatnonzero(mask) + start).tolist()
        is_illegal = bool(legal) and not (np.ndim(action) == 0 and action in legal)
        forbidden = f", and its mask allows {', '.join(map(str, legal)):.80}" if is_illegal else ""
        return TheirError(f"{error}: {self._name(seat)} chose {action!r:.40}{forbidden}")

    def _take_over(self) -> None:
        """Put the global random numbers back as they were after the last turn of this table."""
        other = Seated.last_to_play
        if other is self:
            return
        if other is not None:
            other.rng = read_global_rng()
        if self.rng is not None:
            set_global_rng(self.rng)
        Seated.last_to_play = self

    def close(self) -> None:
        if Seated.last_to_play is self:
            Seated.last_to_play = None
        super().close()


class SeatedBatch(Seated):
    """A batch of one of our worlds that declares a contest; many games go on at once."""

    def __init__(self, batch: Batch, target: Target, players: tuple[str, str], *, timed: bool) -> None:
        super().__init__(batch, target)
        contest = batch.spec.world.contest
        assert contest is not None
        self._batch, self._names, self._timed, self.contest = batch, players, timed, contest
        self._outcomes = batch.spec.world.outcomes
        self._ages = np.zeros(batch.spec.num_envs, np.int64)

    @property
    def in_spans(self) -> bool:
        return self._timed

    def _sit_down(self) -> None:
        self.player = find_players(self._batch, *self._names)
        region: Callable[[str], Callable[..., Any]] = span if self._timed else (lambda _: lambda same: same)
        self._choose = region(INFERENCE)(self.player.choose)
        self._step = region(ENV_STEP)(self._batch.step)

    def reset(self) -> None:
        super().reset()
        self._ages[:] = 0

    def envs_halfway(self) -> Sequence[int]:
        halfway: list[int] = np.flatnonzero(self._ages).tolist()
        return halfway

    def _play_turn(self) -> None:
        self._step(self._choose())
        batch = self._batch
        self._ages += 1
        over = np.flatnonzero(batch.terminals | batch.truncations).tolist()
        if not over:
            return
        self.player.note(over)
        names = (self.contest.won, self.contest.began)
        won, began = (batch.infos[self._outcomes[name].info] for name in names)
        for env in over:
            age = int(self._ages[env])
            score, first = float(won[env]), bool(began[env])
            self._keep(GameOver(env=env, length=age, steps=age, won=score, began=first))
        self._ages[over] = 0


def is_seated(target: Target) -> bool:
    """Return whether a target names players of its two seats, rather than arguments of its own callable."""
    if not any(key in target.keys for key in KEYS):
        return False
    if not target.is_foreign:
        contest = find(target.name).world.contest
        return contest is not None and contest.player in target.keys
    prefix = target.name.partition(":")[0]
    own = () if prefix in ("gym", "pettingzoo", "puffer") else parameters(target)
    return not any(key in own for key in KEYS)


def as_game(target: Target) -> Target:
    """Return a seated target by plain keys: a preset's first one, without how many games are played."""
    keys = {key: value for key, value in target.keys.items() if key not in GAMES_KEYS}
    if target.is_foreign:
        return replace(target, keys=keys)
    if THREADS in keys:
        keys["threads"] = keys.pop(THREADS)
    keys.setdefault("num_envs", envs_for(games_of(target)))
    return replace(target, name=find(target.name).target, keys=keys)


def games_of(target: Target) -> int:
    """Return how many games a target's keys ask for."""
    asked = next((target.keys[key] for key in GAMES_KEYS if key in target.keys), USUAL_GAMES)
    if not str(asked).isdecimal() or not 1 <= int(str(asked)) <= MOST_GAMES:
        raise InputError(f"num_games={asked} does not fit: expected int from 1 to {MOST_GAMES}")
    return int(str(asked))


def envs_for(games: int) -> int:
    """Return as many envs as play the games to the end in the fewest turns, and no more."""
    turns = -(-games // MOST_ENVS)
    return -(-games // turns)


def open_seated(target: Target, profile: bool) -> Subject:
    """Open a target whose two seats are played."""
    if not target.is_foreign:
        return open_contest(target, profile=profile)
    if is_apart(target):
        return new_apart(target, f"{__name__}:open_seated", profile)
    refuse_tapes(target)
    if str(target.keys.get("num_envs", 1)) != "1":
        raise InputError(f"hero= and villain= play one env: leave out num_envs={target.keys['num_envs']}")
    bare = replace(target, keys={key: value for key, value in target.keys.items() if key not in KEYS})
    subject = open_target(bare, profile=profile)
    try:
        return SeatedEnv(subject, target)
    except BaseException:
        subject.close()
        raise


def open_contest(target: Target, *, profile: bool) -> Seated:
    """Open one of our worlds with its hero outside; the villain too if the world has no such player."""
    contest = find(target.name).world.contest
    assert contest is not None
    keys = dict(target.keys)
    hero = str(keys.pop(contest.player))
    [(key, outside)] = contest.both_outside.items()
    villain, second = str(keys.get(key, "")), ""
    if villain and (is_trained(villain) or names_callable(villain)):
        keys[key], second = outside, villain
    refuse_tapes(target)
    batch = open_target(replace(target, keys=keys), profile=profile)
    assert isinstance(batch, Batch)
    return SeatedBatch(batch, target, (hero, second), timed=profile)


def refuse_tapes(target: Target) -> None:
    """Refuse a tape in a seat: it holds the actions of both."""
    for key in KEYS:
        if str(target.keys.get(key, "")).startswith(TAPE):
            raise InputError(f"{key}={target.keys[key]}: a tape plays both seats: hotloop sim --replay TAPE")


def player_of(name: str, subject: Subject, seat: int, *, timed: bool) -> Choose:
    """Return the player of a seat by its name: random, a trained run, or a callable or model."""
    if is_trained(name):
        need("torch")
    elif name == RANDOM:
        choose = random_player(subject, seat)
        return span(INFERENCE)(choose) if timed else choose
    elif not names_callable(name):
        raise InputError(
            f"{subject.spec.name} has no player {name!r}: it is random, run:NAME, a checkpoint or "
            "module:callable"
        )
    return load(name, timed=timed, row=INFERENCE)


def random_player(subject: Subject, seat: int) -> Choose:
    """Return a player that chooses uniformly among the legal actions of one whole number."""
    chance, start = np.random.default_rng([subject.spec.seed, seat]), first_action(subject)

    def choose(of: Subject) -> Any:
        mask = of.told.get("action_mask")
        if mask is None or start is None:
            return of.settle(of.draw(chance, 1)[0])
        legal = np.flatnonzero(mask)
        return start + int(legal[int(chance.random() * len(legal))])

    return choose


def first_action(subject: Subject) -> int | None:
    """Return the lowest action of a discrete space; None for any other space."""
    env = getattr(subject.behind if isinstance(subject, Proxy) else subject, "env", None)
    space = getattr(env, "action_space", None)
    if callable(space) and env is not None:
        space = space(env.possible_agents[HERO])
    return int(getattr(space, "start", 0)) if hasattr(space, "n") else None
