"""What a world declares about itself: its parameters, presets, phases and the arrays it fills."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal, Protocol

# Checked parameters in the form both implementations are built from.
#
# Native code is given the numbers, texts and lists of numbers in it; other objects are for the twin alone.
Plan = Mapping[str, Any]


# How a network should read numbers: as they are; as tokens [tokens, 3] of location, feature and value; as
# objects or options [count, features], whose last feature says whether there is one; as an image [channels,
# height, width]. Options are the actions, in their order. A log says in numbers of its own what happened, for
# those who can read it: networks leave it out where options point at objects.
Kind = Literal["vector", "tokens", "objects", "image", "options", "log"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of an observation's row; parts follow one another without gaps."""

    name: str
    shape: tuple[int, ...]
    kind: Kind = "vector"
    low: float | None = None
    high: float | None = None  # What its values stay between; None is all that the observation's type holds
    # Its numbers name objects, row k those of option k: rows of these parts, counted through one after
    # another; -1 is none.
    points_at: tuple[str, ...] = ()
    # The part that it says more about: its k-th row is about the k-th one there with a column set.
    joins: str = ""
    joins_where: int = 0  # Which column

    @property
    def size(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """One array that every step rewrites; the batch puts an axis of envs in front of its shape."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    low: float | None = None
    # What its values stay between, for the spaces of other libraries; None is all that the type holds.
    high: float | None = None
    kind: Kind = "vector"  # How a network should read it, where the observation has no parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Acts:
    """What an agent does in one step, where that is more than one numbered action: one of the two."""

    choices: tuple[int, ...] = ()  # Several numbered choices at once, and how many there are of each
    low: tuple[float, ...] = ()
    # Several real numbers at once, each between two; where both are finite, a policy has -1 and 1.
    high: tuple[float, ...] = ()

    @property
    def width(self) -> int:
        """Numbers of one agent's action."""
        return len(self.choices) or len(self.low)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The shape of a world's conversation with its caller."""

    agents: int
    # Of several choices the sum; of real numbers two for each, since a policy says a mean and a spread.
    num_actions: int
    arrays: tuple[Array, ...]  # Observations, rewards, terminals and truncations first, then the infos
    random_actions: int | None = None  # Random play draws from the first so many actions; None is all of them
    parts: tuple[Part, ...] = ()
    """Of the row that an agent observes; none where the row is one thing.

    Legal actions are an array named `masks`, bool [agents, num_actions], among the arrays. An array named
    `luck`, int32 [agents] from 0, has a random number for players who are led by chance.

    Where rows may be empty, an array named `alive`, bool [agents], says which are an agent's: the others have
    no reward, and nothing is learned from or counted of them; the twin has `lived`, the agent-steps of its
    life. `died`, bool [agents], then says whose life the step ended; `alive` already says who comes next, in
    the same row perhaps. `serials`, int32 [agents], numbers them from 0, never twice in an episode, and
    `lives`, int32, says how many the episode has had. `breeds`, uint8 [agents], says of which of the `types`
    they are.
    """
    acts: Acts | None = None  # What an action is; None is one number from 0 to num_actions - 1
    types: tuple[str, ...] = ()
    # Whom an episode may have, as type_serial; none where there is no end of them.
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        row = self.observation.shape[-1]
        if self.parts and sum(part.size for part in self.parts) != row:
            sizes = " + ".join(f"{part.name} {part.size}" for part in self.parts)
            raise ValueError(f"the parts of an observation do not make its row of {row}: {sizes}")

    @property
    def observation(self) -> Array:
        return next(array for array in self.arrays if array.name == "observations")

    @property
    def action_shape(self) -> tuple[int, ...]:
        """Of what one env is told in a step."""
        return (self.agents,) if self.acts is None else (self.agents, self.acts.width)

    @property
    def action_type(self) -> str:
        return "float32" if self.acts is not None and self.acts.low else "int32"

    @property
    def drawn_actions(self) -> int:
        """From how many actions random play draws."""
        return self.num_actions if self.random_actions is None else self.random_actions


class Twin(Protocol):
    """One env in plain Python: the specification of its world.

    A twin is made from a plan and the rows of the batch's arrays it writes into. It has one method
    for each phase of its world, called in order with nothing; `chosen` is set before the first.
    """

    chosen: Sequence[int]  # The action of each agent in the step under way
    counters: dict[str, int]

    def __init__(self, plan: Plan, out: Mapping[str, Any]) -> None: ...

    def restart(self, episode_seed: int) -> None:
        """Begin an episode: a new state, and its first observations."""

    def digest(self) -> int:
        """Hash the logical state, random numbers included, to 64 bits."""

    def save(self) -> bytes: ...

    def load(self, saved: bytes) -> None: ...


class PlayerTwin(Protocol):
    """A player of one env in plain Python: the specification of who chooses its actions.

    It is made from a plan and the rows of the batch's arrays that agents see, reads them when it is
    asked, and knows nothing else of its env.
    """

    def __init__(self, plan: Plan, seen: Mapping[str, Any]) -> None: ...

    def restart(self) -> None:
        """Forget: an episode has begun."""

    def choose(self) -> Sequence[int]:
        """One action for each agent."""


class Drawer(Protocol):
    """How a world looks to people; `cells` is uint8 [height, width, channels] as native code has it.

    What a cell's numbers mean, `World.channels` says. The twin of a world that can be seen has a method
    `picture` that returns such cells.
    """

    def image(self, cells: Any) -> Any:
        """The cells as uint8 [height * scale, width * scale, 3]."""

    def text(self, cells: Any) -> str:
        """The cells as lines of text, coloured by ANSI codes."""


class Narrator(Protocol):
    """How a world that draws no picture tells people what happens."""

    def tell(self, shown: Mapping[str, Any]) -> str:
        """One line about one step of one env.

        `shown` has the env's rows of every array after the step, its `actions`, and as `observations` the
        last ones of an episode that the step ended.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRun:
    """What is written down, as its log is told before it begins."""

    target: str
    impl: str
    num_envs: int
    settings: Mapping[str, object]  # Every parameter and setting with its value
    arrays: Mapping[str, Any]  # What every step rewrites, by name; the first axis is the envs


class RunLog(Protocol):
    """What writes down a batch's run, step by step, and never leaves a row out.

    HotloopError where it cannot be written, unless the run is to go on without it.
    """

    def begin(self, envs: Sequence[int], seeds: Sequence[int]) -> None:
        """Episodes begin; what went on in these envs was over, or is cut off."""

    def note(self) -> None:
        """A step was made: write down what the arrays say."""

    def flush(self) -> None:
        """Return when all that was noted is written."""

    def counters(self) -> Mapping[str, int]:
        """`rows` written so far, and how, under names that begin with `log.`."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeLength:
    """Which parameter says when an episode is cut off."""

    parameter: str
    short: int  # A value with which episodes end soon, so that their ends are seen often
    endless: int | None = None  # The value with which no episode is cut off; None where each is
    in_steps: bool = True  # Whether it counts steps, rather than a time of the world's own


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """Two ways in which native code does one phase, to be held against each other."""

    parameter: str  # What chooses between them
    reference: str  # Its value for the old way, the plain one
    candidate: str  # Its value for the new way, which has to be like it
    phase: str  # What the new way replaces
    old_way: str  # In words, what the old way is
    removal: str  # The command that finds the old way, once it can go
    # The parameter that runs both at once and compares every byte; None where nothing does.
    shadow: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an episode came to beside its return."""

    info: str  # The info that has it in the episode's last step
    help: str  # What it means, with its unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """How a world speaks of games that are won and lost; outcomes are named as `World.outcomes` has them."""

    player: str  # The key that says who plays, beside `player`
    episodes: str  # The key that says how many games, beside `episodes`
    won: str  # The outcome that is 1 for a win, 0 for a loss
    began: str  # The outcome that says whether the player had the first turn
    decisions: str  # The outcome that counts everybody's decisions
    reason: str  # The outcome that numbers why it ended
    reasons: tuple[str, ...]  # In words, by that number
    encoding: str  # The phase that writes observations
    seat: str  # The info that says who must choose, 0 for the player
    seat_rewards: str  # The info that has both rewards
    both_outside: Mapping[str, object]  # The keys with which the caller plays both


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A simulator: where its folder's registry entry says everything the rest of Hotloop needs."""

    name: str
    summary: str
    parameters: type  # A dataclass of `parameter(...)` fields
    # Preset name to the parameters it changes; the first is the default one.
    presets: Mapping[str, Mapping[str, object]]
    phases: tuple[str, ...]
    plan: Callable[[Any], Plan]  # Parameters to plan; refuses what cannot be built with an InputError
    layout: Callable[[Any], Layout]
    twin: Callable[[], type[Twin]]  # Imports the twin when it is asked for
    part_of: str = ""  # The world whose component it is: a part with phases of its own that is measured alone
    has_native: bool = True  # Whether there is native code of it; a component may be Python by nature
    counters: tuple[str, ...] = ()  # Mechanics counted over the life of an env, for a record's coverage
    # Preset to the counters it exists for: under random play each must fire.
    mechanics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Who can choose actions beside the random player; each imports its twin when it is asked for.
    players: Mapping[str, Callable[[], type[PlayerTwin]]] = field(default_factory=dict)
    # Players that are given the env itself, `seen["twin"]`, to play on copies of it.
    looks_ahead: tuple[str, ...] = ()
    episode: EpisodeLength | None = None  # What cuts an episode off; None where only the rules end one
    # Ways of its own that it can be validated against, by the name that stands after `--against`.
    rivals: Mapping[str, Rival] = field(default_factory=dict)
    # From parameters to who draws the world; None where there is nothing to see.
    drawer: Callable[[Any], Drawer] | None = None
    # What the numbers of a picture's cell are, in their order, and what each means.
    channels: Mapping[str, str] = field(default_factory=dict)
    # What is shown beside a picture: the word a line begins with, to its labels and the info of each.
    board: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # What a run of it is about as it goes on: a heading, to its labels and the info of each.
    #
    # A world that has one is played once by default, and can be plotted.
    history: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # Variants that change how native code keeps an env: it cannot be saved by one and loaded by another.
    kept_by: tuple[str, ...] = ()
    # From parameters to what writes a run down, where they ask for it; None where there is no such thing.
    log: Callable[[Any, LoggedRun], RunLog | None] | None = None
    rules_end: str = ""  # In words, why an episode ends by the rules; empty where it is not told
    # From parameters to who tells what happens in a world without a drawer.
    narrator: Callable[[Any], Narrator] | None = None
    # What an episode came to beside its return, by name.
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    # Grids that it can be swept over, by name: a size, to the keys that make it.
    sizes: Mapping[str, Mapping[float, Mapping[str, object]]] = field(default_factory=dict)
    contest: Contest | None = None  # How its episodes are games against a player; None if they are not

    @property
    def native_name(self) -> str:
        """By which native code knows it; components are told apart by the plan's `component`."""
        return self.part_of or self.name

    @property
    def default_preset(self) -> str:
        return next(iter(self.presets))

    def is_endless(self, parameters: object) -> bool:
        """Whether no episode is ever cut off."""
        return self.episode is not None and self._length(parameters) == self.episode.endless

    def most_steps(self, parameters: object) -> int:
        """Steps of an episode at most; 0 where that is not known."""
        counted = self.episode is not None and self.episode.in_steps and not self.is_endless(parameters)
        return self._length(parameters) if counted else 0

    def shadowed(self, parameters: object) -> Rival | None:
        """The rival whose two ways run at once with these parameters."""
        each = (rival for rival in self.rivals.values() if rival.shadow)
        return next((rival for rival in each if getattr(parameters, rival.shadow or "")), None)

    def _length(self, parameters: object) -> int:
        return int(getattr(parameters, self.episode.parameter)) if self.episode else 0
