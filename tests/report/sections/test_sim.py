from dataclasses import replace

from support.drawn import lines
from support.records import PROFILE

from hotloop.core.record import OUTCOME, RETURN_OF, Record
from hotloop.report.kinds.sim import sim
from hotloop.report.section import Facts, Span


def played(**coverage: int) -> Record:
    values = {
        "episode_length": (10.0, 10.0),
        "return_per_agent": (1.0, 2.0),
        f"{OUTCOME}won": (1.0, 1.0),
        "wall_ns": (2.5e9,),
    }
    return replace(
        PROFILE,
        kind="sim",
        values=values,
        method=replace(PROFILE.method, rounds=2),
        work=replace(PROFILE.work, coverage=coverage),
    )


def test_what_the_episodes_came_to_is_strong_and_outcomes_are_the_worlds_own() -> None:
    about = sim(played())[1]
    assert isinstance(about, Facts)
    assert ("won", Span("1, always", strong=True)) in about.rows
    assert ("length", "10 steps, always") in about.rows


def test_what_happened_comes_most_frequent_first_and_what_never_did_is_said() -> None:
    shown = lines(sim(played(move=4, use=6, loot=0)))
    at = shown.index("use 6 3.0 300.00")
    assert shown[at : at + 2] == ["use 6 3.0 300.00", "move 4 2.0 200.00"]
    assert shown[-1] == "never happened: loot"


def test_where_everything_happened_nothing_is_said_to_be_missing() -> None:
    assert not any("never happened" in line for line in lines(sim(played(move=4))))


def test_of_many_agents_the_least_and_the_most_are_said() -> None:
    def told(agents: int) -> list[str]:
        returns = {f"{RETURN_OF}a{each}": (float(each), each + 1.0) for each in range(agents)}
        return lines(sim(replace(played(), values={**played().values, **returns})))

    assert sum("return of a" in line for line in told(8)) == 8
    assert "means of 9 agents from 0.5 (a0) to 8.5 (a8)" in told(9)
    assert not any("return of a" in line for line in told(9))
