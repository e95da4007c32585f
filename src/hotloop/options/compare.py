"""The options of compare, of targets and of programs."""

from dataclasses import dataclass
from pathlib import Path

from hotloop.options.option import (
    METRIC_RULE,
    Garbage,
    MetricOptions,
    OptionRule,
    OutputOptions,
    argument,
    build_option,
    exclude,
    garbage_option,
    ignore_option,
    instructions_option,
    option,
    policy_option,
    reports_option,
)

BAND = 2.0  # Smaller changes count as the same, in per cent
BUDGET_S = 6.0  # What one run may take with its warm-up; a verdict of faster or slower takes a second one

THOROUGH_BUDGET_S = 60.0

PROGRAM_BUDGET_S = 60

PROGRAM_THOROUGH_S = 300

MOST_S = 1_000_000  # Of a run: what takes longer was not meant

SIDE = "A target with its key=value words in one quoted argument, or a record (.json)."


@dataclass(frozen=True, kw_only=True)
class CompareOptions(OutputOptions):
    """Compare two or more: which is faster, and do they do the same?

    A is the baseline; B and each of C, ... are compared with it. Both must return the same bytes for the same
    actions, or the exit code is 2. Then A, B and a second A take turns; faster and slower need a second run
    that agrees. For programs see compare --help --. Exit: 0 faster or same, 3 slower, 4 cannot tell.
    """

    examples = (
        'hotloop compare "grid/toy encoder=original" grid/toy',
        'hotloop compare "grid/arena threads=1" "grid/arena threads=2" "grid/arena threads=4" --thorough',
        "hotloop compare grid/toy env.py:faster_toy --profile",
        "hotloop compare before.json after.json",
        "hotloop compare grid/toy --a-ref HEAD~1 --b-ref HEAD",
        'hotloop compare "prospector train.update_epochs=4" "prospector train.update_epochs=1"',
        'hotloop compare -- "python train.py" "python train.py --fast"',
    )
    isolated = True
    rules = (
        OptionRule(
            given=("a_python", "b_python"),
            excludes=("a_ref", "b_ref", "build", "b"),
            says="environments are compared by one target: leave out B, --a-ref, --b-ref and --build",
        ),
        OptionRule(
            given=("a_ref", "b_ref"),
            excludes=("b",),
            says="commits are compared by one target: leave out B, or --a-ref and --b-ref",
        ),
        OptionRule(
            given=("b_ref",),
            needs=("a_ref",),
            says="--b-ref names what --a-ref is compared with: give --a-ref too",
        ),
        OptionRule(given=("build",), needs=("a_ref",), says="--build builds commits: give --a-ref too"),
        OptionRule(
            given=(),
            needs=("b", "a_ref", "a_python", "b_python"),
            says="compare needs two sides, A and B, or one target with --a-ref",
        ),
        OptionRule(
            given=("more",),
            excludes=("instructions",),
            says="--instructions counts two sides: give A and B",
        ),
        OptionRule(
            given=("more",),
            excludes=("return_after",),
            says="trainings are compared two at a time: give A and B",
        ),
    )

    a: str = argument(SIDE, "A")
    b: str | None = argument(SIDE, "B", None)
    more: list[str] | None = argument("More targets, each compared with A.", "C ...", None)
    a_ref: str | None = option(None, "Compare the one target at a commit of this project, A, ...", "REF")
    b_ref: str | None = option(None, "... and at another, B.  [default: the working tree]", "REF")
    build: str | None = build_option()
    a_python: Path | None = option(
        None, "Compare the one target as VENV has its packages installed, A, ...", "VENV"
    )
    b_python: Path | None = option(None, "... and as another has, B.  [default: this Python]", "VENV")
    thorough: bool = option(False, f"A band of {BAND / 2:g}% and up to a minute for a run.")
    band: float | None = option(
        None,
        f"Smaller changes count as the same.  [default: {BAND:g}]",
        "%",
        above=0,
        below=100,
        expected="per cent, above 0 and below 100",
    )
    budget: float | None = option(
        None,
        f"Seconds that one run may take, with warm-up.  [default: {BUDGET_S:g}]",
        "S",
        above=0,
        most=MOST_S,
        expected=f"seconds, above 0 and up to {MOST_S:,}",
        tool="What one run may take; faster and slower take a second run.",
        tool_name="seconds",
    )
    profile: bool = option(
        False,
        "Also compare phase by phase, and say what each is worth.",
        tool="Compare phase by phase, too, where both sides have phases.",
        tool_name="phases",
    )
    phases: str | None = reports_option()
    control: str | None = option(None, "A phase that the change cannot affect; implies --profile.", "PHASE")
    unlike: bool = option(False, "Compare things that do different work; the headline says so.")
    ignore: list[str] | None = ignore_option()
    equal_steps: int | None = option(
        None,
        "Steps of every env to replay for equality, whatever they take.  "
        "[default: 200 or one whole episode, and up to 500]",
        "N",
        min=1,
    )
    instructions: bool = instructions_option()
    gc: Garbage = garbage_option()
    return_after: int | None = option(
        None, "For two trainings: also compare the return after N env-steps.", "N", min=1
    )
    policy: str = policy_option()

    @property
    def band_share(self) -> float:
        """Return the share of the speed that a change needs to count."""
        usual = BAND / 2 if self.thorough else BAND
        return (usual if self.band is None else self.band) / 100

    @property
    def budget_ns(self) -> int:
        """Return the nanoseconds that one run may take."""
        usual = THOROUGH_BUDGET_S if self.thorough else BUDGET_S
        return round(1e9 * (usual if self.budget is None else self.budget))


@dataclass(frozen=True, kw_only=True)
class CompareProgramOptions(MetricOptions):
    """Compare whole programs: hotloop compare [OPTIONS] -- "CMD A" "CMD B" ...

    Each CMD is one quoted argument, split into words as a shell would, and run without one. All of them, and
    A a second time, take turns in shuffled order; the ratio is the median over the rounds with its exact 95%
    interval, next to that of A against itself. Faster and slower need a second run that agrees. --metric
    compares what the programs themselves print. Exit codes: 0 faster or the same, 3 slower, 4 cannot tell.
    """

    examples = (
        'hotloop compare -- "python train.py" "python train.py --fast"',
        'hotloop compare --metric \'sps=SPS: (\\d+)\' -- "python a.py" "python b.py" "python c.py"',
    )
    rules = (METRIC_RULE, exclude("rounds", "budget"))

    rounds: int | None = option(
        None, "Rounds, each of which runs every side.  [default: by --budget]", "N", min=6
    )
    thorough: bool = option(False, f"A band of {BAND / 2:g}% and five times the time.")
    band: float | None = option(
        None,
        f"Smaller changes count as the same.  [default: {BAND:g}]",
        "%",
        above=0,
        below=100,
        expected="per cent, above 0 and below 100",
    )
    budget: float | None = option(
        None,
        f"Seconds of rounds, six of them at least.  [default: {PROGRAM_BUDGET_S}]",
        "S",
        above=0,
        most=MOST_S,
        expected=f"seconds, above 0 and up to {MOST_S:,}",
    )

    @property
    def usual(self) -> CompareOptions:
        """Return what compare would be asked, with the time that whole programs need."""
        seconds = PROGRAM_THOROUGH_S if self.thorough else PROGRAM_BUDGET_S
        budget = seconds if self.budget is None else self.budget
        return CompareOptions(a="", b="-", thorough=self.thorough, band=self.band, budget=budget)
