"""Forecast: how long a sweep takes, from a few calls at each of its places."""

from collections.abc import Sequence
from contextlib import closing

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.target import Target
from hotloop.envs.subject import Subject
from hotloop.lab.measure.policy import Play, play_of
from hotloop.lab.measure.rounds import calls_for
from hotloop.lab.measure.stepping import play
from hotloop.lab.measure.target import open_subject
from hotloop.lab.scale.axes import Axes, Place
from hotloop.lab.scale.scale import ROUNDS, TRIED, TURN_NS, TURNS, Asked, fitted

CELL_S = 0.25
"""What a cell takes beside its calls: its record, and the memory that is given back."""

MOST_TRIED = 24
"""Places whose calls are tried."""

ENOUGH_NS = 5_000_000
"""Of calls at one place, after which one of them is known well enough."""


def forecast(axes: Axes, asked: Asked, progress: Progress = silent) -> float:
    """Return the seconds that a sweep takes, about; InputError if none of its places can be opened."""
    tried = sample(axes.places)
    seconds = 0.0
    refused: list[InputError] = []
    for done, place in enumerate(tried):
        progress(done, len(tried))
        try:
            seconds += CELL_S + cell_s(axes.target_at(place), place, asked)
        except InputError as error:
            refused.append(error)
    if len(refused) == len(tried):
        raise refused[0]
    return seconds * asked.repeats * len(axes.places) / len(tried)


def sample(places: Sequence[Place]) -> Sequence[Place]:
    """Return places from the first to the last, evenly apart: all of them if they are few."""
    last, count = len(places) - 1, min(len(places), MOST_TRIED)
    return [places[round(number * last / max(count - 1, 1))] for number in range(count)]


def cell_s(target: Target, place: Place, asked: Asked) -> float:
    """Return the seconds that one cell takes, about, from opening its target and a few calls."""
    begin = now_ns()
    with closing(open_subject(target, profile=False)) as subject:
        open_ns = now_ns() - begin
        with closing(play_of(asked.policy, subject)) as script:
            begin = now_ns()
            subject.reset()
            reset_ns = now_ns() - begin
            call_ns = min(calls_ns(subject, script))
        per_round = place.steps or fitted(calls_for(asked.env_steps, subject), call_ns)
    resets, instances = (2 * ROUNDS if place.steps else 2), 1 + asked.phases
    calls = (1 + ROUNDS) * per_round + TRIED
    if asked.phases:
        calls += ROUNDS * per_round if place.steps else watched_calls(per_round, call_ns)
    return (instances * open_ns + resets * reset_ns + calls * call_ns) / 1e9


def calls_ns(subject: Subject, script: Play) -> Sequence[int]:
    """Return what a few calls took, in nanoseconds: at least one, after the first, which may prepare."""
    took: list[int] = []
    while len(took) < 2 or (len(took) < TRIED and sum(took) < ENOUGH_NS):
        took.append(play(subject, script.draw(1), 1))
    return took[1:]


def watched_calls(per_round: int, call_ns: int) -> int:
    """Return the calls in which phases are looked at."""
    turn = max(1, min(per_round // TURNS, TURN_NS // max(call_ns, 1)))
    return 2 * TRIED + turn * min(per_round, TURNS)
