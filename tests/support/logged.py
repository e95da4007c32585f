"""Logs written by hand, with round numbers that can be checked."""

import numpy as np

from hotloop.lab.profile.calls import Events, Laps, Steps

Span = tuple[str, int, int]
"""Path, begin, end."""


def events_of(*spans: Span, threads: dict[str, int] | None = None) -> Events:
    paths = tuple(dict.fromkeys(path for path, _, _ in spans))
    rows = np.array([(paths.index(path), begin, end) for path, begin, end in spans], np.int64).reshape(-1, 3)
    return Events(
        paths=paths,
        threads=np.array([(threads or {}).get(path, 0) for path in paths], np.int64),
        place=rows[:, 0],
        begin=rows[:, 1],
        end=rows[:, 2],
        own=rows[:, 2] - rows[:, 1],
        missed=0,
    )


def laps_of(*times: int) -> Laps:
    """Laps between these times."""
    marks = np.array(times, np.int64)
    return Laps(begin=marks[:-1], end=marks[1:], given=np.zeros(len(marks) - 1, np.int64))


def steps_of(
    *rows: tuple[int, int], ended: tuple[int, ...] = (), first: tuple[int, ...] = (), workers: int = 1
) -> Steps:
    """Steps from begin to end; of each worker `reset` takes 10 and `actions` 20 times its number from 1."""
    times = np.array(rows, np.int64).reshape(-1, 2)
    count = len(times)
    phases = np.array([[[10 * worker, 20 * worker] for worker in range(1, workers + 1)]] * count, np.int64)
    return Steps(
        names=("reset", "actions"),
        begin=times[:, 0],
        end=times[:, 1],
        ended=np.array(ended or (0,) * count, np.int64),
        first_env=np.array(first or (-1,) * count, np.int64),
        phases=phases.reshape(count, workers, 2),
    )
