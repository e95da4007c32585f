"""Nothing runs because a file says so."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.records import PROFILE

from hotloop.cli.main import main
from hotloop.core.errors import InputError
from hotloop.core.machine import version
from hotloop.core.record import write
from hotloop.core.record.comparison import BundleFacts, Difference
from hotloop.core.record.profile import Slow, SlowStep
from hotloop.core.settings import Target
from hotloop.envs import tapes
from hotloop.envs.callables import announced, check_calls, may_call
from hotloop.envs.open import make
from hotloop.lab.validate.bundle import Bundle, write_bundle

STEP = SlowStep(
    rank=1,
    step=1,
    env=None,
    seed=1,
    wall_ns=10,
    phases={},
    resets=0,
    gc_ns=0,
    collections=0,
    check_step=1,
    check="",
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the current one."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


def bundle_that_calls(target: Target, path: Path) -> Path:
    facts = BundleFacts(
        version=version(),
        reference=target,
        candidate=target,
        tape="random",
        mode="bytes",
        ignore=(),
        difference=Difference(step=1, field="rewards", index=(0,), a="0", b="1"),
        steps_before=0,
        resets=(),
    )
    return write_bundle(Bundle(facts=facts, actions=np.zeros((1, 1, 1), np.int32)), path)


def record_that_calls(target: Target, path: Path, policy: str = "random") -> Path:
    slow = Slow(
        relative_error=0.01,
        calls=1,
        steps=(STEP,),
        target=target.name,
        given=target.keys,
        policy=policy,
        draws=((1, 1, 1),),
    )
    write(path, replace(PROFILE, slow=slow))
    return path


SHELL = Target("os:system", {"command": "touch ran"})


@pytest.mark.parametrize("flag", ["--replay", "--replay-slow"])
def test_a_file_cannot_have_the_shell_called(flag, project, capsys):
    path = (
        bundle_that_calls(SHELL, Path("a.bundle"))
        if flag == "--replay"
        else record_that_calls(SHELL, Path("a.json"))
    )
    command = "validate" if flag == "--replay" else "profile"
    assert main([command, flag, str(path)]) == 64
    assert not (project / "ran").exists()
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert f"{path} would call 'os:system command=touch ran', which is not code of this project" in err
    assert main([command, flag, str(path), "--trust", "other"]) == 64
    assert not (project / "ran").exists()


def test_a_file_that_is_trusted_says_first_what_it_calls(project, capsys):
    path = bundle_that_calls(SHELL, Path("a.bundle"))
    main(["validate", "--replay", str(path), "--trust", str(path)])
    assert capsys.readouterr().err.startswith("a.bundle calls 'os:system command=touch ran'")
    assert (project / "ran").exists()


def test_a_policy_of_a_file_is_held_to_the_same(project, capsys):
    path = record_that_calls(Target("grid/toy"), Path("a.json"), policy="os:system")
    assert main(["profile", "--replay-slow", str(path)]) == 64
    assert "would call 'os:system'" in capsys.readouterr().err


def test_a_diagnosis_with_delays_holds_a_policy_to_it_too(project, capsys):
    path = record_that_calls(Target("gym:CartPole-v1"), Path("a.json"), policy="os:system")
    assert main(["diagnose", str(path), "--causal"]) == 64
    assert "a.json would call 'os:system'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (Target("gym:CartPole-v1", phases="os:system"), "os:system"),
        (Target("grid/toy", {"player": "../beside.py:Net"}), "../beside.py:Net"),
    ],
)
def test_what_finds_phases_and_what_keys_name_is_held_to_it_too(target, told, project, capsys):
    path = bundle_that_calls(target, Path("a.bundle"))
    assert main(["validate", "--replay", str(path)]) == 64
    assert f"a.bundle would call {told!a}" in capsys.readouterr().err
    assert announced(path, [target], path)[-1] == f"a.bundle calls {told!a}"


def test_a_tape_cannot_have_the_shell_called(project, capsys):
    batch = make("grid/toy", num_envs=2, agents=1)
    batch.reset()
    tape = tapes.record(batch, [np.zeros((2, 1), np.int32)] * 2)
    tapes.write(Path("a.tape"), replace(tape, target="os:getcwd", parameters={}))
    assert main(["sim", "--replay", "a.tape"]) == 64
    assert "a.tape would call 'os:getcwd', which is not code of this project" in capsys.readouterr().err
    assert main(["sim", "--replay", "a.tape", "--trust", "a.tape"]) == 64  # it is no two envs
    assert capsys.readouterr().err.startswith("a.tape calls 'os:getcwd'")
    assert main(["sim", "grid/toy", "--trust", "a.tape"]) == 64


@pytest.mark.parametrize(
    ("target", "words", "told"),
    [
        ("os:system", {"command": "touch ran"}, "os:system command=touch ran"),
        ("grid/toy", {"train.network": "os:system"}, "os:system"),
        ("grid/toy", {"teacher": "os:system"}, "os:system"),
    ],
)
def test_a_run_that_goes_on_calls_nothing_that_only_its_settings_name(target, words, told, project, capsys):
    settings = Path("train_dir/a/settings.json")
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"target": target, "words": words}))
    assert main(["train", "run=a", "--resume"]) == 64
    assert f"{settings} would call {told!a}, which is not code of this project" in capsys.readouterr().err
    assert not (project / "ran").exists()
    typed = [f"{key}={value}" for key, value in words.items()]
    assert main(["train", target, "run=a", "--resume", *typed]) == 64
    assert "would call" not in capsys.readouterr().err
    assert main(["train", "run=a", "--resume", "--trust", str(settings)]) == 64
    assert f"{settings} calls {told!a}" in " ".join(capsys.readouterr().err.split())


def test_the_network_of_a_checkpoint_is_called_only_where_it_is_of_this_project(project, monkeypatch):
    player = pytest.importorskip("hotloop.train.evaluation")
    (project / "own_net.py").write_text("def Net(shape, outputs): ...\n")
    player.check_network(Path("a.pt"), "")
    player.check_network(Path("a.pt"), "own_net.py:Net")
    with pytest.raises(InputError, match=r"a.pt would call 'os:system', which is not code of this project"):
        player.check_network(Path("a.pt"), "os:system")
    monkeypatch.setenv(player.TRUSTED, "a.pt")
    player.check_network(Path("a.pt"), "os:system")


def test_our_worlds_registered_ids_and_the_projects_own_code_may_be_called(project):
    (project / "mine.py").write_text("from os import system\ndef make(): ...\n")
    (project / "mine_too.py").write_text("def make(): ...\n")
    for name in ("grid/toy", "gym:CartPole-v1", "gym:ALE/Pong-v5", "pettingzoo:sisl.pursuit_v5"):
        assert may_call(name)
    assert may_call("mine.py:make")
    assert may_call("mine_too:make")


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "subprocess:run",
        "gym:os:Foo-v0",
        "pettingzoo:..os",
        "puffer:snake",
        "numpy:load",
        "builtins:exec",
        "mine.py:system",
        "mine.py:run",
        "../beside.py:make",
        "/tmp/x.py:make",
        "linked.py:make",
        ":x",
        "x:",
    ],
)
def test_whatever_else_a_file_names_is_refused(name, project):
    (project / "mine.py").write_text("from os import system\nimport subprocess\nrun = subprocess.run\n")
    (project.parent / "beside.py").write_text("raise SystemExit('ran')\n")
    (project / "linked.py").symlink_to(project.parent / "beside.py")
    assert not may_call(name)
    with pytest.raises(InputError, match="not code of this project"):
        check_calls(Path("a.json"), [Target(name)])


def test_installed_code_is_not_the_projects(project):
    package = project / ".venv" / "lib" / "site-packages"
    package.mkdir(parents=True)
    (package / "theirs.py").write_text("raise SystemExit('ran')\n")
    assert not may_call(f"{package / 'theirs.py'}:make")


def test_a_home_is_not_a_project(project, monkeypatch):
    monkeypatch.setenv("HOME", str(project))
    (project / "a_file.py").write_text("def make(): ...\n")
    assert not may_call("a_file.py:make")


@pytest.mark.parametrize("module", ["since.py:make", "hence:make"])
def test_code_that_was_changed_since_is_said_and_runs_all_the_same(module, project):
    own = project / f"{module.partition(':')[0].removesuffix('.py')}.py"
    own.write_text("def make(): ...")
    source = bundle_that_calls(Target(module), project / "a.bundle")
    os.utime(own, ns=(0, source.stat().st_mtime_ns - 1))
    assert announced(source, [Target(module), Target("grid/toy"), Target("gym:CartPole-v1")], None) == []
    os.utime(own, ns=(0, source.stat().st_mtime_ns + 1))
    (line,) = announced(source, [Target(module), Target(module)], None)
    assert line.startswith(f"{'since.py' if '.py' in module else own} was changed after {source} was written")
    assert announced(source, [Target(module)], source)[1:] == [line]


def test_a_replay_says_that_the_code_was_changed_since(project, capsys):
    own = project / "own.py"
    own.write_text("def make(): return None")
    source = bundle_that_calls(Target("own.py:make"), project / "a.bundle")
    os.utime(own, ns=(0, source.stat().st_mtime_ns + 1))
    main(["validate", "--replay", str(source)])
    assert "own.py was changed after" in " ".join(capsys.readouterr().err.split())
