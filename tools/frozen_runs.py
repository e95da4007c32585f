"""The commands whose results `tools/freeze.py` keeps, and how what they left is stored."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
FROZEN = ROOT / "tests" / "frozen"
PROGRAMS = (FROZEN / "programs", ROOT / "tests" / "zoo")
"""What a user's folder holds: programs of both, side by side."""

SHORT = "--rounds 8 --iterations 500 --warmup 500"

RESULTS = {
    "bench": f"bench grid/toy num_envs=4 {SHORT}",
    "bench-reference": f"bench grid/toy impl=reference {SHORT} --phase before",
    "bench-phases": f"bench prospector/short num_envs=8 --profile {SHORT}",
    "bench-goal-missed": f"bench grid/toy --target-steps-per-sec 1e15 --enforce-target {SHORT}",
    "bench-instructions": f"bench grid/toy --instructions {SHORT}",
    "bench-user-env": f"bench walk.py:Walk {SHORT}",
    "bench-unstable": f"bench walk.py:Uneven {SHORT}",
    "bench-vector": f"bench vec.py:V num_envs=4 {SHORT}",
    "bench-modes": "bench prospector/short num_envs=16 --mode env_only,rollout,trainer --rounds 6 "
    "train.num_steps=32 train.minibatch_size=512 train.update_epochs=1",
    "bench-program": "bench --rounds 6 -- python job.py 1000",
    "suite": "bench --suite small --quick",
    "compare-same": "compare walk.py:Walk walk.py:Walk --budget 3",
    "compare-slower": "compare walk.py:Walk walk.py:Slow --budget 3",
    "compare-differ": "compare walk.py:Walk walk.py:Wrong --budget 3",
    "compare-unlike": "compare grid/toy prospector/short --unlike --budget 3",
    "compare-phases": "compare grid/toy 'grid/toy encoder=original' --profile --budget 3",
    "compare-several": "compare walk.py:Walk walk.py:Slow walk.py:Walk --budget 3",
    "compare-programs": "compare --budget 6 -- 'python job.py 1000' 'python job.py 3000000'",
    "compare-trainings": "compare 'prospector/short num_envs=8 train.num_steps=32 train.minibatch_size=256 "
    "train.update_epochs=4' 'prospector/short num_envs=8 train.num_steps=32 train.minibatch_size=256 "
    "train.update_epochs=1' --budget 10",
    "profile": "profile grid/toy num_envs=4 --steps 2000",
    "profile-user-env": "profile walk.py:Walk --steps 2000 --time walk.Walk.look --probe cprofile,memory",
    "profile-program": "profile -- python job.py 1000",
    "profile-games": "profile cards hero=simple villain=random num_games=20",
    "validate": "validate grid/toy 500",
    "validate-differ": "validate walk.py:Wrong 200 --against walk.py:Walk",
    "statistical": "validate walk.py:Walk 64 --against walk.py:Walk --statistical",
    "statistical-differ": "validate walk.py:Wrong 256 --against walk.py:Walk --statistical",
    "scale": "scale grid/toy agents=2,4,8,16 num_envs=4 --repeats 3 --steps 500 --yes",
    "tune": "tune grid/toy num_envs=4,16 threads=1,2 --rounds 6 --confirm 3 --yes",
    "soak": "soak grid/toy num_envs=4 --minutes 0.1",
    "soak-program": "soak --minutes 0.1 -- python job.py 1000",
    "gate-met": "gate --only speed",
    "gate-goal": "gate --only goal",
    "gate-missed": "gate --only missed --no-explain",
    "gate-change": "gate --only change --budget 3",
    "gate-program": "gate --only program",
    "train": "train prospector/short run=tiny total_timesteps=2048 num_envs=4 train.num_steps=32 "
    "train.minibatch_size=128 train.hidden=8",
    "train-dqn": "train gym:CartPole-v1 run=dqn train.algorithm=dqn total_timesteps=1024 num_envs=4 "
    "train.hidden=8",
    "sim": "sim grid/guard player=teacher episodes=2 steps=50 --record guard.npz",
    "sim-games": "sim cards hero=simple villain=random num_games=20",
    "sim-round-robin": "sim cards --round-robin simple,first,random num_games=10",
    "sim-history": "sim farm steps=50 agents=10 --plot farm.png",
    "run": "! python loop.py",
}
"""Name to command line, without `hotloop`; one with `! ` in front is a program."""

AFTER = {"replay": "profile --replay-slow {profile} 1", "tape": "sim --replay guard.npz"}
"""The same for commands that take what an earlier one has left."""

KEPT = {
    "tape.npz": "guard.npz",
    "difference.bundle": "artifacts/throughput/*Wrong*.bundle",
    "tiny": "train_dir/tiny",
    "dqn": "train_dir/dqn",
}
"""Files and folders that later versions must read: name under `files` to where a command has left it."""

MACHINE = {
    "fingerprint": "0123456789ab",
    "cpu": "Example CPU",
    "kernel": "1.2.3",
    "load": 0.1,
    "steal_share": 0.0,
    "governor": None,
    "clocksource": "tsc",
}
"""What stored results say of their machine: one that is fit, so that no verdict depends on this one."""

COMMIT = "0123456789abcdef0123456789abcdef01234567"

SWEEPS = "sweeps"
"""The folder of a sweep's cells, whose records are parts of others."""

NOISE = ("busy-machine", "stolen-time", "governor", "slow-clock", "dirty", "cpu-limit")
"""Notices about the machine and the checkout that a result was made with."""

PLACE = "/home/user/project"


def make_results(folder: Path, names: Sequence[str] = ()) -> Iterator[tuple[str, str, Path]]:
    """Run the commands of all results, or of some; yield each record with its name and its command."""
    prepare(folder)
    first: dict[str, Path] = {}
    for name, words in {**RESULTS, **AFTER}.items():
        if names and name not in names:
            continue
        before = set(folder.rglob("*.json"))
        line = words.format(**first)
        code, screen = run(line, folder)
        records = [
            path
            for path in sorted(set(folder.rglob("*.json")) - before)
            if is_record(path) and SWEEPS not in path.parts
        ]
        print(f"{name}: exit code {code}, {len(records)} records", flush=True)
        if not records:
            raise SystemExit(f"{line}: left no record\n{screen}")
        for number, path in enumerate(records, 1):
            first.setdefault(name, path)
            yield (name if number == 1 else f"{name}-{number}"), words, path


def prepare(folder: Path) -> None:
    """Copy the programs into a folder, and commit them."""
    for programs in PROGRAMS:
        shutil.copytree(programs, folder, dirs_exist_ok=True)
    me = ("-c", "user.name=user", "-c", "user.email=user@localhost")
    ignored = "artifacts/\n.design/\ntrain_dir/\n__pycache__/\n"
    (folder / ".gitignore").write_text(ignored, "utf-8")
    for words in (("init", "-q"), ("add", "."), (*me, "commit", "-qm", "Begin")):
        subprocess.run(["git", *words], cwd=folder, check=True)


def run(line: str, folder: Path) -> tuple[int, str]:
    """Run a command of Hotloop, or a program, in a folder; return its exit code and what it printed."""
    bin_folder = Path(sys.executable).parent
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    command = line.removeprefix("! ") if line.startswith("! ") else f"hotloop {line}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return done.returncode, done.stdout + done.stderr


def is_record(path: Path) -> bool:
    """Return whether a file is a record, and not what lies beside one."""
    plain = json.loads(path.read_text("utf-8"))
    return isinstance(plain, dict) and {"schema", "kind", "run_id"} <= plain.keys()


def scrub(text: str, folder: Path) -> str:
    """Return the text of a record without this machine's paths, commits and names, and without its hash."""
    for place in (folder, ROOT, Path.home(), Path(sys.prefix)):
        text = text.replace(str(place.resolve()), PLACE).replace(str(place), PLACE)
    text = text.replace(folder.name, "project").replace(socket.gethostname(), "machine")
    for repository in (folder, ROOT):
        text = without_commit(text, repository)
    plain = json.loads(text)
    plain.pop("content_hash", None)
    if "notices" in plain:
        plain["notices"] = [each for each in plain["notices"] if each["code"] not in NOISE]
        plain["code"]["dirty"] = False
    return json.dumps(scrub_machine(plain), indent=1) + "\n"


def without_commit(text: str, repository: Path) -> str:
    """Replace a repository's commit, at whatever length it is written."""
    words = ["git", "rev-parse", "HEAD"]
    done = subprocess.run(words, cwd=repository, capture_output=True, text=True, check=True)
    commit = done.stdout.strip()
    return re.sub(rf"\b{commit[:7]}[0-9a-f]*", lambda found: COMMIT[: len(found.group())], text)


def scrub_machine(plain: Any) -> Any:
    """Replace what a record says of its machine, wherever in it."""
    if isinstance(plain, list):
        return [scrub_machine(each) for each in plain]
    if not isinstance(plain, dict):
        return plain
    known = MACHINE if "fingerprint" in plain else {}
    return {key: known[key] if key in known else scrub_machine(value) for key, value in plain.items()}
