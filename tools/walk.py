"""Measures which modules of Hotloop a command runs, in all its processes.

`python tools/walk.py` walks the seven commands that have a budget; `python tools/walk.py bench grid/toy`
walks one command line, here, and names its modules. A module counts if one of its functions ran.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "hotloop"
PROGRAMS = ROOT / "tests" / "frozen" / "programs"

FOLDER = "HOTLOOP_WALK"
"""The variable that names the folder in which every process writes down what it runs."""

WALKS = {
    "bench": "bench grid/toy --quick",
    "profile": "profile walk.py:Walk --steps 2000",
    "compare": "compare walk.py:Walk walk.py:Slow --budget 3",
    "validate": "validate grid/toy 500",
    "train": "train prospector/short total_timesteps=2048 num_envs=4 num_steps=32 minibatch_size=128",
    "gate": "gate --only speed",
    "report": "report",
}
"""In this order: the last draws what the others have measured."""

# Every Python process imports a `sitecustomize` that it finds, before any other code. What runs is written
# down at once, because a process may be killed.
OBSERVER = f"""\
import os
import sys
import threading

package = {f"{PACKAGE}{os.sep}"!r}
folder = os.environ.get({FOLDER!r})
codes = set()


def observe(frame, event, argument):
    code = frame.f_code
    if event != "call" or code in codes:
        return
    codes.add(code)
    is_nameless = code.co_name.endswith(">") and "<locals>" not in code.co_qualname
    if code.co_flags & 2 and not is_nameless and code.co_filename.startswith(package):
        line = f"{{code.co_filename[len(package):]}}\\t{{code.co_qualname}}\\n"
        with open(os.path.join(folder, str(os.getpid())), "a", encoding="utf-8") as file:
            file.write(line)


if folder:
    threading.setprofile(observe)
    sys.setprofile(observe)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """What one command line ran."""

    exit_code: int
    processes: int
    """Those that ran a function of Hotloop."""
    functions: frozenset[tuple[str, str]]
    """Module and qualified name."""

    @property
    def modules(self) -> list[str]:
        """Return the modules of which a function ran in any process."""
        return sorted({module for module, _ in self.functions})


def walk(command: Sequence[str], folder: Path) -> Walk:
    """Run a command in a folder, and return what it ran in all its processes."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "sitecustomize.py").write_text(OBSERVER, "utf-8")
        written = place / "written"
        written.mkdir()
        paths = [str(place), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), FOLDER: str(written)}
        done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=False)
        files = [path.read_text("utf-8").splitlines() for path in written.iterdir()]
    pairs = (line.partition("\t") for lines in files for line in lines)
    functions = frozenset((module, function) for module, _, function in pairs)
    return Walk(exit_code=done.returncode, processes=len(files), functions=functions)


def hotloop(line: str) -> list[str]:
    """Return the command of one command line of Hotloop; its words hold no spaces."""
    return [sys.executable, "-m", "hotloop", *line.split()]


def walk_all() -> None:
    """Walk the commands that have a budget, in a folder as a user has it, and print a row each."""
    print(f"{'command':<10}{'exit code':>10}{'processes':>11}{'modules':>9}{'functions':>11}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(PROGRAMS, folder, dirs_exist_ok=True)
        for command, line in WALKS.items():
            found = walk(hotloop(line), folder)
            numbers = f"{found.processes:>11}{len(found.modules):>9}{len(found.functions):>11}"
            print(f"{command:<10}{found.exit_code:>10}{numbers}", flush=True)


def main(words: Sequence[str]) -> int:
    """Walk the command line that is given, or all that have a budget."""
    if not words:
        walk_all()
        return 0
    found = walk([sys.executable, "-m", "hotloop", *words], Path.cwd())
    print("\n".join(found.modules))
    print(f"{len(found.modules)} modules, {len(found.functions)} functions, {found.processes} processes")
    return found.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
