import pytest

from hotloop.core.record.experiments import AGENT_SPEED, CPU_NS, PHASE, RSS, STEP_NS, Sweep, SweepPoint
from hotloop.judge.sweep import conclude

SIZES = (10, 50, 100, 500)


def swept(axis: str, made: dict[float, dict[str, float]], **others: str) -> Sweep:
    points = tuple(
        SweepPoint(
            at={axis: f"{size:g}", **others},
            values={name: (0.98 * value, value, 1.02 * value) for name, value in values.items()},
            env_steps=1,
        )
        for size, values in made.items()
    )
    axes = {axis: tuple(f"{size:g}" for size in made), **{name: (value,) for name, value in others.items()}}
    return Sweep(axes=axes, repeats=3, points=points)


def test_the_step_memory_and_phases_each_have_their_law() -> None:
    made = {n: {STEP_NS: n * n, RSS: 1e6 * n, f"{PHASE}a": n * n, f"{PHASE}tiny": 0.001} for n in SIZES}
    found = conclude(swept("agents", made))
    laws = {each.metric: each.law for each in found.growths}
    assert laws == {STEP_NS: "quadratic", RSS: "linear", f"{PHASE}a": "quadratic"}


def test_little_memory_has_no_law() -> None:
    made = {n: {STEP_NS: 5.0, RSS: 1000.0 * n} for n in SIZES}
    assert [each.metric for each in conclude(swept("agents", made)).growths] == [STEP_NS]


def test_an_axis_of_names_has_no_law_and_parts_the_others() -> None:
    made = {n: {STEP_NS: n} for n in SIZES}
    found = conclude(swept("agents", made, index="grid"))
    assert [(each.axis, each.at) for each in found.growths] == [("agents", {"index": "grid"})]


def test_a_phase_that_overtakes_another_is_named() -> None:
    made = {n: {STEP_NS: 100 + n, f"{PHASE}rising": n, f"{PHASE}flat": 70.0} for n in SIZES}
    [found] = conclude(swept("agents", made)).crossings
    assert (found.riser, found.fallen) == ("rising", "flat")
    assert (found.low, found.high) == (50, 100)


def threads(walls: dict[int, float], cpus: dict[int, float]) -> Sweep:
    return swept("threads", {n: {STEP_NS: walls[n], CPU_NS: cpus[n]} for n in walls})


@pytest.mark.parametrize(
    ("walls", "cpus", "words"),
    [
        ({1: 100, 2: 51, 4: 26}, {1: 100, 2: 101, 4: 102}, "nothing"),
        ({1: 100, 2: 75, 4: 62}, {1: 100, 2: 100, 4: 100}, "a serial part"),
        ({1: 100, 2: 60, 4: 60}, {1: 100, 2: 100, 4: 100}, "the barrier"),
        ({1: 100, 2: 80, 4: 70}, {1: 100, 2: 160, 4: 280}, "memory bandwidth"),
        ({1: 100, 16: 60}, {1: 100, 16: 100}, "the machine's cores"),
    ],
)
def test_what_bounds_threads_is_told_from_their_time(
    walls: dict[int, float], cpus: dict[int, float], words: str
) -> None:
    found = conclude(threads(walls, cpus), cores=8).efficiencies
    assert found[-1].bound.startswith(words)
    assert found[-1].speedup == pytest.approx(walls[1] / walls[max(walls)])


def test_the_knee_is_of_the_speed() -> None:
    made = {n: {STEP_NS: 1.0, AGENT_SPEED: min(n, 100)} for n in SIZES}
    assert [each.size for each in conclude(swept("num_envs", made)).knees] == [100]
