"""More than two sides: each is compared with A by itself, A measured anew beside each, in one record."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from string import ascii_lowercase

from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record.comparison import B
from hotloop.core.record.record import Record
from hotloop.judge.judge import judge
from hotloop.lab.compare.compare import Asked, Say, compared, unsaid
from hotloop.lab.compare.contenders import Contender
from hotloop.lab.measure.work import both_validations
from hotloop.stats.summary import with_metrics

MOST = 8
"""Sides at once, A among them."""

SECOND = "second."


def compare_several(
    a: Callable[[], Contender],
    others: Sequence[Contender],
    asked: Asked,
    progress: Progress = silent,
    say: Say = unsaid,
) -> Record:
    """Compare each of several with A, one after the other; Ctrl-C leaves those that were compared."""
    if len(others) >= MOST:
        raise InputError(f"{len(others) + 1} sides are given: compare takes 2 to {MOST}")
    records: list[Record] = []
    for other in others:
        one = a()
        try:
            records.append(compared(one, other, asked, progress, say))
        finally:
            one.close()
            other.close()
        if records[-1].partial:
            break
    return judge(joined(records))


def joined(records: Sequence[Record]) -> Record:
    """One record of comparisons with the same A, about the last side; the sides are B, C, … in its values."""
    last = records[-1]
    values = {
        side_name(name, letter): raw
        for letter, record in zip(ascii_lowercase[1:], records, strict=False)
        for name, raw in record.values.items()
    }
    return with_metrics(
        replace(
            last,
            values=values,
            notices=tuple(dict.fromkeys(said for record in records for said in record.notices)),
            comparisons=tuple(each for record in records for each in record.comparisons),
            validation=reduce(both_validations, (record.validation for record in records), None),
            partial=any(record.partial for record in records),
        )
    )


def side_name(name: str, letter: str) -> str:
    """What a value is called: a side's own by its letter, and `c.a.` what was measured of A beside C."""
    second, rest = (SECOND, name.removeprefix(SECOND)) if name.startswith(SECOND) else ("", name)
    if letter == B:
        return name
    own = rest.startswith(B)
    return f"{second}{letter}{rest.removeprefix(B)}" if own else f"{second}{letter}.{rest}"
