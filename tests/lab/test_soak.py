"""Soaks by a clock that only the sides move, of what is made up; nothing waits and nothing is measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from hotloop.core.errors import InputError
from hotloop.core.record.experiments import OPEN_FILES, RSS_BYTES, SLOWER, SLOWER_IN, Soak
from hotloop.core.settings import Target
from hotloop.core.turn_clock import Turn
from hotloop.lab import soak as lab
from hotloop.lab.soak import SoakRun, SoakState, soak
from hotloop.options.sweeps import SoakOptions


@dataclass
class World:
    """A clock, and what a process holds."""

    ns: int = 0
    rss: float = 1e8
    files: float = 10
    machine: float = 1.0
    """How many times as long everything takes."""


@dataclass
class Ageing:
    """A side whose steps get slower with every one that it made, and leave something behind."""

    world: World
    slower: float = 0.0
    """A step, of its first."""
    leaks: float = 0.0
    opens: float = 0.0
    name: str = "ageing"
    grain: int = 1
    steps: int = 0
    closed: bool = False
    seen_at: list[int] = field(default_factory=list)

    def turn(self, env_steps: int, run_in: int | None = None) -> Turn:
        ns = round(20_000_000 * env_steps * (1 + self.slower * self.steps) * self.world.machine)
        self.steps += env_steps
        self.world.ns += ns
        self.world.rss += self.leaks * env_steps
        self.world.files += self.opens * env_steps
        return Turn(ns, env_steps, {"rising": ns // 2, "step": ns})

    def seen(self) -> Mapping[str, str]:
        return {}

    def counters(self) -> Mapping[str, int]:
        return {"env_steps": self.steps}

    def close(self) -> None:
        self.closed = True


def watched(world: World, minutes: float, **planted: float) -> tuple[Soak, SoakState, list[Ageing]]:
    made = list[Ageing]()

    def make() -> Ageing:
        made.append(Ageing(world, **planted))
        return made[-1]

    found = SoakState()
    watch = SoakRun(
        make=make,
        options=SoakOptions(target="", minutes=minutes),
        read=lambda: {RSS_BYTES: world.rss, OPEN_FILES: world.files},
        clock=lambda: world.ns,
        room={RSS_BYTES: 1e12},
    )
    side = Ageing(world, **planted)
    watch.run(side, found)
    return found.soak(), found, made


def test_what_stays_as_it_is_raises_no_alarm() -> None:
    found, so_far, made = watched(World(), 1)
    assert found.enough
    assert found.alarms == ()
    assert not so_far.partial
    assert found.fresh == len(made) == found.looks
    assert all(each.closed for each in made)


def test_a_slow_down_is_found_with_its_phase_although_the_new_ones_slow_down_too() -> None:
    found, *_ = watched(World(), 5, slower=2e-5)  # about 4% a minute
    assert {each.name for each in found.alarms} == {SLOWER, f"{SLOWER_IN}rising"}
    [slower] = [each for each in found.trends if each.name == SLOWER]
    assert slower.low <= slower.slope <= slower.high
    assert slower.slope == pytest.approx(0.04, rel=0.5)


def test_a_machine_that_becomes_slow_is_not_blamed_on_the_target() -> None:
    world = World()

    class Slowing(World):
        @property
        def machine(self) -> float:  # type: ignore[override]
            return 1 + world.ns / 1e11

        @machine.setter
        def machine(self, _: float) -> None: ...

    world = Slowing()
    found, *_ = watched(world, 5)
    assert found.alarms == ()


@pytest.mark.parametrize(
    ("planted", "name"), [({"leaks": 1_024.0}, RSS_BYTES), ({"opens": 0.02}, OPEN_FILES)]
)
def test_a_leak_is_found_in_three_minutes(planted: dict[str, float], name: str) -> None:
    found, *_ = watched(World(), 3, **planted)
    assert [each.name for each in found.alarms] == [name]


def test_what_new_instances_leave_behind_is_told_and_is_no_alarm() -> None:
    world, found = World(), SoakState()

    def make() -> Ageing:
        world.rss += 1e6
        return Ageing(world)

    read = {"read": lambda: {RSS_BYTES: world.rss}, "clock": lambda: world.ns, "room": {}}
    SoakRun(make=make, options=SoakOptions(target="", minutes=3), **read).run(Ageing(world), found)  # type: ignore[arg-type]
    [rising] = [each for each in found.soak().trends if each.by_new]
    assert rising.name == RSS_BYTES
    assert rising.growth > 1e7
    assert found.soak().alarms == ()


@pytest.mark.parametrize(("planted", "what"), [({"leaks": 2e4}, "memory"), ({"opens": 0.15}, "files")])
def test_who_takes_half_of_what_there_is_is_stopped_and_its_leak_is_told(
    planted: dict[str, float], what: str
) -> None:
    world, found = World(), SoakState()
    watch = SoakRun(
        make=lambda: Ageing(world),
        options=SoakOptions(target="", minutes=10),
        read=lambda: {RSS_BYTES: world.rss, OPEN_FILES: world.files},
        clock=lambda: world.ns,
        room={RSS_BYTES: 1e8, OPEN_FILES: 900},
    )
    watch.run(Ageing(world, **planted), found)
    assert what in found.ended
    assert found.seconds < 120
    assert not found.partial
    assert found.soak().alarms


def test_what_takes_long_to_make_serves_for_several_looks() -> None:
    world, made = World(), list[Ageing]()

    def make() -> Ageing:
        world.ns += 1_000_000_000
        made.append(Ageing(world))
        return made[-1]

    found = SoakState()
    watch = SoakRun(
        make=make, options=SoakOptions(target="", minutes=2), read=dict, clock=lambda: world.ns, room={}
    )
    watch.run(Ageing(world), found)
    assert 1 < found.fresh < found.soak().looks / 5
    assert all(each.closed for each in made)


def test_rows_stay_bounded_and_are_of_the_whole_run_however_long_it_is() -> None:
    so_far = SoakState()
    for k in range(10_000):
        so_far.note(float(k), {RSS_BYTES: 1.0})
    assert lab.MOST_LOOKS / 2 <= len(so_far.rows) <= lab.MOST_LOOKS
    assert {second - first for (first, _), (second, _) in pairwise(so_far.rows)} == {32.0}
    assert so_far.rows[0][0] == 0
    assert so_far.rows[-1][0] > 10_000 - 32
    assert len(so_far.soak().trends[0].curve) <= 121


def test_a_soak_of_our_world_by_steps_leaves_a_judged_record() -> None:
    record = soak(Target("grid/toy", {"num_envs": 2, "agents": 2}), SoakOptions(target="", steps=1))
    assert record.kind == "soak"
    assert record.soak is not None
    assert record.soak.looks == 1
    assert (record.verdict, record.exit_code) == ("cannot tell", 4)
    assert record.work.env_steps > 0


def test_no_time_is_refused() -> None:
    with pytest.raises(InputError, match="expected more than 0"):
        SoakOptions(target="", minutes=0)
