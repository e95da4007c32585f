"""Runs tests with the native modules of another build in the place of the installed ones.

    python tools/boundary.py build/boundary tests/hostile/test_boundary.py

A sanitizer that they were built with must be there before Python is: it is preloaded.
"""

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import run

NAMES = ("hotloop._native", "hotloop.train._kernels")
USAGE_ERROR = 64

OPTIONS = {
    # Python itself keeps some memory to its end; and a test may ask for more than there is.
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


def module_in(folder: Path, name: str) -> Path:
    """The module of a name that was built in a folder."""
    found = sorted(folder.glob(f"{name.rpartition('.')[2]}.*.so"))
    if not found:
        print(f"boundary: no {name} in {folder}: build it first", file=sys.stderr)
        raise SystemExit(USAGE_ERROR)
    return found[0]


def sanitizers(module: Path) -> Iterator[str]:
    """The libraries of sanitizers that a module needs, and C++'s own: it must know who throws."""
    for line in run(["ldd", str(module)], capture_output=True, text=True, check=True).stdout.splitlines():
        words = line.split()
        if "=>" in words and words[0].partition(".")[0] in ("libasan", "libtsan", "libstdc++"):
            yield words[2]


def take_the_place(name: str, module: Path) -> None:
    """Load a module under the name of the installed one."""
    loader = importlib.machinery.ExtensionFileLoader(name, str(module))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    loaded = importlib.util.module_from_spec(spec)
    loader.exec_module(loaded)
    sys.modules[name] = loaded


def main() -> int:
    folder, words = Path(sys.argv[1]), sys.argv[2:]
    modules = {name: module_in(folder, name) for name in NAMES}
    if "LD_PRELOAD" not in os.environ:
        needed = {each for module in modules.values() for each in sanitizers(module)}
        variables = {**os.environ, **OPTIONS, "LD_PRELOAD": ":".join(sorted(needed))}
        os.execve(sys.executable, [sys.executable, *sys.argv], variables)
    import pytest

    for name, module in modules.items():
        take_the_place(name, module)
    return int(pytest.main(["-q", "--capture=sys", "-p", "no:cacheprovider", *words]))


if __name__ == "__main__":
    sys.exit(main())
