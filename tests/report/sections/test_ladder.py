from dataclasses import replace

from support.drawn import text
from support.records import bench_with

from hotloop.core.record import Record, SpeedTarget
from hotloop.report.kinds.bench import ladder


def rung(mode: str, speed: float, **more: object) -> Record:
    made = bench_with([speed * each for each in (1.0, 1.01, 0.99, 1.0, 1.01, 0.99)], **more)
    return replace(made, run_id=f"20250102-030405-0123abcd-grid-toy-{mode}")


def drawn(*records: Record) -> str:
    return text(ladder(records))


def row(shown: str, mode: str) -> list[str]:
    return next(line for line in shown.splitlines() if line.split()[:1] == [mode]).split()


def test_each_rung_says_its_speed_its_share_of_the_top_and_its_ratio_to_the_one_below() -> None:
    shown = drawn(rung("env_only", 400_000), rung("rollout", 200_000), rung("trainer", 50_000))
    assert row(shown, "env_only")[1:3] == ["400", "k"]
    assert "12.5%" in row(shown, "env_only")
    assert "25.0%" in row(shown, "rollout")
    assert row(shown, "trainer")[-3] == "0.250"
    assert row(shown, "rollout")[-3] == "0.500"
    assert "100.0%" in row(shown, "trainer")


def test_a_rung_without_rounds_says_so() -> None:
    empty = replace(rung("trainer", 1.0), values={"env_steps_per_s": (), "agent_steps_per_s": ()}, metrics={})
    assert "no rounds" in drawn(empty)


def test_a_target_is_held_against_its_rung() -> None:
    goal = SpeedTarget(env_steps_per_s=100_000.0, floor=49_000.0, enforced=True, met=False)
    shown = drawn(rung("trainer", 50_000, goal=goal))
    assert "trainer: 100 k env-steps/s: the median is 50.0% below; floor 49.0 k" in shown
