"""A batch: many envs of one world, stepped together through arrays made once."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import clock_cost_ns
from hotloop.core.errors import HotloopError, InputError, unknown
from hotloop.core.settings import workload_hash
from hotloop.core.world import Drawer, Part
from hotloop.envs.native import Engine, mark_cost_ns
from hotloop.envs.spec import MAX_SEED, BatchSpec
from hotloop.envs.subject import NATIVE, OneByOne, StepLog, WholeNumbers

# Arrays that are not infos.
STANDARD = ("observations", "rewards", "terminals", "truncations", "masks", "final_observations")


class OrderError(HotloopError, RuntimeError):
    """A call that came too early or too late, such as a step before the first reset."""


def parts_of(rows: NDArray[Any], parts: Sequence[Part]) -> dict[str, NDArray[Any]]:
    """Views of the parts of observation rows [..., row], each [..., *shape]."""
    views, first = {}, 0
    for part in parts:
        views[part.name] = rows[..., first : first + part.size].reshape(*rows.shape[:-1], *part.shape)
        first += part.size
    return views


class Batch(OneByOne):
    """Many envs behind one call; the arrays are views, rewritten by the next step."""

    restarts = in_spans = resets_together = False
    whole = NATIVE  # What rows of its log are called: whole steps, of which phases are parts
    can_save = True
    workers = None

    def __init__(self, engine: Engine, spec: BatchSpec) -> None:
        self._engine: Engine | None = engine
        self.spec = spec
        arrays = engine.arrays()
        self.observations: NDArray[Any] = arrays["observations"]
        self.rewards: NDArray[np.float32] = arrays["rewards"]
        self.terminals: NDArray[np.bool_] = arrays["terminals"]
        self.truncations: NDArray[np.bool_] = arrays["truncations"]
        self.final_observations: NDArray[Any] = arrays["final_observations"]
        self.masks: NDArray[np.bool_] | None = arrays.get("masks")
        self.parts: dict[str, NDArray[Any]] = parts_of(self.observations, spec.layout.parts)
        self.infos: dict[str, NDArray[Any]] = {k: v for k, v in arrays.items() if k not in STANDARD}
        self.observation = self.observations
        """What the next actions are chosen from."""
        envs, agents, settings = spec.num_envs, spec.agents, spec.settings
        self.autoreset = "SameStep" if settings.autoreset else "Disabled"
        self.players: tuple[str, ...] = tuple(engine.players())
        """Names of what can choose actions here: `random`, then the world's own."""
        self.draws_legal = self.masks is None or "random" not in self.players
        """Whether drawn actions need no mask: there is none, or no player `random` that looks at it."""
        self.whole_numbers = WholeNumbers(
            start=0, count=spec.num_actions, shape=(envs, agents), any_is_taken=not settings.strict
        )
        self.spaces: tuple[object, object] = (None, f"{spec.num_actions} actions")
        self.single_spaces = self.spaces
        self.is_native = spec.impl == "native"
        """Whether rows of its log are in ticks rather than nanoseconds."""
        self.logs_itself = settings.profile
        self.log_columns = spec.threads, spec.phases
        """Threads, and the phases that each has a column for."""
        self._action_shapes = ((envs, agents), (envs,)) if agents == 1 else ((envs, agents),)
        self._converted = 0
        self._seats: dict[str, tuple[int, NDArray[np.int32]]] = {}
        mode, world = settings.render_mode, spec.world
        self._drawer: Drawer | None = None
        if mode != "none":
            if world.drawer is None:
                raise InputError(f"render_mode={mode}: {world.name} draws no picture; leave render_mode out")
            self._drawer = world.drawer(spec.parameters)

    def wait(self) -> None:
        """Nothing is left to wait for: a step is over when it returns."""

    def reset(self, seeds: Sequence[int] | NDArray[np.uint64] | None = None) -> None:
        """Begin an episode in every env, from the given seeds or each env's own next one."""
        chosen = None if seeds is None else self._seeds(seeds, self.spec.num_envs)
        try:
            self.engine.reset(chosen)
        except RuntimeError as error:
            raise OrderError(str(error)) from None

    def reset_many(
        self,
        indices: Sequence[int] | NDArray[np.int64],
        seeds: Sequence[int] | NDArray[np.uint64] | None = None,
    ) -> None:
        """Begin an episode in some envs."""
        envs = np.asarray(indices, dtype=np.int64).reshape(-1)
        if envs.size and (envs.min() < 0 or envs.max() >= self.spec.num_envs):
            raise InputError(f"env indices must be from 0 to {self.spec.num_envs - 1}")
        chosen = None if seeds is None else self._seeds(seeds, envs.size)
        try:
            self.engine.reset_many(envs, chosen)
        except RuntimeError as error:
            raise OrderError(str(error)) from None

    def reseed(self, seed: int) -> None:
        """Do nothing: the seed of a batch is a key of its target."""

    def reset_some(self, envs: Sequence[int]) -> None:
        self.reset_many(envs)

    def step(self, actions: NDArray[np.int32]) -> None:
        """Step every env: int32 [num_envs, agents] is read in place, int64 and uint8 are converted."""
        if self.spec.settings.strict:
            self._check_range(actions)
        engine = self._engine
        if engine is None:
            raise closed()
        try:
            engine.step(actions)
        except (TypeError, ValueError, AttributeError):
            accepted = self._accept(actions)
            if accepted is actions:
                raise  # nothing is wrong with the actions
            self._converted += 1
            engine.step(accepted)
        except RuntimeError as error:
            raise OrderError(str(error)) from None

    def lend(self, threads: int) -> None:
        """Step with another pool's threads, given as the address of its GOMP_parallel; 0 is with its own."""
        self.engine.lend(threads)

    def draw(self, random: np.random.Generator, calls: int) -> list[NDArray[np.int32]]:
        """Random actions for a number of calls."""
        shape = (calls, self.spec.num_envs, self.spec.agents)
        return list(random.integers(self.spec.drawn_actions, size=shape, dtype=np.int32))

    def fold(self, actions: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
        return np.array(actions, np.int32).reshape(len(actions), self.spec.num_envs, self.spec.agents)

    def unfold(self, row: NDArray[Any]) -> NDArray[np.int32]:
        return np.ascontiguousarray(row, np.int32)

    def legal(self, random: np.random.Generator, actions: Sequence[Any]) -> Sequence[Any]:
        return actions

    def settle(self, actions: Any) -> Any:
        return actions

    @property
    def told(self) -> Mapping[str, Any]:
        return {} if self.masks is None else {"action_mask": self.masks}

    def choose(self, player: str) -> NDArray[np.int32]:
        """Let a player choose every agent's action from what agents see now, and hand it to `step`.

        The array [num_envs, agents] is the player's own, rewritten the next time it is asked. A player
        remembers what it has seen of an episode, so ask it before every step it is to follow.
        """
        engine = self.engine
        if player not in self._seats:
            if player not in self.players:
                raise unknown("player", player, self.players, f"the players are {', '.join(self.players)}")
            self._seats[player] = (self.players.index(player), self.new_actions())
        index, actions = self._seats[player]
        try:
            engine.choose(index, actions)
        except RuntimeError as error:
            raise OrderError(str(error)) from None
        return actions

    def render(self, env: int = 0) -> NDArray[np.uint8] | str:
        """Draw an env as it truly is: an image [height, width, 3], or text, as render_mode says."""
        if self._drawer is None:
            raise InputError("this batch draws nothing: make it with render_mode=rgb_array or ansi")
        try:
            cells = self.engine.picture(self._index(env))
        except RuntimeError as error:
            raise OrderError(str(error)) from None
        as_text = self.spec.settings.render_mode == "ansi"
        drawn: NDArray[np.uint8] | str = self._drawer.text(cells) if as_text else self._drawer.image(cells)
        return drawn

    def unseen(self) -> tuple[()]:
        """Nothing: all of it is arrays."""
        return ()

    def generators(self) -> tuple[()]:
        """None beside the state, whose digest has them."""
        return ()

    def faults(self, actions: Iterable[Any] | None = None) -> tuple[()]:
        """None: the contract tests hold a world to its interface."""
        return ()

    @property
    def resets(self) -> int:
        return self.counters["resets"]

    @property
    def counters(self) -> dict[str, int]:
        """What ran and how much, counted by the code that did it."""
        coverage = self.spec.world.counters
        counted = dict.fromkeys(("native_steps", "reference_steps", "actions_converted"), 0)
        for name, count in self.engine.counters():
            counted[f"coverage.{name}" if name in coverage else name] = count
        counted["actions_converted"] = self._converted
        return counted

    def digest(self) -> NDArray[np.uint64]:
        """One hash an env of its logical state, random numbers included."""
        engine = self.engine
        return np.array([engine.digest(env) for env in range(self.spec.num_envs)], np.uint64)

    def answers(self) -> dict[str, NDArray[Any]]:
        """Everything a step can change, the state by its digest; the arrays are views but for that."""
        return {
            "observations": self.observations,
            "rewards": self.rewards,
            "terminals": self.terminals,
            "truncations": self.truncations,
            "final_observations": self.final_observations,
            **({} if self.masks is None else {"masks": self.masks}),
            **{f"infos.{name}": array for name, array in self.infos.items()},
            "digest": self.digest(),
        }

    def everything(self) -> dict[str, NDArray[Any]]:
        return self.answers()

    def save(self, env: int) -> bytes:
        """One env, state and outputs, as bytes that `load` takes back."""
        try:
            return sealed(self._stamp(), bytes(self.engine.save(self._index(env))))
        except RuntimeError as error:
            raise OrderError(str(error)) from None

    def load(self, env: int, saved: bytes) -> None:
        """Put a saved env in the place of another; its world and parameters must be the same."""
        if not saved.startswith(self._stamp()):
            raise InputError("saved by another world, implementation or version, or with other parameters")
        try:
            self.engine.load(self._index(env), unsealed(saved))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"the saved env is damaged: {error}") from None
        except RuntimeError as error:
            raise OrderError(str(error)) from None

    def fork(self, env: int, into: int) -> None:
        """Copy one env, state and outputs, into the place of another, which goes on from there on its own."""
        try:
            self.engine.fork(self._index(env), self._index(into))
        except RuntimeError as error:
            raise OrderError(str(error)) from None

    @property
    def step_timing(self) -> dict[str, int]:
        """Nanoseconds in each phase of the last step; empty where profiling is off."""
        return self._phases(last_step_only=True)

    def phase_totals(self) -> dict[str, int]:
        """Nanoseconds in each phase, and in `step` as a whole, since the batch was made."""
        return self._phases(last_step_only=False)

    @property
    def mark_ns(self) -> float | None:
        """What one mark of a phase costs here and now; None where profiling is off."""
        if not self.spec.settings.profile:
            return None
        if self.spec.settings.device != "cpu":
            return None  # warps mark side by side: what profiling costs is seen in the pairs alone
        return mark_cost_ns() if self.spec.impl == "native" else clock_cost_ns()

    def step_log(self) -> "StepLog | None":
        return self if self.logs_itself else None

    def keep_log(self, steps: int) -> None:
        """Keep a row of each step from now on, up to so many until they are taken; needs `profile`."""
        self.engine.keep_log(steps if self.spec.settings.profile else 0)

    def take_log(self) -> NDArray[np.int64]:
        """The rows since the last time.

        Each is begin, end, episodes that ended, the first env whose did or -1, then each worker's phases.
        Times are ticks as `spans.moment` counts them where steps are native, else nanoseconds.
        """
        return self.engine.take_log()

    @property
    def engine(self) -> Engine:
        """What steps it; OrderError once it is closed."""
        if self._engine is None:
            raise closed()
        return self._engine

    def close(self) -> None:
        """Free the envs; the arrays handed out stay readable."""
        self._engine = None

    def new_actions(self) -> NDArray[Any]:
        """Actions of every agent, all 0, as `step` reads them in place."""
        layout = self.spec.layout
        return np.zeros((self.spec.num_envs, *layout.action_shape), layout.action_type)

    def _phases(self, *, last_step_only: bool) -> dict[str, int]:
        if not self.spec.settings.profile:
            return {}
        engine = self.engine
        ns = dict(zip(engine.phase_names(), map(round, engine.phase_ns(last_step_only)), strict=True))
        ns["step"] = round(engine.step_ns(last_step_only))
        return ns

    def _accept(self, actions: NDArray[Any]) -> NDArray[np.int32]:
        """Convert what may be converted; say what is wrong with the rest."""
        if not isinstance(actions, np.ndarray):
            raise InputError(f"actions must be a NumPy array of int32, not {type(actions).__name__}")
        if actions.dtype not in (np.int32, np.int64, np.uint8):
            raise InputError(f"actions are {actions.dtype}: expected int32 (int64 and uint8 are converted)")
        if actions.shape not in self._action_shapes:
            raise InputError(f"actions have the shape {actions.shape}: expected {self._action_shapes[0]}")
        if not actions.flags.c_contiguous:
            raise InputError("actions are not contiguous: pass np.ascontiguousarray(actions)")
        bounds = np.iinfo(np.int32)
        if actions.size and (actions.min() < bounds.min or actions.max() > bounds.max):
            raise InputError("an action does not fit into int32")
        return np.require(actions, np.int32, "A")

    def _check_range(self, actions: NDArray[Any]) -> None:
        limit = self.spec.num_actions
        wrong = np.argwhere((np.asarray(actions) < 0) | (np.asarray(actions) >= limit))
        if len(wrong):
            place = tuple(int(i) for i in wrong[0])
            raise InputError(
                f"action {actions[place]} at {list(place)} is out of range: expected 0 to {limit - 1}"
            )

    def _seeds(self, seeds: Sequence[int] | NDArray[np.uint64], count: int) -> NDArray[np.uint64]:
        given = [int(seed) for seed in seeds]
        if len(given) != count:
            raise InputError(f"{len(given)} seeds for {count} envs: give one an env")
        for seed in given:
            if not 0 <= seed <= MAX_SEED:
                raise InputError(f"seed {seed} is out of range: expected 0 to 2**64 - 1")
        return np.array(given, np.uint64)

    def _index(self, env: int) -> int:
        if not 0 <= env < self.spec.num_envs:
            raise InputError(f"env {env} does not exist: expected 0 to {self.spec.num_envs - 1}")
        return env

    def _stamp(self) -> bytes:
        spec = self.spec
        names = spec.world.kept_by if spec.impl == "native" else ()
        kept = "".join(f"{name}={getattr(spec.parameters, name)} " for name in names)
        return f"hotloop 2 {spec.impl} {workload_hash(spec.world.name, spec.parameters)} {kept}".encode()


def closed() -> OrderError:
    return OrderError("this batch is closed: make a new one")


def sealed(stamp: bytes, content: bytes) -> bytes:
    """A saved env in one piece: whose it is, a checksum, and what it is."""
    return stamp + checksum(content) + b"\n" + content


def unsealed(saved: bytes) -> bytes:
    """What was sealed; InputError where an older version wrote it, or a byte of it is not as it was."""
    if saved.startswith(b"hotloop 1 "):
        raise InputError("the saved env is of an older version, without a checksum: begin anew with this one")
    head, _, content = saved.partition(b"\n")
    if head.rpartition(b" ")[2] != checksum(content):
        raise InputError("the saved env is damaged: its checksum does not fit")
    return content


def checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=8).hexdigest().encode()
