"""What is known of a subject or a side: one `Spec` for all, and the settings that run a batch."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hotloop.core.errors import Notice
from hotloop.core.record.metadata import Described
from hotloop.core.settings import Role, Target, by_role, hash_of, parameter, workload_hash
from hotloop.core.world import Layout, World

MAX_SEED = 2**64 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """How a native module was built, for the record."""

    compiler: str
    flags: str
    isa: str
    clock: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What a subject, or a side of a comparison, is: its size, what runs, and how another one is opened."""

    name: str  # The target it was opened as
    impl: str  # What runs: `native`, `reference` or `foreign`, never `auto`
    requested: str  # The implementation that was asked for
    num_envs: int
    agents: int  # Of each env
    seed: int
    threads: int = 1
    described: Described  # What a record says of it, split into what changes results and what must not
    build: Build | None = None
    notices: tuple[Notice, ...] = ()
    # Which of argument, preset, environment variable or default decided each setting.
    decided_by: Mapping[str, str] = field(default_factory=dict)
    phases: tuple[str, ...] = ()  # Parts of a step that are known before anything runs
    # Counters that must be above zero before two implementations are called equal.
    mechanics: tuple[str, ...] = ()
    # Names that its answers' fields contain; empty if agents are an axis, or one.
    agent_names: tuple[str, ...] = ()
    made_from: Target | None = None  # Target that opens an identical subject; None if only its maker knows
    same_work: Target  # Target of the same workload that runs the fastest implementation

    @property
    def interface(self) -> str:
        """The interface of a foreign env, such as `gymnasium vector`; empty for our own worlds."""
        return str(self.described.variant.get("interface", ""))

    def with_seed(self, seed: int) -> "Spec":
        """Return the spec of the same foreign env, begun from another seed."""
        params = {**self.described.params, "seed": seed}
        described = replace(self.described, params=params, workload_hash=hash_of(self.name, params))
        return replace(self, seed=seed, described=described)

    def with_envs(self, num_envs: int, **changes: Any) -> "Spec":
        """Return the spec of so many such foreign envs, with further changes."""
        described = replace(self.described, variant={**self.described.variant, "num_envs": num_envs})
        return replace(self, num_envs=num_envs, described=described, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings:
    """How a world is run; but for the seed, none of it changes a result."""

    num_envs: int = parameter(64, low=1, high=1 << 20, role="variant", help="Envs stepped by one call.")
    impl: str = parameter(
        "auto",
        choices=("auto", "native", "reference"),
        role="variant",
        help="Native code, the Python twin, or native where it is there.",
    )
    device: str = parameter(
        "cpu",
        choices=("cpu", "cuda"),
        role="variant",
        help="Where the envs live: the host, or an NVIDIA GPU.",
    )
    host_views: bool = parameter(
        False, role="variant", help="Show a GPU's arrays as NumPy copies instead of torch tensors."
    )
    threads: int = parameter(1, low=1, high=256, role="variant", help="Threads of one native step.")
    seed: int = parameter(42, low=0, high=MAX_SEED, role="workload", help="Decides every env's episodes.")
    autoreset: bool = parameter(
        True, role="workload", help="Begin the next episode in the step that ends one."
    )
    seed_step: int = parameter(
        0,
        low=0,
        high=MAX_SEED,
        role="workload",
        help="Every next episode's seed is the last one plus this; 0 mixes it from seed, env and episode.",
    )
    profile: bool = parameter(
        False, role="variant", env="HOTLOOP_PROFILING", help="Time every phase of a step."
    )
    strict: bool = parameter(
        False, role="variant", help="Refuse actions out of range instead of letting the world count them."
    )
    render_mode: str = parameter(
        "none",
        choices=("none", "rgb_array", "ansi"),
        role="variant",
        help="What render() gives: nothing, an image, or coloured text.",
    )
    drag: int = parameter(
        0,
        low=0,
        high=100_000_000,
        role="variant",
        help="For testing gates: turns of an empty loop for each env-step, a slow-down that changes nothing.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSpec(Spec):
    """The spec of a batch: also its world, and the layout of its arrays."""

    target: str
    world: World
    preset: str
    layout: Layout
    parameters: Any
    settings: BatchSettings

    @property
    def num_actions(self) -> int:
        return self.layout.num_actions

    @property
    def drawn_actions(self) -> int:
        """Random play draws from the first so many actions."""
        return self.layout.drawn_actions

    @property
    def has_empty_rows(self) -> bool:
        """Whether agents come and go, so that some rows belong to no agent."""
        return any(array.name == "alive" for array in self.layout.arrays)

    def named(self, origin: str) -> "BatchSpec":
        """Return the spec of a batch that the user's callable made: only it knows how to make another."""
        hashed = workload_hash(origin, self.parameters, self.settings)
        described = replace(self.described, name=origin, world=None, workload_hash=hashed)
        return replace(self, name=origin, described=described, made_from=None)


def batch_spec(
    target: str,
    world: World,
    preset: str,
    impl: str,
    parameters: Any,
    settings: BatchSettings,
    decided_by: Mapping[str, str],
) -> BatchSpec:
    """Return the spec of a batch of a world; `settings` are how it is run."""
    roles: tuple[Role, Role] = ("workload", "variant")
    workload, variant = (by_role(parameters, role) | by_role(settings, role) for role in roles)
    values = workload | variant
    # profile is the instrument, not a key of what is measured
    given = [key for key, by in decided_by.items() if by == "argument" and key != "profile"]
    layout = world.layout(parameters)
    observation = layout.observation
    return BatchSpec(
        name=target,
        impl=impl,
        requested=settings.impl if world.has_native else "reference",
        num_envs=settings.num_envs,
        agents=layout.agents,
        seed=settings.seed,
        threads=settings.threads,
        described=Described(
            name=target,
            world=world.name,
            impl=impl,
            device=settings.device,
            params=workload,
            workload_hash=workload_hash(target, parameters, settings),
            variant=variant,
            keys={key: values[key] for key in given if key in values},
            observation_bytes=int(np.prod(observation.shape)) * np.dtype(observation.dtype).itemsize,
        ),
        decided_by=decided_by,
        phases=(*world.phases, "autoreset", *(("drag",) if settings.drag else ())),
        mechanics=tuple(world.mechanics.get(preset, ())),
        made_from=Target(target, {**values, "impl": impl}),
        same_work=Target(target, {**workload, "num_envs": settings.num_envs}),
        target=target,
        world=world,
        preset=preset,
        layout=layout,
        parameters=parameters,
        settings=settings,
    )
