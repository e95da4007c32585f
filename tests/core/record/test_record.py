import dataclasses
import json
import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.errors import Code, InputError, notice
from hotloop.core.record import Method, Metric, Record, Resources, SpeedTarget, file_name, read, run_id, write
from hotloop.core.record.comparison import (
    ComparedSide,
    Comparison,
    Difference,
    PhaseRatio,
    PlayedTape,
    Ratio,
    Validation,
)
from hotloop.core.record.metadata import Described, Instructions, PathRan, Work
from hotloop.core.record.profile import Finding, Overhead, Phase, Table

FULL = Record(
    run_id="20250102-030405-abc-grid-toy",
    kind="bench",
    created="2025-01-02T03:04:05+00:00",
    label="after",
    partial=True,
    target=Described(
        name="grid/toy",
        world="grid",
        impl="native",
        device="cpu",
        params={"agents": 20, "density": 0.04},
        workload_hash="0123456789ab",
        variant={"threads": 1},
    ),
    machine={
        "fingerprint": "ab12",
        "cpu": "Example CPU",
        "cores": 4,
        "gpu": None,
        "limits": {"cpus": None, "memory_bytes": None},
    },
    code={"version": "0.1.0", "commit": "abc", "dirty": False, "compiler": None, "flags": None},
    method=Method(
        rounds=2, iterations=100, warmup=10, threads=1, order="single", clock="tsc", policy="random"
    ),
    work=Work(env_steps=200, agent_steps=4000, coverage={"move.blocked": 3}),
    path=PathRan(requested="native", ran={"native": 1.0}, counters={"native_steps": 200}),
    values={"env_steps_per_s": (1.5, 2.5)},
    metrics={"env_steps_per_s": Metric(median=2.0, mean=2.0, cv=0.35, ci95=None, min=1.5, max=2.5)},
    phases=(Phase(path="step/actions", calls=2, total_ns=10, mean_ns=5.0, p50_ns=5.0, share=0.5),),
    unaccounted_ns=3,
    overhead=Overhead(ratio=1.01, ci95=(1.0, 1.02), mark_ns=18.0),
    validation=Validation(
        comparisons=4000,
        mismatches=1,
        timing_ratio=2.0,
        mode="ulp:2",
        against="grid/toy impl=reference",
        parts=(PlayedTape(tape="random", num_envs=3, threads=1, steps=9, comparisons=540),),
        difference=Difference(
            step=3, field="rewards", index=(0, 1), a="1.0", b="0.0", agent="1", before="0.0"
        ),
        bundle="a.bundle",
    ),
    resources=Resources(rss_peak_bytes=1 << 30, rss_slope=0.5, cpu_share=1.0, gpu={"name": "x"}),
    goal=SpeedTarget(env_steps_per_s=1e5, floor=9e4, enforced=True, met=False),
    instructions=Instructions(per_env_step=12.5, runs=((100, 5000), (200, 6250)), isa="x86-64-v3"),
    findings=(
        Finding(
            probe="cprofile",
            facts={"calls": 10},
            tables=(Table(title="Functions", columns=("function", "total_ns"), rows=(("f", 5), ("g", 2))),),
            files=("cprofile.pstats",),
        ),
    ),
    notices=(notice(Code.DIRTY),),
    verdict="same",
    exit_code=4,
)

RATIO = Ratio(estimate=1.1, low=1.05, high=1.2, pairs=40)
SIDE = ComparedSide(
    name="grid/toy", run_id=None, target=FULL.target, code=FULL.code, work=FULL.work, path=FULL.path
)
COMPARED = dataclasses.replace(
    FULL,
    comparisons=(
        Comparison(
            a=SIDE,
            b=SIDE,
            unlike=("agents",),
            band=0.02,
            ratio=RATIO,
            noise=RATIO,
            phases=(PhaseRatio(phase="actions", ratio=RATIO, share=0.5, worth=1.04),),
            outcome="faster",
            why="the whole interval is beyond the band",
        ),
    ),
)

BARE = dataclasses.replace(
    FULL, label=None, partial=False, metrics={}, phases=(), overhead=None, validation=None, resources=None
)

FIELDS = {
    "": "schema run_id kind created label partial target machine code method work path values metrics phases "
    "unaccounted_ns looks stages overhead validation statistical resources goal held instructions "
    "comparisons slow again sweep soak tuning findings notices verdict exit_code content_hash",
    "target": "name world impl device params workload_hash variant keys observation_bytes",
    "method": "rounds iterations warmup threads order clock policy garbage version headline "
    "timing_seed digest",
    "work": "env_steps agent_steps resets decisions updates tokens rows runs coverage",
    "path": "requested ran counters",
    "overhead": "ratio ci95 mark_ns",
    "validation": "comparisons mismatches timing_ratio mode against fields left_out too_few_steps "
    "envs_not_compared parts difference bundle",
    "goal": "env_steps_per_s floor enforced met",
    "instructions": "per_env_step runs isa",
    "resources": "rss_peak_bytes rss_mean_bytes rss_slope rss_over_time cpu_share ready_share pauses gpu",
}


MACHINE, CODE = dict(FULL.machine), dict(FULL.code)


def changed(**fields: object) -> str:
    """The record with other values of some fields, and no hash that would tell."""
    return without_hash(json.dumps(json.loads(FULL.to_json()) | fields))


def without_hash(text: str) -> str:
    plain = json.loads(text)
    del plain["content_hash"]
    return json.dumps(plain)


@pytest.mark.parametrize("record", [FULL, BARE, COMPARED])
def test_a_record_survives_being_written_and_read(tmp_path, record):
    write(tmp_path / "a.json", record)
    assert read(tmp_path / "a.json") == record


@pytest.mark.parametrize("part", FIELDS)
def test_the_schema_has_exactly_these_fields(part):
    plain = json.loads(FULL.to_json())
    assert " ".join(plain[part] if part else plain) == FIELDS[part]


def test_the_rows_of_a_record_have_exactly_these_fields():
    plain = json.loads(FULL.to_json())
    assert list(plain["metrics"]["env_steps_per_s"]) == ["median", "mean", "cv", "ci95", "min", "max"]
    assert (
        " ".join(plain["phases"][0])
        == "path calls p50_ns p95_ns p99_ns max_ns total_ns mean_ns share cpu_ns rounds_ns"
    )
    assert list(plain["notices"][0]) == ["code", "text", "remedy"]


NAMES = st.text().filter(lambda name: not name.endswith("_per_s"))  # a speed has bounds of its own


@given(st.dictionaries(NAMES, st.lists(st.floats(allow_nan=False, allow_infinity=False)).map(tuple)))
def test_raw_values_come_back_to_the_bit(values):
    record = dataclasses.replace(FULL, values=values)
    assert Record.from_json(record.to_json()).values == values


def test_a_row_of_before_there_was_cpu_time_is_read_without_it():
    plain = json.loads(FULL.to_json())
    for row in plain["phases"]:
        del row["cpu_ns"]
    assert Record.from_json(changed(phases=plain["phases"])).phases == FULL.phases


def test_a_value_that_json_cannot_hold_is_refused_when_writing(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write(tmp_path / "a.json", dataclasses.replace(FULL, values={"x": (float("nan"),)}))
    assert not (tmp_path / "a.json").exists()


def test_a_second_record_of_one_name_is_refused(tmp_path):
    write(tmp_path / "a.json", FULL)
    with pytest.raises(InputError, match="never overwritten"):
        write(tmp_path / "a.json", BARE)
    assert read(tmp_path / "a.json") == FULL


def test_a_missing_record_is_named(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*gone\.json: No such file"):
        read(tmp_path / "gone.json")


def test_a_folder_is_no_record(tmp_path):
    with pytest.raises(InputError, match="is no file"):
        read(tmp_path)


def test_bytes_are_no_record(tmp_path):
    (tmp_path / "a.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="it is not text"):
        read(tmp_path / "a.json")


def test_a_record_cut_off_anywhere_is_refused():
    text = FULL.to_json()
    for length in range(0, len(text) - 2, 7):
        with pytest.raises(InputError, match="not JSON, or cut off"):
            Record.from_json(text[:length])


@pytest.mark.parametrize("text", ["[]", "3", "null", '{"a": 1}', '{"schema": "1"}'])
def test_other_json_is_no_record(text):
    with pytest.raises(InputError, match="not a Hotloop record: it has no schema number"):
        Record.from_json(text)


def test_a_newer_schema_is_refused_with_what_to_do():
    with pytest.raises(
        InputError, match="it has schema 2, this Hotloop reads 1: use the version that wrote it"
    ):
        Record.from_json(changed(schema=2))


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"kind": 3}, "$.kind: expected str, got int"),
        ({"partial": 1}, "$.partial: expected bool, got int"),
        ({"exit_code": True}, "$.exit_code: expected int, got bool"),
        ({"values": {"x": ["a"]}}, "$.values.x[0]: expected float, got str"),
        ({"values": {"x": [float("nan")]}}, "$.values.x[0]: expected a finite number, got nan"),
        ({"values": {"x": [float("inf")]}}, "$.values.x[0]: expected a finite number, got inf"),
        ({"values": {"x": [10**30]}}, "$.values.x[0]: expected a number of 64 bits, got one of 100"),
        ({"values": {"\ud800": [1]}}, "$.values: expected text, got half of a surrogate pair in '\\ud800'"),
        ({"label": "a\udfff"}, "$.label: expected text, got half of a surrogate pair in 'a\\udfff'"),
        ({"values": [1]}, "$.values: expected an object, got a list"),
        ({"phases": {}}, "$.phases: expected a list, got an object"),
        ({"phases": [{}]}, "$.phases[0]: lacks the field path"),
        (
            {"overhead": {"ratio": 1, "ci95": [1], "mark_ns": None}},
            "$.overhead.ci95: expected a list of 2, got one of 1",
        ),
        ({"work": 3}, "$.work: expected an object, got int"),
        ({"work": {"env_steps": -1}}, "$.work.env_steps: expected at least 0, got -1"),
        ({"machine": {}}, "$.machine: lacks the field fingerprint"),
        ({"machine": MACHINE | {"cores": "4"}}, "$.machine.cores: expected int, got str"),
        ({"machine": MACHINE | {"gpu": {"name": 1}}}, "$.machine.gpu: lacks the field count"),
        ({"code": {}}, "$.code: lacks the field version"),
        ({"code": CODE | {"commit": None}}, "$.code.commit: expected str, got null"),
        ({"surprise": 1}, "$: has an unknown field surprise"),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(fields, complaint):
    with pytest.raises(InputError, match=f"^not a Hotloop record: {re.escape(complaint)}$"):
        Record.from_json(changed(**fields))


def test_what_lies_too_deep_in_itself_is_refused():
    text = json.dumps(json.loads(FULL.to_json()) | {"label": "here"})
    for deep in ("[" * 10_000 + "]" * 10_000, '{"a":' * 10_000 + "1" + "}" * 10_000):
        with pytest.raises(InputError, match="nested too deep"):
            Record.from_json(text.replace('"here"', deep))
    within = {**json.loads(FULL.to_json())["target"], "params": {"a": json.loads("[" * 40 + "]" * 40)}}
    with pytest.raises(InputError, match=r"\$\.target\.params\.a: is nested too deep"):
        Record.from_json(changed(target=within))


def test_a_record_that_was_altered_is_told_from_an_intact_one():
    text = FULL.to_json()
    assert Record.from_json(text) == FULL
    with pytest.raises(InputError, match=r"\$\.content_hash: it was altered after it was written"):
        Record.from_json(text.replace('"label": "after"', '"label": "before"'))


def test_a_record_from_before_there_were_hashes_is_read():
    assert Record.from_json(changed()) == FULL


def test_a_file_that_something_was_added_to_is_refused(tmp_path):
    (tmp_path / "a.json").write_text(FULL.to_json() + "{}")
    with pytest.raises(InputError, match=r"a\.json: not a Hotloop record: not JSON, or cut off: Extra data"):
        read(tmp_path / "a.json")


@pytest.mark.parametrize("commit", ["../../x", "/etc/x", ".hidden", "a\x1b[31m"])
def test_a_name_made_of_what_a_record_says_stays_in_its_folder(commit):
    name = run_id(datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC), commit, False, "../" * 100 + "é" * 300)
    assert not {"/", "\x1b"} & set(name)
    assert name.isprintable()
    assert len(name.encode()) <= 180
    assert file_name(commit).startswith(("-", "e", "h", "a"))


def test_a_field_that_is_missing_is_named():
    plain = json.loads(FULL.to_json())
    del plain["target"]
    with pytest.raises(InputError, match=r"\$: lacks the field target"):
        Record.from_json(json.dumps(plain))


def test_a_run_id_sorts_by_time_and_fits_a_file_name():
    moment = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert run_id(moment, "a" * 40, True, "grid/toy") == "20250102-030405-aaaaaaaaaaaa-dirty-grid-toy"
    assert run_id(moment, "unknown", False, "my.env:Make It") == "20250102-030405-unknown-my.env-Make-It"


def test_a_run_id_is_in_utc():
    moment = datetime(2025, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=2)))
    assert run_id(moment, "abc", False, "grid").startswith("20250102-010405-")


def test_an_outcome_that_nobody_knows_is_not_read():
    text = without_hash(COMPARED.to_json()).replace('"outcome": "faster"', '"outcome": "better"')
    with pytest.raises(InputError, match=r"\$.comparisons\[0\].outcome: expected one of faster, slower"):
        Record.from_json(text)
