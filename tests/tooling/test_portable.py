"""Native code compiles for other processors: the headers of one stand only where it is asked for."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("native", "src/hotloop/worlds", "src/hotloop/include")
HEADER = re.compile(r"^#include <(\w*mmintrin|x86intrin|cpuid|arm_neon|intrin)\.h>", re.MULTILINE)
ONE_SET = ("_avx2.cpp", "_avx512.cpp")
"""Files that CMake leaves out where the processor has no such instructions."""
FOR_THEM = ("native/engine/simd.h",)
"""Headers that only such files include."""

SOURCES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.[hc]*")) if path.is_file()]
WITH_HEADERS = [
    path
    for path in SOURCES
    if path.suffix in (".h", ".cpp", ".cuh", ".cu") and HEADER.search(path.read_text("utf-8"))
]


def is_guarded(text: str, place: int) -> bool:
    """Whether a place in a file stands inside an #if that names a processor."""
    opened: list[str] = []
    for line in text[:place].splitlines():
        if line.startswith("#if"):
            opened.append(line)
        elif line.startswith("#endif"):
            opened.pop()
    return any("__x86_64__" in line or "__aarch64__" in line for line in opened)


@pytest.mark.parametrize("path", WITH_HEADERS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_processors_header_is_guarded(path: Path) -> None:
    name, text = path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
    assert (
        name.endswith(ONE_SET)
        or name in FOR_THEM
        or all(is_guarded(text, found.start()) for found in HEADER.finditer(text))
    )


def test_a_header_without_a_guard_would_be_seen() -> None:
    assert WITH_HEADERS
    assert not is_guarded("#if defined(X)\n#include <immintrin.h>\n#endif", 16)
    assert not is_guarded("#if defined(__x86_64__)\n#endif\n", 31)
    assert is_guarded("#if defined(__x86_64__)\n", 24)
