"""The sources of a target are hashed, and a change of one is noticed: during a run, and between two."""

import sys
from pathlib import Path

import pytest

from hotloop.core.machine import changed_sources, named_sources, read_sources, unlike_sources
from hotloop.core.target import Target
from hotloop.judge.compare import changes_between
from hotloop.lab.bench import Extras, bench
from hotloop.lab.compare.compare import CompareSettings, compare
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure.loop import Plan, Rounds

ENV = """
from pathlib import Path
import {prefix}_helper

class Env:
    num_actions = 2

    def reset(self, seed=None):
        return 0.0, {{}}

    def step(self, action):
        return 0.0, 1.0, False, False, {{}}

def rewriter():
    helper = Path({prefix}_helper.__file__)
    helper.write_text(helper.read_text() + "# more\\n")
    return Env()
"""

BRIEF = CompareSettings(plan=Plan(budget_ns=100_000_000))

ROUNDS = Rounds(count=6, iterations=10, warmup=10, box_iterations=False)


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A name of its own for every test's modules, since an imported one stays."""
    prefix = f"sources_{abs(hash(tmp_path))}"
    (tmp_path / f"{prefix}_env.py").write_text(ENV.format(prefix=prefix))
    (tmp_path / f"{prefix}_helper.py").write_text("")
    (tmp_path / "unused.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield prefix
    for name in [each for each in sys.modules if each.startswith(prefix)]:
        del sys.modules[name]


def codes(record: object) -> list[str]:
    return [each.code for each in record.notices]


def test_the_loaded_files_beside_a_target_are_its_sources(prefix: str) -> None:
    name = f"{prefix}_env.py:Env"
    record = bench(Target(name), ROUNDS)
    assert record.code["project"]["sources"].keys() == {f"{prefix}_env.py", f"{prefix}_helper.py"}
    before = read_sources(name)
    assert named_sources(before, name) == record.code["project"]["sources"]
    assert not changed_sources(before)
    Path(f"{prefix}_helper.py").write_text("more = 1\n")
    assert changed_sources(before) == [f"{prefix}_helper.py"]
    assert unlike_sources(before, read_sources(name)) == [str(Path(f"{prefix}_helper.py").resolve())]


def test_what_is_installed_and_presets_have_no_sources() -> None:
    assert read_sources("gym:CartPole-v1") == {}
    assert read_sources("grid/toy") == {}
    assert read_sources("json.decoder:JSONDecoder") == {}
    assert read_sources("pytest:main") == {}


def test_a_side_that_rewrites_the_other_ones_file_is_a_warning(prefix: str) -> None:
    a, b = (TargetContender(Target(f"{prefix}_env.py:{name}")) for name in ("Env", "rewriter"))
    record = compare(a, b, BRIEF)
    (said,) = [each for each in record.notices if each.code == "sources-changed"]
    assert f"{prefix}_helper.py" in said.text


def test_a_comparison_that_changes_nothing_says_nothing(prefix: str) -> None:
    a, b = (TargetContender(Target(f"{prefix}_env.py:Env")) for _ in "ab")
    record = compare(a, b, BRIEF)
    assert "sources-changed" not in codes(record)
    assert all(
        "sources" in each.code["project"] for each in (record.comparisons[0].a, record.comparisons[0].b)
    )


def test_a_change_since_the_baseline_is_a_warning(prefix: str) -> None:
    target = Target(f"{prefix}_env.py:Env")
    baseline = bench(target, ROUNDS)
    assert not changes_between(baseline, baseline)
    Path(f"{prefix}_helper.py").write_text("more = 1\n")
    later = bench(target, ROUNDS, extras=Extras(baselines=(baseline,)))
    (said,) = [each for each in later.notices if each.code == "sources-differ"]
    assert f"{prefix}_helper.py changed since {baseline.run_id}" in said.text
