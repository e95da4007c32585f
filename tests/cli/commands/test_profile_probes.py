"""The probes of `hotloop profile`, from the command line to the files it leaves."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.boxes import shorten_passes

from hotloop.cli.commands import profile as module
from hotloop.core import registry
from hotloop.core.errors import ExitCode
from hotloop.core.record import read
from hotloop.core.record.profile import Finding
from hotloop.core.registry import Obstacle, ProbeError
from hotloop.lab.profile import probes as probes_lab
from hotloop.probes import pyspy, samples
from hotloop.probes.samples import ThreadTime

SHORT = ("num_envs=4", "agents=3", "--steps", "160")
STEM = ".design/profile-20250102-0304"
STACK = (("drawn.<locals>.played", "/a/probing.py", 1), ("Env.step", "/a/env.py", 3))
CPROFILE = ("cprofile.pstats", "cprofile.speedscope.json", "cprofile.svg")

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotloop.lab.profile.profile.WARMUP", 8)
    monkeypatch.setattr("hotloop.judge.judge.label", lambda cv: "excellent")
    shorten_passes(monkeypatch)
    monkeypatch.setattr(module, "utc_now", lambda: datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC))


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Take a probe's package away."""
    real = registry.probes

    def take(name: str) -> None:
        gone = Obstacle(why=f"{name} is not installed", remedy="install it")
        changed = {name: replace(real()[name], why_not=lambda: gone)}
        monkeypatch.setattr(registry, "probes", lambda: real() | changed)

    return take


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let py-spy see one stack."""

    def attach(pid: int, folder: Path, seconds: int) -> Finding:
        busy = ThreadTime(name="MainThread 1", share=1.0, seconds={STACK: float(seconds)})
        return samples.describe_threads([busy], seconds, folder)

    monkeypatch.setattr(samples, "attach", attach)


@pytest.fixture
def repository(hotloop: Command, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """A git repository with something else staged."""
    who = {"NAME": "A", "EMAIL": "a@example.com"}
    for key, value in who.items():
        monkeypatch.setenv(f"GIT_AUTHOR_{key}", value)
        monkeypatch.setenv(f"GIT_COMMITTER_{key}", value)

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "--quiet")
    Path(".gitignore").write_text("/.design/\n")
    Path("mine").write_text("staged")
    git("add", "mine")
    return git


def names() -> list[str]:
    return sorted(path.name for path in Path(".design").iterdir())


def test_resources_are_always_there_and_a_page_only_for_a_probe(hotloop: Command) -> None:
    hotloop("profile", "grid/toy", *SHORT)
    assert names() == ["profile-20250102-0304.json", "profile-20250102-0304.md"]
    assert "**Peak memory**" in Path(f"{STEM}.md").read_text()
    assert [found.probe for found in read(Path(f"{STEM}.json")).findings] == ["resources"]


@pytest.mark.parametrize("target", ["grid/toy", "gym:CartPole-v1"])
def test_the_files_of_a_probe_lie_beside_the_record_under_its_name(hotloop: Command, target: str) -> None:
    words = SHORT if target == "grid/toy" else ("--steps", "200")
    said = hotloop("profile", target, *words, "--probe", "cprofile")
    assert said.code == ExitCode.FINE
    assert names() == sorted(
        f"profile-20250102-0304.{ending}" for ending in (*CPROFILE, "html", "json", "md")
    )
    found = read(Path(f"{STEM}.json")).findings[0]
    assert (found.probe, found.files) == ("cprofile", CPROFILE)
    assert "step (" in said.out
    page = Path(f"{STEM}.html").read_text()
    assert page.count("<svg") == 1
    assert Path(f"{STEM}.cprofile.svg").read_text().startswith("<svg")


def test_two_profiles_of_one_minute_are_two_files_and_the_second_is_compared(hotloop: Command) -> None:
    for _ in range(2):
        hotloop("profile", "grid/toy", *SHORT, "--probe", "cprofile")
    assert len(names()) == 2 * 6
    first, second = read(Path(f"{STEM}.json")), read(Path(f"{STEM}-2.json"))
    assert first.comparisons == ()
    assert second.comparisons[0].a.run_id == first.run_id
    assert second.exit_code == ExitCode.FINE
    assert "## Previous Profile" in Path(f"{STEM}-2.md").read_text()
    assert "Previous" not in Path(f"{STEM}.md").read_text()


def test_a_profile_of_another_target_is_not_compared_with(hotloop: Command) -> None:
    hotloop("profile", "grid/toy", *SHORT)
    hotloop("profile", "grid/guard", "num_envs=4", "--steps", "160")
    assert read(Path(f"{STEM}-2.json")).comparisons == ()


def test_a_probe_without_its_package_is_a_notice_and_the_others_go_on(
    hotloop: Command, without: Callable[[str], None]
) -> None:
    without("threads")
    said = hotloop("profile", "grid/toy", *SHORT, "--probe", "threads,cprofile")
    assert said.code == ExitCode.FINE
    assert "the probe threads did not look: threads is not installed; install it" in said.err
    assert f"{Path(STEM).name}.cprofile.pstats" in names()
    assert "the probe threads did not look" in Path(f"{STEM}.md").read_text()


def test_clean_speed_is_measured_before_any_probe_looks(
    hotloop: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    measured, run_probe = module_profile(), probes_lab.run_probe
    monkeypatch.setattr(
        "hotloop.lab.profile.profile.profile", lambda *a, **k: (order.append("profile"), measured(*a, **k))[1]
    )
    monkeypatch.setattr(
        probes_lab, "run_probe", lambda probe, *asked: (order.append(probe.name), run_probe(probe, *asked))[1]
    )
    said = hotloop("profile", "grid/toy", *SHORT, "--probe", "cprofile", "--json")
    assert order == ["profile", "cprofile", "resources"]
    assert said.json["work"]["env_steps"] == 160
    assert len(said.json["values"]["clean_wall_ns"]) == 20


def module_profile() -> Any:
    from hotloop.lab.profile import profile

    return profile.profile


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["grid/toy", "--probe", "cprof"], "did you mean cprofile"),
        (["grid/toy", "--probe", "line", "--time", "hotloop.envs.batch.Batch.nope"], "has no function nope"),
        (["grid/toy", "--probe", "line", "--time", "math.sqrt"], "no lines"),
        (["grid/toy", "--pid", "1"], "leave out the target"),
        (["grid/toy", "--seconds", "1"], "leave out the target"),
        (["--pid", "4194305"], "there is no process 4194305"),
        (["4194305"], "there is no process 4194305"),
        (["4194305", "--pid", "1"], "leave out --pid 1"),
        (["4194305", "steps=1"], "leave out steps=1"),
        (["0"], "0"),
        (["--pid", "0"], "--pid"),
        (["--pid", "1", "--probe", "cprofile"], "--probe is for a target"),
        (["--pid", "1", "--steps", "5"], "--steps is for a target"),
        (["grid/toy", "--commit"], "git repository"),
        (["--probe", "pyspy"], "needs a TARGET, or --pid PID"),
        ([], "needs a TARGET, or --pid PID"),
    ],
)
def test_wrong_input_is_one_line_and_writes_nothing(hotloop: Command, words: list[str], why: str) -> None:
    said = hotloop("profile", *words)
    assert (said.code, said.out) == (ExitCode.USAGE, "")
    assert said.err.count("\n") == 1
    assert why in said.err
    assert not Path(".design").exists()


def test_a_folder_that_cannot_be_written_to_is_refused(
    hotloop: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    said = hotloop("profile", "grid/toy", *SHORT, "--probe", "cprofile")
    assert (said.code, said.err.count("\n")) == (ExitCode.USAGE, 1)
    assert "cannot write to .design" in said.err


@pytest.mark.usefixtures("looked_at")
def test_a_running_process_gets_a_page_of_its_own(hotloop: Command) -> None:
    said = hotloop("profile", "--pid", str(os.getpid()), "--seconds", "2")
    assert said.code == ExitCode.FINE
    assert names() == sorted(
        f"profile-20250102-0304.{ending}"
        for ending in ("html", "json", "md", "samples.speedscope.json", "samples.svg")
    )
    assert "Env.step" in said.out
    record = read(Path(f"{STEM}.json"))
    assert record.findings[0].facts["samples"] == 2 * samples.OUTSIDE_RATE
    assert "## Results" not in Path(f"{STEM}.md").read_text()


@pytest.mark.usefixtures("looked_at")
def test_json_of_a_running_process_is_the_record(hotloop: Command) -> None:
    said = hotloop("profile", "--pid", str(os.getpid()), "--json")
    assert said.json == read_json()
    assert said.json["target"]["name"] == f"pid:{os.getpid()}"


def read_json() -> Any:
    import json

    return json.loads(Path(f"{STEM}.json").read_text())


def test_a_process_that_may_not_be_looked_at_is_exit_70_with_the_remedy(
    hotloop: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object) -> Finding:
        raise ProbeError("py-spy may not read the memory of another process here", pyspy.REMEDY)

    monkeypatch.setattr(samples, "attach", denied)
    said = hotloop("profile", "--pid", str(os.getpid()))
    assert (said.code, said.out) == (ExitCode.FAULT, "")
    assert "ptrace_scope" in said.err
    assert names() == []


def test_commit_commits_the_page_and_the_record_and_nothing_else(
    hotloop: Command, repository: Callable[..., str]
) -> None:
    said = hotloop("profile", "grid/toy", *SHORT, "--commit", "--probe", "cprofile")
    assert said.code == ExitCode.FINE
    committed = repository("show", "--name-only", "--format=%s").split("\n")
    assert committed == ["profile: grid/toy", "", f"{STEM}.json", f"{STEM}.md"]
    assert repository("diff", "--cached", "--name-only") == "mine"


def test_a_commit_that_git_refuses_is_said_and_the_files_are_there(
    hotloop: Command, repository: Callable[..., str]
) -> None:
    hook = Path(".git/hooks/pre-commit")
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no >&2\nexit 1\n")
    hook.chmod(0o755)
    said = hotloop("profile", "grid/toy", *SHORT, "--commit")
    assert (said.code, said.err.count("git commit failed: no")) == (ExitCode.USAGE, 1)
    assert len(names()) == 2


def test_the_help_names_every_probe(hotloop: Command) -> None:
    shown = " ".join(hotloop("profile", "--help").out.split())
    assert all(re.search(rf"\b{name}\b", shown) for name in registry.probes())


def test_top_needs_a_terminal_and_a_pid(hotloop: Command) -> None:
    assert "needs the number of a process" in hotloop("top").err
    said = hotloop("top", "--pid", str(os.getpid()))
    assert (said.code, said.err.count("\n")) == (ExitCode.USAGE, 1)
    assert "needs a terminal" in said.err


@pytest.mark.usefixtures("looked_at")
def test_top_prints_one_second_as_json_without_a_terminal(hotloop: Command) -> None:
    said = hotloop("top", "--pid", str(os.getpid()), "--json")
    assert (said.code, said.err) == (ExitCode.FINE, "")
    assert said.json["findings"][0]["facts"]["samples"] == samples.OUTSIDE_RATE
    assert not Path(".design").exists()


def test_top_shows_the_process_until_it_is_left(hotloop: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    watched: list[int] = []
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(pyspy, "top", watched.append)
    assert hotloop("top", "--pid", str(os.getpid())).code == ExitCode.FINE
    assert watched == [os.getpid()]
    assert hotloop("top", str(os.getpid())).code == ExitCode.FINE
    assert watched == 2 * [os.getpid()]
    assert "leave one out" in hotloop("top", "12", "--pid", "13").err
    said = hotloop("top", "--pid", "4194305")
    assert (said.code, "there is no process" in said.err) == (ExitCode.USAGE, True)
