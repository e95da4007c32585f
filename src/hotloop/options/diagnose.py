"""The options of diagnose, of records and of programs."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hotloop.options.option import JsonOptions, OptionRule, argument, functions_option, option, trust_option

TURNS = 24  # Of a program, each part

RUNS = 6

causal_option = partial(
    option,
    False,
    "Measure what speeding up a part is worth, by delaying one part at a time.",
)


@dataclass(frozen=True, kw_only=True)
class DiagnoseOptions(JsonOptions):
    """Say what to change first, and how much that would gain overall.

    Reads a record and says what limits the speed: each row's share with its interval, and how much faster
    everything would be if that row were (Amdahl's law). Some twenty rules look for known faults (copies,
    teacher calls, small batches, Python for each env, resets, skew, garbage, logging, evaluation, idle cores,
    waiting, ...); each gives its evidence, a remedy and a command to check it. If the record lacks the
    evidence for a rule, it says what to run. Where a world has a faster way to do a phase, both are timed in
    turns for a few seconds. What this machine has reached before is shown for comparison. After a change,
    measure again: --since RECORD shows what was predicted and what happened. Writes
    .design/diagnosis-<YYYYMMDD-HHMM>.md. --causal -- CMD slows parts of your own loop instead: see diagnose
    --help --.
    """

    examples = (
        "hotloop diagnose",
        "hotloop diagnose .design/profile-20250102-0304.json",
        "hotloop diagnose --since .design/profile-20250102-0304.json",
        "hotloop diagnose --causal -- python train.py",
        "hotloop diagnose artifacts/throughput/mine.json --since artifacts/throughput/before.json --json",
    )
    isolated = True
    rules = (
        OptionRule(
            given=("time", "trust", "turns"),
            needs=("causal",),
            says="--time, --turns and --trust go with --causal: leave them out",
        ),
    )

    record: Path | None = argument(
        "A profile, a training, or a run of your own loop (.json).  [default: the newest here]",
        "RECORD",
        None,
        tool="The file of a profile; the newest if left out.",
    )
    since: Path | None = option(
        None,
        "The record from before a change; compares the prediction with the result.",
        "RECORD",
        tool="An earlier profile of the same: what came of the change since.",
    )
    causal: bool = causal_option()
    time: list[str] | None = functions_option()
    turns: int | None = option(None, "Delayed turns of each part, at least, with --causal.", "N", min=1)
    trust: Path | None = trust_option()
    quick: bool = option(False, "Measure nothing: no alternatives to a phase, no copying of memory.")


@dataclass(frozen=True, kw_only=True)
class DiagnoseProgramOptions(JsonOptions):
    """Measure what speeding up each part of a loop is worth: hotloop diagnose --causal -- CMD.

    CMD is any program with hotloop.run around its loop and spans inside, or hotloop train. Small delays are
    added to one part at a time, in turns with none; what they cost the whole loop shows what speeding up that
    part would gain, even where threads, workers or a GPU overlap it. Next to it is what its share alone
    promises (Amdahl's law); where the two differ, the part is hidden behind other work. Writes
    .design/diagnosis-<YYYYMMDD-HHMM>.md and .json (UTC).
    """

    examples = (
        "hotloop diagnose --causal -- python own_loop.py",
        "hotloop diagnose --causal -- hotloop train prospector run=delayed total_timesteps=1000000",
    )

    causal: bool = causal_option()
    turns: int = option(TURNS, "Delayed turns of each part, at least.", "N", min=1)
    runs: int = option(RUNS, "How often the program is run, at most.", "N", min=1)
