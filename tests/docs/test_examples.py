"""The files of examples/ do what their first lines and the pages say."""

from pathlib import Path

import pytest
from support.pages import blocks

import hotloop
from hotloop.lab.profile import profile

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def warm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "WARMUP", 100)


def named(name: str) -> str:
    return str(EXAMPLES / name)


def test_every_example_is_named_by_a_page() -> None:
    pages = "".join(page.read_text() for page in (EXAMPLES.parent / "docs").glob("*.md"))
    for example in EXAMPLES.iterdir():
        if example.suffix in (".py", ".cpp"):
            assert f"examples/{example.name}" in pages, example.name


def test_the_card_game_is_benched_profiled_compared_and_validated() -> None:
    make, faster = named("cards.py:make"), named("cards.py:faster")
    assert hotloop.bench(make, rounds=6, iterations=50, warmup=20).metrics["episodes_per_s"].median > 0
    told = [phase.path for phase in hotloop.profile(make, steps=100).phases]
    assert "wall/action selection" in told
    compared = hotloop.compare(make, faster, seconds=0.05)
    assert compared.validation is not None
    assert compared.validation.mismatches == 0
    assert hotloop.validate(faster, 200, against=make).exit_code == 0


def test_the_env_of_the_page_is_profiled_by_function_and_policy() -> None:
    record = hotloop.profile(
        named("my_env.py:make"), steps=100, time=["Env._rays"], policy=named("my_env.py:Policy")
    )
    told = {phase.path.rpartition("/")[2] for phase in record.phases}
    assert {"Env._rays", "physics", "policy", "forward", "select"} <= told
    compared = hotloop.compare(named("my_env.py:make"), named("my_env.py:faster"), seconds=0.05)
    assert compared.validation is not None
    assert compared.validation.mismatches == 0


def test_the_env_of_the_page_is_included_and_not_copied() -> None:
    (block,) = (each for each in blocks(EXAMPLES.parent / "docs/your-env.md") if each.word == "my_env.py")
    assert block.text == (EXAMPLES / "my_env.py").read_text()
    assert "class Env" not in (EXAMPLES.parent / "docs/your-env.md").read_text()
