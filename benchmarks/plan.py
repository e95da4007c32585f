"""Say what a learner can take from many machines, from measured rates and a small simulation of its queues.

    ./.venv/bin/python benchmarks/plan.py [--results FOLDER] [--staleness 1] [--learner RATE] [--weights N]
                                          [--sample N]

All rates come from the newest result of `benchmarks/actors.py`; the simulation is first held against what was
run there. A machine is what ran there, with as many actors as it had at most: it collects at that rate,
rollouts come in by one link one after another, the learner learns once all are there, and weights go out by
it to every machine. Without --learner, --weights and --sample two larger learners are played, too.
"""

import heapq
import json
import random
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import benchmark

MACHINES = (1, 10, 100, 1_000)
UPDATES = 200
LARGE, PICTURES = (1e6, 1e8, None), (1e6, 1e7, 4 * 84 * 84.0)
"""Samples a second, bytes of the weights and of a sample: learners of many GPUs, the second with pictures."""

LINK_BYTES_PER_S = 1.25e9
"""Ten gigabits a second, in and out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What goes round."""

    machines: int
    samples: int
    """Of one machine in one rollout."""
    collect_s: float
    """A machine takes for it."""
    spread: float
    """Deviation of that over its mean, from rollout to rollout."""
    learn_s: float
    """The learner takes for one machine's samples."""
    rollout_bytes: float
    """Of one machine."""
    weights_bytes: float
    staleness: int
    taken_in: float = LINK_BYTES_PER_S
    """Bytes a second that the learner takes of what has come."""
    link: float = LINK_BYTES_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What came of it."""

    samples_per_s: float
    learning: float
    """Share of the time in which the learner learned."""
    incoming: float
    """Share in which rollouts came in."""
    outgoing: float
    """And with weights."""

    @property
    def bound(self) -> str:
        """What it waits for."""
        busy = {"learning": self.learning, "rollouts in": self.incoming, "weights out": self.outgoing}
        most = max(busy, key=busy.__getitem__)
        return most if busy[most] > 0.9 else "collecting"


def simulate(plan: Plan, updates: int = UPDATES, seed: int = 1) -> Flow:
    """Rollouts are asked for ahead by `staleness` updates; each machine does one after another."""
    chance = random.Random(seed)
    free = [0.0] * plan.machines
    """When each machine has done all it was asked for."""
    in_free = out_free = learner_free = 0.0
    asked: list[list[float]] = []
    arrived, sent = plan.rollout_bytes / min(plan.link, plan.taken_in), plan.weights_bytes / plan.link
    for _ in range(updates):
        while len(asked) <= plan.staleness:
            asked.append([])
            for machine in range(plan.machines):
                out_free = max(out_free, learner_free) + sent
                took = max(0.0, chance.gauss(plan.collect_s, plan.spread * plan.collect_s))
                free[machine] = max(free[machine], out_free) + took
                asked[-1].append(free[machine])
        ready = asked.pop(0)
        heapq.heapify(ready)
        while ready:
            in_free = max(in_free, heapq.heappop(ready)) + arrived
        learner_free = max(learner_free, in_free) + plan.learn_s * plan.machines
    return Flow(
        samples_per_s=updates * plan.machines * plan.samples / learner_free,
        learning=updates * plan.machines * plan.learn_s / learner_free,
        incoming=updates * plan.machines * arrived / learner_free,
        outgoing=updates * plan.machines * sent / learner_free,
    )


def newest(folder: Path, name: str, part: str) -> dict[str, Any]:
    """The last result of a benchmark that has a part."""
    every: list[dict[str, Any]] = [json.loads(path.read_text()) for path in folder.glob(f"{name}-*.json")]
    found = [each for each in every if part in each]
    if not found:
        raise SystemExit(f"{folder} has no result of benchmarks/{name}.py: run it first")
    return max(found, key=lambda each: str(each["created"]))


def spread_of(rates: Sequence[float]) -> float:
    return min((max(rates) - min(rates)) / (2 * median(rates)), 1.0)


def plan_of(actors: dict[str, Any], count: int, learn_s: float, staleness: int) -> Plan:
    """So many actors on one machine, from what one of them was measured to take.

    What an actor takes for a rollout is what one took for all envs, as many times less as it has fewer; what
    of that is no waiting they share the cores for. The rest has to come out of the queues.
    """
    alone, sizes = actors["rates"]["1"]["env_steps_per_s"], actors["sizes"]
    whole_s = sizes["samples"] / median(alone)
    waits_s = min(whole_s, sizes["samples"] * sizes["wait_s"])
    shared = max(1.0, count / actors["machine"]["usable_cores"])
    return Plan(
        machines=count,
        samples=sizes["samples"] // count,
        collect_s=(waits_s + (whole_s - waits_s) * shared) / count,
        spread=spread_of(alone),
        learn_s=learn_s / count,
        rollout_bytes=sizes["rollout_bytes"] / count,
        weights_bytes=sizes["weights_bytes"],
        staleness=staleness,
        taken_in=sizes["taken_in_per_s"],
    )


def measured(actors: dict[str, Any], staleness: int) -> dict[str, tuple[Plan, float]]:
    """A plan of everything that was run, by its name, and the samples a second that it came to."""
    rates = {int(count): median(each["env_steps_per_s"]) for count, each in actors["rates"].items()}
    found = {
        f"{count} collecting": (plan_of(actors, count, 0.0, staleness), rate) for count, rate in rates.items()
    }
    learning = plan_of(actors, max(rates), actors["sizes"]["laborious_learn_s"], staleness)
    trained = median(actors["training"]["env_steps_per_s"])
    return found | {f"{max(rates)} collecting, much learning": (learning, trained)}


def machine_of(
    actors: dict[str, Any],
    *,
    learner: float | None,
    weights: float | None,
    sample: float | None,
    staleness: int,
) -> Plan:
    """One machine as it ran with most actors, and who learns from it."""
    sizes = actors["sizes"]
    collected = actors["rates"][max(actors["rates"], key=int)]["env_steps_per_s"]
    samples = sizes["samples"]
    return Plan(
        machines=1,
        samples=samples,
        collect_s=samples / median(collected),
        spread=spread_of(collected),
        learn_s=samples / learner if learner else sizes["learn_s"],
        rollout_bytes=sample * samples if sample else sizes["rollout_bytes"],
        weights_bytes=weights or sizes["weights_bytes"],
        staleness=staleness,
        taken_in=sizes["taken_in_per_s"],
    )


def assumed(plan: Plan) -> str:
    return (
        f"Machines for one learner that takes {plan.samples / plan.learn_s:,.0f} samples/s, "
        f"{plan.rollout_bytes / plan.samples:,.0f} bytes a sample, weights {plan.weights_bytes:,.0f} bytes; "
        f"one machine collects {plan.samples / plan.collect_s:,.0f} samples/s, {plan.samples:,} an update. "
        f"The learner's link has {plan.link * 8 / 1e9:.0f} Gbit/s, of what has come it takes "
        f"{plan.taken_in / 1e6:,.0f} MB/s, and what it learns from is at most {plan.staleness} updates old:"
    )


def check_table(checks: dict[str, tuple[Plan, float]], updates: int) -> str:
    rows = []
    for name, (each, rate) in checks.items():
        expected = simulate(each, updates).samples_per_s
        rows.append([name, f"{rate:,.0f}", f"{expected:,.0f}", f"{rate / expected:.2f}"])
    return benchmark.table(["actors", "env-steps/s", "simulated", "measured / simulated"], rows)


def plan_table(plan: Plan, updates: int) -> str:
    flows = {count: simulate(replace(plan, machines=count), updates) for count in MACHINES}
    rows = [
        [
            f"{count:,}",
            f"{flow.samples_per_s:,.0f}",
            f"{flow.samples_per_s * plan.rollout_bytes / plan.samples / 1e6:,.1f}",
            f"{flow.samples_per_s / plan.samples * plan.weights_bytes / 1e6:,.2f}",
            f"{flow.learning:.0%}",
            flow.bound,
        ]
        for count, flow in flows.items()
    ]
    return benchmark.table(["machines", "samples/s", "MB/s in", "MB/s out", "learner busy", "bound by"], rows)


def page(checks: dict[str, tuple[Plan, float]], plans: Sequence[Plan], updates: int) -> str:
    parts = [
        "The simulation beside what was run (actors on one machine, an env that waits):",
        check_table(checks, updates),
    ]
    for plan in plans:
        parts += [assumed(plan), plan_table(plan, updates)]
    return "\n\n".join(parts)


def main() -> None:
    parser = benchmark.parser(__doc__)
    parser.add_argument("--results", type=Path, default=benchmark.RESULTS, help="where the rates are")
    parser.add_argument("--staleness", type=int, default=1, help="updates that rollouts may be old")
    parser.add_argument("--learner", type=float, help="samples a second that it takes, instead of ours")
    parser.add_argument("--weights", type=float, help="bytes of the network, instead of ours")
    parser.add_argument("--sample", type=float, help="bytes of a sample, instead of ours")
    arguments: Namespace = parser.parse_args()
    actors = newest(arguments.results, "actors", "training")
    checks = measured(actors, arguments.staleness)
    asked = [(arguments.learner, arguments.weights, arguments.sample)]
    if asked == [(None, None, None)]:
        asked += [LARGE, PICTURES]
    plans = [
        machine_of(actors, learner=learner, weights=weights, sample=sample, staleness=arguments.staleness)
        for learner, weights, sample in asked
    ]
    text = page(checks, plans, 20 if arguments.quick else UPDATES)
    benchmark.publish("plan", text, {"staleness": arguments.staleness}, arguments)


if __name__ == "__main__":
    main()
