from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import faulty_targets

from hotloop.core.errors import InputError
from hotloop.core.record.comparison import BundleFacts, Difference
from hotloop.core.settings import Target
from hotloop.envs import native
from hotloop.lab.validate import bundle
from hotloop.lab.validate.bundle import Bundle, shrink

pytestmark = pytest.mark.skipif(native.why_not("grid") is not None, reason="the native module is not built")
FILE = Path(faulty_targets.__file__)


Resets = tuple[tuple[int, int], ...]


def found(reference: Target, candidate: Target, steps: int, resets: Resets = ()) -> Bundle:
    """The bundle of a random tape on which two sides differ: the last env does action 3 in its last step."""
    shadowing = bundle.open_both(facts(reference, candidate))
    shadowing.reset()
    tape = np.array(shadowing.candidate.draw(np.random.default_rng(0), steps))
    tape[tape == 3] = 0
    tape[-1, -1, 0] = 3
    bundle.follow(shadowing, tape, resets)
    return bundle.bundle_of(shadowing, tape="random", reference=reference, candidate=candidate)


def facts(reference: Target, candidate: Target) -> BundleFacts:
    return BundleFacts(
        version="",
        reference=reference,
        candidate=candidate,
        tape="random",
        mode="bytes",
        ignore=(),
        difference=faulty_difference(),
        steps_before=0,
        resets=(),
    )


def faulty_difference() -> Difference:
    return Difference(step=0, field="", index=(), a="", b="")


PLAIN = Target("grid/toy", {"num_envs": 8, "agents": 6, "impl": "native"})
TOUCHY = Target(f"{FILE}:wrong_after", {"num_envs": 8, "agents": 6})


def test_a_tape_is_shrunk_to_the_one_step_env_and_agent_that_matter() -> None:
    before = found(PLAIN, TOUCHY, 40, resets=((5, 2), (9, 7)))
    assert before.actions.shape == (40, 8, 6)
    after = shrink(before)
    assert after.actions.shape == (1, 1, 1)
    assert after.actions.item() == 3
    assert after.facts.resets == ()
    assert (after.facts.difference.step, after.facts.difference.index) == (1, (0, 0))
    assert after.facts.story == ("40 steps to 1", "8 envs to 1", "6 agents to 1")
    assert after.facts.candidate.keys == {"num_envs": 1, "agents": 1}
    assert after.last_good is not None
    assert bundle.play_bundle(after).difference == after.facts.difference


def test_without_time_a_bundle_stays_as_long_as_it_is() -> None:
    before = found(PLAIN, TOUCHY, 12)
    assert shrink(before, budget_ns=0).actions.shape == before.actions.shape


def test_what_does_not_come_again_is_kept_as_it_was() -> None:
    before = found(PLAIN, TOUCHY, 12)
    mended = replace(before, facts=replace(before.facts, candidate=PLAIN))
    assert shrink(mended) is mended


def test_a_bundle_survives_being_written_and_read(tmp_path: Path) -> None:
    made = found(PLAIN, TOUCHY, 6)
    kept = bundle.read_bundle(bundle.write_bundle(made, tmp_path / "a.bundle"))
    assert kept.facts == made.facts
    assert kept.actions.tobytes() == made.actions.astype(kept.actions.dtype).tobytes()
    assert kept.last_good == made.last_good
    assert kept.start is None


@pytest.mark.parametrize("cut", [10, 400])
def test_a_damaged_bundle_is_refused(tmp_path: Path, cut: int) -> None:
    path = bundle.write_bundle(found(PLAIN, TOUCHY, 6), tmp_path / "a.bundle")
    damaged = tmp_path / "b.bundle"
    content = bytearray(path.read_bytes())
    damaged.write_bytes(bytes(content[:cut]) + bytes(content[cut + 50 :]))
    with pytest.raises(InputError, match=r"is not a (whole )?bundle of Hotloop"):
        bundle.read_bundle(damaged)
    other = tmp_path / "c.bundle"
    with other.open("wb") as file:
        np.savez(file, x=np.zeros(3))
    with pytest.raises(InputError, match="is not a bundle of Hotloop"):
        bundle.read_bundle(other)


def test_what_comes_after_the_difference_is_cut_off() -> None:
    before = found(PLAIN, TOUCHY, 6)
    longer = replace(before, actions=np.concatenate([before.actions, before.actions]))
    after = shrink(longer, budget_ns=0)
    assert after.actions.tobytes() == before.actions.tobytes()
    assert after.facts.difference.step == 6


def test_a_reset_that_is_needed_moves_with_the_tape_and_stays() -> None:
    plain = Target("grid/toy", {"num_envs": 8, "agents": 4, "impl": "native"})
    forgetful = Target(f"{FILE}:kept_across_reset", {"num_envs": 8})
    before = found(plain, forgetful, 30, resets=((7, 3), (20, 5)))
    assert before.facts.difference.step == 7
    after = shrink(before)
    assert (len(after.actions), after.facts.resets) == (1, ((1, 0),))
    assert after.facts.difference.after_reset
    assert bundle.from_last_good(after) == after.facts.difference
