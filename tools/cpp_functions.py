"""Finds the functions of a C++ file by its braces, well enough to measure their length.

A brace that follows a parameter list opens a function; one that follows namespace, class, struct, union,
enum or extern opens a scope that is looked into; any other holds data. What stands inside a function belongs
to it.
"""

import re
from collections.abc import Iterator

BLANKED = re.compile(
    r"""
      //[^\n]*                              # line comment
    | /\*.*?\*/                             # block comment
    | R"(?P<mark>[^(\s"]*)\(.*?\)(?P=mark)" # raw string
    | "(?:\\.|[^"\\\n])*"                   # string
    | (?<!\w)'(?:\\.|[^'\\\n])+'            # character; a ' after a digit only groups digits
    | ^[ \t]*\#(?:\\\n|[^\n])*              # preprocessor line, with its continuations
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
ATTRIBUTE = re.compile(r"\b(?:alignas|__attribute__)\s*\((?:[^()]|\([^()]*\))*\)")
SCOPE = re.compile(r"\b(?:namespace|class|struct|union|enum|extern)\b")
NAME = re.compile(r"(operator\s*\S+?|[\w:~]+)\s*\(")

Function = tuple[str, int, int]


def cpp_functions(text: str) -> Iterator[Function]:
    """Yield the name, first and last line of every function outside other functions."""
    code = BLANKED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    head_start = 0
    position = 0
    while mark := re.compile(r"[{};]").search(code, position):
        position = mark.end()
        head = code[head_start : mark.start()]
        if mark[0] != "{":
            head_start = position
        elif opens_function(head):
            position = end_of_body(code, mark.start())
            yield name_of(head), line_of_first_word(code, head_start), line_at(code, position - 1)
            head_start = position
        elif SCOPE.search(head):
            head_start = position
        else:
            position = end_of_block(code, mark.start())


def opens_function(head: str) -> bool:
    return "(" in ATTRIBUTE.sub("", head) and not head.rstrip().endswith("=")


def name_of(head: str) -> str:
    match = NAME.search(ATTRIBUTE.sub("", head))
    return match[1] if match else "function"


def end_of_block(code: str, opening: int) -> int:
    """Return the position behind the brace that closes the one at `opening`."""
    depth = 0
    for mark in re.compile(r"[{}]").finditer(code, opening):
        depth += 1 if mark[0] == "{" else -1
        if depth == 0:
            return mark.end()
    return len(code)


def end_of_body(code: str, opening: int) -> int:
    """Return the position behind a function's body, past the braces of its member initialisers."""
    end = end_of_block(code, opening)
    while more := re.compile(r"\s*(?:,[^{};]*)?{").match(code, end):
        end = end_of_block(code, more.end() - 1)
    return end


def line_at(code: str, position: int) -> int:
    return code.count("\n", 0, position) + 1


def line_of_first_word(code: str, start: int) -> int:
    word = re.compile(r"\S").search(code, start)
    return line_at(code, word.start() if word else start)
