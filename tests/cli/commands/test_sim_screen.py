import re
from io import StringIO

import pytest

from hotloop.cli.commands import sim as module
from hotloop.cli.commands.sim import Screen, open_screen
from hotloop.core.settings import Target
from hotloop.lab.sim.sim import Game, SimSettings, open_game, sim


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were asked for; none is made, and the clock stands still."""
    asked: list[float] = []
    monkeypatch.setattr(module, "sleep", asked.append)
    monkeypatch.setattr(module, "now_ns", lambda: 0)
    return asked


def game(episodes: int = 1, steps: int = 250) -> Game:
    given = {"render_mode": "ansi", "num_envs": 1}
    return open_game(Target("grid/guard", given), SimSettings(episodes=episodes, steps=steps))


def test_without_a_terminal_a_plain_frame_is_written_every_hundred_steps(pauses: list[float]) -> None:
    stream = StringIO()
    with open_screen(stream, player="random", fps=10) as screen:
        sim(game(), watches=[screen.watch])
    told = stream.getvalue()
    headlines = [line.strip() for line in told.splitlines() if line.startswith("grid/guard")]
    assert headlines == [f"grid/guard  random  episode 1  step {step} of 250" for step in (0, 100, 200)]
    assert told.count("A ") == 2 * 3
    assert "\x1b" not in told
    assert pauses == []


def test_a_frame_names_teams_returns_and_what_happened_since_the_last(pauses: list[float]) -> None:
    stream = StringIO()
    with open_screen(stream, player="random", fps=10) as screen:
        sim(game(), watches=[screen.watch])
    first, second, third = stream.getvalue().split("grid/guard")[1:]
    assert "teams    members 4 4, stations" in second
    assert "per agent: 0.0" in first
    assert "last     move " in second
    assert "move" not in first
    acted = re.findall(r"(?:move|move.blocked|noop|vibe|use) (\d+)", third)
    assert sum(map(int, acted)) == 8 * 100


def test_a_frame_names_what_is_one_number_of_the_whole_env(pauses: list[float]) -> None:
    stream = StringIO()
    keys = {"render_mode": "ansi", "num_envs": 1, "perception": False}
    with open_screen(stream, player="random", fps=10) as screen:
        sim(open_game(Target("farm/dev", keys), SimSettings(episodes=1, steps=101)), watches=[screen.watch])
    first, second = stream.getvalue().split("farm/dev")[1:]
    assert "people   population 0, system 0" in first
    assert "population 0" not in second


def test_at_a_terminal_every_step_is_drawn_in_place_and_no_faster_than_asked(pauses: list[float]) -> None:
    terminal = Terminal()
    with open_screen(terminal, player="random", fps=20) as screen:
        sim(game(steps=6), watches=[screen.watch])
    assert [round(pause, 3) for pause in pauses] == [0.0] + [0.05] * 5
    assert "step 5 of 6" in terminal.getvalue()
    assert "\x1b[" in terminal.getvalue()


def test_the_next_episode_is_numbered_and_the_end_of_one_is_not_drawn_over(pauses: list[float]) -> None:
    terminal = Terminal()
    with open_screen(terminal, player="random", fps=20) as screen:
        assert isinstance(screen, Screen)
        sim(game(episodes=2, steps=3), watches=[screen.watch])
    told = terminal.getvalue()
    assert "episode 2  step 2 of 3" in told
    assert "episode 3" not in told
    assert "episode 2  step 0" not in told
