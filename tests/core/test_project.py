from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from hotloop.core import project
from hotloop.core.errors import InputError
from hotloop.core.project import Budget, find, parse, places, put_budget, read
from hotloop.core.settings import Target

WHOLE = """
[suite.nightly]
items = [
  { target = "grid/toy" },
  { target = "grid/arena", keys = { agents = 100 }, do = "profile" },
  { target = "grid/toy", do = "compare", against = "grid/toy encoder=original" },
]

[budget.speed]
target = "grid/arena"
keys = { agents = 24 }
metric = "env_steps_per_s"
max_change = "5%"
against = "main"
reason = "rollouts are most of a training's time"
owner = "sim team"
expires = 2027-01-31

[budget.memory]
target = "-- python train.py"
metric = "rss_peak_bytes"
limit = 2e9
enforce = false
"""


def test_suites_and_budgets_are_read() -> None:
    read = parse(WHOLE)
    first, second, third = read.suites["nightly"].items
    assert (first.target, first.do) == (Target("grid/toy"), "bench")
    assert (second.target.keys, second.do, second.line) == ({"agents": 100}, "profile", 5)
    assert third.against == Target("grid/toy", {"encoder": "original"})
    speed, memory = read.budgets["speed"], read.budgets["memory"]
    assert (speed.max_change, speed.against, speed.expires) == (0.05, "main", date(2027, 1, 31))
    assert (speed.line, speed.enforce, speed.words) == (9, True, "grid/arena agents=24")
    assert (memory.program, memory.limit, memory.enforce) == ("python train.py", 2e9, False)


BUDGET = '[budget.b]\ntarget = "grid/toy"\nmetric = "env_steps_per_s"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[budget.b\n", "line 1"),
        ('a = 1\n[budget.b]\ntarget = "x"\n', "line 1: a: unknown key 'a': the keys are suite, budget"),
        (
            BUDGET + 'limit = 1\nowners = "me"\n',
            "line 5: budget.b.owners: unknown key 'owners': did you mean owner",
        ),
        (BUDGET + 'limit = "fast"\n', "line 4: budget.b.limit: expected a number of at least 0, got 'fast'"),
        (BUDGET + "limit = nan\n", "line 4: budget.b.limit: expected a number"),
        (
            BUDGET + 'max_change = "5 percent"\nagainst = "x"\n',
            "line 4: budget.b.max_change: expected a change such",
        ),
        (
            BUDGET + 'max_change = "-5%"\nagainst = "x"\n',
            "line 4: budget.b.max_change: expected a number of at least 0",
        ),
        (
            BUDGET + "max_change = 5\nagainst = 'x'\n",
            "line 4: budget.b.max_change: expected a change above 0%",
        ),
        (BUDGET + 'max_change = "5%"\n', "line 1: budget.b: max_change and against belong together"),
        (BUDGET, "line 1: budget.b: give either limit or max_change"),
        (
            BUDGET + "limit = 1\nmax_change = 0.1\nagainst = 'x'\n",
            "line 1: budget.b: give either limit or max_change",
        ),
        (BUDGET + 'limit = 1\nexpires = "soon"\n', "line 5: budget.b.expires: expected a day such as"),
        (BUDGET + "limit = 1\nenforce = 1\n", "line 5: budget.b.enforce: expected true or false"),
        (BUDGET + "limit = 1\nkeys = { a = [1] }\n", "line 5: budget.b.keys.a: expected one value"),
        ('[budget.b]\nmetric = "runs_per_s"\n', "line 1: budget.b: lacks target"),
        (
            BUDGET.replace("env_steps", "steps") + "limit = 1\n",
            "line 3: budget.b.metric: unknown metric 'steps_per_s'",
        ),
        (
            BUDGET.replace("env_steps_per_s", "phase") + "limit = 1\n",
            "line 3: budget.b.metric: phase needs a name",
        ),
        (
            BUDGET.replace("_per_s", "_per_s:x") + "limit = 1\n",
            "line 3: budget.b.metric: env_steps_per_s takes no name",
        ),
        (
            BUDGET.replace("env_steps_", "runs_") + "limit = 1\n",
            "line 3: budget.b.metric: runs_per_s is of programs",
        ),
        (
            BUDGET.replace("grid/toy", "-- true") + "limit = 1\n",
            "line 3: budget.b.metric: env_steps_per_s is not known of a program",
        ),
        ('[budget]\n"a b" = 1\n', "line 2: budget.a b: a name has letters"),
        ("[budget]\nb = 1\n", "line 2: budget.b: expected a table, got 1"),
        ("suite = 1\n", "line 1: suite: expected a table, got 1"),
        ("[suite.s]\n", "line 1: suite.s.items: expected a list of at least one item, got None"),
        (
            "[suite.s]\nitems = [\n { target = 'a' },\n { do = 'x', target = 'a'}]\n",
            "line 4: suite.s.items.1.do: unknown word",
        ),
        ("[suite.s]\nitems = [\n { target = 'a' },\n 3]\n", "items.1: expected a table, got 3"),
        ("[suite.s]\nitems = [{ target = 'a', keyz = 1 }]\n", "line 2: suite.s.items.0.keyz: unknown key"),
        (
            "[suite.s]\nitems = [{ target = 'a', do = 'compare' }]\n",
            'line 2: suite.s.items.0: do = "compare" and against',
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_line_and_key(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_nearest_file_upward_is_found(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "hotloop.toml").write_text(WHOLE)
    assert find(inner).path == tmp_path / "hotloop.toml"
    (tmp_path / "a" / "hotloop.toml").write_text("")
    assert find(inner).budgets == {}
    assert find(inner).folder == tmp_path / "a"


def test_a_name_that_is_not_there_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="unknown budget 'sped': did you mean speed"):
        parse(WHOLE).budget("sped")
    with pytest.raises(InputError, match=r"unknown suite 'x': hotloop.toml has nightly"):
        parse(WHOLE).suite("x")


def test_a_budget_is_written_in_place_and_comments_stay(tmp_path: Path) -> None:
    path = tmp_path / "hotloop.toml"
    path.write_text(
        "# ours\n[budget.speed] # the floor\ntarget = 'grid/toy'\nmetric = 'env_steps_per_s'\n"
        "limit = 5 # low\nowner = 'me'\n"
    )
    put_budget(path, Budget(name="speed", target="grid/toy", metric="env_steps_per_s", limit=7.0))
    put_budget(
        path,
        Budget(
            name="new", target="m:f", keys={"n": 3}, metric="rss_peak_bytes", max_change=0.05, against="main"
        ),
    )
    text = path.read_text()
    assert text.startswith("# ours\n[budget.speed] # the floor\n")
    assert "limit = 7 # low\n" in text
    read = project.read(path)
    assert (read.budgets["speed"].limit, read.budgets["speed"].owner) == (7.0, "me")
    new = read.budgets["new"]
    assert (new.max_change, new.against, new.keys) == (0.05, "main", {"n": 3})


def test_a_budget_that_becomes_relative_loses_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "hotloop.toml"
    put_budget(path, Budget(name="b", target="grid/toy", metric="env_steps_per_s", limit=7.5))
    put_budget(
        path, Budget(name="b", target="grid/toy", metric="env_steps_per_s", max_change=0.1, against="v1")
    )
    assert project.read(path).budget("b").limit is None
    assert [each.name for each in tmp_path.iterdir()] == ["hotloop.toml"]


def test_a_pattern_is_of_what_a_program_prints_and_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "hotloop.toml"
    budget = Budget(
        name="sps", target="-- python train.py", metric="printed:sps", pattern=r"SPS: ([\d.]+)", limit=5.5
    )
    put_budget(path, budget)
    assert replace(read(path).budget("sps"), line=0) == budget
    for metric, pattern, why in (
        ("runs_per_s", "x", "metric = .printed:NAME"),
        ("printed:sps", "(", "no regular expression"),
        ("printed:sps", "(a)(b)", "2 groups"),
    ):
        text = f'[budget.b]\ntarget = "-- x"\nmetric = "{metric}"\npattern = "{pattern}"\nlimit = 1\n'
        with pytest.raises(InputError, match=f"line 4: .*pattern: .*{why}"):
            parse(text)


PARTS = """
[suite.parts]
items = [{ target = "eco.py:make", time = ["World.perceive"], phases = "eco.py:timing", do = "scale" }]

[budget.perceive]
target = "eco.py:make"
keys = { agents = 10 }
metric = "phase:World.perceive"
time = "eco.py:World.perceive"
phases = "eco.py:timing"
limit = 1_000
"""


def test_parts_of_others_code_are_named_in_budgets_and_suites(tmp_path: Path) -> None:
    found = parse(PARTS)
    [item] = found.suites["parts"].items
    assert item.target == Target("eco.py:make", {}, "eco.py:timing", ("World.perceive",))
    budget = found.budgets["perceive"]
    assert budget.measured.time == ("eco.py:World.perceive",)
    put_budget(tmp_path / "hotloop.toml", budget)
    assert project.read(tmp_path / "hotloop.toml").budgets["perceive"].measured == budget.measured


@pytest.mark.parametrize("key", ['time = ["f"]', 'phases = "eco.py:timing"'])
def test_parts_by_name_are_refused_for_presets_and_programs(key: str) -> None:
    with pytest.raises(InputError, match="is for code of yours"):
        parse(BUDGET + "limit = 1\n" + key)


TEXT = '''# a comment = with [everything]
title = "x"
[suite.nightly] # [not.this]
items = [
  { target = "a,b", keys = { agents = 1 }, do = "bench" },
  # { target = "left out" },
  { target = "x=1", do = "profile" },
]
[budget."a b"]
reason = """
[no.table]
metric = 1
"""
keys.agents = 3
metric = 'x'
[[suite.other.items]]
target = "1"
[[suite.other.items]]
target = "2"
keys = { a = [
  1,
  2,
], b = 3 }
'''


LAST = '  { target = "x=1", do = "profile" },'


def line_of(*keys: str) -> str:
    return TEXT.splitlines()[places(TEXT)[keys] - 1]


def test_tables_and_keys_are_found_on_their_lines() -> None:
    assert line_of("title") == 'title = "x"'
    assert line_of("suite", "nightly") == "[suite.nightly] # [not.this]"
    assert line_of("budget", "a b", "metric") == "metric = 'x'"
    assert line_of("budget", "a b", "keys", "agents") == "keys.agents = 3"


def test_items_of_lists_are_found_by_their_number() -> None:
    assert line_of("suite", "nightly", "items", "0", "keys", "agents").startswith('  { target = "a,b"')
    assert line_of("suite", "nightly", "items", "1", "target") == LAST
    assert line_of("suite", "nightly", "items", "1", "do") == LAST
    assert line_of("suite", "other", "items", "1", "target") == 'target = "2"'
    assert line_of("suite", "other", "items", "1", "keys", "b") == "], b = 3 }"


def test_what_stands_in_text_or_comments_is_no_key() -> None:
    assert not any("no" in keys or "not" in keys for keys in places(TEXT))
