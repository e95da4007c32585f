"""Compiles every world's rules as CUDA device code, as they would run on a GPU; none is needed for it.

A world is a folder that holds a header of its name; the template of new worlds is filled in and is one too.
"""

import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import PIPE, STDOUT, run
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
WORLDS = Path("src/hotloop/worlds")
SOURCE = "native/tests/device.cu"
TEMPLATE = "corridor"
"""What the template's world is called here."""
FLAGS = (
    *("-std=c++20", "-fmad=false", "-ptx"),
    *("-Werror", "all-warnings"),  # a rule that calls the host is only warned of
    "-Inative",
    f"-I{WORLDS}",
)


def worlds(root: Path = ROOT) -> Iterator[str]:
    """The names of all worlds."""
    for folder in sorted((root / WORLDS).iterdir()):
        if (folder / f"{folder.name}.h").is_file():
            yield folder.name


def fill_template(folder: Path, root: Path = ROOT) -> None:
    """Write the header of a new world into a folder."""
    text = (root / WORLDS / "_template/world.h.in").read_text(encoding="utf-8")
    header = folder / TEMPLATE / f"{TEMPLATE}.h"
    header.parent.mkdir()
    header.write_text(text.replace("@name@", TEMPLATE), encoding="utf-8")


def compiled(nvcc: str, world: str, folder: Path, root: Path = ROOT) -> tuple[bool, str]:
    """Whether a world compiles, and what the compiler said."""
    own = (f"-I{folder}", f"-DHL_WORLD={world}", "-include", f"{world}/{world}.h")
    command = (nvcc, *FLAGS, *own, "-o", str(folder / f"{world}.ptx"), SOURCE)
    done = run(command, cwd=root, stdout=PIPE, stderr=STDOUT, text=True, check=False)
    return done.returncode == 0, done.stdout


def main() -> int:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        print("device  SKIPPED: no nvcc on the PATH, so no world was compiled as device code")
        return 0
    with TemporaryDirectory() as temporary, ThreadPoolExecutor(2) as crew:
        folder = Path(temporary)
        fill_template(folder)
        names = [*worlds(), TEMPLATE]
        results = list(crew.map(lambda name: compiled(nvcc, name, folder), names))
    failed = [name for name, (fine, _) in zip(names, results, strict=True) if not fine]
    for _, said in results:
        sys.stdout.write(said)
    for name in failed:
        print(f"{name} does not compile as device code")
    if not failed:
        print(f"device code: {', '.join(names)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
