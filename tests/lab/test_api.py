"""The experiments as functions of Python."""

import gc
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from support import theirs
from support.boxes import shorten_passes

import hotloop
from hotloop.cli.main import main
from hotloop.core import registry
from hotloop.core.errors import InputError
from hotloop.core.record import Record
from hotloop.core.record.profile import Phase
from hotloop.judge.judge import judge
from hotloop.lab.profile.trace import Tracer

STEPS = 160


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hotloop.lab.profile.profile.WARMUP", 8)
    shorten_passes(monkeypatch)


def filled(record: Record) -> set[str]:
    """The names of the fields that hold something; notices are of the moment."""
    return {each.name for each in fields(record) if getattr(record, each.name)} - {"notices", "exit_code"}


@pytest.mark.parametrize(
    ("target", "words", "asked"),
    [
        ("grid/toy", [], {}),
        ("grid/toy", ["--probe", "cprofile"], {"probes": ["cprofile"]}),
        (
            "grid/toy",
            ["--time", "hotloop.envs.batch.Batch.step"],
            {"time": ["hotloop.envs.batch.Batch.step"]},
        ),
        ("support.theirs:make", ["--policy", "support.theirs:policy"], {"policy": theirs.policy}),
    ],
)
def test_a_profile_returns_what_the_command_prints(
    capsys: pytest.CaptureFixture[str], target: str, words: list[str], asked: dict[str, Any]
) -> None:
    record = hotloop.profile(target, steps=STEPS, **asked)
    assert not list(Path().iterdir())
    main(["profile", target, "--steps", str(STEPS), *words, "--json"])
    printed = Record.from_json(capsys.readouterr().out)
    assert filled(record) == filled(printed)
    assert record.resources is not None
    assert [each.probe for each in record.findings] == [each.probe for each in printed.findings]
    assert record.values.keys() == printed.values.keys()
    assert judge(record) == record


def test_a_profile_is_compared_with_the_latest_of_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    main(["profile", "grid/toy", "--steps", str(STEPS), "--json"])
    before = Record.from_json(capsys.readouterr().out)
    assert hotloop.profile("grid/toy", steps=STEPS).comparisons == ()
    (compared,) = hotloop.profile("grid/toy", steps=STEPS, baselines=Path(".design")).comparisons
    assert compared.a.run_id == before.run_id


def test_a_folder_keeps_the_files_that_the_findings_name() -> None:
    kept = hotloop.profile("grid/toy", steps=STEPS, probes=["cprofile"], files=Path("seen"))
    named = {name for found in kept.findings for name in found.files}
    assert {path.name for path in Path("seen").iterdir()} == named
    assert "cprofile.pstats" in named
    without = hotloop.profile("grid/toy", steps=STEPS, probes=["cprofile"])
    assert [found.files for found in without.findings] == [(), ()]


def test_a_trace_is_given_sampled_steps() -> None:
    tracer = Tracer()
    record = hotloop.profile("grid/toy", steps=STEPS, trace=tracer)
    assert tracer.trace(record.slow, {}).slices


@pytest.mark.parametrize("env", [theirs.make, theirs.make()])
def test_probes_look_at_what_is_handed_over_too(env: object) -> None:
    record = hotloop.profile(env, steps=STEPS, policy=theirs.policy, probes=["cprofile"])
    assert [found.probe for found in record.findings] == ["cprofile", "resources"]
    assert record.resources is not None
    assert gc.isenabled()


@pytest.mark.parametrize("probe", ["pyspy", "instructions"])
def test_a_probe_of_another_process_cannot_open_what_is_handed_over(
    monkeypatch: pytest.MonkeyPatch, probe: str
) -> None:
    known = registry.probes()
    there = {probe: replace(known[probe], why_not=lambda: None)}
    monkeypatch.setattr(registry, "probes", lambda: known | there)
    record = hotloop.profile(theirs.make, steps=STEPS, probes=[probe])
    (said,) = [each for each in record.notices if each.code == "no-probe"]
    assert f"the probe {probe} did not look: another process could not open what is looked at" in said.text


def test_an_unknown_probe_is_refused_before_anything_is_opened() -> None:
    with pytest.raises(InputError, match="did you mean cprofile"):
        hotloop.profile("no/such", probes=["cprofil"])


def rows(record: Record) -> dict[str, Phase]:
    return {phase.path: phase for phase in record.phases}


def test_the_python_api_takes_a_maker_an_env_or_a_target_and_returns_the_record() -> None:
    for env in (theirs.make, theirs.make(), "support.theirs:make"):
        record = hotloop.profile(env, policy=theirs.policy, steps=STEPS, time=["Env._encode"])
        assert isinstance(record, Record)
        assert rows(record)["wall/policy"].calls == STEPS
        assert rows(record)["wall/env.step/Env._encode"].calls == STEPS
    made = hotloop.profile(theirs.make, work=3, seed=7, steps=STEPS)
    assert made.target.params["seed"] == 7
    assert made.target.name == "support.theirs:make"


def test_the_python_api_refuses_what_is_no_env() -> None:
    with pytest.raises(InputError, match="3 cannot be profiled: give a target"):
        hotloop.profile(3)
    with pytest.raises(InputError, match="the environment cannot be copied"):
        hotloop.profile(type("Held", (), {"reset": 0, "step": 0, "__deepcopy__": lambda *_: 1 / 0})())
