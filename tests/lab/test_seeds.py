from pathlib import Path

import pytest

from hotloop.core.errors import InputError
from hotloop.core.progress import silent
from hotloop.core.settings import Target
from hotloop.lab.sim.sim import SimSettings
from hotloop.lab.sweep import experiments
from hotloop.lab.sweep.cells import CellCache, LocalExecutor, sweep


def test_every_seed_is_a_cell_of_its_own() -> None:
    cells = experiments.validations_of(Target("grid/toy", {"seed": "7"}), 3, amount="40")
    assert [each.target.keys["seed"] for each in cells] == [7, 8, 9]
    with pytest.raises(InputError, match="the first of 3"):
        experiments.validations_of(Target("grid/toy", {"seed": "x"}), 3)


def test_seeds_are_validated_as_cells() -> None:
    asked = {"amount": "16", "against": None, "mode": "bytes", "ignore": [], "policy": None}
    found = sweep(experiments.validations_of(Target("grid/toy"), 2, **asked), LocalExecutor())
    assert [record.validation.mismatches for _, record in found.records if record.validation] == [0, 0]


def test_pieces_of_a_simulation_have_all_episodes_between_them() -> None:
    cells = experiments.sims_of(Target("grid/toy"), SimSettings(episodes=200, steps=5))
    assert [each.asked["episodes"] for each in cells] == [67, 67, 66]
    assert len({each.target.keys["seed"] for each in cells}) == 3


def test_a_simulation_in_pieces_is_one_record_and_the_same_twice(tmp_path: Path) -> None:
    target, asked = Target("grid/toy", {"num_envs": "64"}), SimSettings(episodes=130, steps=3)
    made = experiments.sim(target, asked, LocalExecutor(), CellCache(tmp_path))
    again = experiments.sim(target, asked, LocalExecutor())
    assert len(made.values["return_per_agent"]) == 130
    assert made.values["return_per_agent"] == again.values["return_per_agent"]
    assert (
        made.work.env_steps
        == again.work.env_steps
        == sum(
            each.work.env_steps
            for _, each in sweep(
                experiments.sims_of(target, asked), LocalExecutor(), CellCache(tmp_path)
            ).records
        )
    )
    assert made.metrics["env_steps_per_s"].median == pytest.approx(
        made.work.env_steps * 1e9 / made.values["wall_ns"][0]
    )


def test_a_tape_is_played_here() -> None:
    with pytest.raises(InputError, match="leave out --on"):
        experiments.sims_of(Target("grid/toy"), SimSettings(player="tape:x.npz"))


def test_a_soak_is_a_cell() -> None:
    record = experiments.soak_one(Target("grid/toy"), silent, options={"target": "grid/toy", "steps": 64})
    assert record.kind == "soak"
