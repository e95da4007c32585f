"""What bench is asked for, from its flags: rounds, a mode, a speed to be reached."""

from typing import TYPE_CHECKING

from hotloop.core.errors import InputError

if TYPE_CHECKING:
    from hotloop.lab.goals import Wanted
    from hotloop.lab.rounds import Rounds

Numbers = tuple[int, int, int]
"""Rounds, env-steps in each, env-steps of warm-up."""

QUICK: Numbers = (8, 5_000, 20_000)
THOROUGH: Numbers = (60, 20_000, 300_000)
"""Three times the rounds make the interval about half as wide as it usually is."""


def plan(
    count: int | None,
    iterations: int | None,
    warmup: int | None,
    *,
    quick: bool = False,
    thorough: bool = False,
) -> "Rounds":
    """Numbers that were asked for are kept whatever it takes; those of a plan may shrink on a slow target."""
    from hotloop.lab.rounds import Rounds

    if quick and thorough:
        raise InputError("--quick and --thorough exclude each other: give one of them")
    usual = Rounds()
    rounds, steps, before = (
        QUICK if quick else THOROUGH if thorough else (usual.count, usual.iterations, usual.warmup)
    )
    return Rounds(
        count=rounds if count is None else count,
        iterations=steps if iterations is None else iterations,
        warmup=before if warmup is None else warmup,
        box_iterations=iterations is None,
        box_warmup=warmup is None,
    )


def band(*, thorough: bool) -> float:
    """How small a change is called the same."""
    from hotloop.lab.versus import BAND

    return BAND / 2 if thorough else BAND


def wanted(env_steps_per_s: float | None, *, enforced: bool) -> "Wanted | None":
    """The speed to hold a run against; None where none was asked for."""
    from hotloop.lab.goals import Wanted

    if env_steps_per_s is not None:
        return Wanted(env_steps_per_s=env_steps_per_s, enforced=enforced)
    if enforced:
        raise InputError("--enforce-target has nothing to enforce: give --target-steps-per-sec N")
    return None
