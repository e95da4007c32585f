"""Say what a learner can take from many machines, from measured rates and a small simulation of its queues.

    ./.venv/bin/python benchmarks/plan.py [--results FOLDER] [--staleness 1] [--learner RATE] [--weights N]

The rates come from the newest results of `benchmarks/actors.py` and `benchmarks/ranks.py`; the simulation is
first held against what was measured there. Machines collect at the measured rate, their rollouts come in by
one link one after another, the learner learns once all are there, and weights go out by it to every machine.
Without --learner and --weights a larger learner is played, too.
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
LARGE = (1e6, 1e8)
"""Samples a second and bytes of the weights: a learner of many GPUs with a network that fills them."""

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
    link: float = LINK_BYTES_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What came of it."""

    samples_per_s: float
    learning: float
    """Share of the time in which the learner learned."""
    incoming: float
    """Share in which its link was busy with rollouts."""
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
    arrived, sent = plan.rollout_bytes / plan.link, plan.weights_bytes / plan.link
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


def measured(actors: dict[str, Any], staleness: int) -> dict[int, tuple[Plan, float]]:
    """A plan of each number of actors that was run, and the samples a second that it came to.

    What an actor takes for a rollout is what one took for all envs, as many times less as it has fewer; what
    of that is no waiting they share the cores for. The rest has to come out of the queues.
    """
    cores = actors["machine"]["usable_cores"]
    rates = {int(count): each["env_steps_per_s"] for count, each in actors["rates"].items()}
    sizes = actors["sizes"]
    alone = [sizes["samples"] / rate for rate in rates[1]]
    whole_s = median(alone)
    spread = (max(alone) - min(alone)) / (2 * whole_s)
    waits_s = min(whole_s, sizes["samples"] * sizes["wait_s"])
    return {
        count: (
            Plan(
                machines=count,
                samples=sizes["samples"] // count,
                collect_s=(waits_s + (whole_s - waits_s) * max(1.0, count / cores)) / count,
                spread=min(spread, 1.0),
                learn_s=0.0,
                rollout_bytes=sizes["rollout_bytes"] / count,
                weights_bytes=sizes["weights_bytes"],
                staleness=staleness,
            ),
            median(values),
        )
        for count, values in rates.items()
    }


def machine_of(
    ranks: dict[str, Any],
    sizes: dict[str, Any],
    *,
    learner: float | None,
    weights: float | None,
    staleness: int,
) -> Plan:
    """One machine whose envs are twenty times as slow as the learner of `ranks.py`, and who learns."""
    [learner_name] = [name for name in ranks["case"]["sides"] if name != "one process"]
    measured_rate = 1e9 / median(ranks["case"]["sides"][learner_name]["ns_per_agent_step"])
    rate = learner or measured_rate
    samples = 16_384
    per_sample = sizes["rollout_bytes"] / sizes["samples"]
    return Plan(
        machines=1,
        samples=samples,
        collect_s=20 * samples / measured_rate,
        spread=0.1,
        learn_s=samples / rate,
        rollout_bytes=per_sample * samples,
        weights_bytes=weights or sizes["weights_bytes"],
        staleness=staleness,
    )


def assumed(plan: Plan) -> str:
    return (
        f"Machines for one learner that takes {plan.samples / plan.learn_s:,.0f} samples/s, "
        f"{plan.rollout_bytes / plan.samples:,.0f} bytes a sample, weights {plan.weights_bytes:,.0f} bytes; "
        f"one machine collects {plan.samples / plan.collect_s:,.0f} samples/s, its link has "
        f"{plan.link * 8 / 1e9:.0f} Gbit/s, and what it collects is at most {plan.staleness} updates old:"
    )


def check_table(checks: dict[int, tuple[Plan, float]], updates: int) -> str:
    rows = []
    for count, (each, rate) in checks.items():
        expected = simulate(each, updates).samples_per_s
        rows.append([str(count), f"{rate:,.0f}", f"{expected:,.0f}", f"{rate / expected:.2f}"])
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


def page(checks: dict[int, tuple[Plan, float]], plans: Sequence[Plan], updates: int) -> str:
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
    arguments: Namespace = parser.parse_args()
    actors, ranks = newest(arguments.results, "actors", "rates"), newest(arguments.results, "ranks", "case")
    checks = measured(actors, arguments.staleness)
    asked = [(arguments.learner, arguments.weights)]
    if asked == [(None, None)]:
        asked += [LARGE]
    plans = [
        machine_of(ranks, actors["sizes"], learner=learner, weights=weights, staleness=arguments.staleness)
        for learner, weights in asked
    ]
    text = page(checks, plans, 20 if arguments.quick else UPDATES)
    benchmark.publish("plan", text, {"staleness": arguments.staleness}, arguments)


if __name__ == "__main__":
    main()
