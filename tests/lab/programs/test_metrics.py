import pytest

from hotloop.core.errors import InputError
from hotloop.lab.programs.launch import Program, ProgramRun, Series, parse_metric, read_series

PROGRAM = Program(("train",))


def run(printed: str) -> ProgramRun:
    return ProgramRun(wall_ns=1, cpu_ns=1, rss_peak_bytes=1, printed=printed)


@pytest.mark.parametrize(
    ("asked", "printed", "values"),
    [
        (r"sps=SPS: (\d+)", "SPS: 10\nstep 3\nSPS: 20\n", (10.0, 20.0)),
        (r"sps=SPS: ([\d,.]+)", "SPS: 1,234.5\rSPS: 2e", (1234.5, 2.0)),
        (r"t=\d+\.\d+(?= s$)", "took 1.5 s\n", (1.5,)),
        (r"x=^([\d.e+-]+)$", "1e3\nno\n", (1000.0,)),
    ],
)
def test_a_metric_finds_every_number_it_names(asked: str, printed: str, values: tuple[float, ...]) -> None:
    assert read_series(parse_metric(asked), run(printed), PROGRAM).values == values


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("sps", "write NAME=REGEX"),
        ("=x", "write NAME=REGEX"),
        ("wall_ns=x", "write NAME=REGEX"),
        ("sps=(", "is no regular expression"),
        (r"sps=(\d+) (\d+)", "2 groups: put one"),
    ],
)
def test_what_is_no_metric_is_refused(asked: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_metric(asked)


@pytest.mark.parametrize(
    ("asked", "printed", "said"),
    [
        (r"sps=SPS: (\d+)", "a\nlast words\n", "printed nothing that --metric sps finds; .*last words"),
        ("sps=SPS: (.*)", "SPS: many", "found 'many', which is no number"),
        (r"sps=SPS: (\d+)", "SPS: 0", "only what is above 0"),
        (r"sps=SPS: (\d+)?", "SPS: ", "which is no number"),
    ],
)
def test_what_a_program_does_not_print_is_said(asked: str, printed: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_series(parse_metric(asked), run(printed), PROGRAM)


def test_a_time_is_judged_by_its_inverse() -> None:
    metric = parse_metric(r"t=(\d+)", less_is_better=True)
    assert (metric.headline, metric.speeds([2.0, 4.0])) == ("1/t", [0.5, 0.25])
    assert parse_metric(r"t=(\d+)").headline == "t"


def test_a_series_loses_its_warm_up_by_the_rule_of_rounds() -> None:
    steady = [100.0, 101.0, 99.0, 100.5, 99.5] * 4
    cold = Series(values=(10.0, 50.0, 80.0, *steady))
    assert (cold.cut, cold.kept) == (3, tuple(steady))
    assert Series(values=tuple(steady)).cut == 0
    assert Series(values=(1.0, 100.0, 100.0)).cut == 0
