"""Probing: each probe in a pass of its own over the play of a target, after the clean passes are timed.

Also a look at a process that runs already, which need not be stopped or changed.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from inspect import unwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.core import registry
from hotloop.core.clock import utc_now
from hotloop.core.errors import Code, HotloopError, InputError, MissingError, SetupError, notice, unknown
from hotloop.core.machine import code, machine
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Method, Record, new_record
from hotloop.core.record.metadata import Described, Instructions, PathRan, Work
from hotloop.core.record.profile import Finding
from hotloop.core.registry import Obstacle, Probe, ProbeError, Scene
from hotloop.core.settings import Target
from hotloop.envs.foreign.phases import KEPT, find, home_of
from hotloop.envs.subject import Subject
from hotloop.judge.judge import judge
from hotloop.lab.measure.loop import until_interrupted
from hotloop.lab.measure.policy import Play, PolicySubject, RandomPlay, is_live, load, play_of
from hotloop.lab.measure.resources import count
from hotloop.lab.measure.sides import calls_for, play
from hotloop.lab.measure.target import Opener
from hotloop.probes import samples
from hotloop.probes.resources import used

if TYPE_CHECKING:
    from hotloop.lab.profile.profile import ProfilePlan

PHASES = "phases"  # What profile finds itself; it is asked for like a probe and always there

ALWAYS = "resources"

# What looks below a step of user code by default, unless another probe that does so was asked for.
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


def check(probes: Sequence[Probe], targets: Sequence[Target], time: Sequence[str]) -> None:
    """Refuse functions without lines before anything is measured; the targets were opened once by then."""
    if any(probe.name == LINE for probe in probes):
        for target in targets:
            functions(target, time)


def with_probes(record: Record, plan: "ProfilePlan", folder: Path, progress: Progress = silent) -> Record:
    """Let each probe look, one after another; one that cannot is a notice, and Ctrl-C marks the record."""
    if record.partial:
        return record
    for done, probe in enumerate(plan.probes):
        progress(done, len(plan.probes))
        with until_interrupted() as state:
            found = run_probe(probe, plan, folder)
        if state.partial:
            return replace(record, partial=True)
        record = with_result(record, probe.name, found, plan.picture)
    return record


def run_probe(probe: Probe, plan: "ProfilePlan", folder: Path) -> Finding | Obstacle:
    """Return what a probe found, or why it could not look.

    Whatever its package raises must not cost what was measured before.
    """
    obstacle = probe.why_not()
    if obstacle is not None:
        return obstacle
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with probe_context(plan, folder) as scene:
            try:
                return probe.look(scene)
            except (ProbeError, HotloopError):
                raise
            except Exception as error:
                raise ProbeError(f"it raised {type(error).__name__}: {error}", MEND) from error
    except ProbeError as error:
        return error.obstacle
    except HotloopError as error:
        return Obstacle(why=str(error), remedy=MEND)


def with_result(record: Record, name: str, found: Finding | Obstacle, picture: Picture) -> Record:
    """Return a record with a finding and the fields that it fills, or with a notice of why there is none."""
    if isinstance(found, Obstacle):
        skipped = notice(Code.NO_PROBE, probe=name, why=found.why, remedy=found.remedy)
        return replace(record, notices=(*record.notices, skipped))
    found = picture(found)
    record = replace(
        record,
        findings=(*record.findings, found),
        notices=(*record.notices, *samples.notices_of(found)),
    )
    if found.probe == ALWAYS:
        return replace(record, resources=used(found))
    if found.probe == LINE:  # it has seen calls that a span around the function cannot
        denied = {notice(Code.NEVER_CALLED, function=each) for each in found.facts.get("ran", ())}
        return replace(record, notices=tuple(each for each in record.notices if each not in denied))
    if found.probe == INSTRUCTIONS:
        runs = tuple((env_steps, counted) for env_steps, counted in found.facts["runs"])
        return replace(record, instructions=Instructions(**found.facts | {"runs": runs}))
    return record


@contextmanager
def probe_context(plan: "ProfilePlan", folder: Path) -> Iterator[Scene]:
    """A target of its own for one probe, warm, with what plays it."""
    with ExitStack() as stack:
        subject, script = stack.enter_context(prepare_subject(plan.target, plan.policy, plan.opener))
        calls, ns = 1, play(subject, script.draw(1), 1)
        while ns <= WARM_NS:
            calls *= 2
            ns = play(subject, script.draw(calls), calls)
        ns_per_call = ns / calls
        usual = max(1, int(PASS_NS / ns_per_call))
        calls = usual if plan.steps is None else min(usual, calls_for(plan.steps, subject))
        words: tuple[str, ...] = ()
        has_line = any(probe.name == LINE for probe in plan.probes)
        if plan.by_name:  # a function is no JSON
            play_it = {"target": asdict(plan.target), "policy": plan.policy, "seconds": SECONDS}
            words = ("-P", "-m", "hotloop.lab.workers.run", "play", json.dumps(play_it))
        yield Scene(
            draw=lambda count: draw_calls(subject, script, count),
            calls=calls,
            clean_ns=max(1, round(calls * ns_per_call)),
            env_steps=subject.spec.num_envs,
            folder=folder,
            functions=functions(plan.target, plan.time) if has_line else (),
            program=words,
            marker="played",
            count=partial(count, plan.target, policy=str(plan.policy)) if plan.by_name else None,
        )


@contextmanager
def prepare_subject(
    target: Target, policy: object, opener: Opener | None = None
) -> Iterator[tuple[Subject, Play]]:
    """Yield a reset target without any instrument and what plays it.

    Borrow it from the opener, if there is one, so the environment is not created again per probe.
    """
    opening = opener or Opener()
    subject = opening.open(target)
    try:
        subject.reset()
        if is_live(policy):
            actor = PolicySubject(subject, load(policy))
            yield actor, RandomPlay(actor)
        else:
            with closing(play_of(str(policy), subject)) as script:
                yield subject, script
    finally:
        if opener is None:
            subject.close()
        else:
            opener.keep(target, subject)


def draw_calls(subject: Subject, script: Play, calls: int) -> Callable[[], None]:
    """Draw the actions of some calls now, to play them later."""
    actions = script.draw(calls)

    def played() -> None:
        play(subject, actions, calls)

    return played


def functions(target: Target, time: Sequence[str]) -> tuple[tuple[str, Any], ...]:
    """The functions that were named, as their owners hold them; InputError where one has no lines."""
    found = ((name, find(name, home_of(target.name)).kept) for name in time)
    named = tuple((name, unwrap(kept.__func__ if isinstance(kept, KEPT) else kept)) for name, kept in found)
    for name, function in named:
        if not hasattr(function, "__code__"):
            raise InputError(f"--time {name} has no lines to look at: it is not written in Python")
    return named


def attach(pid: int, folder: Path, seconds: int, picture: Picture = no_picture) -> Record:
    """What a process does for some seconds, as a record that has no speed of its own.

    InputError where there is no such process, SetupError where it may not be looked at.
    """
    import psutil

    check_process(pid)
    now, ran = utc_now(), code(None)
    command = "unknown"
    with suppress(psutil.Error):
        command = " ".join(psutil.Process(pid).cmdline())
    try:
        found = picture(samples.attach(pid, folder, seconds))
    except ProbeError as error:
        raise SetupError(str(error)) from None
    name = f"pid:{pid}"
    made = new_record(
        "profile",
        now=now,
        code=ran,
        name=name,
        target=Described(
            name=name,
            world=None,
            impl="foreign",
            device="cpu",
            params={"command": command},
            workload_hash="",
            variant={},
        ),
        machine=machine(),
        method=Method(
            rounds=0, iterations=0, warmup=0, threads=1, order="single", clock="py-spy", policy="its own"
        ),
        work=Work(),
        path=PathRan(requested="foreign"),
        values={},
        findings=(found,),
    )
    return judge(made)


def check_process(pid: int) -> None:
    """Refuse a process that is not there, and a machine without py-spy."""
    from hotloop.probes import pyspy

    pyspy.check_pid(pid)
    obstacle = pyspy.why_not()
    if obstacle is not None:
        raise MissingError(f"{obstacle.why}: {obstacle.remedy}")


def watch_process(pid: int) -> None:
    """Show what a process does, live, until Ctrl-C; SetupError where it may not be looked at."""
    from hotloop.probes import pyspy

    check_process(pid)
    try:
        pyspy.top(pid)
    except ProbeError as error:
        raise SetupError(str(error)) from None
