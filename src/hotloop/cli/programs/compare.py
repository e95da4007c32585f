"""hotloop compare -- "CMD A" "CMD B": which of several programs is faster."""

from hotloop.cli.commands.compare import plan_of
from hotloop.cli.console import bar, remark
from hotloop.cli.programs.flags import metric_of
from hotloop.cli.results import make_room
from hotloop.cli.runner import kept_in, tell_one
from hotloop.options.compare import CompareProgramOptions


def compare(sides: tuple[str, ...], options: CompareProgramOptions) -> int:
    """Compare programs, each of them a quoted argument; returns the exit code of the record."""
    from hotloop.lab.programs.compare import check
    from hotloop.lab.programs.compare import compare as run
    from hotloop.lab.programs.launch import Program

    programs = [Program.parse(each, "a side") for each in sides]
    check(programs)
    metric, rounds, chosen = metric_of(options), options.rounds, plan_of(options.usual)
    make_room(options.output)
    lasts = f"{rounds} rounds" if rounds else f"up to {chosen.budget_ns / 1e9:g} s, and six rounds at least"
    remark(f"{lasts}, and as much again for faster or slower")
    with bar(" | ".join(each.name for each in programs)) as progress:
        record = run(programs, chosen, progress, rounds=rounds, metric=metric)
    return tell_one(kept_in(options.output, record), as_json=options.json)
