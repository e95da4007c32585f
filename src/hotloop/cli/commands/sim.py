"""hotloop sim: episodes played to the end, by whom you like."""

import cProfile
import io
import marshal
import pstats
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotloop.cli.console import bar, remark
from hotloop.cli.flags import Json, Output, Words
from hotloop.cli.live.capture import Pictures, Plot, Tape
from hotloop.cli.live.episode import Narration, open_screen
from hotloop.cli.results import FOLDER, make_room, record_path
from hotloop.cli.runner import tell
from hotloop.core.errors import InputError
from hotloop.core.files import save
from hotloop.core.settings import apply, describe
from hotloop.core.target import Target

if TYPE_CHECKING:
    from hotloop.core.record import Record
    from hotloop.lab.sim import Game, SimSettings


PREFIX = "sim."

Keepsake = Tape | Pictures | Plot

PROFILE_ROWS = 12
"""Functions of cProfile's account that are printed."""

EXAMPLES = (
    "hotloop sim grid/guard player=teacher",
    "hotloop sim grid/toy episodes=8 steps=500 --json",
    "hotloop sim grid/guard player=teacher episodes=1 --show --fps 20",
    "hotloop sim grid/guard player=teacher episodes=1 steps=150 --gif guard.gif",
    "hotloop sim grid/arena episodes=4 --record arena.npz",
    "hotloop sim prospector player=greedy episodes=1000",
    "hotloop sim prospector player=cautious episodes=1 --show",
    "hotloop sim farm steps=1000 agents=100 player=weighted --plot farm.png",
    "hotloop sim cards hero=simple villain=random num_games=1000",
    "hotloop sim cards/keywords hero=simple villain=simple num_games=1 --show",
)


def sim(  # noqa: PLR0913 - one argument a flag
    target: Annotated[str, typer.Argument(metavar="TARGET", help="A preset such as grid/guard.")],
    words: Words = None,
    *,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Short for seed=N.")] = None,
    show: Annotated[bool, typer.Option("--show", help="Draw or tell one env as it is played.")] = False,
    fps: Annotated[float, typer.Option(metavar="F", min=0.1, max=50, help="Frames a second.")] = 10.0,
    record: Annotated[
        Path | None, typer.Option(metavar="TAPE", help="Keep seeds and actions, to be replayed.")
    ] = None,
    gif: Annotated[
        Path | None, typer.Option(metavar="F", help="Film the first episode, up to 300 steps.")
    ] = None,
    png: Annotated[Path | None, typer.Option(metavar="F", help="Keep three moments of that film.")] = None,
    plot: Annotated[
        list[Path] | None,
        typer.Option(metavar="F", help="Draw what changed over steps, as .png or .svg; may be given twice."),
    ] = None,
    perf_profile: Annotated[
        bool, typer.Option("--perf-profile", help="Keep cProfile's account of the run beside the record.")
    ] = False,
    output: Output = FOLDER,
    json: Json = False,
) -> int:
    """Episodes played to the end by a named player, and what came of them.

    Keys of its own: player=NAME (random, or one of the world's), episodes=N, steps=N (cuts an episode
    off; a world that never ends is cut off after 1000). Every env plays its share, so that short
    episodes do not count more often than long ones; a world with a history to plot is played once
    where nobody says how often. A record is saved and never overwrites another.
    """
    from hotloop.core.registry import contests
    from hotloop.lab.sim import open_game

    if target.startswith(PREFIX):
        target, words = contests()[0], [target, *(words or ())]
    if "=" in target:
        raise InputError(f"{target} stands where the target should: write hotloop sim grid/guard {target}")
    keys = [word.removeprefix(PREFIX) for word in words or ()]
    chosen, asked = split(Target.typed(target, keys, seed=seed))
    game = open_game(drawn(chosen, show=show, pictures=bool(gif or png)), asked)
    keepsakes: list[Keepsake] = [Tape(record)] if record else []
    if gif or png:
        keepsakes.append(Pictures(gif, png, fps=fps))
    if plot:
        keepsakes.append(Plot(plot, game))
    make_room(output)
    with profiled(on=perf_profile) as account:
        played = play(game, keepsakes, fps=fps if show else None, as_json=json)
    remark(f"saved {save(record_path(output, played), played.to_json(), *account)}")
    for keepsake in keepsakes:
        keepsake.save(game)
    return report(played, as_json=json)


def split(target: Target) -> "tuple[Target, SimSettings]":
    """Sort keys into those of the target and those of the game."""
    from hotloop.core.registry import find
    from hotloop.lab.sim import SimSettings

    target = Target(target.name, {plain_key(target, key): value for key, value in target.keys.items()})
    ours = {info.name for info in describe(SimSettings)}
    usual = {} if target.is_foreign or not find(target.name).world.history else {"episodes": 1}
    asked = apply(SimSettings, usual, {key: value for key, value in target.keys.items() if key in ours})
    return Target(target.name, {key: value for key, value in target.keys.items() if key not in ours}), asked


def plain_key(target: Target, key: str) -> str:
    """A key by its name in every world; one whose episodes are games has names of its own."""
    from hotloop.core.registry import find

    contest = None if target.is_foreign else find(target.name).world.contest
    if contest is None:
        return key
    return {contest.player: "player", contest.episodes: "episodes", "num_threads": "threads"}.get(key, key)


def drawn(target: Target, *, show: bool, pictures: bool) -> Target:
    """The target as it is looked at: one env, unless somebody says how many."""
    from hotloop.core.registry import find

    if not show and not pictures:
        return target
    if show and pictures:
        raise InputError("--show draws text, --gif and --png draw images: run it twice, the seed is the same")
    if "render_mode" in target.keys:
        raise InputError("leave out render_mode=: --show, --gif and --png decide it")
    seen = target.with_keys({"num_envs": target.keys.get("num_envs", 1)})
    if show and find(target.name).world.narrator:
        return seen
    return seen.with_keys({"render_mode": "ansi" if show else "rgb_array"})


def play(game: "Game", keepsakes: "Sequence[Keepsake]", *, fps: float | None, as_json: bool) -> "Record":
    """Play a game under a bar, or before a person's eyes where `fps` says how fast."""
    from hotloop.core.progress import silent
    from hotloop.lab import sim as lab

    watches = [keepsake.watch for keepsake in keepsakes]
    with ExitStack() as stack:
        if fps is None:
            return lab.sim(game, stack.enter_context(bar(game.batch.spec.target)), watches)
        stream = sys.stderr if as_json else sys.stdout
        if narrator := game.batch.spec.world.narrator:
            told = Narration(stream, narrator(game.batch.spec.parameters), player=game.asked.player)
            return lab.sim(game, silent, [*watches, told.watch])
        screen = stack.enter_context(open_screen(stream, player=game.asked.player, fps=fps))
        return lab.sim(game, silent, [*watches, screen.watch])


@contextmanager
def profiled(*, on: bool) -> Iterator[list[tuple[str, bytes]]]:
    """Watch what runs meanwhile by cProfile; afterwards the list has the file to keep, where it is on."""
    kept: list[tuple[str, bytes]] = []
    if not on:
        yield kept
        return
    profiler = cProfile.Profile()
    with profiler:
        yield kept
    told = io.StringIO()
    stats: Any = pstats.Stats(profiler, stream=told)
    stats.sort_stats("tottime").print_stats(PROFILE_ROWS)
    for line in filter(None, told.getvalue().splitlines()):
        remark(line)
    kept.append((".pstats", marshal.dumps(stats.stats)))


def report(played: "Record", *, as_json: bool) -> int:
    from hotloop.report.sections.sim import sim as sections
    from hotloop.report.terminal import draw

    return tell([played], draw(sections(played)), as_json=as_json, as_list=False)
