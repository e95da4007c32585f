"""Bench's modes beyond the envs by themselves: the ladder from envs to training, on one configuration."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli.arguments import names_world, targets_of
from hotloop.cli.measuring import tell
from hotloop.cli.output import remark, stdout_kept_clean
from hotloop.cli.place import make_room, names_file, record_path, save
from hotloop.cli.progress import bar
from hotloop.core.errors import InputError

if TYPE_CHECKING:
    from hotloop.core.record import Record
    from hotloop.lab.bench import Extras
    from hotloop.lab.ladder import Climb

ROUNDS, QUICK_ROUNDS, THOROUGH_ROUNDS = 12, 6, 30


def plan_climb(
    rounds: int | None, iterations: int | None, warmup: int | None, *, quick: bool, thorough: bool
) -> "Climb":
    """Rounds as asked; env-steps are made into whole updates where their size is known."""
    from hotloop.lab.ladder import Climb

    usual = QUICK_ROUNDS if quick else THOROUGH_ROUNDS if thorough else ROUNDS
    climb = Climb(rounds=rounds or usual, env_steps=iterations)
    if quick:
        climb = replace(climb, warmup=1)
    return climb if warmup is None else replace(climb, warmup_steps=warmup)


def climb_all(
    target: str,
    given: Mapping[str, object],
    modes: Sequence[str],
    climb: "Climb",
    extras: "Extras",
    output: Path,
    *,
    as_json: bool,
) -> int:
    """Measure the rungs of one preset, or of all of a world; keep every record and show the ladder."""
    from hotloop.lab import regimen
    from hotloop.report.sections.ladder import ladder
    from hotloop.report.terminal import draw

    several = len(modes) > 1 or len(targets_of(target)) > 1
    if several and names_file(output):
        raise InputError(f"--output {output} is for one record: name a folder, or one mode of one preset")
    asked = replace(climb, label=extras.label, wanted=extras.wanted)
    regimens = [regimen.read(each, given) for each in targets_of(target)]
    make_room(output)
    ladders: list[list[Record]] = []
    for each in regimens:
        ladders.append(one_ladder(each, modes, asked, extras))
        for record in ladders[-1]:
            remark(f"saved {save(record_path(output, record), record.to_json())}")
        if ladders[-1][0].partial:
            break
    records = [record for rungs in ladders for record in rungs]
    view = (section for rungs in ladders for section in ladder(rungs))
    return tell(records, draw(view), as_json=as_json, as_list=names_world(target) or len(modes) > 1)


def one_ladder(regimen: "object", modes: Sequence[str], asked: "Climb", extras: "Extras") -> "list[Record]":
    """The rungs of one configuration; one rung alone is held against baselines, too."""
    from hotloop.lab.bench import with_comparisons
    from hotloop.lab.judge import judge
    from hotloop.lab.ladder import climb
    from hotloop.lab.regimen import Regimen

    assert isinstance(regimen, Regimen)
    with bar(f"{regimen.target} {','.join(modes)}") as progress, stdout_kept_clean():
        records = climb(regimen, modes, asked, progress)
        if extras.baselines:
            compared = with_comparisons(records[0], extras, lambda: climb(regimen, modes, asked, progress)[0])
            return [judge(compared)]
        return [judge(record) for record in records]
