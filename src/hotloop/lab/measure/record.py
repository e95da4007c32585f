"""From what was measured to a record: the parts every experiment fills in the same way."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from hotloop.core.clock import utc_now
from hotloop.core.errors import SetupError
from hotloop.core.machine import Sources, changed_sources, code, machine, read_sources
from hotloop.core.notices import Code, Notice, notice
from hotloop.core.process import lifeline
from hotloop.core.progress import Progress
from hotloop.core.record import EPISODES_PER_S, Method, Record, new_record
from hotloop.core.record.metadata import LOST_STEPS
from hotloop.core.record.metadata import Code as RanCode
from hotloop.core.record.profile import Overhead
from hotloop.envs.spec import Spec
from hotloop.judge.compare import RunConditions
from hotloop.lab.measure.rounds import Rounds
from hotloop.lab.measure.work import describe_path, describe_work
from hotloop.stats.intervals import FEWEST
from hotloop.stats.ratio import ratio
from hotloop.stats.summary import with_metrics


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
        self._code = ran or code(asdict(build) if build else None, target=spec.name, sources=self._sources)

    @property
    def code(self) -> RanCode:
        """The code that runs."""
        return self._code

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
        refuse_standing_still(spec.name, counters, values)
        return with_metrics(
            new_record(
                self._kind,
                now=self._now,
                code=self._code,
                target=spec.described,
                machine=self._machine,
                method=method,
                work=describe_work(counters),
                path=describe_path(spec.requested, counters, claimed=spec.impl),
                values=values,
                notices=(
                    *spec.notices,
                    *decided_elsewhere(spec),
                    *left_path(spec, counters),
                    *without_log(counters),
                    *rewritten(self._sources),
                    *notices,
                ),
                **more,
            )
        )


def rewritten(sources: Sources) -> list[Notice]:
    """Name the sources that changed since they were loaded."""
    files = changed_sources(sources)
    return [notice(Code.SOURCES_CHANGED, files=", ".join(files))] if files else []


def without_log(counters: Mapping[str, int]) -> list[Notice]:
    """Say so where a run went on without its log."""
    lost = counters.get(LOST_STEPS, 0)
    return [notice(Code.LOG_BROKE_OFF, steps=lost)] if lost else []


def kept_so_far(make: Callable[[], Record | None], progress: Progress) -> Progress:
    """The progress of a run whose record so far is kept by whoever watches over this process.

    `make` makes that record; None where there is nothing yet.
    """

    def moved(done: int, total: int) -> None:
        progress(done, total)
        lifeline.offer(make)

    return progress if lifeline.line is None else moved


def refuse_standing_still(
    name: str, counters: Mapping[str, int], values: Mapping[str, Sequence[float]]
) -> None:
    """Refuse an account of rounds in which nothing was counted: nobody knows what they were spent on."""
    if any(any(raw) for raw in values.values()) and not counters.get("env_steps"):
        raise SetupError(
            f"{name} was played and its counters stood still: who knows what ran? its speed means nothing"
        )


def describe_method(spec: Spec, *, rounds: int, iterations: int, policy: str, **more: Any) -> Method:
    """Say how something was measured; `more` are fields of the method itself."""
    build = spec.build
    usual: dict[str, Any] = {
        "warmup": 0,
        "order": "single",
        "threads": spec.threads,
        "clock": f"perf_counter_ns{waited(spec)}" + (f"; phases {build.clock}" if build else ""),
    }
    return Method(rounds=rounds, iterations=iterations, policy=policy, **usual | more)


def waited(spec: Spec) -> str:
    """What a clock on the host waits for where steps are only begun by it."""
    return ", each round's end synchronised with the GPU" if spec.described.device == "cuda" else ""


def in_rounds(spec: Spec, ran: Rounds, policy: str, **more: Any) -> Method:
    """The method of what was measured in rounds after a warm-up."""
    return describe_method(
        spec, rounds=ran.count, iterations=ran.iterations, policy=policy, warmup=ran.warmup, **more
    )


def left_path(spec: Spec, counters: Mapping[str, int]) -> list[Notice]:
    """Say so where somebody's env counts its native steps, and they are not all."""
    steps, native = counters.get("env_steps", 0), counters.get("native_steps")
    if spec.impl != "foreign" or native is None or native >= steps:
        return []
    return [notice(Code.PATH_MIXED, share=native / steps, requested="native")]


def decided_elsewhere(spec: Spec) -> list[Notice]:
    """Name the settings that an environment variable decided, since no command line shows them."""
    return [
        notice(Code.ENVIRONMENT, setting=setting, source=source)
        for setting, source in spec.decided_by.items()
        if source.startswith("environment")
    ]


def throughput(
    spec: Spec, env_steps: int, wall_ns: Sequence[int], counted: Mapping[str, int] | None = None
) -> dict[str, list[float]]:
    """The speed of each round, from its wall time; `counted` says how many agents a step had on average."""
    agents = agents_a_step(spec, counted or {})
    env_steps_per_s = [env_steps * 1e9 / ns for ns in wall_ns]
    steps, begun = (counted or {}).get("env_steps", 0), (counted or {}).get("resets", 0)
    return {
        "env_steps_per_s": env_steps_per_s,
        "agent_steps_per_s": [speed * agents for speed in env_steps_per_s],
        **({EPISODES_PER_S: [speed * begun / steps for speed in env_steps_per_s]} if begun and steps else {}),
    }


def agents_a_step(spec: Spec, counted: Mapping[str, int]) -> float:
    """How many there were on average, where agents come and go."""
    steps, lived = counted.get("env_steps", 0), counted.get("agent_steps", 0)
    return lived / steps if steps and lived else spec.agents


def overhead(pairs: Sequence[tuple[int, int]], mark_ns: float | None) -> Overhead | None:
    """Return what the instrument cost, from pairs of clean and watched ns; None if they are too few."""
    if len(pairs) < FEWEST:
        return None
    clean_ns, watched_ns = zip(*pairs, strict=True)
    cost = ratio(watched_ns, clean_ns)
    return Overhead(ratio=cost.estimate, ci95=(cost.low, cost.high), mark_ns=mark_ns)
