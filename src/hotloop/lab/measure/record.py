"""From what was measured to a record: the parts every experiment fills in the same way."""

import hashlib
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from hotloop.core.clock import now_ns, utc_now
from hotloop.core.errors import Code, InputError, Notice, SetupError, notice
from hotloop.core.machine import Sources, changed_sources, code, machine, read_sources
from hotloop.core.process import lifeline
from hotloop.core.progress import Progress
from hotloop.core.record import EPISODES_PER_S, Method, Record, new_record
from hotloop.core.record.comparison import Validation
from hotloop.core.record.metadata import LOG_COUNTERS, LOST_STEPS, PathRan, Work
from hotloop.core.record.metadata import CodeInfo as RanCode
from hotloop.core.record.profile import Overhead
from hotloop.envs.native import timing_ratio, without_times
from hotloop.envs.spec import Spec
from hotloop.envs.subject import Subject
from hotloop.judge.compare import RunConditions
from hotloop.lab.measure.loop import Rounds
from hotloop.lab.measure.policy import RandomPlay
from hotloop.lab.validate.equal import field_hashes, read_global_rng, set_global_rng
from hotloop.stats.summary import FEWEST, ratio, with_metrics


class Recorder:
    """Takes down machine, code and target before a run, so that the run itself does not change them."""

    def __init__(self, kind: str, spec: Spec, ran: RanCode | None = None) -> None:
        """`ran` is the code that runs, where it is not the present one."""
        self._spec = spec
        self._kind = kind
        self._now = utc_now()
        self._machine = machine()
        build = spec.build
        self._sources = read_sources(spec.name) if ran is None else {}
        self.code = ran or code(asdict(build) if build else None, target=spec.name, sources=self._sources)

    def setting(self, policy: str, garbage: str = "between") -> RunConditions:
        """What a run of this subject has to share with whatever it is compared with."""
        return RunConditions(
            machine=self._machine,
            target=self._spec.described,
            kind=self._kind,
            policy=policy,
            garbage=garbage,
        )

    def record(
        self,
        *,
        method: Method,
        counters: Mapping[str, int],
        values: Mapping[str, Sequence[float]],
        notices: Sequence[Notice] = (),
        **more: Any,
    ) -> Record:
        """Make the record of a finished run; `counters` are those of the measured rounds.

        `more` are fields of the record itself.
        """
        spec = self._spec
        if any(any(raw) for raw in values.values()) and not counters.get("env_steps"):
            raise SetupError(
                f"{spec.name} was played and its counters stood still: "
                "who knows what ran? its speed means nothing"
            )
        return with_metrics(
            new_record(
                self._kind,
                now=self._now,
                code=self.code,
                target=spec.described,
                machine=self._machine,
                method=method,
                work=describe_work(counters),
                path=describe_path(spec.requested, counters, claimed=spec.impl),
                values=values,
                notices=(
                    *spec.notices,
                    *work_notices(spec, counters),
                    *rewritten_notices(self._sources),
                    *notices,
                ),
                **more,
            )
        )


def work_notices(spec: Spec, counters: Mapping[str, int]) -> list[Notice]:
    """Return what decided a setting unseen, by which path an env stepped, and whether its log broke off."""
    # No command line shows what environment variables decide.
    notices = [
        notice(Code.ENVIRONMENT, setting=setting, source=source)
        for setting, source in spec.decided_by.items()
        if source.startswith("environment")
    ]
    steps, native = counters.get("env_steps", 0), counters.get("native_steps")
    if spec.impl == "foreign" and native is not None and native < steps:
        notices.append(notice(Code.PATH_MIXED, share=native / steps, requested="native"))
    if lost := counters.get(LOST_STEPS, 0):
        notices.append(notice(Code.LOG_BROKE_OFF, steps=lost))
    return notices


def rewritten_notices(sources: Sources) -> list[Notice]:
    """Name the sources that changed since they were loaded."""
    files = changed_sources(sources)
    return [notice(Code.SOURCES_CHANGED, files=", ".join(files))] if files else []


def kept_so_far(make: Callable[[], Record | None], progress: Progress) -> Progress:
    """The progress of a run whose record so far is kept by the supervisor of this process.

    `make` makes that record; None where there is nothing yet.
    """

    def moved(done: int, total: int) -> None:
        progress(done, total)
        lifeline.offer(make)

    return progress if lifeline.line is None else moved


def describe_method(spec: Spec, *, rounds: int, iterations: int, policy: str, **more: Any) -> Method:
    """Say how something was measured; `more` are fields of the method itself."""
    synced = ", each round's end synchronised with the GPU" if spec.described.device == "cuda" else ""
    phases = f"; phases {spec.build.clock}" if spec.build else ""
    usual: dict[str, Any] = {
        "warmup": 0,
        "order": "single",
        "threads": spec.threads,
        "clock": f"perf_counter_ns{synced}{phases}",
    }
    return Method(rounds=rounds, iterations=iterations, policy=policy, **usual | more)


def in_rounds(spec: Spec, ran: Rounds, policy: str, **more: Any) -> Method:
    """The method of what was measured in rounds after a warm-up."""
    return describe_method(
        spec, rounds=ran.count, iterations=ran.iterations, policy=policy, warmup=ran.warmup, **more
    )


def throughput(
    spec: Spec, env_steps: int, wall_ns: Sequence[int], counted: Mapping[str, int] | None = None
) -> dict[str, list[float]]:
    """The speed of each round, from its wall time; `counted` says how many agents a step had on average."""
    counted = counted or {}
    steps, lived, begun = (counted.get(name, 0) for name in ("env_steps", "agent_steps", "resets"))
    agents = lived / steps if steps and lived else spec.agents
    env_steps_per_s = [env_steps * 1e9 / ns for ns in wall_ns]
    return {
        "env_steps_per_s": env_steps_per_s,
        "agent_steps_per_s": [speed * agents for speed in env_steps_per_s],
        **({EPISODES_PER_S: [speed * begun / steps for speed in env_steps_per_s]} if begun and steps else {}),
    }


def overhead(pairs: Sequence[tuple[int, int]], mark_ns: float | None) -> Overhead | None:
    """Return what the instrument cost, from pairs of clean and watched ns; None if they are too few."""
    if len(pairs) < FEWEST:
        return None
    clean_ns, watched_ns = zip(*pairs, strict=True)
    cost = ratio(watched_ns, clean_ns)
    return Overhead(ratio=cost.estimate, ci95=(cost.low, cost.high), mark_ns=mark_ns)


# Implementation to the counter kept by the code that did its steps.
STEPS_OF = {"native": "native_steps", "reference": "reference_steps", "foreign": "foreign_steps"}

COVERAGE = "coverage."

# What the names of counters begin with: mechanics that fired, and the choices each player made.
DECISIONS = "decisions."


def describe_work(counters: Mapping[str, int]) -> Work:
    """Say how much was done, from the counters of the measured rounds."""
    return Work(
        env_steps=counters.get("env_steps", 0),
        agent_steps=counters.get("agent_steps", 0),
        resets=counters.get("resets", 0),
        decisions=sum(n for name, n in counters.items() if name.startswith(DECISIONS)),
        updates=counters.get("updates", 0),
        tokens=counters.get("tokens", 0),
        rows=counters.get("rows", 0),
        coverage={
            name.removeprefix(COVERAGE): n for name, n in counters.items() if name.startswith(COVERAGE)
        },
    )


# The counter of what an engine compared; that of what differed has `mismatches` or `mismatch_count`.
COMPARISONS = re.compile(r"(.*)comparison(s|_count)")


def describe_validation(counters: Mapping[str, int]) -> Validation | None:
    """Say what a shadow found, ours or that of an env which counts it; None where there was none."""
    for name, comparisons in counters.items():
        named = COMPARISONS.fullmatch(name)
        if named is None or not comparisons:
            continue
        mismatches = counters.get(f"{named[1]}mismatch{'es' if named[2] == 's' else named[2]}")
        if mismatches is not None:
            ratio = timing_ratio(counters)
            return Validation(comparisons=comparisons, mismatches=mismatches, timing_ratio=ratio)
    return None


def refuse_other_work(clean: Mapping[str, int], watched: Mapping[str, int]) -> None:
    """Refuse counters that differ, but for time and logs: the instrument changed what was done."""
    clean, watched = (
        {name: n for name, n in without_times(each).items() if not name.startswith(LOG_COUNTERS)}
        for each in (clean, watched)
    )
    if clean != watched:
        different = sorted(name for name in clean if clean[name] != watched.get(name))
        raise SetupError(
            f"profiling changed the work done ({', '.join(different)}): this is a bug, report it"
        )


def both_validations(a: Validation | None, b: Validation | None) -> Validation | None:
    """What either of two compared, counted together."""
    if a is None or b is None:
        return a or b
    return replace(
        a,
        comparisons=a.comparisons + b.comparisons,
        mismatches=a.mismatches + b.mismatches,
        timing_ratio=a.timing_ratio or b.timing_ratio,
    )


def describe_path(requested: str, counters: Mapping[str, int], *, claimed: str = "") -> PathRan:
    """Say which implementation ran, as shares of the steps.

    Refuses native that was not native throughout: where it was asked for, and where the subject claims it.
    """
    steps = counters.get("env_steps", 0)
    shares = {impl: counters.get(name, 0) / steps for impl, name in STEPS_OF.items()} if steps else {}
    if claimed == "foreign" and "native_steps" in counters and steps:
        shares["foreign"] = 1.0 - shares["native"]  # as the user env reports it
    ran = {impl: share for impl, share in shares.items() if share > 0}
    if "native" in (requested, claimed) and steps and ran.get("native", 0.0) < 1.0:
        counted = ", ".join(f"{name} {counters[name]:,}" for name in STEPS_OF.values() if name in counters)
        raise SetupError(
            f"impl=native was {'asked for' if requested == 'native' else 'claimed'} but "
            f"{ran.get('native', 0.0):.1%} of the steps ran natively "
            f"(the counters say {counted or 'nothing'} of {steps:,}): "
            "build the native module (hotloop doctor says how), or ask for impl=auto"
        )
    return PathRan(requested=requested, ran=ran, counters=dict(counters))


DIGEST_STEPS = 32

# Steps after which a hash is kept, so that a play of a slow env is a part of a longer one.
DIGEST_MARKS = (0, 1, 2, 4, 8, 16, DIGEST_STEPS)

FEWEST_DIGEST_STEPS = 4  # Steps that a play must reach within its time to be played again
DIGEST_BOX_NS = 1_000_000_000  # For the first reset, and for all steps after the first, which may compile

# Kinds of targets whose reset makes another one, or whose step may be a whole program.
NOT_ENVS = ("function", "step alone")

HASH_BYTES = 8


def play_digest(subject: Subject) -> dict[str, str] | None:
    """Return hashes of what a foreign env shows by its number of steps; None if a second play differs.

    The play is random, with the seed of the target. The subject has to be reset afterwards.
    """
    if not subject.restarts or subject.spec.interface in NOT_ENVS:
        return None
    before = read_global_rng()
    try:
        first = dict(play_short(subject, DIGEST_STEPS))
        steps = max(first, default=0)
        if steps < FEWEST_DIGEST_STEPS or first != dict(play_short(subject, steps)):
            return None
    except InputError:  # the run itself says what is wrong, or comes to its end before that
        return None
    finally:
        set_global_rng(before)
    return {str(number): told for number, told in first.items()}


def play_short(subject: Subject, steps: int) -> Iterator[tuple[int, str]]:
    """Yield the hash of all that was shown so far at each mark; nothing once the time is over."""
    random.seed(subject.spec.seed)
    np.random.seed(subject.spec.seed % 2**32)  # noqa: NPY002 - the env's own code may draw from it
    total = hashlib.blake2b(digest_size=HASH_BYTES)
    begin = now_ns()
    subject.reset()
    add_shown(total, subject)
    yield 0, total.hexdigest()
    actions = RandomPlay(subject).draw(steps)
    for number in range(1, steps + 1):
        if now_ns() - begin > DIGEST_BOX_NS:
            return
        subject.step(subject.settle(actions[(number - 1) % len(actions)]))
        begin = now_ns() if number == 1 else begin
        add_shown(total, subject)
        if number in DIGEST_MARKS:
            yield number, total.hexdigest()


def add_shown(total: hashlib.blake2b, subject: Subject) -> None:
    """Add a hash of each field that can be compared."""
    for name, told in sorted(field_hashes(subject).items()):
        total.update(f"{name}={told};".encode())
