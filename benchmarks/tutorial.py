"""Measure the three orchards of docs/tutorial.md in turns: plain Python, with its map as an array, native.

    ./.venv/bin/python benchmarks/tutorial.py [--rounds 12] [--quick]

Before anything is timed each is validated against the first, to the byte. The time is that of the CPU: a
turn of the first takes hundreds of times as long as one of the last, and what else runs on a machine would
be charged to it alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import benchmark
import hotloop
from hotloop.core.errors import ExitCode
from hotloop.core.record import Metric
from hotloop.core.settings import Target
from hotloop.core.turn_clock import Turn
from hotloop.envs.open import open_target
from hotloop.lab.measure.policy import RANDOM
from hotloop.lab.measure.sides import SubjectSide
from hotloop.stats.summary import ratio, summarise

EXAMPLES = benchmark.HERE.parent / "examples"
SIDES = {"plain": "orchard.py", "arrays": "orchard_arrays.py", "native": "orchard_native.py"}
ENVS = 64
ENV_STEPS, QUICK_ENV_STEPS = 20 * ENVS, 10 * ENVS
VALIDATED, QUICK_VALIDATED = 8_000, 1_000
AT_LEAST = 100
HEADER = [
    "orchard",
    "env-steps a CPU second",
    "over the rounds",
    "CV",
    "µs per env-step",
    "times as fast",
    "compared",
    "different",
]


def target(name: str) -> str:
    return f"{EXAMPLES / SIDES[name]}:make"


def side(name: str) -> SubjectSide:
    made = SubjectSide(name, open_target(Target(target(name), {"num_envs": ENVS})), RANDOM)
    made.turn(4 * ENVS)
    return made


def validated(name: str, env_steps: int) -> dict[str, int]:
    """How much of a side was compared with the first, and how much of it differed."""
    record = hotloop.validate(target(name), env_steps, against=target("plain"))
    assert record.validation is not None
    if record.exit_code != ExitCode.FINE:
        raise SystemExit(f"{name} is not what it should be: {record.validation.difference}")
    return {"compared": record.validation.comparisons, "different": record.validation.mismatches}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the rounds say about one side."""

    cpu_ns_per_env_step: list[float]
    """Raw, one a round."""
    wall_ns_per_env_step: list[float]
    env_steps_per_s: Metric
    """Of CPU time."""


def cost(turns: Sequence[Turn]) -> Cost:
    cpu = [(turn.cpu_ns or turn.ns) / turn.env_steps for turn in turns]
    return Cost(
        cpu_ns_per_env_step=cpu,
        wall_ns_per_env_step=[turn.ns_per_env_step for turn in turns],
        env_steps_per_s=summarise([1e9 / each for each in cpu]),
    )


def measure(*, rounds: int, env_steps: int, compared: int) -> dict[str, Any]:
    equal = {name: validated(name, compared) for name in SIDES if name != "plain"}
    taken = benchmark.in_turns({name: partial(side(name).turn, env_steps) for name in SIDES}, rounds)
    sides = {name: cost(turns) for name, turns in taken.items()}
    plain = sides["plain"].cpu_ns_per_env_step
    ratios = {name: ratio(plain, sides[name].cpu_ns_per_env_step) for name in equal}
    return {"sides": sides, "ratios": ratios, "validated": equal, "at_least": AT_LEAST}


def row(name: str, values: Mapping[str, Any]) -> list[str]:
    rates = values["sides"][name].env_steps_per_s
    extremes = f"{rates.min:,.0f} .. {rates.max:,.0f}"
    cells = [name, f"{rates.median:,.0f}", extremes, benchmark.percent(rates.cv), f"{1e6 / rates.median:.2f}"]
    if name not in values["ratios"]:
        return [*cells, "1", "", ""]
    equal = values["validated"][name]
    ratio = benchmark.ratio_text(values["ratios"][name], 1)
    return [*cells, ratio, f"{equal['compared']:,}", str(equal["different"])]


def page(values: Mapping[str, Any]) -> str:
    ratio = values["ratios"]["native"]
    reached = "is" if ratio.low >= AT_LEAST else "is not"
    said = f"The lower end of the interval {reached} at least {AT_LEAST}. {benchmark.resolution(ratio)}"
    return "\n\n".join([benchmark.table(HEADER, [row(name, values) for name in SIDES]), said])


def main() -> None:
    arguments = benchmark.parser(__doc__).parse_args()
    quick = arguments.quick
    values = measure(
        rounds=benchmark.rounds_asked(arguments),
        env_steps=QUICK_ENV_STEPS if quick else ENV_STEPS,
        compared=QUICK_VALIDATED if quick else VALIDATED,
    )
    benchmark.publish("tutorial", page(values), values, arguments)


if __name__ == "__main__":
    main()
