"""The GPUs of this machine, as the NVIDIA driver names them."""

import shutil
import subprocess
from typing import Any

QUERY = ["--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits"]
PATIENCE_S = 20


def gpu() -> dict[str, Any] | None:
    """Name, count, memory and driver of the first GPU and its likes; None where there is none."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, *QUERY], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse(done.stdout) if done.returncode == 0 else None


def parse(answer: str) -> dict[str, Any] | None:
    """Read lines of `name, MiB, driver`, one a GPU."""
    rows = [line.split(", ") for line in answer.splitlines() if line.strip()]
    if not rows:
        return None
    name, mebibytes, driver = rows[0]
    memory_bytes = int(mebibytes) << 20 if mebibytes.isdigit() else None  # some boards answer [N/A]
    return {"name": name, "count": len(rows), "memory_bytes": memory_bytes, "driver": driver}
