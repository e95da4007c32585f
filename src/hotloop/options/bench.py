"""The options of bench, of targets and of programs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.options.compare import BAND
from hotloop.options.option import (
    METRIC_RULE,
    CellsOptions,
    Garbage,
    OptionRule,
    OutputOptions,
    TargetOptions,
    baselines_option,
    build_option,
    exclude,
    garbage_option,
    instructions_option,
    label_option,
    less_is_better_option,
    metric_option,
    option,
    policy_option,
    reports_option,
    save_baseline_option,
    seed_option,
)

Numbers = tuple[int, int, int]  # Rounds, env-steps in each, env-steps of warm-up

USUAL: Numbers = (20, 20_000, 150_000)

QUICK: Numbers = (8, 5_000, 20_000)

# Three times the rounds make the interval about half as wide as it usually is.
THOROUGH: Numbers = (60, 20_000, 300_000)

PROGRAM_ROUNDS, QUICK_PROGRAM_ROUNDS, THOROUGH_PROGRAM_ROUNDS = 10, 6, 30

LADDER_ROUNDS, QUICK_LADDER_ROUNDS, THOROUGH_LADDER_ROUNDS = 12, 6, 30

MOST = 10**12  # Upper limit of --rounds and --iterations: larger values are typing errors
TREND_S, QUICK_TREND_S, THOROUGH_TREND_S = 2.0, 0.5, 10.0  # Seconds of turns, for each past commit

FITS: dict[str, Any] = {"most": MOST, "expected": f"at most {MOST:,}"}

# Options that items of a suite do not have.
ONE_TARGET = ("profile", "phases", "instructions", "baseline", "save_baseline", "policy", "mode")

# Options that past commits do not have.
PRESENT_CODE = ("rounds", "iterations", "warmup", "target_steps_per_sec", "enforce_target", *ONE_TARGET)


@dataclass(frozen=True, kw_only=True)
class BenchOptions(TargetOptions, CellsOptions):
    """Measure how fast a target steps, and how much that varies.

    Actions are random and drawn before the clock starts. my.py:f,g,h measures functions, --mode the stages
    up to training, --suite a list (hotloop.toml's, or farm, worlds, quick), --since past commits. For
    programs: bench --help --. Exit: 1 spread over 20%, 3 slower, 4 unsure.
    """

    examples = (
        "hotloop bench grid/toy",
        "hotloop bench grid/toy agents=100 num_envs=16 --rounds 30",
        "hotloop bench grid/toy impl=reference --quick",
        "hotloop bench grid/toy --profile --phase before --output results/before.json",
        "hotloop bench grid/toy --phase after --baseline results/before.json --output results/after.json",
        "hotloop bench my_env.py:make --baseline HEAD~1",
        "hotloop bench my_env.py:make --since v1.0 --every 5",
        "hotloop bench --report results",
        "hotloop bench --suite quick",
        "hotloop bench grid/toy --target-steps-per-sec 100000 --enforce-target",
        "hotloop bench grid --json > grid.json",
        "hotloop bench -- python train.py --steps 1000",
        "hotloop bench prospector --mode env_only,rollout,trainer,trainer_eval train.update_epochs=1",
    )
    isolated = True
    rules = (
        OptionRule(
            given=("report",),
            excludes=("target",),
            says="--report {report} measures nothing: leave out {target}, or leave out --report",
        ),
        exclude("quick", "thorough"),
        OptionRule(
            given=("resume", "on"),
            needs=("suite",),
            says="--resume goes on with a suite, --on runs one: give --suite NAME too",
        ),
        OptionRule(
            given=("suite",),
            excludes=("target",),
            says="--suite {suite} has targets of its own: leave out {target}, or leave out --suite",
        ),
        OptionRule(
            given=ONE_TARGET,
            excludes=("suite",),
            says="{flag} is for one target, and --suite {suite} says what to do with its own: leave it out, "
            'or write items with do = "profile", "instructions" or "compare" into hotloop.toml',
        ),
        OptionRule(
            given=(),
            needs=("target", "suite", "report"),
            says="bench needs a TARGET, --suite NAME or --report DIR: hotloop bench --help says how",
        ),
        OptionRule(
            given=("every", "build"),
            needs=("since",),
            says="--every and --build are for past commits: give --since REF too",
        ),
        OptionRule(
            given=PRESENT_CODE,
            excludes=("since",),
            says="{flag} is for the present code, and --since measures past commits: leave it out",
        ),
        OptionRule(
            given=("enforce_target",),
            needs=("target_steps_per_sec",),
            says="--enforce-target has nothing to enforce: give --target-steps-per-sec N",
        ),
    )

    rounds: int | None = option(
        None, f"Measured rounds; 6 or more give an interval.  [default: {USUAL[0]}]", "N", min=1, **FITS
    )
    iterations: int | None = option(
        None, f"Env-steps in a round.  [default: {USUAL[1]}; fewer if slow]", "N", min=1, **FITS
    )
    warmup: int | None = option(
        None, f"Env-steps before the first round.  [default: {USUAL[2]}; at most 2 s]", "N", min=0, **FITS
    )
    quick: bool = option(False, "{} rounds of {} after {}: a first look.".format(*QUICK))
    thorough: bool = option(False, "{} rounds of {} after {}, and half the band.".format(*THOROUGH))
    seed: int | None = seed_option()
    threads: int | None = option(None, "Short for threads=N.", "N")
    policy: str = policy_option()
    mode: str | None = option(
        None,
        "What to measure: env_only, rollout, trainer, trainer_eval, or several, separated by commas.  "
        "[default: env_only; trainer with a train. key]",
        "NAMES",
        usual=("env_only",),
    )
    profile: bool = option(False, "After the rounds, also show where the time goes.")
    phases: str | None = reports_option()
    instructions: bool = instructions_option()
    gc: Garbage = garbage_option()
    phase: str | None = label_option()
    target_steps_per_sec: float | None = option(None, "A speed to reach, in env-steps a second.", "N")
    enforce_target: bool = option(False, "Exit with 3 if it is not reached.")
    baseline: list[str] | None = baselines_option()
    save_baseline: str | None = save_baseline_option()
    since: str | None = option(
        None, "Measure past commits from REF to HEAD, in turns, with a record of each.", "REF"
    )
    every: int | None = option(None, "With --since: one commit in N.  [default: about 16 in all]", "N", min=1)
    build: str | None = build_option()
    report: Path | None = option(None, "Measure nothing; show all records of a folder in one table.", "DIR")
    suite: str | None = option(None, "Run a suite from hotloop.toml, or one of ours.", "NAME")
    resume: bool = option(False, "Continue an interrupted suite; failures are tried again.")

    @property
    def plan(self) -> Numbers:
        """Return the rounds, env-steps in each and env-steps of warm-up."""
        usual = QUICK if self.quick else THOROUGH if self.thorough else USUAL
        given = (self.rounds, self.iterations, self.warmup)
        rounds, iterations, warmup = (
            number if one is None else one for one, number in zip(given, usual, strict=True)
        )
        return rounds, iterations, warmup

    @property
    def ladder_rounds(self) -> int:
        """Return the rounds of the stages up to training."""
        if self.rounds is not None:
            return self.rounds
        if self.quick:
            return QUICK_LADDER_ROUNDS
        return THOROUGH_LADDER_ROUNDS if self.thorough else LADDER_ROUNDS

    @property
    def band_share(self) -> float:
        """Return the share of the speed that a change needs to count."""
        return (BAND / 2 if self.thorough else BAND) / 100

    @property
    def trend_s(self) -> float:
        """Return the seconds of turns for each past commit."""
        return QUICK_TREND_S if self.quick else THOROUGH_TREND_S if self.thorough else TREND_S


@dataclass(frozen=True, kw_only=True)
class BenchProgramOptions(OutputOptions):
    """Measure how long a whole program takes: hotloop bench [OPTIONS] -- CMD.

    CMD is any command, run as it is, without a shell. A round is one run from start to end: wall time, CPU
    time of all its processes, peak memory of the largest. --metric judges what the program itself prints:
    the median of each run without its warm-up; with --rounds 1, the series of that one run. If the program
    fails, so does this, with its last line. --mode measures the stages up to training of a program that
    has the callback of hotloop.loops.sb3. The exit codes are those of bench.
    """

    examples = (
        "hotloop bench -- python train.py --steps 1000",
        "hotloop bench --rounds 20 --metric 'sps=SPS: (\\d+)' -- python train.py",
        "hotloop bench --rounds 1 --metric 'sps=SPS: (\\d+)' -- python train.py",
    )
    rules = (
        METRIC_RULE,
        OptionRule(
            given=("metric", "baseline", "save_baseline"),
            excludes=("mode",),
            says="{flag} is for whole runs, and --mode measures the updates of a training",
        ),
        exclude("quick", "thorough"),
    )

    rounds: int | None = option(
        None,
        f"Runs that count.  [default: {PROGRAM_ROUNDS}; a slow program fewer, 6 at least]",
        "N",
        min=1,
    )
    warmup: int | None = option(None, "Runs before the first that counts.  [default: 1]", "N", min=0)
    quick: bool = option(False, f"{QUICK_PROGRAM_ROUNDS} runs.")
    thorough: bool = option(False, f"{THOROUGH_PROGRAM_ROUNDS} runs, and half the band.")
    metric: str | None = metric_option()
    less_is_better: bool = less_is_better_option()
    mode: str | None = option(
        None,
        "Stages of its training, in turns: env_only, rollout, trainer, trainer_eval, with commas.",
        "MODES",
    )
    phase: str | None = label_option()
    baseline: list[str] | None = baselines_option()
    save_baseline: str | None = save_baseline_option()

    @property
    def count(self) -> int:
        """Return how many runs count."""
        usual = QUICK_PROGRAM_ROUNDS if self.quick else PROGRAM_ROUNDS
        usual = THOROUGH_PROGRAM_ROUNDS if self.thorough else usual
        return usual if self.rounds is None else self.rounds

    @property
    def band_share(self) -> float:
        """Return the share of the time that a change needs to count."""
        return (BAND / 2 if self.thorough else BAND) / 100
