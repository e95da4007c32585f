"""A run as it happens: the map of one env, or a line for every step."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from time import sleep
from typing import TYPE_CHECKING, Any, TextIO

from hotloop.cli.console import PIPE_WIDTH
from hotloop.core.clock import now_ns

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from hotloop.core.world import Narrator
    from hotloop.lab.sim.sim import Moment


PLAIN_EVERY = 100  # Steps between frames where there is no terminal to draw them over one another
MOST_WORDS = 8  # Of any line of numbers


class Screen:
    """Draws the first env of a game after every step, no faster than can be watched."""

    def __init__(self, console: "Console", live: Any, *, player: str, fps: float) -> None:
        self._console = console
        self._live = live
        self._player = player
        self._frame_ns = round(1e9 / fps)
        self._due_ns = 0
        self._before: dict[str, int] = {}
        self._played = 0

    def watch(self, moment: "Moment") -> None:
        """Draw a moment: each one at a terminal, some of them elsewhere.

        The step that ends an episode begins the next one, so there is nothing left of it to draw.
        """
        if any(episode.env == 0 for episode in moment.ended):
            self._played += 1
        elif self._live:
            sleep(max(0, self._due_ns - now_ns()) / 1e9)
            self._due_ns = now_ns() + self._frame_ns
            self._live.update(self._frame(moment), refresh=True)
        elif moment.episodes.ages[0] % PLAIN_EVERY == 0:
            self._console.print(self._frame(moment))

    def _frame(self, moment: "Moment") -> "RenderableType":
        from rich.console import Group
        from rich.text import Text

        lines = (self._headline(moment), *board(moment), rewards(moment), self._events(moment))
        shown = (Text(line, no_wrap=True, overflow="ellipsis") for line in lines if line)
        return Group(*shown, Text.from_ansi(str(moment.batch.render())))

    def _headline(self, moment: "Moment") -> str:
        age = moment.episodes.ages[0]
        of = f" of {moment.length:,}" if moment.length else ""
        return f"{moment.batch.spec.target}  {self._player}  episode {self._played + 1}  step {age:,}{of}"

    def _events(self, moment: "Moment") -> str:
        """What was counted since the last frame, in all envs."""
        from hotloop.lab.measure.record import COVERAGE

        counters = moment.batch.counters
        news = {
            name.removeprefix(COVERAGE): count - self._before.get(name, 0)
            for name, count in counters.items()
            if name.startswith(COVERAGE)
        }
        self._before = counters
        return "last     " + listed(f"{name} {count}" for name, count in news.items() if count)


def board(moment: "Moment") -> Iterator[str]:
    """The lines that the world has declared, without infos that are empty."""
    for title, infos in moment.batch.spec.world.board.items():
        rows = ((label, moment.batch.infos[info][0].reshape(-1)) for label, info in infos.items())
        if known := [f"{label} {numbers(row)}" for label, row in rows if len(row)]:
            yield f"{title:<9}" + ", ".join(known)


def rewards(moment: "Moment") -> str:
    returns = moment.episodes.returns[0]
    return f"return   {returns.mean():.3f} per agent: {numbers(returns, '.1f')}"


def numbers(row: Any, form: str = "") -> str:
    return listed((format(value, form) for value in row.tolist()), " ")


def listed(words: Iterator[str], between: str = ", ") -> str:
    """The first few words."""
    known = list(words)
    return between.join(known[:MOST_WORDS]) + (" ..." if len(known) > MOST_WORDS else "")


@contextmanager
def open_screen(stream: TextIO, *, player: str, fps: float) -> Iterator[Screen]:
    """A screen at a terminal that is redrawn in place, or a stream that frames are written to."""
    from rich.console import Console
    from rich.live import Live

    is_terminal = stream.isatty()
    console = Console(
        file=stream, width=None if is_terminal else PIPE_WIDTH, markup=False, emoji=False, highlight=False
    )
    with Live(console=console, auto_refresh=False) if is_terminal else nullcontext() as live:
        yield Screen(console, live, player=player, fps=fps)


class Narration:
    """Writes a line for every step of the first env."""

    def __init__(self, stream: TextIO, narrator: "Narrator", *, player: str) -> None:
        self._stream = stream
        self._narrator = narrator
        self._player = player
        self._played = 0

    def watch(self, moment: "Moment") -> None:
        if moment.actions is None:
            self._say(f"{moment.batch.spec.target}  {self._player}")
            return
        ended = next((episode for episode in moment.ended if episode.env == 0), None)
        if ended is None or not ended.cut:  # a cut has begun the next episode: nothing is left of the step
            self._say(self._narrator.tell(shown(moment, over=ended is not None)))
        if ended:
            self._played += 1
            came_to = {"steps": ended.length, "return": ended.return_per_agent, **ended.outcomes}
            facts = ", ".join(f"{name} {value:,.4g}" for name, value in came_to.items())
            self._say(f"episode {self._played} {'was cut off' if ended.cut else 'is over'}: {facts}")

    def _say(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


def shown(moment: "Moment", *, over: bool) -> dict[str, Any]:
    """The first env's rows after a step; of an episode that is over, its last observations."""
    batch = moment.batch
    assert moment.actions is not None
    return {
        "actions": moment.actions[0],
        "observations": (batch.final_observations if over else batch.observations)[0],
        "rewards": batch.rewards[0],
        **{name: rows[0] for name, rows in batch.infos.items()},
    }
