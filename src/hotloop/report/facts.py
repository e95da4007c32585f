"""The facts that stand beside every number: machine, code, path, method, each in one line."""

from statistics import fmean
from typing import Any

from hotloop.core.record import Goal, Record
from hotloop.report.units import count, percent, plain, speed
from hotloop.stats.intervals import mean_interval


def machine_line(machine: dict[str, Any]) -> str:
    """Name the machine, its size and how busy it was."""
    gpu = machine.get("gpu")
    words = [
        machine["cpu"],
        f"{machine['cores']} cores",
        f"load {machine['load']:.1f}" if machine.get("load") is not None else "load unknown",
        *([gpu["name"]] if gpu else []),
        machine["fingerprint"],
    ]
    return ", ".join(words)


def code_line(code: dict[str, Any]) -> str:
    """Name the commit and, where native code ran, its compiler."""
    commit = code["commit"][:12] + (" (dirty)" if code["dirty"] else "")
    return ", ".join([commit, *(code[part] for part in ("compiler", "flags") if code[part])])


def path_line(record: Record) -> str:
    """Say what ran, as the code that ran counted it, and what was asked for."""
    ran = ", ".join(f"{impl} {percent(share)}" for impl, share in record.path.ran.items()) or "nothing"
    return f"{ran} of {record.work.env_steps:,} env-steps (asked for {record.path.requested})"


def method_line(record: Record) -> str:
    """Say how it was measured."""
    method = record.method
    what = "pairs of passes" if method.order == "ABBA" else "rounds"
    return (
        f"{method.rounds} {what} of {method.iterations:,} env-steps after {method.warmup:,} of warm-up, "
        f"{method.policy} play, {count(method.threads, 'thread')}"
    )


def goal_line(record: Record, goal: Goal) -> str:
    """Say how far the speed is from what was asked for, and what this machine can be relied on for."""
    distance = record.metrics["env_steps_per_s"].median / goal.env_steps_per_s - 1
    floor = f"floor {speed(goal.floor)}" if goal.floor is not None else "too few rounds for a floor"
    where = f"{abs(distance):.1%} {'above' if goal.met else 'below'}"
    return f"{speed(goal.env_steps_per_s)} env-steps/s: the median is {where}; {floor}"


def shadow_line(record: Record) -> str:
    """Say what a shadow compared while the run went on; empty where there was none."""
    checked = record.validation
    if checked is None or checked.against is not None:
        return ""
    ratio = checked.timing_ratio
    took = f"; the reference takes {ratio:.3g} times as long as the candidate" if ratio else ""
    return f"{checked.comparisons:,} comparisons, {checked.mismatches:,} mismatches{took}"


def instructions_line(record: Record) -> str:
    """Say how many instructions a step takes; empty where nobody counted."""
    counted = record.instructions
    if counted is None:
        return ""
    agents = max(record.work.agent_steps / max(record.work.env_steps, 1), 1)
    few, many = (steps for steps, _ in counted.runs)
    return (
        f"{counted.per_env_step:,.0f} an env-step, {counted.per_env_step / agents:,.0f} an agent-step "
        f"(callgrind, {counted.isa}, {many - few:,} env-steps)"
    )


def size_line(record: Record) -> str:
    """Say how large the batch was."""
    agents = record.work.agent_steps // max(record.work.env_steps, 1)
    return f"{count(record.target.variant['num_envs'], 'env')} of {count(agents, 'agent')}"


def mean_line(record: Record, name: str, unit: str = "") -> str:
    """The mean of a metric over the rounds, with its interval and its extremes."""
    values = record.values.get(name, ())
    if not values:
        return "nothing ended"
    low, high, unit = min(values), max(values), f" {unit}" if unit else ""
    if low == high:
        return f"{plain(low)}{unit}" + (", always" if len(values) > 1 else "")
    interval = mean_interval(values)
    around = f"[{plain(interval[0])}, {plain(interval[1])}]" if interval else "(too few for an interval)"
    return f"{plain(fmean(values))} {around}{unit}, from {plain(low)} to {plain(high)}"


def work_line(record: Record) -> str:
    """Say how much was done, and in what time."""
    seconds = record.values["wall_ns"][0] / 1e9
    work = record.work
    return f"{work.env_steps:,} env-steps, {work.agent_steps:,} agent-steps in {seconds:.2f} s"


def pace_line(record: Record) -> str:
    """The speed of a run that was timed once."""
    env, agent = (record.values.get(f"{what}_steps_per_s", (0.0,))[0] for what in ("env", "agent"))
    return f"{speed(env)} env-steps/s, {speed(agent)} agent-steps/s"
