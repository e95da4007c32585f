"""Phase by phase: what moved, by how much, and what that is worth for the whole."""

from collections.abc import Collection, Mapping
from contextlib import ExitStack, closing
from statistics import fmean

from hotloop.core.errors import unknown
from hotloop.core.record.comparison import A, B, PhaseRatio
from hotloop.core.turn_clock import Turn
from hotloop.envs.spec import Spec
from hotloop.lab.compare.contenders import Contender
from hotloop.lab.measure.loop import Plan, measure, warm_up
from hotloop.stats.ratio import ratio

PYTHON = "python"  # What the wall has beyond the step: Python and the binding
SMALLEST_SHARE = 0.005  # Of A's wall time; a phase below it is too short for its clock
FEWEST_ROUNDS = 24  # So many that intervals which hold for a dozen phases together still exclude the extremes

Costs = Mapping[str, float]  # Phase to ns of an env-step


def check_control(control: str | None, spec: Spec) -> None:
    """Refuse a phase that is not there before anything is measured, where the phases are known."""
    if control is not None and spec.phases:
        find_phase(control, (PYTHON, *spec.phases))


def find_phase(name: str, phases: Collection[str]) -> None:
    if name not in phases:
        raise unknown("phase", name, phases, f"the phases are {', '.join(phases)}")


def compare_phases(
    a: Contender,
    b: Contender,
    policy: str,
    control: str | None,
    plan: Plan,
    *,
    seed: int | None = None,
) -> tuple[PhaseRatio, ...]:
    """Let instrumented sides take turns, and compare each phase that both have."""
    with ExitStack() as stack:
        sides = {
            name: stack.enter_context(closing(contender.side(policy, profile=True, seed=seed)))
            for name, contender in ((A, a), (B, b))
        }
        looking = Plan(
            budget_ns=plan.budget_ns // 2,
            length=warm_up(sides).length,
            min_rounds=FEWEST_ROUNDS,
            patient=True,
            block=len(sides),
        )
        turns = measure(sides, looking).turns
    costs = {name: [phase_costs(turn) for turn in taken] for name, taken in turns.items()}
    return tuple(ratios(costs, control))


def phase_costs(turn: Turn) -> Costs:
    """What each phase of an env-step took in one turn."""
    inside = {name: ns / turn.env_steps for name, ns in turn.phases.items()}
    step_ns = inside.pop("step", sum(inside.values()))
    return {PYTHON: turn.ns_per_env_step - step_ns, **inside}


def ratios(costs: Mapping[str, list[Costs]], control: str | None) -> list[PhaseRatio]:
    """Each phase's ratio, with intervals that hold for all of them together."""
    mean_ns = {name: fmean(round_[name] for round_ in costs[A]) for name in costs[A][0]}
    wall = sum(mean_ns.values())
    if control is not None:
        find_phase(control, mean_ns)
    named = [
        name
        for name, ns in mean_ns.items()
        if name in costs[B][0] and ns > SMALLEST_SHARE * wall and all_positive(costs, name)
    ]
    return [phase_ratio(costs, name, mean_ns[name] / wall, len(named), control) for name in named]


def all_positive(costs: Mapping[str, list[Costs]], name: str) -> bool:
    return all(round_[name] > 0 for rounds in costs.values() for round_ in rounds)


def phase_ratio(
    costs: Mapping[str, list[Costs]], name: str, share: float, together: int, control: str | None
) -> PhaseRatio:
    series = ([round_[name] for round_ in costs[side]] for side in (A, B))
    found = ratio(*series, together=together)
    worth = 1 / (1 - share + share / found.estimate)
    return PhaseRatio(phase=name, ratio=found, share=share, worth=worth, control=name == control)
