"""Likeness: whether two runs may be compared at all, and whether they did the same work."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

from hotloop.core.errors import InputError
from hotloop.core.record.comparison import ComparedSide
from hotloop.core.record.metadata import Described, Work
from hotloop.core.record.record import ENV_STEPS_PER_S, METHOD, Record

# Standard deviations that a count may be off by chance: for one counter, six cases in a hundred thousand.
SIGMAS = 4.0

LONGEST = 80  # Characters of a value that are told


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What two runs have to share to be compared; variant and code are what may differ."""

    machine: Mapping[str, Any]
    target: Described
    kind: str
    policy: str
    garbage: str = "between"
    version: int = METHOD
    headline: str = ENV_STEPS_PER_S


def setting_of(record: Record) -> Setting:
    return Setting(
        machine=record.machine,
        target=record.target,
        kind=record.kind,
        policy=record.method.policy,
        garbage=record.method.garbage,
        version=record.method.version,
        headline=record.method.headline,
    )


def differences(a: Setting, b: Setting) -> tuple[str, ...]:
    """What the two do not share, each with both its values; empty where they are alike."""
    found = dict[str, str]()
    if a.machine["fingerprint"] != b.machine["fingerprint"]:
        found["machine"] = unequal(hardware(a.machine), hardware(b.machine))
    if a.target.workload_hash != b.target.workload_hash:
        found["workload"] = unequal(workload(a.target), workload(b.target))
    for name, mine, other in (
        ("kind", a.kind, b.kind),
        ("method", f"version {a.version}", f"version {b.version}"),
        ("policy", a.policy, b.policy),
        ("metric", a.headline, b.headline),
        ("garbage collection", a.garbage, b.garbage),
    ):
        if mine != other:
            found[name] = against(mine, other)
    return tuple(f"{name} ({what})" for name, what in found.items())


def hardware(machine: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that a fingerprint is made of, and then itself."""
    gpu, limits = machine.get("gpu") or {}, machine.get("limits") or {}
    return {
        **{key: machine.get(key) for key in ("cpu", "architecture", "cores", "isa")},
        "memory GiB": round((machine.get("memory_bytes") or 0) / 2**30),
        "gpu": gpu.get("name"),
        "gpus": gpu.get("count"),
        "CPU limit": limits.get("cpus"),
        "fingerprint": machine["fingerprint"],
    }


def workload(target: Described) -> dict[str, Any]:
    """The facts that a workload's hash is made of, and then itself."""
    return {"target": target.name, **target.params, "hash": target.workload_hash}


def unequal(a: Mapping[str, Any], b: Mapping[str, Any]) -> str:
    """The facts that differ; the last one, a hash of the others, only where no other does."""
    names = [name for name in {**a, **b} if a.get(name) != b.get(name)]
    hashed = [*a][-1]
    told = [name for name in names if name != hashed] or names
    return ", ".join(f"{name} {against(a.get(name), b.get(name))}" for name in told)


def against(a: object, b: object) -> str:
    """Two values that differ, each cut where it is longer than a line has room for."""
    words = (str(each) for each in (a, b))
    return " against ".join(each if len(each) <= LONGEST else f"{each[: LONGEST - 1]}…" for each in words)


def check_whole(record: Record) -> None:
    """Refuse a run that was broken off, whose rounds are not those that were planned."""
    if record.partial or not (record.work.env_steps or record.work.runs):
        raise InputError(f"{record.run_id} was interrupted and cannot be compared: run it to the end")


def check_alike(baseline: Record, mine: Setting) -> None:
    """Refuse a baseline that a run could not be compared with whatever it finds."""
    check_whole(baseline)
    different = differences(setting_of(baseline), mine)
    if different:
        raise unlike_error(baseline.run_id, "this run", different)


def unlike_error(a: str, b: str, different: tuple[str, ...]) -> InputError:
    return InputError(f"{a} and {b} are unlike: {'; '.join(different)}; only like runs are compared")


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How often something happened in a run."""

    events: int
    env_steps: int
    num_envs: int

    @property
    def rate(self) -> float:
        """Events an env-step."""
        return self.events / self.env_steps


Worked = Record | ComparedSide  # What has a target and a count of its work


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlike:
    """A counter in which two sides differ."""

    name: str
    a: Count
    b: Count

    def __str__(self) -> str:
        return f"{self.name} {self.a.rate:.4g} against {self.b.rate:.4g} an env-step"


def different_work(a: Worked, b: Worked, tolerance: float) -> str | None:
    """The first counter in which two records differ beyond chance; None where there is none."""
    return next((str(each) for each in counts(a, b) if not by_chance(each.a, each.b, tolerance)), None)


def unlike_work(a: Worked, b: Worked, tolerance: float) -> Unlike | None:
    """The first counter in which sides differ that were played alike; None where there is none.

    Where they have as many envs and made as many steps, they did the same to the digit. A counter that
    one of them does not keep at all says nothing.
    """
    for each in counts(a, b):
        exact = (each.a.num_envs, each.a.env_steps) == (each.b.num_envs, each.b.env_steps)
        same = each.a.events == each.b.events if exact else by_chance(each.a, each.b, tolerance)
        if not same and keeps(a, each.name) and keeps(b, each.name):
            return each
    return None


def keeps(side: Worked, name: str) -> bool:
    """Whether a side counts something: it did some of it, or says that it did none."""
    return bool(events_of(side.work).get(name)) or any(
        name in (counter, counter.partition(".")[2]) for counter in side.path.counters
    )


def counts(a: Worked, b: Worked) -> Iterator[Unlike]:
    """Every counter of two sides; a program counts nothing but its runs."""
    if not (a.work.env_steps or b.work.env_steps):
        return
    events_a, events_b = events_of(a.work), events_of(b.work)
    for name in {**events_a, **events_b}:
        mine, other = count_of(a, events_a.get(name, 0)), count_of(b, events_b.get(name, 0))
        yield Unlike(name=name, a=mine, b=other)


def by_chance(a: Count, b: Count, tolerance: float) -> bool:
    """Whether two counts could be of runs that do the same in every step.

    Runs of one seed whose batch, warm-up and rounds are the same count the same to the last event, and
    runs of other lengths nearly so. Three things together may part them: the tolerance, a share of the
    count; one event of every env in each run, since a window a little longer may hold one more reset of all
    of them; and what independent events vary by.
    """
    rate = (a.events + b.events) / (a.env_steps + b.env_steps)
    edges = a.num_envs / a.env_steps + b.num_envs / b.env_steps
    sigma = sqrt(rate * (1 / a.env_steps + 1 / b.env_steps))
    return abs(a.rate - b.rate) <= tolerance * rate + edges + SIGMAS * sigma


def count_of(worked: Worked, events: int) -> Count:
    num_envs = worked.target.variant.get("num_envs", 1)
    return Count(events=events, env_steps=worked.work.env_steps, num_envs=num_envs)


def events_of(work: Work) -> dict[str, int]:
    """Counter to its count, mechanics by their names; the env-steps are what all of it is counted in."""
    plain = asdict(work)
    coverage: dict[str, int] = plain.pop("coverage")
    del plain["env_steps"]
    return plain | coverage
