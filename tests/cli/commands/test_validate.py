"""What `hotloop validate` finds, says and keeps, from the command line."""

import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from support import faulty_targets

from hotloop.core.errors import ExitCode
from hotloop.core.record import FRAMES_SUFFIX, read, read_frames
from hotloop.envs import native
from hotloop.lab.validate import bundle

Command = Callable[..., Any]
FILE = Path(faulty_targets.__file__)
TOY = "grid/toy agents=4"
needs_native = pytest.mark.skipif(native.why_not("grid") is not None, reason="the native module is not built")


@pytest.fixture(autouse=True)
def _brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shrinking tries for as long as it may: here that is a moment."""
    monkeypatch.setattr("hotloop.lab.validate.bundle.BUDGET_NS", 300_000_000)


def place(found: dict[str, Any]) -> tuple[Any, ...]:
    return found["step"], found["index"][0], found["agent"], found["field"], tuple(found["index"])


def again_of(hotloop: Command, bundle: str, *flags: str) -> Any:
    """Play a bundle again whose sides lie outside this folder: that takes trust."""
    return hotloop("validate", "--replay", bundle, "--trust", bundle, *flags)


def caught(hotloop: Command, fault: str, against: str, steps: int = 400) -> dict[str, Any]:
    """Validate a fault, see its bundle show the same fault again, and return the difference."""
    said = hotloop("validate", f"{FILE}:{fault}", str(steps), "--against", against, "--json")
    assert said.code == ExitCode.MISMATCH, said.err
    checked = said.json["validation"]
    assert (said.json["verdict"], checked["mismatches"]) == ("fail", 1)
    again = again_of(hotloop, checked["bundle"], "--json")
    assert again.code == ExitCode.MISMATCH
    kept = bundle.read_bundle(Path(checked["bundle"])).facts.difference
    assert again.json["validation"]["difference"] == {**asdict(kept), "index": list(kept.index)}
    assert kept.field == checked["difference"]["field"]
    difference: dict[str, Any] = checked["difference"]
    return difference


@needs_native
def test_what_leads_to_a_difference_is_drawn_beside_its_bundle(hotloop: Command) -> None:
    said = hotloop("validate", f"{FILE}:wrong_byte", "400", "--against", TOY, "--json")
    kept = bundle.read_bundle(Path(said.json["validation"]["bundle"]))
    frames = read_frames(Path(f"{said.json['validation']['bundle']}{FRAMES_SUFFIX}")).frames
    assert len(frames) == len(kept.actions) + 1
    assert all(frame.picture for frame in frames)
    assert [frame.note for frame in frames][:-1] == [None] * len(kept.actions)
    assert str(frames[-1].note).startswith("the first difference: observations")


@needs_native
def test_a_wrong_byte_in_one_token_is_named(hotloop: Command) -> None:
    found = caught(hotloop, "wrong_byte", TOY)
    assert place(found) == (5, 1, "2", "observations", (1, 2, 3, 2))
    assert int(found["a"]) ^ 1 == int(found["b"])
    assert found["before"] is not None


@needs_native
def test_two_tokens_in_the_wrong_order_are_named(hotloop: Command) -> None:
    found = caught(hotloop, "swapped_tokens", TOY)
    assert place(found)[:4] == (5, 1, "2", "observations")
    assert found["index"][2] == 3
    assert found["a"] != found["b"]


@needs_native
def test_a_dropped_token_is_named(hotloop: Command) -> None:
    found = caught(hotloop, "dropped_token", TOY)
    assert place(found)[:4] == (5, 1, "2", "observations")
    assert found["index"][2] >= 3
    assert found["a"] != found["b"]


@needs_native
def test_a_reward_in_the_wrong_tick_is_named(hotloop: Command) -> None:
    found = caught(hotloop, "late_reward", "prospector/short")
    assert (found["step"], found["field"], found["agent"]) == (1, "rewards", "0")
    assert float(found["a"]) != 0 == float(found["b"])


@needs_native
@pytest.mark.slow
def test_one_random_draw_too_many_is_seen_in_the_state(hotloop: Command) -> None:
    found = caught(hotloop, "one_draw_more", "prospector/short impl=native")
    assert (found["step"], found["index"], found["field"]) == (5, [1], "digest")


@needs_native
def test_a_flag_that_is_late_by_a_step_is_named(hotloop: Command) -> None:
    found = caught(hotloop, "late_flag", f"{TOY} max_steps=20")
    assert place(found) == (20, 0, None, "truncations", (0,))
    assert (found["a"], found["b"], found["before"]) == ("True", "False", "False")


@needs_native
def test_an_order_of_agents_that_depends_on_threads_is_found_by_digest_and_named(hotloop: Command) -> None:
    said = hotloop("validate", f"{FILE}:order_by_threads", "400", "--against", TOY, "--json")
    assert said.code == ExitCode.MISMATCH
    found, parts = said.json["validation"]["difference"], said.json["validation"]["parts"]
    assert place(found)[:4] == (5, 1, "0", "observations")
    assert parts[-1]["by_digest"]
    assert parts[-1]["threads"] > 1 == parts[-2]["threads"]
    assert again_of(hotloop, said.json["validation"]["bundle"]).code == ExitCode.MISMATCH


@needs_native
def test_what_depends_on_the_size_of_the_batch_is_named_where_the_reference_can_be_as_small(
    hotloop: Command,
) -> None:
    found = caught(hotloop, "wrong_when_alone", TOY)
    assert place(found) == (5, 0, "3", "rewards", (0, 3))
    words = ("--against", f"{FILE}:only_four", "--json")
    said = hotloop("validate", f"{FILE}:wrong_when_alone", "400", *words)
    assert said.code == ExitCode.MISMATCH
    only = said.json["validation"]["difference"]
    assert (only["step"], only["index"], only["field"]) == (5, [0], "everything")
    assert said.json["validation"]["bundle"] is None


@needs_native
def test_a_tail_that_nobody_cleared_is_named(hotloop: Command) -> None:
    found = caught(hotloop, "dirty_tail", TOY)
    assert place(found) == (5, 1, "2", "observations", (1, 2, 199, 1))
    assert (found["a"], found["b"], found["before"]) == ("255", "77", "255")


@needs_native
def test_state_kept_across_a_reset_is_named(hotloop: Command) -> None:
    found = caught(hotloop, "kept_across_reset", TOY, steps=1_600)
    assert (found["step"], found["field"], found["after_reset"]) == (64, "infos.success", True)
    assert (found["a"], found["b"]) == ("False", "True")


@needs_native
@pytest.mark.slow
def test_a_difference_after_five_thousand_steps_is_named(hotloop: Command) -> None:
    found = caught(hotloop, "late_fault", "grid/toy agents=2", steps=10_200)
    assert place(found) == (faulty_targets.LATE, 0, "1", "rewards", (0, 1))
    assert (found["a"], found["b"], found["before"]) == ("0.0", "9.0", "0.0")


@needs_native
def test_what_is_right_is_equal_in_every_size_and_with_more_threads(hotloop: Command) -> None:
    said = hotloop("validate", "grid/toy", "200", "agents=3", "num_envs=4", "--json")
    assert (said.code, said.json["verdict"]) == (ExitCode.FINE, "pass")
    checked = said.json["validation"]
    assert (checked["mismatches"], checked["mode"], checked["difference"]) == (0, "bytes", None)
    assert {"observations", "rewards", "terminals", "truncations", "infos.success", "digest"} <= set(
        checked["fields"]
    )
    ways = {(part["tape"], part["num_envs"], part["by_digest"]) for part in checked["parts"]}
    assert {("random", size, True) for size in (1, 3, 64)} | {("random", 4, False)} <= ways
    assert {"random", "teacher", "adversarial"} == {tape for tape, _, _ in ways}
    assert max(part["threads"] for part in checked["parts"]) > 1
    assert checked["comparisons"] == sum(part["comparisons"] for part in checked["parts"])


@needs_native
def test_the_encoders_agree_with_sixty_four_envs_unless_somebody_says_how_many(hotloop: Command) -> None:
    said = hotloop("validate", "grid/guard", "640", "--against", "original", "--json")
    assert said.code == ExitCode.FINE
    assert said.json["validation"]["parts"][0]["num_envs"] == 64
    assert "encoder=original" in said.json["validation"]["against"]
    assert said.json["target"]["variant"]["encoder"] == "optimized"


@needs_native
@pytest.mark.slow
def test_a_bare_world_runs_all_its_presets(hotloop: Command) -> None:
    said = hotloop("validate", "prospector", "16", "--json")
    assert [record["target"]["name"] for record in said.json] == ["prospector/default", "prospector/short"]


def test_two_environments_of_somebody_else_s_are_compared(hotloop: Command) -> None:
    said = hotloop("validate", f"{FILE}:echo", "150", "--against", f"{FILE}:echo")
    assert said.code == ExitCode.FINE
    assert "equal" in said.out
    assert "NOT" not in said.out
    assert "rewards" in said.out


def test_one_wrong_reward_is_named_by_its_step_and_shown_again(hotloop: Command) -> None:
    said = hotloop("validate", f"{FILE}:echo", "150", "wrong_at=37", "--against", f"{FILE}:echo wrong_at=0")
    assert said.code == ExitCode.MISMATCH
    assert "NOT EQUAL" in said.out
    lines = {words[0]: words[1] for words in map(str.split, said.out.splitlines()) if len(words) == 2}
    assert (lines["step"], lines["field"], lines["env"]) == ("37", "rewards[0]", "0")
    assert float(lines["candidate"]) == pytest.approx(float(lines["reference"]) + 1)
    (kept,) = Path("artifacts/throughput").glob("*.bundle")
    again = again_of(hotloop, str(kept))
    assert again.code == ExitCode.MISMATCH
    assert "differs again, in the same place" in again.out


def test_a_gymnasium_env_agrees_with_itself_and_its_random_numbers_are_compared(hotloop: Command) -> None:
    said = hotloop("validate", "gym:CartPole-v1", "60", "--against", "gym:CartPole-v1 seed=42", "--json")
    assert said.code == ExitCode.FINE
    assert "random.np_random" in said.json["validation"]["fields"]


def test_another_seed_is_a_difference_at_the_reset(hotloop: Command) -> None:
    said = hotloop("validate", "gym:CartPole-v1", "60", "--against", "gym:CartPole-v1 seed=1", "--json")
    assert said.code == ExitCode.MISMATCH
    assert said.json["validation"]["difference"]["step"] == 0
    assert again_of(hotloop, said.json["validation"]["bundle"]).code == ExitCode.MISMATCH


def test_vector_envs_that_differ_are_kept_and_shown_again(hotloop: Command) -> None:
    words = ("gym:CartPole-v1", "60", "num_envs=2", "--against", "gym:CartPole-v1 num_envs=2 seed=1")
    said = hotloop("validate", *words, "--ignore", "observations", "--ignore", "random", "--json")
    found = said.json["validation"]["difference"]
    assert found["step"] > 0
    assert again_of(hotloop, said.json["validation"]["bundle"]).code == ExitCode.MISMATCH
    assert hotloop("validate", *words).code == ExitCode.MISMATCH


def test_a_difference_in_a_game_of_turns_is_shown_again(hotloop: Command) -> None:
    other = "pettingzoo:classic.connect_four_v3"
    said = hotloop("validate", f"{FILE}:odd_turns", "40", "--against", other, "--json")
    assert said.code == ExitCode.MISMATCH
    assert said.json["validation"]["difference"]["step"] == 5
    bundle = said.json["validation"]["bundle"]
    assert hotloop("validate", "--replay", bundle, "--trust", bundle).code == ExitCode.MISMATCH


def test_a_difference_is_one_even_where_its_actions_cannot_be_kept(hotloop: Command) -> None:
    said = hotloop(
        "validate", f"{FILE}:worded", "40", "wrong_at=5", "--against", f"{FILE}:worded wrong_at=0", "--json"
    )
    assert said.code == ExitCode.MISMATCH
    assert said.json["validation"]["bundle"] is None
    assert said.json["validation"]["difference"]["step"] == 5
    assert "no bundle was kept" in said.err


def test_a_field_may_be_left_out_and_that_is_said(hotloop: Command) -> None:
    words = ("--against", f"{FILE}:echo wrong_at=0", "--ignore", "rewards", "--json")
    said = hotloop("validate", f"{FILE}:echo", "150", "wrong_at=37", *words)
    assert said.code == ExitCode.FINE
    assert said.json["validation"]["left_out"] == ["rewards"]
    assert "rewards was not compared" in said.err


def test_numbers_may_be_close_and_the_record_says_how_close(hotloop: Command) -> None:
    other = f"{FILE}:nearly"
    exactly = hotloop("validate", other, "40", "--against", f"{FILE}:echo", "--json")
    assert exactly.code == ExitCode.MISMATCH
    close = hotloop("validate", other, "40", "--against", f"{FILE}:echo", "--mode", "tolerance", "--json")
    assert (close.code, close.json["validation"]["mode"]) == (ExitCode.FINE, "tolerance:1e-06")
    near = hotloop("validate", other, "40", "--against", f"{FILE}:echo", "--mode", "ulp:0", "--json")
    assert (near.code, near.json["validation"]["mode"]) == (ExitCode.MISMATCH, "ulp:0")


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (("kind=int64", "--against", "{f}:echo kind=int32"), 64, "the reference has observations of int32"),
        (("--against", "{f}:echo whim=true"), 64, "differs from itself (step 1, rewards[0]"),
        (("--against", "gym:CartPole-v1"), 64, "make them alike"),
        ((), 64, "has no twin of ours: say --against"),
        (("--against", "original"), 64, "--against original is for our worlds"),
        (("--against", "slow"), 64, "--against slow does not fit"),
        (("--against", "'{f}:echo"), 64, "--against cannot be read"),
        (("--against", "{f}:echo", "--mode", "ulp:x"), 64, "--mode ulp:x does not fit"),
        (("--against", "{f}:echo", "--mode", "tolerance:-1"), 64, "--mode tolerance:-1 does not fit"),
        (("--against", "{f}:nobody"), 64, "unknown callable 'nobody'"),
    ],
)
def test_bad_input_is_one_line(hotloop: Command, words: tuple[str, ...], code: int, line: str) -> None:
    said = hotloop("validate", f"{FILE}:echo", "40", *(word.format(f=FILE) for word in words))
    assert (said.code, said.out) == (code, "")
    assert line in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        ((), 64, "validate needs a TARGET, or --replay"),
        (("grid/toy", "0"), 64, "0 does not say how much"),
        (("grid/toy", "much"), 64, "much does not say how much"),
        (("grid/toy", "10", "20"), 64, "10 and 20 both say how much"),
        (("grid/toy", "10", "impl=native"), 64, "leave out impl="),
        (("prospector/short", "10", "--against", "original"), 64, "prospector has no original"),
        (("grid/toy", "10", "--against", "cuda"), 64, "no CUDA module"),
        (("grid", "10", "--output", "one.json"), 64, "grid has 3 presets"),
        (("grid/toy", "--replay", "x.bundle"), 64, "leave out grid/toy"),
        (("--replay", "x.bundle"), 64, "cannot read the bundle x.bundle"),
        (("grid/toy", "--adoption", "--output", "one.json"), 64, "reads a folder of records"),
    ],
)
def test_words_that_do_not_fit_are_refused(hotloop: Command, words: Any, code: int, line: str) -> None:
    said = hotloop("validate", *words)
    assert (said.code, said.out) == (code, "")
    assert line in said.err


def test_vector_envs_that_begin_anew_at_another_moment_are_refused(hotloop: Command) -> None:
    said = hotloop("validate", f"{FILE}:same_step", "40", "--against", f"{FILE}:next_step")
    assert said.code == ExitCode.USAGE
    assert "different autoreset conventions" in said.err
    assert "'NextStep'" in said.err
    assert "'SameStep'" in said.err


@needs_native
def test_a_bundle_of_another_version_is_refused(hotloop: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    said = hotloop("validate", f"{FILE}:wrong_byte", "200", "--against", TOY, "--json")
    kept = said.json["validation"]["bundle"]
    monkeypatch.setattr("hotloop.lab.validate.bundle.version", lambda: "9.9.9")
    again = again_of(hotloop, kept)
    assert again.code == ExitCode.USAGE
    assert "is from another version" in again.err
    assert "this is 9.9.9" in again.err


@needs_native
def test_what_was_mended_does_not_differ_any_more(hotloop: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    said = hotloop("validate", f"{FILE}:wrong_byte", "200", "--against", TOY, "--json")
    module = sys.modules["faulty_targets"]
    monkeypatch.setattr(module, "wrong_byte", module.right)
    again = again_of(hotloop, said.json["validation"]["bundle"])
    assert again.code == ExitCode.FINE
    assert "does not differ any more" in again.out


@needs_native
@pytest.mark.slow
def test_rollout_says_what_is_missing_then_what_comes_next(
    hotloop: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("validate", "grid/toy", "agents=3", "num_envs=4", "--against", "original")
    first = hotloop(*words, "--adoption", "--budget", "0.1")
    assert first.code == ExitCode.FINE
    assert "next  1. validate at scale" in first.out
    assert "run  hotloop validate grid/toy soak --against original" in first.out
    monkeypatch.setattr("hotloop.lab.validate.bundle.SOAK_RIVALS", 500)
    assert hotloop(*words, "100").code == ExitCode.FINE
    (made,) = [record for record in records() if record.kind == "validate"]
    compared = made.validation.comparisons
    second = hotloop(*words, "--adoption", "--budget", "0.1", "--json").json
    assert second["configurations"][0]["comparisons"] == compared
    assert (second["missing"], second["is_default"]) == ([], True)
    assert second["step"] in (2, 4)
    assert second["alone"]["pairs"] >= 6
    assert second["whole"]["pairs"] >= 6


def records() -> list[Any]:
    return [read(path) for path in sorted(Path("artifacts/throughput").glob("*.json"))]


@needs_native
@pytest.mark.slow
def test_rollout_of_what_differs_is_a_mismatch_with_the_way_to_see_it(hotloop: Command) -> None:
    words = ("validate", f"{FILE}:wrong_byte", "--against", TOY)
    assert hotloop(*words, "200").code == ExitCode.MISMATCH
    said = hotloop(*words, "--adoption", "--budget", "0.1")
    assert said.code == ExitCode.MISMATCH
    assert "hotloop validate --replay" in said.out


@needs_native
def test_ctrl_c_leaves_a_partial_record(hotloop: Command) -> None:
    said = hotloop("validate", f"{FILE}:interrupted", "400", "--against", TOY, "--json")
    assert said.code == ExitCode.INTERRUPTED
    assert (said.json["partial"], said.json["verdict"]) == (True, "cannot tell")
    assert said.json["validation"]["comparisons"] == 10 * 8 * 4
    assert records()[0].partial


@needs_native
def test_validations_are_no_rows_in_a_table_of_speeds(hotloop: Command) -> None:
    assert hotloop("validate", "grid/toy", "16", "agents=2", "num_envs=2").code == ExitCode.FINE
    said = hotloop("bench", "--report", "artifacts/throughput")
    assert (said.code, said.out) == (ExitCode.FINE, "")
    assert "left out 1 validations: hotloop validate TARGET --adoption reads them" in said.err


PORT = Path(__file__).parents[2] / "support/planted.py"


def test_distributions_are_compared_where_bytes_cannot_be_equal(hotloop: Command) -> None:
    asked = ("way=2", "--against", f"{PORT}:cart way=3", "--statistical", "--transfer", "0", "--in-process")
    said = hotloop("validate", f"{PORT}:cart", "32", *asked)
    assert said.code == ExitCode.FINE
    assert "no difference larger than stated" in " ".join(said.out.split())
    assert "would have been seen from" in said.out
    kept = [path for path in Path("artifacts/throughput").iterdir() if path.suffix == ".json"]
    assert read(kept[0]).kind == "statistical"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("grid/toy", "--statistical"), "to be, so leave it out"),
        (("grid/toy", "--transfer", "5"), "--transfer goes with --statistical"),
        (("grid/toy", "--statistical", "--mode", "ulp:1"), "leave them out of --statistical"),
    ],
)
def test_what_does_not_go_with_distributions_is_refused(
    hotloop: Command, words: tuple[str, ...], told: str
) -> None:
    said = hotloop("validate", *words)
    assert said.code == ExitCode.USAGE
    assert told in said.err


@needs_native
def test_of_two_that_hardly_stepped_nobody_says_which_took_longer(
    hotloop: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = ("validate", TOY, "40", "--json")
    assert hotloop(*few).json["validation"]["timing_ratio"] is None
    monkeypatch.setattr("hotloop.lab.validate.validate.TIMED_NS", 1)
    assert hotloop(*few).json["validation"]["timing_ratio"] > 0
