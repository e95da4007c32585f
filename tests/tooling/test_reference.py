"""The reference pages are what the code declares."""

from pathlib import Path

import pytest

import reference
from hotloop.core.errors import Code, ExitCode
from hotloop.options.option import HOMES, describe, options_of


def test_the_pages_are_current() -> None:
    assert reference.main(["--check"]) == 0


def test_a_page_that_is_not_current_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reference, "DOCS", tmp_path)
    assert reference.main(["--check"]) == 1
    assert reference.main([]) == 0
    assert reference.main(["--check"]) == 0
    (tmp_path / "commands.md").write_text("something else")
    capsys.readouterr()
    assert reference.main(["--check"]) == 1
    assert "commands.md; run" in capsys.readouterr().err


def test_every_command_option_code_and_warning_is_there() -> None:
    commands, warnings = reference.commands_page(), reference.warnings_page()
    for name in HOMES:
        _, _, section = commands.partition(f"\n### hotloop {name}\n")
        section = section.partition("\n### ")[0]
        for about in describe(options_of(name)).values():
            assert about.is_argument or f"`{about.flags[-1]}" in section, (name, about.flags)
    assert all(f"\n### {code.value}\n" in warnings for code in Code)
    assert all(f"\n| {code.value} | " in warnings for code in ExitCode)


def test_a_command_without_a_group_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "HOMES", {**HOMES, "fly": "misc"})
    assert reference.main(["--check"]) == 1
