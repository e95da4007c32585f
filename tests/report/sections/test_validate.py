from dataclasses import replace
from typing import Any

from support.drawn import text
from support.records import BENCH

from hotloop.core.record import Record
from hotloop.core.record.comparison import BundleFacts, Difference, PlayedTape, Validation, field_words
from hotloop.core.settings import Target
from hotloop.report.kinds.validate import replay, validations

WRONG = Difference(
    step=37, field="rewards", index=(0, 2), a="1.0", b="0.5", agent="2", before="0.25", after_reset=True
)
PART = PlayedTape(tape="random", num_envs=8, threads=1, steps=50, comparisons=1_224)


def validated(**more: Any) -> Record:
    usual: dict[str, Any] = {
        "comparisons": 2_448,
        "mismatches": 0,
        "timing_ratio": 151.4,
        "against": "grid/toy impl=reference",
        "fields": ("rewards",),
        "parts": (PART, replace(PART, by_digest=True)),
    }
    checked = Validation(**usual | more)
    return replace(BENCH, kind="validate", validation=checked)


def test_equal_sides_are_told_with_what_that_rests_on() -> None:
    shown = text(validations([validated()]))
    for words in (
        "equal",
        "2,448",
        "151 times as long",
        "every step, bytes",
        "by digest",
        "fields      rewards",
    ):
        assert words in shown
    assert "NOT EQUAL" not in shown


def test_several_targets_are_a_row_each_without_their_parts() -> None:
    wrong = validated(mismatches=1, difference=WRONG, bundle="a.bundle")
    shown = text(validations([validated(), wrong]))
    assert "NOT EQUAL" in shown
    assert "every step" not in shown


def test_a_difference_is_told_in_full() -> None:
    shown = text(validations([validated(mismatches=1, difference=WRONG, bundle="a.bundle")]))
    facts = dict(line.split(maxsplit=1) for line in shown.splitlines() if len(line.split()) > 1)
    assert facts["step"].strip() == "37, after a reset in the middle"
    assert (facts["env"].strip(), facts["agent"].strip()) == ("0", "2")
    assert facts["field"].strip() == "rewards[0, 2]"
    assert (facts["reference"].strip(), facts["candidate"].strip()) == ("1.0", "0.5")
    assert facts["tick"].strip() == "before  0.25"
    assert facts["again"].strip() == "hotloop validate --replay a.bundle"


def test_a_run_that_was_broken_off_is_not_called_equal() -> None:
    shown = text(validations([replace(validated(), partial=True)]))
    assert "broken off" in shown
    assert " equal " not in shown


def test_a_replay_says_whether_it_is_the_same_place() -> None:
    sides = {"reference": Target("a"), "candidate": Target("b", {"x": 1})}
    facts = BundleFacts(
        version="1",
        tape="random",
        mode="bytes",
        ignore=(),
        difference=WRONG,
        steps_before=0,
        resets=(),
        story=("40 steps to 1",),
        **sides,
    )
    again = validated(mismatches=1, difference=WRONG)
    shown = text(replay(facts, again, from_state=True))
    for words in ("differs again, in the same place", "b x=1", "40 steps to 1", "differs too", "50 steps"):
        assert words in shown
    elsewhere = validated(mismatches=1, difference=replace(WRONG, step=36))
    assert "in another place; it was step 37" in text(replay(facts, elsewhere, from_state=None))
    assert "does not differ any more" in text(replay(facts, validated(), from_state=False))


def test_fields_that_only_count_up_are_said_by_their_first_and_last() -> None:
    agents = [f"rewards.{each}" for each in (0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9)]
    assert field_words(["terminals", *agents, "infos.a"]) == "terminals, rewards.0 to 11, infos.a"
    assert field_words(["infos.0", "infos.2", "infos.4"]) == "infos.0, infos.2, infos.4"
    assert field_words([f"it.{name}" for name in "abcdefghijkl"]).endswith("it.i, it.j, and 2 more")
    assert field_words(["seen.unit_3", "seen.unit_4"]) == "seen.unit_3, seen.unit_4"
