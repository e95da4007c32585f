from dataclasses import replace
from pathlib import Path

from support.records import PROFILE

from hotloop.core.record import Record, write
from hotloop.judge.baselines import latest_profile, with_previous
from hotloop.judge.compare import BAND

LATER = replace(PROFILE, run_id="later", created="2025-01-02T04:00:00+00:00")
OTHER = replace(PROFILE, target=replace(PROFILE.target, name="grid/arena"))
STEADY = {"env_steps_per_s": (4.0e6,) * 8, "agent_steps_per_s": (8.0e6,) * 8}


def test_the_latest_whole_profile_of_the_target_is_found(tmp_path: Path) -> None:
    records = {
        "profile-1": PROFILE,
        "profile-2": LATER,
        "profile-3": replace(LATER, run_id="partial", partial=True, created="2026"),
        "profile-4": replace(OTHER, created="2026"),
        "profile-5": replace(LATER, run_id="bench", kind="bench", created="2026"),
        "other": replace(LATER, run_id="other", created="2026"),
    }
    for name, record in records.items():
        write(tmp_path / f"{name}.json", record)
    (tmp_path / "profile-6.json").write_text("{}")
    previous = latest_profile(tmp_path, "grid/toy")
    assert previous is not None
    assert previous.run_id == "later"
    assert latest_profile(tmp_path, "grid/guard") is None


def test_a_second_run_like_the_first_is_the_same() -> None:
    first = replace(PROFILE, values=STEADY)
    second = with_previous(replace(first, run_id="second"), first)
    (compared,) = second.comparisons
    assert (compared.outcome, compared.unlike) == ("same", ())
    assert compared.a.run_id == first.run_id
    assert compared.ratio is not None
    assert compared.ratio.estimate == 1.0


def shaken(by: float) -> Record:
    """A run whose rounds differ by so much."""
    values = {name: tuple(v * by ** (k % 3 - 1) for k, v in enumerate(vs)) for name, vs in STEADY.items()}
    return replace(PROFILE, values=values)


def test_runs_that_differ_by_less_than_their_noise_cannot_be_told_apart() -> None:
    """They are not called the same: the noise may hide a large change."""
    (compared,) = with_previous(shaken(1.1), shaken(1.05)).comparisons
    assert compared.ratio is not None
    assert compared.outcome == "cannot tell"
    assert compared.band == BAND
    assert compared.why.startswith("within noise: a change of less than")
    assert compared.why.endswith("; to decide: hotloop compare grid/toy grid/toy")


def test_runs_that_can_say_nothing_say_so_and_name_the_command_that_decides() -> None:
    (compared,) = with_previous(shaken(3.0), shaken(3.0)).comparisons
    assert compared.outcome == "cannot tell"
    assert compared.why == (
        "two runs on a machine as unsteady as this one say nothing about speed; "
        "to decide: hotloop compare grid/toy grid/toy"
    )


def test_noise_hides_no_other_work_and_no_mismatch() -> None:
    more = replace(shaken(1.3), work=replace(PROFILE.work, tokens=(PROFILE.work.tokens or 0) * 2 + 1000))
    (compared,) = with_previous(more, shaken(1.3)).comparisons
    assert compared.outcome == "cannot tell"
    assert "different work" in compared.why


def test_a_run_of_another_workload_is_marked_as_unlike() -> None:
    other = replace(PROFILE, target=replace(PROFILE.target, workload_hash="ffff", params={"agents": 9}))
    (compared,) = with_previous(PROFILE, other).comparisons
    assert compared.unlike == ("workload (agents 9 against 2)",)


def test_being_slower_than_before_is_said_and_is_no_verdict() -> None:
    half = {name: tuple(value / 2 for value in values) for name, values in STEADY.items()}
    slower = with_previous(replace(PROFILE, values=half), replace(PROFILE, values=STEADY))
    assert slower.comparisons[0].outcome == "slower"
    assert slower.exit_code == PROFILE.exit_code == 0


def test_nothing_is_compared_where_there_is_nothing_to_compare() -> None:
    assert with_previous(PROFILE, None) is PROFILE
    partial = replace(PROFILE, partial=True)
    assert with_previous(partial, PROFILE) is partial
