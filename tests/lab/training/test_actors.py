"""Actors of a Ray that is started for a training, and what is left when its own process is killed."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from hotloop.core.errors import ExitCode
from hotloop.train.checkpoint import newest_whole, read

PROGRAM = "import sys; from hotloop.cli.main import main; sys.exit(main())"

WORDS = ("prospector/short", "num_envs=4", "num_steps=8", "minibatch_size=32", "hidden=8", "run=cut")

ON_RAY = ("train.collect=ray", "train.actors=2", "checkpoint_every=0", "log_every=1")


@pytest.mark.slow
def test_a_raylet_that_is_killed_is_said_in_one_line_and_costs_the_update_under_way(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: nothing of it is tested")
    apart = {name: value for name, value in os.environ.items() if name != "HOTLOOP_IN_PROCESS"}
    command = [sys.executable, "-P", "-c", PROGRAM, "train", *WORDS, *ON_RAY, "total_timesteps=1000000000"]
    run = subprocess.Popen(
        command, cwd=tmp_path, env=apart, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert run.stderr is not None
    assert any(line.startswith("epoch 3,") for line in run.stderr)
    below = psutil.Process(run.pid).children(recursive=True)
    [raylet] = [each for each in below if each.name() == "raylet"]
    raylet.kill()
    _, said = run.communicate(timeout=60)
    lines = [line for line in said.splitlines() if not line.startswith(("epoch ", "[20"))]  # Ray's log
    assert lines[-1].startswith(("hotloop: Ray's own process on this machine is gone", "hotloop: the act"))
    assert len(lines) <= 2, said  # an error that Ray lives to raise is said after what was saved
    assert run.returncode == ExitCode.FAULT
    assert not psutil.wait_procs(below, timeout=20)[1], "nothing is left of Ray"
    place = tmp_path / "train_dir" / "cut"
    kept, damaged = newest_whole(place / "checkpoints")
    assert kept is not None
    assert not damaged
    finished = len((place / "logs" / "metrics.jsonl").read_text().splitlines())
    assert read(kept)["updates"] == finished >= 3
