"""The options of scale."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from hotloop.options.option import Options, option
from hotloop.options.shared import (
    functions_option,
    json_option,
    on_option,
    output_option,
    policy_option,
    reports_option,
    required_target,
    resume_option,
    words_option,
    yes_option,
)

ENV_STEPS = 4_096  # Of each of a cell's rounds, at most


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleOptions(Options):
    """Measure how the cost of a target grows with its size.

    A key with several values is an axis: agents=10,100,1000, also threads, num_envs (or envs), an encoder or
    an index by name, any argument of your own function, and steps, the length of a run from its reset on.
    Every combination is measured several times, in shuffled order. For each phase, the step and memory it
    says how they grow (constant, log, linear, n log n, quadratic, or a power with its exponent and interval)
    and what else would fit, or that it cannot tell; --time makes a phase of a function of yours. It says
    where one phase overtakes another, where more brings little, and what limits threads. A PNG and an SVG
    are saved with the record. Ctrl-C keeps what is done; --resume continues.
    """

    examples: ClassVar = (
        "hotloop scale grid/toy agents=10,50,100,500,1000",
        "hotloop scale grid/toy threads=1,2,4 num_envs=256",
        "hotloop scale farm/steady index=grid,quadtree agents=50,100,200,400,800",
        "hotloop scale grid/toy --grid crowding",
        "hotloop scale my_env.py:make n=10,100,1000",
        "hotloop scale eco.py:make agents=10,100,1000 --time World.perceive",
        "hotloop scale gym:CartPole-v1 num_envs=1,4,16,64",
        "hotloop scale farm/default --grid steps --resume",
        "hotloop scale grid/toy agents=10,50,100,500 --on ray",
    )
    isolated: ClassVar = True

    target: str = required_target()
    words: list[str] | None = words_option()
    grid: str | None = option(
        None,
        "A classic grid: agents 10 to 1000, steps 100 to 5000, envs 50 to 500, or one of the world's.",
        "NAME",
    )
    repeats: int = option(5, "How often each size is measured, in shuffled order.", "N", min=1)
    steps: int | None = option(
        None,
        f"Env-steps in each of a cell's five rounds.  [default: {ENV_STEPS}; fewer if slow]",
        "N",
        min=1,
        max=10**12,
    )
    policy: str = policy_option()
    no_phases: bool = option(False, "Leave out the passes that time phases.")
    phases: str | None = reports_option()
    time: list[str] | None = functions_option()
    on: str | None = on_option()
    resume: bool = resume_option()
    yes: bool = yes_option()
    output: Path = output_option()
    json: bool = json_option()

    @property
    def env_steps(self) -> int:
        """Return the env-steps in each of a cell's rounds, at most."""
        return ENV_STEPS if self.steps is None else self.steps
