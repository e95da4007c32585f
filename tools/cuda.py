"""Builds the engine for GPUs from the source tree, runs its tests and the table of docs/cuda.md.

`./check cuda` runs it with the Python at hand, which has torch, NumPy, nanobind, scikit-build-core and
pytest; nothing is fetched, and what is built stays in build/. Without a GPU or nvcc it says so and is fine.
"""

import os
import shutil
import sys
from pathlib import Path
from subprocess import DEVNULL, run

ROOT = Path(__file__).parent.parent
BUILT = ROOT / "build" / "cuda"

BUILD = (
    *("-m", "pip", "--disable-pip-version-check", "install", "-q", "--upgrade"),
    *("--no-build-isolation", "--no-deps", "--target", str(BUILT)),
    *("-C", "cmake.define.HOTLOOP_CUDA=ON", "."),
)
STEPS: dict[str, tuple[str, ...]] = {
    "build": BUILD,
    "tests": (
        *("-m", "pytest", "-q", "-p", "no:cacheprovider"),
        *("tests/envs/test_cuda.py", "tests/train/test_device.py"),
    ),
    "speed": ("benchmarks/cuda.py",),
    "training": ("benchmarks/cuda_training.py",),
}


def why_not() -> str | None:
    """Why nothing of it can run here; None where it can."""
    if shutil.which("nvcc") is None:
        return "no nvcc on the PATH"
    seen = shutil.which("nvidia-smi")
    if seen is None or run((seen, "-L"), stdout=DEVNULL, stderr=DEVNULL, check=False).returncode != 0:
        return "no NVIDIA GPU that nvidia-smi knows"
    return None


def main() -> int:
    missing = why_not()
    if missing is not None:
        print(f"cuda    SKIPPED: {missing}, so nothing was built for a GPU or tested on one")
        return 0
    env = {**os.environ, "PYTHONPATH": str(BUILT)}
    for name, words in STEPS.items():
        print(f"cuda    {name}", flush=True)
        done = run((sys.executable, *words), cwd=ROOT, env=env, check=False)
        if done.returncode != 0:
            print(f"cuda    {name} FAILED", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
