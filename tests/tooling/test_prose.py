"""Sentences that need a second reading are found, and their share may only fall."""

from pathlib import Path

import pytest

import prose


@pytest.mark.parametrize(
    "text",
    [
        "What ran is read back, and what is missing is said so.",
        "Where it is held against the twin, nobody is told.",
        "Of somebody's env, whatever comes to light is said of the record.",
    ],
)
def test_a_riddle_is_hard(text: str) -> None:
    assert prose.judge("page.md", text).is_hard


@pytest.mark.parametrize(
    "text",
    [
        "Hotloop reads what ran from native counters.",
        "If the run is too short, Hotloop prints no interval.",
        "Pass `--rounds 20` to measure longer.",
    ],
)
def test_a_plain_sentence_is_not(text: str) -> None:
    assert not prose.judge("page.md", text).is_hard


def test_only_prose_is_read(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A title\n\nOne sentence. Another, [linked](to.md).\nIt goes on.\n\n"
        "```bash\nWhat is said is told of.\n```\n\n- an item\n- a second one\n\n"
        "| a | b |\n| --- | --- |\n| short | a cell of more than five words here |\n"
    )
    found = [each for block in prose.texts(page) for each in prose.split_sentences(block)]
    assert found == [
        "One sentence.",
        "Another, [linked].",
        "It goes on.",
        "an item",
        "a second one",
        "a cell of more than five words here",
    ]


def test_docstrings_and_comments_are_read(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        '"""Of a module."""\n\nLIMIT = 3  # Seconds\n\n\n'
        'def f() -> None:\n    """Do it.\n\n    At once.\n    """\n'
    )
    assert list(prose.texts(module)) == ["Of a module.", "Do it.", "At once.", "Seconds"]


def test_a_share_above_its_budget_fails_and_writing_only_lowers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page, module, budget = tmp_path / "page.md", tmp_path / "module.py", tmp_path / "prose.toml"
    page.write_text("What ran is said so, where it is so.\n\nA plain sentence.\n")
    module.write_text('"""A plain sentence."""\n')
    for name, value in (("ROOT", tmp_path), ("BUDGET", budget)):
        monkeypatch.setattr(prose, name, value)
    monkeypatch.setattr(prose, "pages", lambda: [page])
    monkeypatch.setattr(prose, "modules", lambda: [module])
    assert prose.main([]) == 0
    budget.write_text("docs = 40.0\ndocstrings = 0.0\n")
    assert prose.main([]) == 1
    assert prose.main(["--write"]) == 1
    assert "docs = 40.0" in budget.read_text()
    page.write_text("A plain sentence.\n")
    assert prose.main(["--write"]) == 0
    assert "docs = 0.0" in budget.read_text()
