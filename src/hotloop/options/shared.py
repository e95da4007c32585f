"""Options that several commands have."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from hotloop.options.option import Options, Rule, argument, option

RECORDS = Path("artifacts/throughput")  # Where records go by default
PROFILES = Path(".design")  # Where profiles and diagnoses go

Garbage = Literal["between", "life"]

STEP_S = 60.0  # Seconds without a step after which user code counts as hung

TARGETS = (
    "A preset such as grid/toy (grid means all of its presets), gym:ID, pettingzoo:MODULE, puffer:NAME, "
    "path.py:callable or module:callable."
)

target_argument = partial(
    argument,
    TARGETS,
    "TARGET",
    tool="A preset (grid/toy), a registered id (gym:CartPole-v1), or path.py:callable.",
)

policy_option = partial(
    option,
    "random",
    "Who plays: random, one of the world's players (live:PLAYER chooses in the loop), run:NAME, "
    "tape:FILE or module:callable.",
    "NAME",
    tool="random, a player of the world's, tape:FILE, run:NAME or path.py:callable.",
)

functions_option = partial(
    option,
    None,
    "A function to look at, as module.Class.method; may be repeated.",
    "NAME",
    tool="Shown as rows of their own, such as my_env.Env._get_obs.",
    tool_name="functions",
)

seed_option = partial(option, None, "Short for seed=N.", "N")

reports_option = partial(
    option,
    None,
    "A function that takes your env and returns what has its phase_totals, step_timing or counters.",
    "my.py:function",
)

label_option = partial(option, None, "What to call this run in its record.", "LABEL")

baselines_option = partial(
    option,
    None,
    "Commits, saved baselines or records to compare with; a commit is built and takes turns.",
    "F...",
)

save_baseline_option = partial(
    option, None, "Keep the record as this machine's baseline of that name.", "NAME"
)

build_option = partial(option, None, "What builds a commit in its checkout.  [default: pip install .]", "CMD")

garbage_option = partial(
    option,
    "between",
    "When garbage is collected: between (rounds, untimed), or life (as Python does).",
    "WHEN",
)

ignore_option = partial(option, None, "A field not to compare, such as infos.time; may be repeated.", "FIELD")

instructions_option = partial(option, False, "Also count the instructions of an env-step (valgrind).")

trust_option = partial(
    option,
    None,
    "Let FILE, when replayed or resumed, call code outside this project; it is named first.",
    "FILE",
)

on_option = partial(
    option,
    None,
    "Where cells run: ray (started on this machine for it) or ray://HOST:PORT; else here.",
    "RAY",
)

resume_option = partial(option, False, "Go on with the last sweep of the same cells where it was stopped.")

metric_option = partial(
    option,
    None,
    "Judge a number that the program prints, such as 'sps=SPS: (\\d+)'; the group is the number.",
    "NAME=REGEX",
)

less_is_better_option = partial(option, False, "The metric is a time rather than a speed.")

METRIC_RULE = Rule(
    given=("less_is_better",),
    needs=("metric",),
    says="--less-is-better says it of a metric: give --metric NAME=REGEX",
)


@dataclass(frozen=True, kw_only=True)
class TargetOptions(Options):
    """The words of commands on a target."""

    target: str | None = target_argument(default=None)
    words: list[str] | None = argument(
        "Parameters; `hotloop worlds WORLD` lists them. Of your env: arguments, seed, num_envs, vector.",
        "KEY=VALUE",
        None,
    )


@dataclass(frozen=True, kw_only=True)
class RequiredTargetOptions(TargetOptions):
    """The words of commands that do nothing without a target."""

    target: str = target_argument()


@dataclass(frozen=True, kw_only=True)
class JsonOptions(Options):
    """The flag of every command that prints what it found."""

    json: bool = option(False, "Print JSON, and nothing else, to stdout.")


@dataclass(frozen=True, kw_only=True)
class OutputOptions(JsonOptions):
    """The flags of commands that keep a record."""

    output: Path = option(RECORDS, "Where the record goes: a file if it ends in .json, else a folder.", "F")


@dataclass(frozen=True, kw_only=True)
class CellsOptions(OutputOptions):
    """The flags of commands whose work can be done in cells."""

    on: str | None = on_option()
    resume: bool = resume_option()


@dataclass(frozen=True, kw_only=True)
class MetricOptions(OutputOptions):
    """The flags of commands on programs, which are judged by what they print, or as whole runs."""

    metric: str | None = metric_option()
    less_is_better: bool = less_is_better_option()


@dataclass(frozen=True, kw_only=True)
class ProcessOptions(Options):
    """How user code is kept in a process of its own; every isolated command has these."""

    in_process: bool = option(
        False, "Open your target in this process, for a debugger; if it crashes, so does this."
    )
    step_timeout: float = option(
        STEP_S,
        "Seconds without a step after which your target counts as hung; ten times as long to make it, "
        "to reset it and for its first step.",
        "S",
        above=0,
        below=float("inf"),
        expected="seconds, above 0",
    )
