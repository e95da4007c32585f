from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.projects import ENV, Project

from hotloop.core.errors import ExitCode
from hotloop.core.record import Record, read
from hotloop.core.record.metadata import Instructions
from hotloop.lab import bench as lab
from hotloop.lab.measure import sides

SHORT = ("num_envs=4", "agents=3", "--iterations", "8", "--warmup", "8")

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def _steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the noise of so short rounds out of the exit code."""
    monkeypatch.setattr("hotloop.judge.judge.label", lambda cv: "excellent")


def saved() -> list[Path]:
    return sorted(Path("artifacts/throughput").glob("*"))


def test_the_record_is_saved_and_a_table_is_drawn(hotloop: Command) -> None:
    said = hotloop("bench", "grid/toy", *SHORT, "--rounds", "6")
    assert said.code == ExitCode.FINE
    (path,) = saved()
    record = read(path)
    assert path.name == f"{record.run_id}.json"
    assert (record.kind, record.method.rounds, record.method.iterations, record.method.warmup) == (
        "bench",
        6,
        8,
        8,
    )
    assert "grid/toy" in said.out
    assert f"saved {path}" in said.err


def test_json_prints_the_saved_record_and_nothing_else(hotloop: Command) -> None:
    said = hotloop("bench", "grid/toy", *SHORT, "--rounds", "2", "--json")
    assert Record.from_json(said.out) == read(saved()[0])
    assert "2 rounds are too few" in said.err


def test_a_bare_world_runs_all_its_presets_and_prints_a_list(hotloop: Command) -> None:
    from hotloop.core.registry import find, presets

    said = hotloop("bench", "grid", *SHORT, "--rounds", "2", "--json")
    targets = [found.target for found in presets(find("grid").world)]
    assert [record["target"]["name"] for record in said.json] == targets
    assert len(saved()) == len(targets)


def test_flags_are_short_for_keys(hotloop: Command) -> None:
    said = hotloop("bench", "grid/toy", *SHORT, "--rounds", "2", "--seed", "7", "--threads", "2", "--json")
    assert said.json["target"]["params"]["seed"] == 7
    assert said.json["method"]["threads"] == 2


def test_a_policy_is_played_and_named(hotloop: Command) -> None:
    words = ("num_envs=4", "--iterations", "8", "--warmup", "80", "--rounds", "2", "--json")
    random, teacher = (
        hotloop("bench", "grid/guard", *words, "--policy", policy).json for policy in ("random", "teacher")
    )
    assert random["method"]["policy"] == "random"
    assert teacher["method"]["policy"] == "teacher (replayed tape)"
    assert teacher["work"]["coverage"] != random["work"]["coverage"]
    # Who chose is not the batch that was timed.
    assert teacher["work"]["decisions"] == 0


@pytest.mark.parametrize("output", ["kept.json", "deep/er/kept.json"])
def test_an_output_file_is_never_overwritten(hotloop: Command, output: str) -> None:
    for _ in range(3):
        hotloop("bench", "grid/toy", *SHORT, "--rounds", "1", "--output", output)
    names = sorted(path.name for path in Path(output).parent.glob("*.json"))
    assert names == ["kept-2.json", "kept-3.json", "kept.json"]


def test_an_output_folder_takes_records_by_their_names(hotloop: Command) -> None:
    hotloop("bench", "grid/toy", *SHORT, "--rounds", "1", "--output", "results")
    (path,) = Path("results").iterdir()
    assert path.stem == read(path).run_id


def test_what_was_asked_for_is_kept_and_the_usual_may_shrink(
    hotloop: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hotloop.lab.measure.loop.BOXED_ROUND_NS", 1)
    monkeypatch.setattr("hotloop.lab.measure.loop.BOXED_WARMUP_NS", 1)
    kept = hotloop("bench", "grid/toy", *SHORT, "--rounds", "2", "--json")
    assert (kept.json["method"]["iterations"], kept.json["method"]["warmup"]) == (8, 8)
    cut = hotloop("bench", "grid/toy", "num_envs=4", "--rounds", "2", "--json")
    assert (cut.json["method"]["iterations"], cut.json["method"]["warmup"]) == (4, 4)
    assert "the target is slow" in cut.err


def test_unstable_rounds_exit_with_one(hotloop: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotloop.judge.judge.label", lambda cv: "unstable")
    said = hotloop("bench", "grid/toy", *SHORT, "--rounds", "6", "--json")
    assert (said.code, said.json["exit_code"]) == (ExitCode.UNSTABLE, ExitCode.UNSTABLE)


def test_ctrl_c_leaves_a_partial_record_and_stops(hotloop: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    real, rounds = sides.play, iter(range(100))

    def stop(*given: Any) -> int:
        if next(rounds) == 2:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(sides, "play", stop)
    said = hotloop("bench", "grid", *SHORT, "--rounds", "6", "--json")
    assert said.code == ExitCode.INTERRUPTED
    (record,) = said.json
    assert (record["partial"], len(record["values"]["env_steps_per_s"])) == (True, 2)
    assert len(saved()) == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["grid/toi"], "did you mean grid/toy?"),
        (["grid/toy", "agnts=3"], "did you mean agents?"),
        (["grid/toy", "agents=0"], "from 1 to 1000"),
        (["grid/toy", "agents=many"], "from 1 to 1000"),
        (["grid/toy", "agents"], "key=value"),
        (["grid/toy", "seed=1", "--seed", "2"], "given twice"),
        (["grid/toy", "agents=900", "map_size=10x10"], "free cells"),
        (["grid/toy", "profile=1"], "every probe off"),
        (["grid/toy", "--policy", "techer"], "did you mean teacher?"),
        (["grid/toy", "--rounds", "0"], "--rounds"),
        (["grid/toy", "--iterations", "0"], "--iterations"),
        (["grid/toy", "--output", "/dev/null/x"], "/dev/null/x"),
        (["grid/toy", "--output", "/dev/null/x.json"], "choose another output"),
    ],
)
def test_wrong_input_is_one_line_and_writes_nothing(hotloop: Command, words: list[str], told: str) -> None:
    said = hotloop("bench", *words)
    assert (said.code, said.out) == (ExitCode.USAGE, "")
    assert told in said.err
    assert said.err.count("\n") == 1
    assert list(Path().iterdir()) == []


def test_instructions_are_counted_into_the_record_and_shown(
    hotloop: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Instructions(per_env_step=1234.0, runs=((4, 10_000), (24, 34_680)), isa="x86_64 AVX2")
    monkeypatch.setattr("hotloop.probes.instructions.require", lambda: "valgrind")
    monkeypatch.setattr("hotloop.lab.bench.count", lambda *_, **__: counted)
    said = hotloop("bench", "grid/toy", *SHORT, "--rounds", "2", "--instructions")
    assert read(saved()[0]).instructions == counted
    assert "1,234 an env-step, 411 an agent-step (callgrind, x86_64 AVX2, 20 env-steps)" in said.out


def test_without_valgrind_nothing_is_measured(hotloop: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(lab, "bench", None)
    said = hotloop("bench", "grid/toy", *SHORT, "--instructions")
    assert said.code == ExitCode.USAGE
    assert "apt install valgrind" in said.err
    assert saved() == []


@pytest.fixture
def past(hotloop: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project of three commits, in its folder."""
    made = Project(tmp_path / "project")
    for number in range(3):
        made.commit(env=ENV + "#\n" * number)
    monkeypatch.chdir(made.root)
    return made


def test_since_measures_past_commits_and_keeps_a_record_of_each(hotloop: Command, past: Project) -> None:
    said = hotloop("bench", "env.py:make", "--since", "HEAD~2", "--build", "true", "--quick")
    assert said.code == ExitCode.FINE
    assert "3 of 3 commits since HEAD~2: each is built" in said.err
    assert "times as fast as at" in said.out
    assert "against the first" in said.out
    assert len(saved()) == 3
    listed = hotloop("bench", "env.py:make", "--since", "HEAD~2", "--every", "2", "--quick", "--json")
    assert [each["kind"] for each in listed.json] == ["bench", "bench"]
    page = hotloop("report", "artifacts/throughput", "--output", "page.html")
    assert page.code == ExitCode.FINE
    assert "bench, commits in turns" in Path("page.html").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--every", "2"), "give --since REF too"),
        (("--build", "make"), "give --since REF too"),
        (("--since", "HEAD~1", "--rounds", "7"), "--rounds is for the present code"),
        (("--since", "HEAD~1", "--policy", "live:x"), "--policy is for the present code"),
        (("--since", "HEAD~1", "--baseline", "HEAD~1"), "--baseline is for the present code"),
        (("--since", "HEAD~1", "--output", "one.json"), "each commit has its own: name a folder"),
        (("--since", "nowhere"), "there is no commit 'nowhere'"),
        (("--since", "HEAD"), "is HEAD: give an earlier commit"),
    ],
)
def test_what_past_commits_cannot_be_asked_is_refused(
    hotloop: Command, past: Project, words: tuple[str, ...], said: str
) -> None:
    told = hotloop("bench", "env.py:make", *words)
    assert told.code == ExitCode.USAGE
    assert said in told.err
    assert not saved()


def test_a_trend_of_several_presets_or_outside_a_repository_is_refused(hotloop: Command) -> None:
    assert "name one of them" in hotloop("bench", "grid", "--since", "HEAD~1").err
    told = hotloop("bench", "grid/toy", "--since", "HEAD~1")
    assert told.code == ExitCode.USAGE
    assert "is in no git repository" in told.err
