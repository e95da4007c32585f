"""A run is divided where its time goes to other rows all of a sudden, and each phase is judged by itself."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

import pytest
from support.cases import loop

from hotloop.core.errors import Code, notice
from hotloop.core.record import Record
from hotloop.core.record.profile import Looks, Stage, describe_times
from hotloop.core.time_tree import TimeTree, add, grow
from hotloop.judge.course import find_changes, views
from hotloop.judge.diagnose import Diagnosis, diagnose
from hotloop.judge.expect import configuration, expect

WALL_NS = 100_000_000

MACHINE = "0123abcd"


def looks(teacher: Sequence[float], noise: float = 0.02) -> list[TimeTree]:
    """Looks in which a teacher takes such shares of the time, and the student and learning the rest."""
    draws = Random(7)
    made = []
    for share in teacher:
        wall_ns = WALL_NS * (1 + draws.random())
        given = min(max(share + (draws.uniform(-noise, noise) if share else 0), 0), 1)
        shares = {"teacher": given, "student": (1 - given) * 0.4, "learn": (1 - given) * 0.5}
        rows = [
            TimeTree(path=path, calls=1, total_ns=round(each * wall_ns))
            for path, each in shares.items()
            if each
        ]
        made.append(TimeTree(total_ns=round(wall_ns), children=grow(rows)))
    return made


def test_a_teacher_that_ends_divides_a_run_where_it_ends() -> None:
    assert find_changes(looks([0.4] * 15 + [0.0] * 15)) == (15,)


def test_a_row_that_ends_divides_a_run_on_a_busy_machine() -> None:
    assert find_changes(looks([0.13] * 60 + [0.0] * 60, noise=0.12)) == (60,)


def test_three_phases_are_found() -> None:
    assert find_changes(looks([0.0] * 12 + [0.5] * 20 + [0.2] * 15)) == (12, 32)


@pytest.mark.parametrize("count", [12, 30, 100])
def test_a_row_that_grows_little_by_little_is_no_phase(count: int) -> None:
    assert find_changes(looks([0.1 + 0.7 * at / count for at in range(count)])) == ()


def test_noise_and_single_slow_looks_are_no_phases() -> None:
    draws = Random(3)
    assert find_changes(looks([draws.uniform(0.2, 0.5) for _ in range(60)])) == ()
    assert find_changes(looks([0.6 if at % 10 == 9 else 0.1 for at in range(60)])) == ()


def test_too_few_looks_are_one_population() -> None:
    assert find_changes(looks([0.4] * 5 + [0.0] * 5)) == ()


def staged(speeds: Sequence[float] = (1_000.0, 4_000.0), *, is_declared: bool = True) -> Record:
    """A loop that imitates in half of its looks and goes on with PPO, in steps per second."""
    parts = looks([0.4] * 15), looks([0.0] * 15)
    steps = [
        [round(speed * look.total_ns / 1e9) for look in part]
        for speed, part in zip(speeds, parts, strict=True)
    ]
    names = ("supervised", "ppo") if is_declared else ("updates 1 to 15", "updates 16 to 30")
    stages = tuple(
        Stage(
            name=name,
            is_declared=is_declared,
            env_steps=sum(counted),
            updates=15,
            phases=describe_times(whole(part), part),
            unaccounted_ns=whole(part).unaccounted_ns,
        )
        for name, counted, part in zip(names, steps, parts, strict=True)
    )
    every = [*parts[0], *parts[1]]
    record = loop({})
    return replace(
        record,
        phases=describe_times(whole(every), every),
        work=replace(record.work, env_steps=sum(map(sum, steps)), agent_steps=sum(map(sum, steps))),
        stages=stages,
        looks=Looks(
            wall_ns=tuple(look.total_ns for look in every),
            updates=(1,) * 30,
            env_steps=(*steps[0], *steps[1]),
            rss_bytes=(1 << 20,) * 30,
            stages=(0,) * 15 + (1,) * 15,
        ),
    )


def whole(part: Sequence[TimeTree]) -> TimeTree:
    return add(part) or TimeTree(total_ns=0)


def rules(found: Diagnosis) -> Iterator[str]:
    return (each.rule for each in found.candidates)


def test_a_phase_is_a_record_of_its_own() -> None:
    supervised, ppo = views(staged())
    assert supervised.metrics["env_steps_per_s"].median == pytest.approx(1_000, rel=0.01)
    assert ppo.metrics["env_steps_per_s"].median == pytest.approx(4_000, rel=0.01)
    assert "wall/teacher" in {phase.path for phase in supervised.phases}
    assert "wall/teacher" not in {phase.path for phase in ppo.phases}
    assert views(supervised) == ()


def test_the_teacher_is_named_in_its_phase_with_what_the_whole_run_gains() -> None:
    found = diagnose(staged())
    first = found.candidates[0]
    share = found.stages[0].of_run * found.stages[0].bounds[0].share
    assert first.rule == "teacher"
    assert first.said.startswith("in the phase supervised (")
    assert first.gain == pytest.approx(1 / (1 - share))
    assert [stage.lever.name for stage in found.stages if stage.lever] == ["teacher", "learn"]


def test_advice_that_fits_two_phases_is_given_once() -> None:
    found = list(rules(diagnose(staged())))
    assert len(found) == len({*found})


def test_a_phase_without_a_name_is_called_after_its_updates() -> None:
    assert diagnose(staged(is_declared=False)).candidates[0].said.startswith("in updates 1 to 15 (")


def test_the_speed_of_two_phases_is_no_falling_speed() -> None:
    assert "decay" not in rules(diagnose(staged((4_000.0, 1_000.0))))


def test_an_expectation_of_a_phase_is_held_against_that_phase() -> None:
    short = expect(staged(), [], MACHINE, project={"cpu": {"ppo": (10_000.0, 12_000.0)}})
    [given] = short.given
    assert given.is_short
    assert given.reached == pytest.approx(4_000, rel=0.01)


def test_a_phase_is_expected_to_be_as_fast_as_in_an_earlier_run() -> None:
    now = staged((1_000.0, 1_000.0))
    found = expect(now, [replace(staged(), run_id="earlier")], now.machine["fingerprint"])
    assert found.phase == "ppo"
    assert found.is_short
    assert {row.configuration for row in found.table} == {"own loop, supervised", "own loop, ppo"}
    busy = replace(staged(), run_id="b", notices=(notice(Code.BUSY_MACHINE, load=9.0, cores=2),))
    assert not expect(now, [busy], now.machine["fingerprint"]).is_short


def test_a_training_in_two_phases_is_not_called_by_one() -> None:
    assert configuration(replace(staged(), kind="train"))[0] == "supervised, then PPO"
