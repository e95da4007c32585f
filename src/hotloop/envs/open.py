"""From a target's name and its settings to a batch."""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from hotloop.core import registry, settings
from hotloop.core.errors import InputError, MissingError, SetupError, unknown
from hotloop.core.notices import Code, Notice, notice
from hotloop.core.target import Target
from hotloop.core.world import Plan, World
from hotloop.envs import cuda, native
from hotloop.envs.batch import Batch
from hotloop.envs.episodes import logged
from hotloop.envs.native import Engine, ShadowEngine
from hotloop.envs.reference import ReferenceEngine
from hotloop.envs.spec import BatchSettings, BatchSpec, Build, batch_spec
from hotloop.envs.subject import Subject

T = TypeVar("T")


def open_target(target: Target, *, profile: bool = False) -> Subject:
    """Open whatever a target names: a preset of ours, or a foreign environment."""
    if not target.is_foreign:
        return make(target.name, **{"profile": profile, **target.keys})
    from hotloop.envs.foreign.open import open_foreign
    from hotloop.envs.projects import is_apart, open_apart

    if is_apart(target):
        return open_apart(target, profile=profile)
    return open_foreign(target, timed=profile)


def make(target: str, /, **given: object) -> Batch:
    """Make a batch of a world: `make("grid/toy", num_envs=64, agents=100)`.

    Keys are those of BatchSettings and of the world's parameters; values may be text.
    """
    found = registry.find(target)
    world, preset = found.world, found.preset
    mine, theirs = _split(given, world)
    options, decided = _decide(BatchSettings, {}, mine)
    parameters: Any
    parameters, decided_by_world = _decide(world.parameters, world.presets[preset], theirs)
    plan = world.plan(parameters)
    impl, notices = _choose(options, world)
    decided |= decided_by_world
    spec = batch_spec(found.target, world, preset, impl, parameters, options, decided)
    spec = replace(spec, build=_build(options, impl), notices=notices)
    return logged(_on_device(spec, plan) if options.device == "cuda" else Batch(_engine(spec, plan), spec))


def _split(given: Mapping[str, object], world: World) -> tuple[dict[str, object], dict[str, object]]:
    """Sort keys into those of the batch and those of the world; refuse the rest."""
    ours = {info.name for info in settings.describe(BatchSettings)}
    theirs = {info.name for info in settings.describe(world.parameters)}
    for key in given:
        if key not in ours | theirs:
            then = f"hotloop worlds {world.name} lists them"
            raise unknown("key", key, sorted(ours | theirs), then)
    return (
        {key: value for key, value in given.items() if key in ours},
        {key: value for key, value in given.items() if key in theirs},
    )


def _decide(
    cls: type[T], preset: Mapping[str, object], given: Mapping[str, object]
) -> tuple[T, dict[str, str]]:
    """Argument before environment variable before preset before default; and say which it was."""
    asked: dict[str, Any] = {}
    decided: dict[str, str] = {}
    for info in settings.describe(cls):
        from_environment = info.from_environment(os.environ)
        if info.name in given:
            decided[info.name] = "argument"
        elif from_environment is not None:
            asked[info.name] = from_environment
            decided[info.name] = f"environment {info.env}"
        else:
            decided[info.name] = "preset" if info.name in preset else "default"
    return settings.apply(cls, preset, asked, given), decided


def _choose(options: BatchSettings, world: World) -> tuple[str, tuple[Notice, ...]]:
    """Settle `auto`; refuse `native`, or a GPU, where it is not to be had."""
    asked = options.impl
    if options.device == "cuda":
        _check_device(options, world)
        return "native", ()
    if asked == "reference":
        return "reference", ()
    if not world.has_native:
        return _in_python(options, world)
    why_not = native.why_not(world.native_name)
    if why_not is None:
        return "native", ()
    if asked == "native":
        raise SetupError(f"impl=native: {why_not}; build it with a C++ compiler, or use impl=reference")
    return "reference", (notice(Code.FELL_BACK, why=why_not),)


def _in_python(options: BatchSettings, world: World) -> tuple[str, tuple[Notice, ...]]:
    if options.impl == "native":
        raise InputError(f"impl=native: {world.name} is Python by nature; leave out impl=")
    return "reference", ()


def _check_device(options: BatchSettings, world: World) -> None:
    if options.impl == "reference":
        raise InputError("device=cuda: the Python twin runs on the host; leave out impl=reference")
    if world.part_of:
        raise InputError(f"device=cuda: {world.name} is a component, measured on the host; leave out device=")
    if options.drag:
        raise InputError("device=cuda: there is no drag on a GPU; leave out drag=")
    why_not = cuda.why_not(world.name)
    if why_not is not None:
        raise MissingError(f"device=cuda: {why_not}; or leave out device=")


def _build(options: BatchSettings, impl: str) -> Build | None:
    if options.device == "cuda":
        return cuda.build()
    return native.build() if impl == "native" else None


def _on_device(spec: BatchSpec, plan: Plan) -> Batch:
    engine = cuda.make_engine(spec.world, plan, spec.settings)
    if not spec.settings.host_views:
        return cuda.DeviceBatch(engine, spec)
    views = cuda.HostViews(engine)
    rival = spec.world.shadowed(spec.parameters)
    return Batch(ShadowEngine(views, spec.target, rival) if rival else views, spec)


def _engine(spec: BatchSpec, plan: Plan) -> Engine:
    if spec.impl == "native":
        engine = native.make_engine(spec.world, plan, spec.settings)
        rival = spec.world.shadowed(spec.parameters)
        return ShadowEngine(engine, spec.target, rival) if rival else engine
    return ReferenceEngine(spec.world, plan, spec.parameters, spec.settings)
