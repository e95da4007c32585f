"""What follows from how options are declared."""

import inspect
import json
import math
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from hotloop.cli.app import make_command
from hotloop.core.errors import InputError
from hotloop.lab import api
from hotloop.options.bench import BenchOptions
from hotloop.options.compare import CompareOptions, CompareProgramOptions
from hotloop.options.gate import GateOptions
from hotloop.options.option import HOMES, PROGRAMS, Options, ProcessOptions, describe, options_of, spell
from hotloop.options.profile import ProfileOptions
from hotloop.options.report import ReportOptions
from hotloop.options.sim import SimOptions
from hotloop.options.sweeps import SoakOptions, TuneOptions, TuneProgramOptions
from hotloop.options.validate import ValidateOptions

KINDS = [*map(options_of, HOMES), *(options_of(name, program=True) for name in PROGRAMS)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_option_has_a_help_and_a_flag_or_a_word_of_its_own(kind: type[Options]) -> None:
    known = describe(kind)
    assert sorted(known) == sorted(each.name for each in fields(kind))
    assert all(each.help and (each.flags or each.metavar) for each in known.values())
    flags = [flag for each in known.values() for flag in each.flags]
    assert len(flags) == len(set(flags))


@pytest.mark.parametrize("kind", KINDS)
def test_rules_are_about_options_that_there_are(kind: type[Options]) -> None:
    for rule in kind.rules:
        assert {*rule.given, *rule.needs, *rule.excludes} <= set(describe(kind))
        assert bool(rule.needs) != bool(rule.excludes)


@pytest.mark.parametrize("name", HOMES)
def test_the_parameters_of_a_command_are_its_options(name: str) -> None:
    kind = options_of(name)
    more = [each.name for each in fields(ProcessOptions)] if kind.isolated else []
    assert list(inspect.signature(make_command(name)).parameters) == [*describe(kind), *more]


def test_options_are_the_same_after_a_way_as_json() -> None:
    options = CompareOptions(a="grid/toy", b="b.py:f", ignore=["infos.time"], a_python=None, budget=2.5)
    sent = json.loads(json.dumps(options.to_plain()))
    assert CompareOptions.from_plain(sent) == options
    played = SimOptions(target="farm", plot=[Path("a.png"), Path("b.svg")], output=Path("out"))
    assert SimOptions.from_plain(json.loads(json.dumps(played.to_plain()))) == played


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            lambda: CompareOptions(a="a", b="b", band=100),
            "--band 100 does not fit: expected per cent, above 0",
        ),
        (lambda: CompareOptions(a="a", b="b", band=math.nan), "--band nan does not fit"),
        (lambda: CompareOptions(a="a", b="b", budget=2e6), "seconds, above 0 and up to 1,000,000"),
        (lambda: CompareOptions(a="a", b="b", gc="never"), "--gc never does not fit: expected between or"),  # type: ignore[arg-type]
        (
            lambda: CompareOptions(a="a", b="b", equal_steps=0),
            "--equal-steps 0 does not fit: expected at least",
        ),
        (lambda: CompareOptions(a="a"), "compare needs two sides"),
        (lambda: CompareOptions(a="a", b="b", a_ref="HEAD"), "commits are compared by one target"),
        (lambda: CompareOptions(a="a", b_ref="HEAD"), "give --a-ref too"),
        (lambda: CompareProgramOptions(rounds=6, budget=1), "--rounds and --budget exclude each other"),
        (lambda: CompareProgramOptions(less_is_better=True), "--less-is-better says it of a metric"),
        (BenchOptions, "bench needs a TARGET, --suite NAME or --report DIR"),
        (
            lambda: BenchOptions(target="a", rounds=10**13),
            "--rounds 10000000000000 does not fit: expected at",
        ),
        (lambda: BenchOptions(target="a", quick=True, thorough=True), "--quick and --thorough exclude"),
        (lambda: BenchOptions(suite="quick", policy="p"), "--policy is for one target, and --suite quick"),
        (lambda: BenchOptions(target="a", since="v1", warmup=0), "--warmup is for the present code"),
        (lambda: ProfileOptions(trust=Path("f")), "--trust goes with --replay-slow: leave it out"),
        (lambda: ProfileOptions(replay_slow=Path("r"), trace=True), "--trace does not go with --replay-slow"),
        (lambda: SoakOptions(target="a", minutes=0), "--minutes 0 does not fit: expected more than 0"),
        (lambda: SoakOptions(target="a", minutes=1, steps=1), "--minutes and --steps exclude each other"),
        (lambda: TuneOptions(target="a", learning_band=100), "per cent, from 0 to below 100"),
        (lambda: TuneProgramOptions(confirm=0), "--confirm 0 does not fit: expected seconds, above 0"),
        (lambda: GateOptions(budget=4000), "expected seconds, above 0 and up to 3,600"),
        (lambda: ReportOptions(why="so"), "--accept and --why belong together"),
        (lambda: ValidateOptions(target="a", transfer=0), "--transfer goes with --statistical"),
        (lambda: ProcessOptions(step_timeout=math.inf), "--step-timeout inf does not fit: expected seconds"),
    ],
)
def test_what_does_not_fit_is_refused_wherever_it_comes_from(made: Callable[[], Any], said: str) -> None:
    with pytest.raises(InputError) as refused:
        made()
    assert said in str(refused.value)


def test_options_are_spelled_as_they_are_typed_and_defaults_are_left_out() -> None:
    options = ProfileOptions(target="a.py:f", words=["n=1"], steps=2, time=["x", "y"], trace=True)
    assert spell(options) == ["a.py:f", "n=1", "--steps=2", "--time=x", "--time=y", "--trace"]
    assert spell(ReportOptions(output=Path("a.html"))) == ["--output=a.html"]


def test_values_that_mean_the_default_break_no_rule() -> None:
    assert BenchOptions(suite="quick", mode="env_only", policy="random").suite == "quick"


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (api.bench, BenchOptions),
        (api.profile, ProfileOptions),
        (api.compare, CompareOptions),
        (api.validate, ValidateOptions),
    ],
)
def test_a_function_of_python_has_the_defaults_of_the_command(
    function: Callable[..., Any], kind: type[Options]
) -> None:
    names = {about.tool_name or name: name for name, about in describe(kind).items()} | {
        name: name for name in describe(kind)
    }
    nothing = (None, (), False)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name in names:
            default = kind.__dataclass_fields__[names[parameter.name]].default
            assert parameter.default == default or (parameter.default in nothing and default in nothing)
