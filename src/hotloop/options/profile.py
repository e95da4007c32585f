"""The options of profile and diagnose, of targets, records and programs."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hotloop.core.registry import probe_names
from hotloop.options.option import (
    Garbage,
    JsonOptions,
    OptionRule,
    TargetOptions,
    argument,
    functions_option,
    garbage_option,
    needs,
    option,
    policy_option,
    reports_option,
    trust_option,
)

SECONDS = 5  # That a running process is looked at

commit_option = partial(option, False, "Commit the page and the record with git.")


@dataclass(frozen=True, kw_only=True)
class ProfileOptions(TargetOptions, JsonOptions):
    """Show where the time of a step goes.

    Two copies of the target take turns playing the same actions, random ones or a policy's: one is timed, the
    other is not. Throughput comes only from the untimed one, and the cost of the timing is printed with its
    interval. Our worlds are split by phase; your environment, or a loop with a policy in it, is split into
    env.step, env.reset, the policy, functions named with --time and your own spans, and a short run with
    samples finds the hot functions below them. Each --probe looks deeper in a run of its own: every function,
    samples from outside, lines, memory, threads, torch, instructions. The slowest calls are kept: --slow
    shows them, --replay-slow repeats one. Writes .design/profile-<YYYYMMDD-HHMM>.md and .json (UTC) and the
    files of the probes; compares with the previous profile. For programs see profile --help --.
    """

    examples = (
        "hotloop profile grid/toy",
        "hotloop profile grid/toy agents=100 encoder=original",
        "hotloop profile grid/toy --steps 1000000 --json",
        "hotloop profile grid",
        "hotloop profile gym:CartPole-v1",
        "hotloop profile gym:CartPole-v1 num_envs=4 vector=async",
        "hotloop profile my_env.py:make --time my_env.Env._get_obs",
        "hotloop profile my_env.py:make --probe cprofile,memory",
        "hotloop profile my_env.py:make --probe line --time my_env.Env._get_obs",
        "hotloop profile --pid 12345 --seconds 10",
        "hotloop profile 12345 --seconds 10",
        "hotloop profile -- python train.py --steps 1000",
        "hotloop profile grid/toy --trace",
        "hotloop profile cards hero=simple villain=random num_games=500",
        "hotloop profile my_game.py:make hero=my_model.py:Model villain=random num_games=200",
        "hotloop profile --replay-slow .design/profile-20250102-0304.json 2",
    )
    isolated = True
    rules = (
        OptionRule(
            given=("steps", "probe", "time", "record", "pid", "commit", "trace"),
            excludes=("replay_slow",),
            says="{flag} does not go with --replay-slow, which runs a step as its record says: leave it out",
        ),
        needs("trust", "replay_slow"),
    )

    steps: int | None = option(
        None,
        "Env-steps with the timing on, and as many without.  [default: 200000; fewer if slow]",
        "N",
        min=1,
        tool="Env-steps to look at; as many as it needs if left out.",
    )
    policy: str = policy_option()
    probe: list[str] | None = option(
        None,
        f"Look in a further pass: {', '.join(probe_names())}, or all; may be repeated, or a list with "
        "commas.  [default: phases,resources; samples in others' code]",
        "NAME",
    )
    time: list[str] | None = functions_option()
    phases: str | None = reports_option()
    record: Path | None = option(None, "Save the actions that were played as a tape.", "TAPE")
    pid: int | None = option(
        None, "Instead of a target: a process that is already running (py-spy).", "PID", min=1
    )
    seconds: int | None = option(None, f"How long to look at that process.  [default: {SECONDS}]", "N", min=1)
    commit: bool = commit_option()
    trace: bool = option(
        False, "Write sampled steps for Perfetto (.trace.json) and speedscope (.speedscope.json)."
    )
    replay_slow: Path | None = option(
        None, "Profile nothing; repeat a slow step of that record, the first or number K.", "RECORD [K]"
    )
    trust: Path | None = trust_option()
    gc: Garbage = garbage_option()
    slow: bool = option(False, "Also print the percentiles and the slowest steps; the page always has them.")


@dataclass(frozen=True, kw_only=True)
class ProfileProgramOptions(JsonOptions):
    """Show where the time of a whole program goes: hotloop profile [OPTIONS] -- CMD.

    CMD is any command, run without a shell: first undisturbed, then watched: its hot functions by samples,
    its spans if it uses hotloop.spans, its processes, threads and memory over time. --probe line shows the
    lines of the five hottest functions; cprofile, memory and pyspy each look at a run of their own. Writes
    .design/profile-<YYYYMMDD-HHMM>.md and .json (UTC), a web page and the files of the probes.
    """

    examples = (
        "hotloop profile -- python train.py --steps 1000",
        "hotloop profile --probe line,memory -- python train.py",
        "hotloop profile --probe all -- python -m mypackage.train",
    )

    probe: list[str] | None = option(
        None,
        "Look further: line, threads, cprofile, memory, pyspy, or all; may be repeated, or a list with "
        "commas.  [default: samples,resources]",
        "NAME",
    )
    commit: bool = commit_option()


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
