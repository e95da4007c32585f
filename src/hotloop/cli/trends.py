"""Trends: past commits of a project measured in turns, their records kept, one table of all."""

from dataclasses import replace

from hotloop.cli.console import bar, remark, stdout_kept_clean
from hotloop.cli.results import make_room, names_file
from hotloop.cli.runner import kept_in, tell
from hotloop.cli.targets import targets_of
from hotloop.core.errors import InputError
from hotloop.core.target import Target
from hotloop.options.bench import BenchOptions


def run(target: Target, options: BenchOptions) -> int:
    """Measure the commits, keep their records and show the table."""
    from hotloop.lab.trend import trend
    from hotloop.report.kinds.record import trend as sections
    from hotloop.report.terminal import draw

    if any(key.startswith("train.") for key in target.keys):
        raise InputError(
            "--since measures envs: leave out the train. keys, or compare two commits by --a-ref"
        )
    if len(targets_of(target)) > 1:
        raise InputError(
            f"--since is for one target, and {target.name} has several presets: name one of them"
        )
    output = options.output
    if names_file(output):
        raise InputError(f"--output {output} is for one record, and each commit has its own: name a folder")
    make_room(output)
    with bar(f"{target.name} since {options.since}") as progress, stdout_kept_clean():
        records = trend(target, options, progress, say=remark)
    records = [kept_in(output, replace(record, label=options.phase)) for record in records]
    return tell(records, draw(sections(records)), as_json=options.json, as_list=True)
