import gc
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import theirs
from support.boxes import shorten_passes
from support.records import PROFILE

from hotloop.core import registry
from hotloop.core.errors import Code, ExitCode, InputError, notice
from hotloop.core.record import Record
from hotloop.core.record.profile import Finding, Table
from hotloop.core.registry import Obstacle, Probe, ProbeError, Scene
from hotloop.core.settings import Target
from hotloop.judge.judge import judge
from hotloop.lab.profile import probes as probes_lab
from hotloop.lab.profile.probes import check, choose, probe_context, with_probes
from hotloop.lab.profile.profile import ProfilePlan

SMALL = {"num_envs": 4, "agents": 3}
RESOURCES = {
    "rss_peak_bytes": 5,
    "rss_mean_bytes": 4,
    "rss_slope": 0.5,
    "rss_over_time": [[0, 5]],
    "cpu_share": 0.9,
    "gpu": None,
}


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_passes(monkeypatch)


def a_probe(name: str, look: Callable[[Scene], Finding], obstacle: Obstacle | None = None) -> Probe:
    return Probe(name=name, purpose="a test", why_not=lambda: obstacle, look=look)


def planned(*probes: Probe, **more: Any) -> ProfilePlan:
    usual: dict[str, Any] = {
        "target": Target("grid/toy", SMALL),
        "policy": "random",
        "steps": None,
        "time": (),
    }
    return ProfilePlan(**usual | more, probes=probes)


def found(staged: Scene) -> Finding:
    staged.draw(staged.calls)()
    return Finding(probe="mine", facts={"calls": staged.calls})


def broken(_: Scene) -> Finding:
    raise ProbeError("it is dark", "light a lamp")


def test_probes_are_chosen_by_repeating_by_commas_or_all_of_them() -> None:
    def chosen(*words: str) -> list[str]:
        return [probe.name for probe in choose(words)]

    assert chosen() == chosen("phases") == ["resources"]
    assert chosen("cprofile", "memory, threads") == ["cprofile", "memory", "resources", "threads"]
    assert chosen("all") == [*registry.probes()]
    assert chosen("line") == ["line", "resources"]


def test_an_unknown_probe_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"unknown probe 'cprofle': did you mean cprofile\?"):
        choose(["cprofle"])


def test_a_named_function_without_lines_is_refused() -> None:
    with pytest.raises(InputError, match="has no lines"):
        check(choose(["line"]), [Target("grid/toy")], ["math.sqrt"])
    with pytest.raises(InputError, match="has no function nope"):
        check(choose(["line"]), [Target("grid/toy")], ["support.theirs.Env.nope"])
    check(choose(["line"]), [Target("grid/toy")], ["support.theirs.Env.step"])
    check(choose(["cprofile"]), [Target("grid/toy")], ["math.sqrt"])


def test_findings_come_in_the_order_of_the_probes(tmp_path: Path) -> None:
    first, second = (a_probe(name, lambda _, name=name: Finding(probe=name)) for name in "ab")  # type: ignore[misc]
    record = with_probes(PROFILE, planned(first, second), tmp_path / "new")
    assert [each.probe for each in record.findings] == ["a", "b"]
    assert record.notices == PROFILE.notices


def test_a_probe_that_cannot_run_is_a_notice_and_the_others_go_on(tmp_path: Path) -> None:
    def refuses(_: Scene) -> Finding:
        raise InputError("the env broke")

    absent = a_probe("absent", found, Obstacle(why="it is not installed", remedy="install it"))
    faulty = a_probe("faulty", lambda staged: {}[staged.calls])  # type: ignore[misc]
    probes = (absent, a_probe("dark", broken), a_probe("refused", refuses), faulty, a_probe("mine", found))
    record = with_probes(PROFILE, planned(*probes), tmp_path)
    assert [each.probe for each in record.findings] == ["mine"]
    said = [(each.code, each.text, each.remedy) for each in record.notices]
    assert said[0] == ("no-probe", "the probe absent did not look: it is not installed", "install it")
    assert said[1] == ("no-probe", "the probe dark did not look: it is dark", "light a lamp")
    assert said[2][1] == "the probe refused did not look: the env broke"
    assert said[3][1].startswith("the probe faulty did not look: it raised KeyError: ")
    assert (record.exit_code, record.partial) == (PROFILE.exit_code, False)


def test_ctrl_c_keeps_what_was_found_and_marks_the_record(tmp_path: Path) -> None:
    def interrupted(_: Scene) -> Finding:
        raise KeyboardInterrupt

    never = a_probe("never", lambda _: pytest.fail("it went on"))
    probes = (a_probe("mine", found), a_probe("x", interrupted), never)
    record = judge(with_probes(PROFILE, planned(*probes), tmp_path))
    assert [each.probe for each in record.findings] == ["mine"]
    assert (record.partial, record.exit_code) == (True, ExitCode.INTERRUPTED)
    assert record.notices[-1] == notice(Code.PARTIAL, done="all")


def test_an_interrupted_profile_is_not_looked_at_any_further(tmp_path: Path) -> None:
    partial = replace(PROFILE, partial=True)
    assert with_probes(partial, planned(a_probe("mine", found)), tmp_path) is partial


def test_progress_is_told_before_each_probe(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    probes = (a_probe("a", found), a_probe("b", found))
    with_probes(PROFILE, planned(*probes), tmp_path, lambda done, total: told.append((done, total)))
    assert told == [(0, 2), (1, 2)]


def test_resources_and_instructions_fill_their_fields_of_the_record(tmp_path: Path) -> None:
    counted = {"per_env_step": 5.0, "isa": "x", "runs": [[1, 2], [3, 4]]}
    probes = (
        a_probe("resources", lambda _: Finding(probe="resources", facts=RESOURCES | {"threads": 2})),
        a_probe("instructions", lambda _: Finding(probe="instructions", facts=counted)),
    )
    record = with_probes(PROFILE, planned(*probes), tmp_path)
    assert record.resources is not None
    assert (record.resources.rss_peak_bytes, record.resources.cpu_share) == (5, 0.9)
    assert record.instructions is not None
    assert record.instructions.runs == ((1, 2), (3, 4))
    assert Record.from_json(record.to_json()) == record


def test_lines_that_ran_take_back_that_the_function_was_never_called(tmp_path: Path) -> None:
    said = tuple(notice(Code.NEVER_CALLED, function=name) for name in ("Env.step", "Env.other"))
    lines = Finding(probe="line", facts={"ran": ["Env.step"]}, tables=(Table(title="", columns=(), rows=()),))
    record = with_probes(replace(PROFILE, notices=said), planned(a_probe("line", lambda _: lines)), tmp_path)
    assert record.notices == said[1:]


@pytest.mark.parametrize(
    ("target", "policy"),
    [("grid/toy", "random"), ("gym:CartPole-v1", "random"), ("gym:CartPole-v1", "support.theirs:zero")],
)
def test_a_scene_plays_as_many_steps_as_it_is_asked_for(
    tmp_path: Path, target: str, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[int] = []
    monkeypatch.setattr(theirs, "zero", lambda _: chosen.append(0) or 0, raising=False)
    seen: list[int] = []
    real = probes_lab.play

    def watch(subject: Any, actions: Any, calls: int) -> int:
        before = subject.counters["env_steps"]
        ns = real(subject, actions, calls)
        seen.append(subject.counters["env_steps"] - before)
        return ns

    monkeypatch.setattr(probes_lab, "play", watch)
    keys = SMALL if target == "grid/toy" else {}
    plan = planned(target=Target(target, keys), policy=policy, steps=7)
    with probe_context(plan, tmp_path) as staged:
        seen.clear()
        chosen.clear()
        staged.draw(5)()
        assert len(chosen) == (0 if policy == "random" else 5)
        assert seen == [5 * staged.env_steps]
        assert 1 <= staged.calls <= -(-7 // staged.env_steps)
        assert staged.clean_ns > 0


def test_actions_are_drawn_before_they_are_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with probe_context(planned(), tmp_path) as staged:
        played = staged.draw(3)
        monkeypatch.setattr("hotloop.lab.measure.policy.RandomPlay.draw", lambda *_: pytest.fail("it drew"))
        played()


@pytest.mark.slow
@pytest.mark.parametrize(("target", "keys"), [("grid/toy", SMALL), ("gym:CartPole-v1", {})])
def test_nothing_is_left_on_after_any_probe_that_looks_in_this_process(
    tmp_path: Path, target: str, keys: dict[str, object]
) -> None:
    inside = {name: each for name, each in registry.probes().items() if name not in ("pyspy", "instructions")}
    before = (sys.getprofile(), sys.gettrace(), gc.isenabled(), {t.name for t in threading.enumerate()})
    function = "hotloop.envs.batch.Batch.step" if target == "grid/toy" else "gymnasium.core.Wrapper.step"
    for name, probe in inside.items():
        plan = planned(probe, target=Target(target, keys), steps=40, time=(function,))
        record = with_probes(PROFILE, plan, tmp_path / name)
        assert name in [each.probe for each in record.findings] or "caught nothing" in record.notices[-1].text
        after = (sys.getprofile(), sys.gettrace(), gc.isenabled(), {t.name for t in threading.enumerate()})
        assert after == before, name


@pytest.mark.slow
def test_the_program_that_is_looked_at_from_outside_plays_and_ends(tmp_path: Path) -> None:
    with probe_context(planned(), tmp_path) as staged:
        *words, settings = staged.program
    told = json.loads(settings) | {"seconds": 0.2}
    done = subprocess.run(
        [sys.executable, *words, json.dumps(told)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
