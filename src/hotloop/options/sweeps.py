"""The options of scale, tune and soak, of targets and of programs."""

from dataclasses import dataclass
from functools import partial

from hotloop.options.option import (
    METRIC_RULE,
    MetricOptions,
    Options,
    OutputOptions,
    RequiredTargetOptions,
    exclude,
    functions_option,
    less_is_better_option,
    metric_option,
    on_option,
    option,
    policy_option,
    reports_option,
    resume_option,
)

ENV_STEPS = 4_096  # Of each of a cell's rounds, at most


@dataclass(frozen=True, kw_only=True)
class LongOptions(OutputOptions):
    """The flags of searches and scalings."""

    resume: bool = resume_option()
    yes: bool = option(False, "Begin a sweep that takes long without being asked.")


@dataclass(frozen=True, kw_only=True)
class SweepOptions(RequiredTargetOptions, LongOptions):
    """The flags of searches and scalings of targets."""

    phases: str | None = reports_option()
    time: list[str] | None = functions_option()
    on: str | None = on_option()


@dataclass(frozen=True, kw_only=True)
class ScaleOptions(SweepOptions):
    """Measure how the cost of a target grows with its size.

    A key with several values is an axis: agents=10,100,1000, also threads, num_envs (or envs), an encoder or
    an index by name, any argument of your own function, and steps, the length of a run from its reset on.
    Every combination is measured several times, in shuffled order. For each phase, the step and memory it
    says how they grow (constant, log, linear, n log n, quadratic, or a power with its exponent and interval)
    and what else would fit, or that it cannot tell; --time makes a phase of a function of yours. It says
    where one phase overtakes another, where more brings little, and what limits threads. A PNG and an SVG
    are saved with the record. Ctrl-C keeps what is done; --resume continues.
    """

    examples = (
        "hotloop scale grid/toy agents=10,50,100,500,1000",
        "hotloop scale grid/toy threads=1,2,4 num_envs=256",
        "hotloop scale farm/steady index=grid,quadtree agents=50,100,200,400,800",
        "hotloop scale grid/toy --grid crowding",
        "hotloop scale my_env.py:make n=10,100,1000",
        "hotloop scale eco.py:make agents=10,100,1000 --time World.perceive",
        "hotloop scale gym:CartPole-v1 num_envs=1,4,16,64",
        "hotloop scale farm/default --grid steps --resume",
        "hotloop scale grid/toy agents=10,50,100,500 --on ray",
    )
    isolated = True

    grid: str | None = option(
        None,
        "A classic grid: agents 10 to 1000, steps 100 to 5000, envs 50 to 500, or one of the world's.",
        "NAME",
    )
    repeats: int = option(5, "How often each size is measured, in shuffled order.", "N", min=1)
    steps: int | None = option(
        None,
        f"Env-steps in each of a cell's five rounds.  [default: {ENV_STEPS}; fewer if slow]",
        "N",
        min=1,
        max=10**12,
    )
    policy: str = policy_option()
    no_phases: bool = option(False, "Leave out the passes that time phases.")

    @property
    def env_steps(self) -> int:
        """Return the env-steps in each of a cell's rounds, at most."""
        return ENV_STEPS if self.steps is None else self.steps


# Of the first stage: the fewest that have an interval; each stage has twice as many as the one before.
FIRST_ROUNDS = 6

SEEDS = 6  # Trainings of each side in the learning check: the fewest differences with an interval
LEARNING_BAND = 5  # What a winner may learn less, in per cent of what the present settings learn

# What the confirmation takes: a turn of a training is an update at least.
CONFIRM_S, CONFIRM_TRAINING_S = 30, 120

MOST = 1_000_000  # Seconds, or minutes: a confirmation of days is no confirmation any more

confirm_option = partial(
    option,
    None,
    "What the winner's turns with the present settings may take, and as much again for a verdict; "
    "where that cannot tell, twice as long once more.  "
    f"[default: {CONFIRM_S}; of a training {CONFIRM_TRAINING_S}]",
    "SECONDS",
    above=0,
    most=MOST,
    expected=f"seconds, above 0 and up to {MOST:,}",
)

minutes_option = partial(
    option,
    None,
    "What search and confirmation may take at most.  [default: twice what is expected]",
    "N",
    above=0,
    most=MOST,
    expected=f"minutes, above 0 and up to {MOST:,}",
)

seeds_option = partial(option, SEEDS, "Seeds for that; 6 or more give an interval.", "N", min=1)

learning_band_option = partial(
    option,
    LEARNING_BAND,
    "What the winner may learn less and still learn as well, of what the present settings learn.",
    "%",
    least=0,
    below=100,
    expected="per cent, from 0 to below 100",
)

write_floor_option = partial(
    option, None, "Write the winner's floor into hotloop.toml as [budget.NAME], comments kept.", "NAME"
)


class SearchOptions(Options):
    """What a search is told, of targets or of programs."""

    __slots__ = ()

    rounds: int | None
    confirm: float | None
    minutes: float | None
    seeds: int
    learning_band: float

    @property
    def learn_steps(self) -> int:
        """Return the env-steps of each training of the learning check; 0 leaves it out."""
        return 0

    @property
    def metric(self) -> str | None:
        """Return what programs print that is judged, as NAME=REGEX; None judges whole runs."""
        return None

    @property
    def less_is_better(self) -> bool:
        """Return whether that metric is a time."""
        return False

    @property
    def learning_metric(self) -> str | None:
        """Return what programs print of what they learnt; None leaves their learning check out."""
        return None

    @property
    def first_rounds(self) -> int:
        """Return the rounds of the first stage."""
        return FIRST_ROUNDS if self.rounds is None else self.rounds

    @property
    def at_most_s(self) -> float | None:
        """Return what search and confirmation may take together; None is without end."""
        return None if self.minutes is None else 60 * self.minutes

    @property
    def learning_band_share(self) -> float:
        """Return the share of what the present settings learn that a winner may learn less."""
        return self.learning_band / 100

    def confirming_ns(self, *, training: bool) -> int:
        """Return what the confirmation takes, and as much again for faster or slower."""
        usual = CONFIRM_TRAINING_S if training else CONFIRM_S
        return round(1e9 * (usual if self.confirm is None else self.confirm))


@dataclass(frozen=True, kw_only=True)
class TuneOptions(SweepOptions, SearchOptions):
    """Find the fastest of all combinations of settings.

    Keys with several values are combined. With a train. key trainings are measured, otherwise envs alone.
    Combinations that cannot run are skipped, with the reason. The rest is measured in stages: each keeps the
    faster half and gives it twice as many rounds. The winner has the highest lower end of its interval, and
    takes turns with the present settings before it is recommended. The longest time is said first and kept:
    a search that is late has fewer stages. --learn-steps compares returns, too. num_workers, n_envs,
    rollout_steps, n_steps, batch_size, n_epochs, num_minibatches are known. Exit: 3 learns less, 4 unsure.
    """

    examples = (
        "hotloop tune grid/toy num_envs=64,256,1024 threads=1,2",
        "hotloop tune prospector num_envs=64,256 threads=1,2 train.num_steps=64,128 num_minibatches=2,4",
        "hotloop tune grid/guard num_envs=64,128 train.num_steps=32,64 --learn-steps 100000 --minutes 15",
        "hotloop tune prospector num_workers=1,2 rollout_steps=64,128 num_minibatches=2,4",
        "hotloop tune farm/default index=grid,hash,quadtree,kdtree resources=list,memmap",
        "hotloop tune grid/toy num_envs=64,256 --write-floor toy-speed",
        "hotloop tune --metric 'sps=SPS: ([\\d.]+)' -- python train.py --num-envs '{8,32}'",
    )
    isolated = True

    rounds: int = option(
        FIRST_ROUNDS, "Rounds of the first stage; each later one has twice as many.", "N", min=1
    )
    confirm: float | None = confirm_option()
    minutes: float | None = minutes_option()
    learn_steps: int = option(
        0, "For trainings: also train both settings for N env-steps, seed by seed.", "N", min=0
    )
    seeds: int = seeds_option()
    learning_band: float = learning_band_option()
    write_floor: str | None = write_floor_option()


@dataclass(frozen=True, kw_only=True)
class TuneProgramOptions(LongOptions, SearchOptions):
    """Find the fastest settings of a program: hotloop tune [OPTIONS] -- CMD.

    A word of CMD such as '{8,32}' has several values; all combinations run in stages, each of which keeps
    the faster half with twice as many runs. The winner takes turns with the present settings. --metric
    judges what the program prints, otherwise whole runs are judged. {seed} in CMD is 1, and another for each
    training of the learning check. --write-floor keeps what the winner can be relied on for as a budget of
    hotloop gate. Exit: 3 the winner learns less, 4 cannot tell.
    """

    examples = (
        "hotloop tune -- python train.py --num-envs '{8,32}'",
        "hotloop tune --metric 'sps=SPS: ([\\d.]+)' --write-floor sps -- python train.py --num-envs '{8,32}'",
        (
            "hotloop tune --learning-metric 'reward=reward: (\\S+)' -- python train.py --lr '{1,2}' "
            "--seed '{seed}'"
        ),
    )
    rules = (METRIC_RULE,)

    metric: str | None = metric_option()
    less_is_better: bool = less_is_better_option()
    present: str | None = option(
        None,
        "How the program is run now, quoted; the winner takes turns with it.  "
        "[default: CMD without the settings that have several values]",
        "CMD",
    )
    rounds: int | None = option(
        None,
        "Runs of each combination in the first stage; each later stage has twice as many.  "
        "[default: 3; of two combinations 6]",
        "N",
        min=1,
    )
    confirm: float | None = confirm_option()
    minutes: float | None = minutes_option()
    learning_metric: str | None = option(
        None,
        "Also compare what both settings learn: the last such number of each run, more being better.",
        "NAME=REGEX",
    )
    seeds: int = seeds_option()
    learning_band: float = learning_band_option()
    write_floor: str | None = write_floor_option()


MINUTES = 10.0

length_option = partial(
    option,
    None,
    f"How long it runs.  [default: {MINUTES:g}]",
    "N",
    above=0,
    below=1e6,
    expected="more than 0",
)


@dataclass(frozen=True, kw_only=True)
class SoakOptions(RequiredTargetOptions, OutputOptions):
    """Find out whether a target slows down or leaks over time.

    One instance is stepped throughout. At regular moments memory, the native heap, GPU memory, open files and
    threads are read, and a new instance takes turns with the old one: what is judged is the slope of their
    ratio, so a busy machine is not blamed on the target. Each slope has its 99.99% interval; what certainly
    rises, and still does at the end, is named, down to phases. With a train. key a training is soaked; after
    --, any program. Exit: 3 something grows, 4 the run was too short to tell.
    """

    examples = (
        "hotloop soak grid/arena --minutes 10",
        "hotloop soak gym:CartPole-v1 --minutes 5",
        "hotloop soak my_env.py:make n=100 --steps 1000000",
        "hotloop soak prospector train.num_steps=64 --minutes 10",
        "hotloop soak --minutes 10 -- python train.py",
        "hotloop soak grid/arena --minutes 60 --on ray://head:10001",
    )
    isolated = True
    rules = (exclude("minutes", "steps"),)

    minutes: float | None = length_option()
    steps: int | None = option(None, "Env-steps instead of minutes.", "N", min=1, max=10**15)
    policy: str = policy_option()
    phases: str | None = reports_option()
    on: str | None = on_option()

    @property
    def seconds(self) -> float | None:
        """Return how long it runs; None if that is said in env-steps."""
        return None if self.steps is not None else 60 * (MINUTES if self.minutes is None else self.minutes)


@dataclass(frozen=True, kw_only=True)
class SoakProgramOptions(MetricOptions):
    """Find out whether a whole program slows down or leaks: hotloop soak [OPTIONS] -- CMD.

    CMD is any command, run without a shell for that many minutes, then ended by Ctrl-C. Its memory, open
    files and threads, and those of its children, are watched from outside; --metric adds what it prints about
    its own speed. There is no second instance to compare with: a slow machine looks like a slow program.
    """

    examples = (
        "hotloop soak --minutes 10 -- python train.py",
        "hotloop soak --minutes 5 --metric 'sps=SPS: (\\d+)' -- python train.py",
    )
    rules = (METRIC_RULE,)

    minutes: float | None = length_option()

    @property
    def seconds(self) -> float:
        """Return how long it runs."""
        return 60 * (MINUTES if self.minutes is None else self.minutes)
