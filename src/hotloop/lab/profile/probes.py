"""Probing: each probe in a pass of its own over the play of a target, after the clean passes are timed."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from inspect import unwrap
from pathlib import Path
from typing import Any

from hotloop.core import registry
from hotloop.core.errors import HotloopError, InputError, unknown
from hotloop.core.notices import Code, Notice, notice
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.record.metadata import Instructions
from hotloop.core.record.profile import Finding
from hotloop.core.registry import Obstacle, Probe, ProbeError, Scene
from hotloop.core.target import Target
from hotloop.envs.foreign.phases import KEPT, find, home_of
from hotloop.envs.subject import Subject
from hotloop.lab.measure.loop import until_interrupted
from hotloop.lab.measure.policy import Actor, Play, RandomPlay, is_live, load, play_of
from hotloop.lab.measure.resources import count
from hotloop.lab.measure.sides import calls_for, play
from hotloop.lab.measure.target import Opener
from hotloop.probes import samples
from hotloop.probes.resources import used

PHASES = "phases"  # What profile finds itself; it is asked for like a probe and always there

ALWAYS = "resources"

# What looks below a step of somebody else's by itself, unless another probe that does so was asked for.
SAMPLES = "samples"

BELOW = frozenset({SAMPLES, "cprofile", "pyspy"})  # Probes that show the functions below a step

EVERY = "all"

LINE = "line"

INSTRUCTIONS = "instructions"

WARM_NS = 200_000_000

# What a warm-up and a pass take where no probe looks and no number of steps was asked for.
PASS_NS = 1_000_000_000

SECONDS = 3  # That the program plays which is looked at from outside

MEND = "leave the probe out, or mend that"


Picture = Callable[[Finding], Finding]  # Draws what a probe has seen, and adds the pictures to its files


def no_picture(found: Finding) -> Finding:
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is looked at, by which probes, and where their files go."""

    target: Target
    policy: object
    steps: int | None
    probes: tuple[Probe, ...]
    time: tuple[str, ...]  # Functions that were named
    folder: Path
    # What it has open one probe after another is given, each after a reset.
    opener: Opener = field(default_factory=Opener)
    picture: Picture = no_picture

    @property
    def by_name(self) -> bool:
        """Whether another process can open and play the same."""
        return self.opener.by_name and isinstance(self.policy, str)


def choose(words: Sequence[str]) -> tuple[Probe, ...]:
    """The probes that words name, commas between them or not, in the registry's order."""
    known = registry.probes()
    names = [name.strip() for word in words for name in word.split(",") if name.strip()]
    for name in names:
        if name not in (*known, PHASES, EVERY):
            there = ", ".join((PHASES, *known))
            raise unknown("probe", name, (*known, PHASES, EVERY), f"there are {there}; {EVERY} means all")
    wanted = {ALWAYS, *(known if EVERY in names else names)}
    return tuple(probe for name, probe in known.items() if name in wanted)


def with_samples(probes: tuple[Probe, ...]) -> tuple[Probe, ...]:
    """The same, and one that looks below the steps, which it is the first to do."""
    if any(probe.name in BELOW for probe in probes):
        return probes
    return (registry.probes()[SAMPLES], *probes)


def check(probes: Sequence[Probe], targets: Sequence[Target], time: Sequence[str]) -> None:
    """Refuse functions without lines before anything is measured; the targets were opened once by then."""
    if has_line(probes):
        for target in targets:
            functions(target, time)


def has_line(probes: Sequence[Probe]) -> bool:
    return any(probe.name == LINE for probe in probes)


def with_probes(record: Record, asked: Asked, progress: Progress = silent) -> Record:
    """Let each probe look, one after another; one that cannot is a notice, and Ctrl-C marks the record."""
    if record.partial:
        return record
    for done, probe in enumerate(asked.probes):
        progress(done, len(asked.probes))
        with until_interrupted() as state:
            found = looked(probe, asked)
        if state.partial:
            return replace(record, partial=True)
        record = (
            added(record, asked.picture(found))
            if isinstance(found, Finding)
            else noticed(record, probe, found)
        )
    return record


def looked(probe: Probe, asked: Asked) -> Finding | Obstacle:
    """What a probe found, or why it could not look."""
    obstacle = probe.why_not()
    if obstacle is not None:
        return obstacle
    asked.folder.mkdir(parents=True, exist_ok=True)
    try:
        with scene(asked) as staged:
            return seen(probe, staged)
    except ProbeError as error:
        return error.obstacle
    except HotloopError as error:
        return Obstacle(why=str(error), remedy=MEND)


def seen(probe: Probe, staged: Scene) -> Finding:
    """What a probe found; whatever its package raises must not cost what was measured before."""
    try:
        return probe.look(staged)
    except (ProbeError, HotloopError):
        raise
    except Exception as error:
        raise ProbeError(f"it raised {type(error).__name__}: {error}", MEND) from error


def noticed(record: Record, probe: Probe, obstacle: Obstacle) -> Record:
    said: Notice = notice(Code.NO_PROBE, probe=probe.name, why=obstacle.why, remedy=obstacle.remedy)
    return replace(record, notices=(*record.notices, said))


def added(record: Record, found: Finding) -> Record:
    """A record with a finding, and with the fields of its own that the finding fills."""
    record = replace(
        record,
        findings=(*record.findings, found),
        notices=(*record.notices, *samples.notices_of(found)),
    )
    if found.probe == ALWAYS:
        return replace(record, resources=used(found))
    if found.probe == LINE:  # it has seen calls that a span around the function cannot
        denied = {notice(Code.NEVER_CALLED, function=name) for name in found.facts["ran"]}
        return replace(record, notices=tuple(said for said in record.notices if said not in denied))
    if found.probe == INSTRUCTIONS:
        runs = tuple((env_steps, counted) for env_steps, counted in found.facts["runs"])
        return replace(record, instructions=Instructions(**found.facts | {"runs": runs}))
    return record


@contextmanager
def scene(asked: Asked) -> Iterator[Scene]:
    """A target of its own for one probe, warm, with what plays it."""
    with ExitStack() as stack:
        subject, script = stack.enter_context(staged(asked.target, asked.policy, asked.opener))
        ns_per_call = warm(subject, script)
        usual = max(1, int(PASS_NS / ns_per_call))
        calls = usual if asked.steps is None else min(usual, calls_for(asked.steps, subject))
        yield Scene(
            draw=lambda count: drawn(subject, script, count),
            calls=calls,
            clean_ns=max(1, round(calls * ns_per_call)),
            env_steps=subject.spec.num_envs,
            folder=asked.folder,
            functions=functions(asked.target, asked.time) if has_line(asked.probes) else (),
            program=program(asked) if asked.by_name else (),
            marker="played",
            count=partial(count, asked.target, policy=str(asked.policy)) if asked.by_name else None,
        )


def program(asked: Asked) -> tuple[str, ...]:
    """The words of a program that plays the same."""
    told = {"target": asdict(asked.target), "policy": asked.policy, "seconds": SECONDS}
    return ("-P", "-m", "hotloop.lab.workers.run", "play", json.dumps(told))


@contextmanager
def staged(target: Target, policy: object, opener: Opener | None = None) -> Iterator[tuple[Subject, Play]]:
    """A target without any instrument and who plays it, a policy of somebody's inside the loop."""
    with lent(target, opener) as subject:
        subject.reset()
        if is_live(policy):
            actor = Actor(subject, load(policy))
            yield actor, RandomPlay(actor)
            return
        with closing(play_of(str(policy), subject)) as script:
            yield subject, script


@contextmanager
def lent(target: Target, opener: Opener | None) -> Iterator[Subject]:
    """A subject that goes back to its opener, so that nobody's environment is made for each probe anew."""
    if opener is None:
        with closing(Opener().open(target)) as subject:
            yield subject
        return
    subject = opener.open(target)
    try:
        yield subject
    finally:
        opener.keep(target, subject)


def drawn(subject: Subject, script: Play, calls: int) -> Callable[[], None]:
    """Draw the actions of some calls now, to play them later."""
    actions = script.draw(calls)

    def played() -> None:
        play(subject, actions, calls)

    return played


def warm(subject: Subject, script: Play) -> float:
    """Step until it is warm, ever longer; returns the ns that a call took in the last stretch."""
    calls, ns = 1, 0
    while True:
        ns = play(subject, script.draw(calls), calls)
        if ns > WARM_NS:
            return ns / calls
        calls *= 2


def functions(target: Target, time: Sequence[str]) -> tuple[tuple[str, Any], ...]:
    """The functions that were named, as their owners hold them; InputError where one has no lines."""
    found = ((name, find(name, home_of(target.name)).kept) for name in time)
    named = tuple((name, unwrap(kept.__func__ if isinstance(kept, KEPT) else kept)) for name, kept in found)
    for name, function in named:
        if not hasattr(function, "__code__"):
            raise InputError(f"--time {name} has no lines to look at: it is not written in Python")
    return named
