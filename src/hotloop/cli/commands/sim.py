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

from hotloop.cli import sweeps
from hotloop.cli.console import bar, remark
from hotloop.cli.flags import Json, Output, Seed, Trust, Words
from hotloop.cli.live.capture import Pictures, Plot, Tape
from hotloop.cli.live.episode import Narration, open_screen
from hotloop.cli.results import FOLDER, check_trust, make_room, make_room_for
from hotloop.cli.runner import kept_in, tell
from hotloop.core.errors import InputError
from hotloop.core.settings import apply, describe
from hotloop.core.target import Target

if TYPE_CHECKING:
    from hotloop.core.record.record import Record
    from hotloop.lab.sim.sim import Game, SimSettings


ISOLATED = True

PREFIX = "sim."

PLAYERS = {"hero", "villain"}
"""Keys that seat players at a game."""

Keepsake = Tape | Pictures | Plot

PROFILE_ROWS = 12
"""Functions of cProfile's account that are printed."""

EXAMPLES = (
    "hotloop sim grid/guard player=teacher",
    "hotloop sim grid/toy episodes=8 steps=500 --json",
    "hotloop sim grid/guard player=teacher episodes=1 --show --fps 20",
    "hotloop sim grid/guard player=teacher episodes=1 steps=150 --gif guard.gif",
    "hotloop sim grid/arena episodes=4 --record arena.npz",
    "hotloop sim --replay arena.npz --frames",
    "hotloop sim prospector player=greedy episodes=1000",
    "hotloop sim prospector player=cautious episodes=1 --show",
    "hotloop sim farm steps=1000 agents=100 player=weighted --plot farm.png",
    "hotloop sim farm steps=1000 agents=100 log=run.db",
    "hotloop sim my_env.py:make player=my_policy.py:Policy episodes=100",
    "hotloop sim cards hero=simple villain=random num_games=1000",
    "hotloop sim cards --round-robin simple,first,random num_games=200",
    "hotloop sim my_game.py:make hero=my_model.py:Model villain=random num_games=200",
    "hotloop sim pettingzoo:classic.connect_four_v3 hero=my_model.py:Model villain=random",
    "hotloop sim prospector player=greedy episodes=100000 --on ray",
    "hotloop sim cards/keywords hero=simple villain=simple num_games=1 --show",
)


TapedTarget = Annotated[
    str | None,
    typer.Argument(
        metavar="TARGET",
        help="A preset such as grid/guard, or any target that bench takes; --replay uses the tape's.",
        show_default=False,
    ),
]
Show = Annotated[bool, typer.Option("--show", help="Draw or describe one env as it plays.")]
Fps = Annotated[float, typer.Option(metavar="F", min=0.1, max=50, help="Frames a second.")]
Recorded = Annotated[Path | None, typer.Option(metavar="TAPE", help="Save seeds and actions for --replay.")]
Replay = Annotated[
    Path | None, typer.Option(metavar="TAPE", help="Play a tape again, with the keys it was recorded with.")
]
DrawFrames = Annotated[
    bool, typer.Option("--frames", help="With --replay: also draw its first env for the page of report.")
]
Gif = Annotated[Path | None, typer.Option(metavar="F", help="Film the first episode, up to 300 steps.")]
Png = Annotated[Path | None, typer.Option(metavar="F", help="Save three moments of that film.")]
Plots = Annotated[
    list[Path] | None,
    typer.Option(metavar="F", help="Plot what changed over the steps, as .png or .svg; may be given twice."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing log.")]
Account = Annotated[
    bool, typer.Option("--perf-profile", help="Save cProfile's result of the run with the record.")
]

RoundRobin = Annotated[
    list[str] | None,
    typer.Option(
        "--round-robin",
        metavar="PLAYERS",
        help="Let every player meet every other in both seats; rate them by Elo. A list with commas.",
    ),
]


def sim(  # noqa: PLR0913 - one argument a flag
    target: TapedTarget = None,
    words: Words = None,
    *,
    seed: Seed = None,
    show: Show = False,
    fps: Fps = 10.0,
    record: Recorded = None,
    replay: Replay = None,
    frames: DrawFrames = False,
    trust: Trust = None,
    gif: Gif = None,
    png: Png = None,
    plot: Plots = None,
    perf_profile: Account = False,
    overwrite: Overwrite = False,
    round_robin: RoundRobin = None,
    on: sweeps.On = None,
    resume: sweeps.Resume = False,
    output: Output = FOLDER,
    json: Json = False,
) -> int:
    """Play whole episodes and sum up what happened.

    Its own keys: player=NAME (random, or one of the world's), episodes=N, steps=N (cuts an episode off; a
    world that never ends is cut off after 1000). Every env plays its share, so that short episodes do not
    count more often than long ones; a world with a history to plot is played once unless you say how often.
    hero=PLAYER villain=PLAYER num_games=N seat two players at a game: random, run:NAME, module:callable. A
    record is saved and never overwrites another.
    """
    from hotloop.lab.sim.sim import open_game

    if frames:
        return keep_frames(replay)
    target, words = taped(replay, target, words, trust) if replay else (named(target, trust), words)
    typed = typed_target(target, words, seed, overwrite=overwrite)
    if on is not None or resume or round_robin:
        refuse_watching(show=show, keepsakes=(record, gif, png, *(plot or ())), account=perf_profile)
    if round_robin:
        return rate_players(typed, round_robin, output, as_json=json)
    chosen, asked = split(typed)
    if on is not None or resume:
        return sim_on(chosen, asked, output, on=on, resume=resume, as_json=json)
    if chosen.is_foreign:
        refuse_drawing(show=show, gif=gif, png=png)
        return sim_theirs(chosen, asked, record, output, as_json=json)
    game = open_game(drawn(chosen, asked, show=show, pictures=bool(gif or png)), asked)
    keepsakes: list[Keepsake] = [Tape(record)] if record else []
    if gif or png:
        keepsakes.append(Pictures(gif, png, fps=fps))
    if plot:
        keepsakes.append(Plot(plot, game))
    make_room(output)
    with profiled(on=perf_profile) as account:
        played = play(game, keepsakes, fps=fps if show else None, as_json=json)
    played = kept_in(output, played, *account)
    code = report(played, as_json=json)
    for keepsake in keepsakes:
        keepsake.save(game)
    return code


def typed_target(target: str, words: list[str] | None, seed: int | None, *, overwrite: bool) -> Target:
    """The target with its keys; without one the first world of games is meant."""
    from hotloop.core.registry import contests

    if target.startswith(PREFIX):
        target, words = contests()[0], [target, *(words or ())]
    if "=" in target:
        raise InputError(f"{target} stands where the target should: write hotloop sim grid/guard {target}")
    keys = [*(word.removeprefix(PREFIX) for word in words or ()), *["overwrite=true"] * overwrite]
    return Target.typed(target, keys, seed=seed)


def named(target: str | None, trusted: Path | None) -> str:
    if trusted is not None:
        raise InputError("--trust is for what --replay plays: leave it out")
    if target is None:
        raise InputError("sim needs a TARGET, or --replay TAPE: hotloop sim --help says how")
    return target


def taped(
    tape: Path, target: str | None, words: list[str] | None, trusted: Path | None
) -> tuple[str, list[str]]:
    """The target of a tape, and the words that play it."""
    from hotloop.envs.tapes import read

    if target is not None:
        raise InputError(f"--replay {tape} says itself what is played: leave out {target}")
    found = read(tape).target
    check_trust(tape, [Target(found)], trusted)
    return found, [f"player=tape:{tape}", *(words or ())]


def keep_frames(tape: Path | None) -> int:
    """Draw a tape step by step into a file beside it."""
    from hotloop.core.errors import ExitCode
    from hotloop.core.record.files import FRAMES_SUFFIX, write_frames
    from hotloop.envs.tapes import read
    from hotloop.lab.sim.frames import frames_of_tape

    if tape is None:
        raise InputError("--frames draws a tape: give --replay TAPE, too")
    path = tape.with_name(f"{tape.name}{FRAMES_SUFFIX}")
    make_room_for(path)
    found = frames_of_tape(read(tape))
    write_frames(path, found)
    remark(
        f"saved {path}: {len(found.frames)} frames of {found.title}; hotloop report {tape.parent} shows them"
    )
    return ExitCode.FINE


def refuse_drawing(*, show: bool, gif: Path | None, png: Path | None) -> None:
    if show or gif or png:
        raise InputError("--show, --gif and --png draw our worlds: leave them out")


def refuse_watching(*, show: bool, keepsakes: "Sequence[Path | None]", account: bool) -> None:
    if show or any(keepsakes) or account:
        raise InputError("--on and --round-robin play unseen: leave out what draws, records or profiles")


def sim_on(
    target: Target, asked: "SimSettings", output: Path, *, on: str | None, resume: bool, as_json: bool
) -> int:
    """Play the episodes in pieces, each with a seed of its own, wherever there is room."""
    from hotloop.cli.console import stdout_kept_clean
    from hotloop.lab import seeds
    from hotloop.lab.cells import FOLDER as SHELVES
    from hotloop.lab.cells import Here, shelf_of

    make_room(output)
    cells = seeds.sims_of(target, asked)
    with sweeps.executor(on, cells, Here(), timed=False) as (executor, machines):
        shelf = shelf_of(SHELVES, "sim", cells, resume=resume, machines=machines)
        with bar(target.name) as progress, stdout_kept_clean():
            played = seeds.sim(target, asked, executor, shelf, progress)
    return report(kept_in(output, played), as_json=as_json)


def rate_players(target: Target, players: "Sequence[str]", output: Path, *, as_json: bool) -> int:
    """Let players meet in both seats, and rate them."""
    from hotloop.cli.console import stdout_kept_clean
    from hotloop.lab.sim.robin import round_robin

    make_room(output)
    names = [name.strip() for word in players for name in word.split(",") if name.strip()]
    with bar(target.name) as progress, stdout_kept_clean():
        played = round_robin(target, names, progress)
    return report(kept_in(output, played), as_json=as_json)


def sim_theirs(
    target: Target, asked: "SimSettings", tape: Path | None, output: Path, *, as_json: bool
) -> int:
    """Play somebody else's environment."""
    from hotloop.cli.console import stdout_kept_clean
    from hotloop.envs.tapes import write_played
    from hotloop.lab.sim import foreign

    make_room(output)
    with bar(target.name) as progress, stdout_kept_clean():
        played, kept = foreign.play(target, asked, progress, keep=tape is not None)
    if tape is not None and kept is not None:
        write_played(tape, *kept)
    return report(kept_in(output, played), as_json=as_json)


def split(target: Target) -> "tuple[Target, SimSettings]":
    """Sort keys into those of the target and those of the game."""
    from hotloop.core.registry import find
    from hotloop.lab.sim.sim import SimSettings

    target = seated(
        Target(target.name, {plain_key(target, key): value for key, value in target.keys.items()})
    )
    ours = {info.name for info in describe(SimSettings)}
    usual = {} if target.is_foreign or not find(target.name).world.history else {"episodes": 1}
    try:
        asked = apply(SimSettings, usual, {key: value for key, value in target.keys.items() if key in ours})
    except InputError as error:
        raise InputError(as_typed(target, str(error))) from None
    return Target(target.name, {key: value for key, value in target.keys.items() if key not in ours}), asked


def seated(target: Target) -> Target:
    """The target with both seats outside where the other one is given to a run."""
    from hotloop.core.registry import find
    from hotloop.lab.measure.trained import is_trained

    contest = None if target.is_foreign else find(target.name).world.contest
    for key, outside in contest.both_outside.items() if contest else ():
        if is_trained(str(target.keys.get(key, ""))):
            return target.with_keys({key: outside, "opponent": target.keys[key]})
    return target


def as_typed(target: Target, message: str) -> str:
    """A message about keys by the names that they were typed with."""
    from hotloop.core.registry import find

    if target.is_foreign:
        return message.replace("episodes=", "num_games=", 1) if PLAYERS & target.keys.keys() else message
    contest = find(target.name).world.contest
    return message.replace("episodes=", f"{contest.episodes}=", 1) if contest else message


def plain_key(target: Target, key: str) -> str:
    """A key by its name in every world; one whose episodes are games has names of its own."""
    from hotloop.core.registry import find

    if target.is_foreign:
        return "episodes" if key == "num_games" and PLAYERS & target.keys.keys() else key
    contest = find(target.name).world.contest
    if contest is None:
        return key
    return {contest.player: "player", contest.episodes: "episodes", "num_threads": "threads"}.get(key, key)


def drawn(target: Target, asked: "SimSettings", *, show: bool, pictures: bool) -> Target:
    """The target as it is looked at: one env, unless somebody or a tape says how many."""
    from hotloop.core.registry import find
    from hotloop.lab.measure.policy import TAPE

    if not show and not pictures:
        return target
    if show and pictures:
        raise InputError("--show draws text, --gif and --png draw images: run it twice, the seed is the same")
    if "render_mode" in target.keys:
        raise InputError("leave out render_mode=: --show, --gif and --png decide it")
    taped = asked.player.startswith(TAPE)
    seen = target if taped else target.with_keys({"num_envs": target.keys.get("num_envs", 1)})
    if show and find(target.name).world.narrator:
        return seen
    return seen.with_keys({"render_mode": "ansi" if show else "rgb_array"})


def play(game: "Game", keepsakes: "Sequence[Keepsake]", *, fps: float | None, as_json: bool) -> "Record":
    """Play a game under a bar, or before a person's eyes where `fps` says how fast."""
    from hotloop.core.progress import silent
    from hotloop.lab.sim import sim as lab

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
    from hotloop.report.kinds.sim import sim as sections
    from hotloop.report.terminal import draw

    return tell([played], draw(sections(played)), as_json=as_json, as_list=False)
