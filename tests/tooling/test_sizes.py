from collections.abc import Callable
from pathlib import Path

import pytest

from cpp_functions import cpp_functions
from sizes import MAX_FILE_LINES, MAX_FUNCTION_LINES, excesses, main


def python_function(lines: int) -> str:
    return "def f():\n" + "    pass\n" * (lines - 1)


def cpp_function(lines: int) -> str:
    return "int f() {\n" + "  g();\n" * (lines - 2) + "}\n"


@pytest.mark.parametrize(("name", "function"), [("a.py", python_function), ("a.cpp", cpp_function)])
def test_a_function_may_be_as_long_as_the_limit_and_no_longer(
    name: str, function: Callable[[int], str]
) -> None:
    assert list(excesses(Path(name), function(MAX_FUNCTION_LINES))) == []
    (excess,) = excesses(Path(name), function(MAX_FUNCTION_LINES + 1))
    assert str(excess) == f"{name}:1: f has 61 lines, at most 60 are allowed"


@pytest.mark.parametrize("name", ["a.py", "a.h"])
def test_a_file_may_be_as_long_as_the_limit_and_no_longer(name: str) -> None:
    assert list(excesses(Path(name), "\n" * MAX_FILE_LINES)) == []
    (excess,) = excesses(Path(name), "\n" * (MAX_FILE_LINES + 1))
    assert (excess.what, excess.lines) == ("file", MAX_FILE_LINES + 1)


def test_a_long_function_anywhere_in_the_tree_fails_the_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "src" / "hotloop" / "core"
    home.mkdir(parents=True)
    (home / "clock.py").write_text("import os\n")
    assert main(tmp_path) == 0
    (home / "clock.py").write_text(python_function(100))
    assert main(tmp_path) == 1
    assert "src/hotloop/core/clock.py:1: f has 100 lines" in capsys.readouterr().out


def test_hidden_folders_are_not_looked_into(tmp_path: Path) -> None:
    hidden = tmp_path / "benchmarks" / ".envs"
    hidden.mkdir(parents=True)
    (hidden / "long.py").write_text("\n" * 1000)
    assert main(tmp_path) == 0


CPP = """\
#define OPEN(x) { x
namespace hl {
// A comment with a brace {
struct alignas(64) State {
  int a = 0;
  State(int n) : a{n}, b_{1, 2} {
    a = '{';
  }
  bool operator()(int x) const { return x > 1'000; }
};
enum class Kind : int { one, two };
constexpr int table[] = {1, 2,
                         3};
template <class T>
T twice(T x) {
  auto add = [](T y) {
    return y + y;
  };
  if (x) { return add(x); }
  return R"({)"[0];
}
extern "C" {
int c_function(void) {
  return 0;
}
}
}  // namespace hl
"""


def test_functions_of_cpp_are_found_with_their_first_and_last_line() -> None:
    assert list(cpp_functions(CPP)) == [
        ("State", 6, 8),
        ("operator()", 9, 9),
        ("twice", 14, 21),
        ("c_function", 23, 25),
    ]
