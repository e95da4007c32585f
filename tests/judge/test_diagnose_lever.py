"""The lever of a diagnosis, the line of it with its code, and the row that waits."""

from dataclasses import replace

import pytest
from support.cases import ENV, HOT, YOURS, at, env, probed, program

from hotloop.core.record import Resources
from hotloop.judge.case import Case
from hotloop.judge.diagnose import Diagnosis, diagnose


def named(found: Diagnosis) -> list[str]:
    return [each.rule for each in found.candidates]


def test_the_lever_is_the_users_function_and_libraries_say_where_its_time_goes() -> None:
    found = diagnose(probed(ENV, "samples", {"samples": 500}, YOURS, HOT))
    assert found.lever is not None
    assert found.lever.name == "learn (env.py:9)"
    assert found.lever.interval is not None
    assert [each.name for each in found.inside] == ["learn (env.py:9)", "Env.step (env.py:90)"]
    assert [each.name for each in found.libraries] == ["backward (torch/graph.py:9)"]


def test_a_program_without_spans_lists_the_users_functions_first() -> None:
    record = program({"other (x.py:1)": (0.1, 0.9)})
    mine = replace(record, findings=())
    found = diagnose(probed(mine, "samples", {"samples": 500}, YOURS, HOT))
    assert [each.name for each in found.bounds] == ["learn (env.py:9)", "Env.step (env.py:90)"]
    assert found.inside == ()


def test_a_function_with_a_row_of_its_own_has_one_share() -> None:
    rows = {"env.step": (1_000, 0.9), "env.step/learn": (1_000, 0.6)}
    found = diagnose(probed(env(rows), "samples", {"samples": 500}, YOURS, HOT))
    names = [each.name for each in (*found.bounds, *found.inside)]
    assert "learn (env.py:9)" not in names
    assert "learn" in names
    assert found.lever is not None
    assert found.lever.path == "wall/env.step/learn"


def test_a_players_methods_have_the_share_of_their_rows() -> None:
    rows = {"inference": (1_000, 0.9), "inference/select": (1_000, 0.5), "inference/forward": (1_000, 0.3)}
    functions = (("Model.select (hero.py:9)", 0.1, 0.6, 1.0), ("Model.forward (hero.py:5)", 0.1, 0.2, 1.0))
    facts = {"samples": 500, "hottest_line": "hero.py:9: sample()", "hottest_line_share": 0.8}
    found = diagnose(probed(env(rows), "samples", facts, replace(YOURS, rows=functions), HOT))
    assert found.lever is not None
    assert (found.lever.name, found.lever.share) == ("select", 0.5)
    assert found.hottest_line == "80% of it at hero.py:9: sample()"
    assert not [each for each in (*found.bounds, *found.inside) if "Model" in each.name]


def test_a_function_that_waits_for_a_core_on_a_busy_machine_is_no_function_that_waits() -> None:
    functions = {"eat (a.py:1)": (0.2, 0.12), "trade (a.py:2)": (0.2, 0.99), "flow (a.py:3)": (0.2, 0.2)}
    functions |= {"grow (a.py:4)": (0.2, 0.08), "move (a.py:5)": (0.1, 0.11)}
    busy = program(functions, resources=Resources(cpu_share=0.1, ready_share=1.4))
    assert named(diagnose(busy)) == []
    quiet = program(functions, resources=Resources(cpu_share=0.1, ready_share=0.0))
    assert "waiting" in named(diagnose(quiet))


def test_a_row_that_waits_says_how_many_cores_had_work() -> None:
    functions = {"pack (a.py:1)": (0.4, 0.02), "flow (a.py:3)": (0.4, 0.9)}
    (first, *_) = diagnose(program(functions, resources=Resources(cpu_share=1.0, ready_share=0.1))).candidates
    cores = Case(ENV).cores
    assert first.said.endswith(f"on a core for 2% of it; 1.1 of {cores} cores had work")


def test_a_process_that_ran_already_is_started_again_by_its_command() -> None:
    of_process = replace(ENV.target, name="pid:12", params={"command": "python eco.py --n 9"})
    found = diagnose(replace(probed(ENV, "samples", {"samples": 9}, YOURS), target=of_process))
    assert {gap.rule: gap.get for gap in found.gaps}["allocation"].endswith("memory -- python eco.py --n 9")


def test_a_step_says_nothing_beside_the_largest_function_inside_it() -> None:
    small = replace(YOURS, rows=(("encode (env.py:9)", 0.2, 0.2, 1.0),))
    found = diagnose(probed(ENV, "samples", {"samples": 500}, small, HOT))
    assert found.lever is not None
    assert found.lever.name == "encode (env.py:9)"


def test_the_line_of_the_lever_stands_with_its_code() -> None:
    assert diagnose(at("db.execute('select')")).hottest_line == "90% of it at env.py:9: db.execute('select')"
    assert diagnose(probed(ENV, "samples", {"samples": 500}, YOURS, HOT)).hottest_line == ""


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ("rows = self.db.execute('SELECT a FROM b WHERE c = ?', (1,)).fetchall()", "query"),
        ("self.db.execute('INSERT INTO b VALUES (?)', (1,))", ""),
        ("self.logger.info('step %d', step)", "logging"),
        ("print(step, file=out)", "logging"),
        ("self.log.debug(step)", "logging"),
        ("return math.log(x)", ""),
        ("np.log(x) + self.catalog.size", ""),
        ("self.db.commit()", "commits"),
        ("self.commits += 1", ""),
    ],
)
def test_the_code_of_the_line_says_what_is_wrong(code: str, rule: str) -> None:
    assert named(diagnose(at(code))) == [rule] * bool(rule)


def test_waiting_for_workers_outweighs_a_small_function_of_the_parent() -> None:
    rows = {"env.step": (1_000, 0.9), "env.step/copy": (1_000, 0.7)}
    small = replace(YOURS, rows=(("pack (env.py:9)", 0.2, 0.2, 1.0),))
    found = diagnose(probed(env(rows), "samples", {"samples": 500}, small, HOT))
    assert found.lever is not None
    assert found.lever.path == "wall/env.step/copy"
