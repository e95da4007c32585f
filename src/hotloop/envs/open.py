"""From a target's name and its settings to a batch, which keeps a log where its parameters ask for one."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from hotloop.core import registry, settings
from hotloop.core.clock import now_ns
from hotloop.core.errors import Code, InputError, MissingError, Notice, SetupError, notice, unknown
from hotloop.core.settings import Target
from hotloop.core.spans import span
from hotloop.core.world import LoggedRun, Plan, RunLog, World
from hotloop.envs import cuda, native
from hotloop.envs.batch import Batch, OrderError
from hotloop.envs.cuda import require_host
from hotloop.envs.native import Engine, ShadowedEngine, ShadowEngine
from hotloop.envs.reference import NextSeeds, ReferenceEngine
from hotloop.envs.spec import BatchSettings, BatchSpec, batch_spec
from hotloop.envs.subject import Subject

T = TypeVar("T")


def open_target(target: Target, *, profile: bool = False) -> Subject:
    """Open whatever a target names: a preset of ours, or a foreign environment."""
    if not target.is_foreign:
        return make(target.name, **{"profile": profile, **target.keys})
    from hotloop.envs.foreign.open import open_foreign
    from hotloop.envs.projects import is_apart, new_apart

    if is_apart(target):
        return new_apart(target, f"{__name__}:open_target", profile=profile)
    return open_foreign(target, timed=profile)


def make(target: str, /, **given: object) -> Batch:
    """Make a batch of a world: `make("grid/toy", num_envs=64, agents=100)`.

    Keys are those of BatchSettings and of the world's parameters; values may be text.
    """
    found = registry.find(target)
    world, preset = found.world, found.preset
    ours = {info.name for info in settings.describe(BatchSettings)}
    theirs = {info.name for info in settings.describe(world.parameters)}
    for key in given:
        if key not in ours | theirs:
            then = f"hotloop worlds {world.name} lists them"
            raise unknown("key", key, sorted(ours | theirs), then)
    options, decided = _decide(BatchSettings, {}, {key: given[key] for key in given if key in ours})
    parameters: Any
    parameters, decided_by_world = _decide(
        world.parameters, world.presets[preset], {key: given[key] for key in given if key in theirs}
    )
    plan = world.plan(parameters)
    impl, notices = _choose(options, world)
    build = native.build() if impl == "native" else None
    if options.device == "cuda":
        build = cuda.build()
    decided |= decided_by_world
    spec = batch_spec(found.target, world, preset, impl, parameters, options, decided)
    return with_log(make_batch(replace(spec, build=build, notices=notices), plan))


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
        if asked == "native":
            raise InputError(f"impl=native: {world.name} is Python by nature; leave out impl=")
        return "reference", ()
    why_not = native.why_not(world.native_name)
    if why_not is None:
        return "native", ()
    if asked == "native":
        raise SetupError(f"impl=native: {why_not}; build it with a C++ compiler, or use impl=reference")
    return "reference", (notice(Code.FELL_BACK, why=why_not),)


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


def make_batch(spec: BatchSpec, plan: Plan) -> Batch:
    """Return the batch of a spec; an engine that works in two ways is looked at after every call."""
    if spec.impl == "reference":
        return Batch(ReferenceEngine(spec.world, plan, spec.parameters, spec.settings), spec)
    engine: ShadowedEngine
    if spec.settings.device == "cuda":
        device = cuda.make_engine(spec.world, plan, spec.settings)
        if not spec.settings.host_views:
            return cuda.DeviceBatch(device, spec)
        engine = cuda.HostViews(device)
    else:
        engine = native.make_engine(spec.world, plan, spec.settings)
    rival = spec.world.shadowed(spec.parameters)
    return Batch(ShadowEngine(engine, spec.target, rival) if rival else engine, spec)


LOG = "log"  # The span of the time that the log takes from a step


def with_log(batch: Batch) -> Batch:
    """The batch, or where its parameters ask for a log one that keeps it."""
    spec = batch.spec
    if spec.world.log is None:
        return batch
    arrays = {"rewards": batch.rewards, "terminals": batch.terminals, "truncations": batch.truncations}
    run = LoggedRun(
        target=spec.target,
        impl=spec.impl,
        num_envs=spec.num_envs,
        settings=spec.described.params | spec.described.variant,
        arrays=arrays | batch.infos,
    )
    log = spec.world.log(spec.parameters, run)
    if log is None:
        return batch
    require_host(batch, "a log")
    return LoggedBatch(batch.engine, spec, log)


class LoggedBatch(Batch):
    """A batch that tells a log what happened; the log is whole when the batch is closed."""

    def __init__(self, engine: Engine, spec: BatchSpec, log: RunLog) -> None:
        super().__init__(engine, spec)
        self._log = log
        self._seeds_of = NextSeeds(spec.settings)
        self._end = finalize(self, log.close)
        self.log_ns = 0
        """Time that the log has taken from steps, waiting for it included."""

    def reset(self, seeds: Sequence[int] | NDArray[np.uint64] | None = None) -> None:
        super().reset(seeds)
        self._begin(range(self.spec.num_envs), seeds)

    def reset_many(
        self,
        indices: Sequence[int] | NDArray[np.int64],
        seeds: Sequence[int] | NDArray[np.uint64] | None = None,
    ) -> None:
        super().reset_many(indices, seeds)
        self._begin([int(env) for env in indices], seeds)

    def step(self, actions: NDArray[np.int32]) -> None:
        super().step(actions)
        with self._noted():
            self._log.note()
            if self.spec.settings.autoreset:
                ended = np.flatnonzero(self.terminals | self.truncations)
                if ended.size:
                    self._begin(ended.tolist(), None)

    def wait(self) -> None:
        """Return when the log has every row of the steps so far."""
        with self._noted():
            self._log.flush()

    @contextmanager
    def _noted(self) -> Iterator[None]:
        begin = now_ns()
        with span(LOG):
            yield
        self.log_ns += now_ns() - begin

    @property
    def counters(self) -> dict[str, int]:
        return {**super().counters, **self._log.counters()}

    def load(self, env: int, saved: bytes) -> None:
        raise unfit("load")

    def fork(self, env: int, into: int) -> None:
        raise unfit("fork")

    def close(self) -> None:
        super().close()
        self._end()

    def _begin(self, envs: Sequence[int], seeds: Sequence[int] | NDArray[np.uint64] | None) -> None:
        chosen = [self._seeds_of.next(env) for env in envs] if seeds is None else [int(s) for s in seeds]
        for env, seed in zip(envs, chosen, strict=True):
            self._seeds_of.last[env] = seed
        self._log.begin(envs, chosen)


def extra_ns(batch: Batch) -> dict[str, int]:
    """Nanoseconds of what a step does beside its engine, by name, since the batch was made."""
    return {LOG: batch.log_ns} if isinstance(batch, LoggedBatch) else {}


def unfit(call: str) -> OrderError:
    return OrderError(f"{call}: a batch that writes a log plays every episode from its beginning")
