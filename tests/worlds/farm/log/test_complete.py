"""A log has every step, birth, death and action of its run exactly once."""

from pathlib import Path
from typing import Any

import pytest
from support.farm_log import Row, Witness, play, rows_of

HARSH = {"num_envs": 2, "radius": 1, "max_steps": 25, "strength": 70.0, "hunger_limit": 3, "consumption": 0.8}
"""Short episodes in which many starve and fight."""
RUNS: dict[str, dict[str, Any]] = {
    "farm/dev": {**HARSH, "start_resources": 1.5},
    "farm/steady": {**HARSH, "agents": 12, "start_resources": 0.5},
}


@pytest.mark.parametrize("impl", ["native", "reference"])
@pytest.mark.parametrize("target", RUNS)
def test_a_log_is_what_a_witness_of_the_replayed_run_saw(
    target: str, impl: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, steps, keys = tmp_path / "run.db", 60, RUNS[target]
    counted = play(log, steps, target, impl=impl, log_buffer=200, **keys)
    witness = Witness(monkeypatch, target, **keys)
    witness.play(steps)
    seen = witness.rows

    assert [row[:4] for row in rows_of(log, "simulations")] == seen["simulations"]
    assert sorted(rows_of(log, "agents")) == sorted(map(tuple, witness.agents.values()))
    for table in ("agent_states", "reproduction_events", "resource_states"):
        assert sorted(rows_of(log, table), key=key_of) == sorted(seen[table], key=key_of), table
    assert [row[:9] for row in rows_of(log, "simulation_steps")] == seen["simulation_steps"]
    assert sorted(row[:5] for row in rows_of(log, "health_incidents")) == sorted(seen["health_incidents"])
    same_actions(rows_of(log, "agent_actions"), seen["agent_actions"])
    died = [row for row in rows_of(log, "agents") if row[9] is not None]
    assert {row[10] for row in died} == {"killed", "starved"}
    assert counted["agent_steps"] == len(seen["agent_actions"]) + killed_before_their_turn(witness)
    assert counted["rows"] == sum(len(rows_of(log, table)) for table in (*seen, "agents"))


def key_of(row: Row) -> Row:
    return row[:4]


def same_actions(written: list[Row], seen: list[Row]) -> None:
    """Amounts that the witness only knows from differences of float32 are equal but for rounding."""
    written, seen = (sorted(rows, key=key_of) for rows in (written, seen))
    assert [row[:6] for row in written] == [row[:6] for row in seen]
    assert [row[7] for row in written] == [row[7] for row in seen]
    pairs = [
        (mine[6], theirs[6]) for mine, theirs in zip(written, seen, strict=True) if theirs[6] is not None
    ]
    assert [mine for mine, _ in pairs] == pytest.approx([theirs for _, theirs in pairs], rel=1e-4, abs=1e-5)


def killed_before_their_turn(witness: Witness) -> int:
    """Those of whom the step that killed them has no action."""
    acted = {row[:3] for row in witness.rows["agent_actions"]}
    dead = [(row[0], row[9], row[1]) for row in witness.agents.values() if row[10] == "killed"]
    return sum(who not in acted for who in dead)


WAYS = (
    {"log_profile": "performance", "log_buffer": 1_000_000},
    {"log_profile": "safety", "log_writer": "caller", "log_buffer": 1},
    {"log_profile": "memory", "log_storage": "memory", "log_buffer": 10, "log_queue": 1},
    {"log_storage": "memory", "log_writer": "caller", "log_buffer": 1},
)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: " ".join(f"{k}={v}" for k, v in way.items()))
def test_every_way_of_writing_writes_the_same(way: dict[str, Any], tmp_path: Path) -> None:
    keys = {"num_envs": 2, "perception": False, "max_steps": 9}
    usual = play(tmp_path / "usual.db", 20, **keys)
    other = play(tmp_path / "other.db", 20, **keys, **way)
    assert usual["rows"] == other["rows"] > 1_000
    for table in ("simulations", "agents", "agent_actions", "agent_states", "resource_states"):
        one, two = (sorted(rows_of(tmp_path / name, table)) for name in ("usual.db", "other.db"))
        assert one == two, table
    assert {path.name for path in tmp_path.iterdir()} == {"usual.db", "other.db"}


def test_pages_and_bytes_are_counted(tmp_path: Path) -> None:
    log = tmp_path / "run.db"
    counted = play(log, 40, num_envs=1, perception=False, log_buffer=500)
    assert counted["log.bytes"] == log.stat().st_size
    pages = counted["log.bytes"] // 4096
    assert pages <= counted["log.pages"] < 3 * pages
    assert 1 < counted["log.flushes"] <= counted["rows"] // 500 + 1


def test_actions_can_be_read_in_words(tmp_path: Path) -> None:
    log = tmp_path / "run.db"
    play(log, 20, num_envs=1, perception=False)
    words = {row[3:5] for row in rows_of(log, "actions")}
    assert {("move", "done"), ("gather", "done"), ("reproduce", "too_poor")} <= words
