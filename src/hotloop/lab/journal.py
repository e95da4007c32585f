"""A journal of how actions were drawn, from which the same ones are drawn again."""

from collections.abc import Iterator, Sequence
from itertools import islice

from hotloop.core.slow import Draw
from hotloop.lab.play import Actions, Play, repeat


class Journal:
    """A play that notes each draw: calls that were asked for and calls that were played."""

    def __init__(self, script: Play) -> None:
        self._script = script
        self.policy = script.policy
        self._drawn = 0
        self._draws: list[list[int]] = []

    def draw(self, calls: int) -> Sequence[Actions]:
        """Draw; unless some are put back, as many as were asked for are played, in turns where fewer."""
        drawn = self._script.draw(calls)
        self._drawn = len(drawn)
        self._draws.append([calls, calls])
        return drawn

    def put_back(self, actions: Sequence[Actions]) -> None:
        """Take back the last ones of a draw whose actions were played once each."""
        self._script.put_back(actions)
        self._draws[-1][1] = self._drawn - len(actions)

    def close(self) -> None:
        self._script.close()

    @property
    def draws(self) -> tuple[Draw, ...]:
        """What was drawn so far, equal ones in a row as one."""
        runs: list[Draw] = []
        for asked, played in self._draws:
            times = runs.pop()[2] if runs and runs[-1][:2] == (asked, played) else 0
            runs.append((asked, played, times + 1))
        return tuple(runs)


def play_again(script: Play, draws: Sequence[Draw], calls: int) -> Iterator[Actions]:
    """The actions of the first so many calls of a journal, or of all it has."""
    return islice(all_of(script, draws), calls)


def all_of(script: Play, draws: Sequence[Draw]) -> Iterator[Actions]:
    for asked, played, times in draws:
        for _ in range(times):
            drawn = script.draw(asked)
            if played < asked:
                script.put_back(drawn[played:])
            yield from repeat(drawn, played)
