import sys
from pathlib import Path

import pytest

import check
from check import Stage, choose, main


def names(*words: str) -> list[str]:
    return [stage.name for stage in choose(words)]


def script(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


def use(monkeypatch: pytest.MonkeyPatch, *stages: Stage) -> None:
    monkeypatch.setattr(check, "all_stages", lambda **_: stages)


def test_fast_leaves_out_the_sanitizers_and_the_slow_tests() -> None:
    assert set(names()) - set(names("fast")) == {"asan", "tsan"}
    *_, tests = choose(["fast"])[-1].commands
    assert tests[-2:] == ("-m", "not slow and not hostile and not long")


def test_the_tests_come_last_so_that_their_summary_does() -> None:
    assert names()[-1] == "tests"


def test_all_attacks_run_only_when_asked_for() -> None:
    assert "hostile" not in names()
    (boundary, hostile) = choose(["hostile"])
    assert [boundary] == list(choose(["boundary"]))
    assert boundary.commands[-1][1:3] == ("tools/boundary.py", "build/boundary")
    (tests,) = hostile.commands
    assert tests[-3:] == ("-m", "hostile", "tests/hostile")


def test_the_gate_is_tested_before_it_is_asked_and_only_when_that_is_wanted() -> None:
    assert "gate" not in names()
    assert names("gate") == ["itself", "gate"]
    (itself,), (gate,) = (stage.commands for stage in choose(["gate"]))
    assert (itself[-2:], gate[-1]) == (("gate", "--self-test"), "gate")


def test_a_stage_can_be_asked_for_by_name() -> None:
    assert names("types", "sizes") == ["types", "sizes"]


def test_an_unknown_stage_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="64"):
        choose(["tpyes"])
    assert "no stage 'tpyes'" in capsys.readouterr().err


def test_a_stage_that_succeeds_prints_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, Stage(name="lint", commands=(script("print('fine')"),)))
    assert main([]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.split()[:2] == ["lint", "ok"]


def test_the_closing_line_of_the_tests_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(
        monkeypatch,
        Stage(name="tests", commands=(script("print('...\\n3 passed\\n')"),), show_last_line=True),
    )
    assert main([]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["3 passed"]


def test_a_table_that_somebody_wants_to_read_is_shown_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, Stage(name="gate", commands=(script("print('green')\nprint('met')"),), show_all=True))
    assert main([]) == 0
    assert capsys.readouterr().out.splitlines()[1:3] == ["green", "met"]


def test_a_stage_that_fails_prints_everything_and_the_rest_still_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = Stage(
        name="lint", commands=(script("print('why'); raise SystemExit(3)"), script("print('unreached')"))
    )
    use(monkeypatch, failing, Stage(name="types", commands=(script(""),)))
    assert main([]) == 1
    shown = capsys.readouterr()
    assert "why\n[exit 3]" in shown.out
    assert "unreached" not in shown.out
    assert "types    ok" in shown.out
    assert shown.err == "check: lint failed\n"


def test_a_native_stage_is_left_out_only_for_code_that_passed_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    counted = tmp_path / "runs"
    use(monkeypatch, Stage(name="asan", commands=(script(f"open({str(counted)!r}, 'a').write('x')"),)))
    monkeypatch.setattr(check, "PASSED", tmp_path / "passed")
    monkeypatch.setattr(check, "native_fingerprint", lambda: "one")
    assert [main([]), main([]), counted.read_text()] == [0, 0, "x"]
    assert "as in an earlier run" in capsys.readouterr().out
    assert [main(["asan"]), counted.read_text()] == [0, "xx"]
    monkeypatch.setattr(check, "native_fingerprint", lambda: "another")
    assert [main([]), counted.read_text()] == [0, "xxx"]
    use(monkeypatch, Stage(name="asan", commands=(script("raise SystemExit(1)"),)))
    assert [main(["asan"]), main([])] == [1, 1]


def test_the_fingerprint_of_native_code_changes_with_every_file_and_the_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(check, "ROOT", tmp_path)
    for name in ("native/pool.h", "src/hotloop/worlds/one/one.h", *check.NATIVE_FILES):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a")
    seen = {check.native_fingerprint()}
    for name in ("native/pool.h", "src/hotloop/worlds/one/one.h", *check.NATIVE_FILES):
        (tmp_path / name).write_text("b")
        seen.add(check.native_fingerprint())
    monkeypatch.setenv("CXX", "clang++")
    seen.add(check.native_fingerprint())
    assert len(seen) == 3 + len(check.NATIVE_FILES) + 1
