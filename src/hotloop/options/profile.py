"""The options of profile, of targets and of programs."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hotloop.core.registry import probe_names
from hotloop.options.option import (
    Garbage,
    JsonOptions,
    OptionRule,
    TargetOptions,
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
