"""The stubs of the native modules say what the modules have."""

import ast
import copyreg
import importlib

import pytest

from hotloop.envs import native
from stubs import MODULES, path_of, stub

pytestmark = pytest.mark.skipif(native.load_native() is None, reason="the native modules are not built")


@pytest.mark.parametrize("name", MODULES)
def test_a_stub_is_what_the_module_would_be_written_as(name: str) -> None:
    assert path_of(name).read_text("utf-8") == stub(name), "run ./.venv/bin/python tools/stubs.py"


def test_a_class_that_was_copied_has_the_same_stub() -> None:
    module = importlib.import_module("hotloop._native")
    classes = [each for each in vars(module).values() if isinstance(each, type)]
    for each in classes:
        copyreg._slotnames(each)  # type: ignore[attr-defined]  # what copy and pickle call
    assert any("__slotnames__" in vars(each) for each in classes)
    assert path_of("hotloop._native").read_text("utf-8") == stub("hotloop._native")


@pytest.mark.parametrize("name", [*MODULES, "hotloop.core._spans"])
def test_a_stub_names_all_there_is(name: str) -> None:
    declared: set[str] = set()
    for node in ast.parse(path_of(name).read_text("utf-8")).body:
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                declared.add(node.name)
            case ast.AnnAssign(target=ast.Name(id=word)):
                declared.add(word)
            case ast.ImportFrom(module=str(where)) if where.startswith("hotloop"):
                declared |= {each.name for each in node.names}
    there = {word for word in dir(importlib.import_module(name)) if not word.startswith("__")}
    assert declared == there
