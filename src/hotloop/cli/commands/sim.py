"""hotloop sim: episodes played to the end, by whom you like."""

import cProfile
import io
import marshal
import pstats
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.cli import sweeps
from hotloop.cli.console import bar, remark, stdout_kept_clean
from hotloop.cli.live.capture import Pictures, Plot, Tape
from hotloop.cli.live.episode import Narration, open_screen
from hotloop.cli.results import check_trust, make_room, make_room_for
from hotloop.cli.runner import kept_in, tell
from hotloop.core.errors import InputError
from hotloop.core.settings import apply, describe
from hotloop.core.target import Target
from hotloop.options.sim import SimOptions

if TYPE_CHECKING:
    from hotloop.core.record import Record
    from hotloop.lab.sim.sim import Game, SimSettings


PREFIX = "sim."

PLAYERS = {"hero", "villain"}  # Keys that seat players at a game

Keepsake = Tape | Pictures | Plot

PROFILE_ROWS = 12  # Functions of cProfile's account that are printed


def sim(options: SimOptions) -> int:
    """Play a target, a tape or a tournament, keep and show the record; returns its exit code."""
    from hotloop.lab.sim.sim import open_game

    if options.frames and options.replay:
        return keep_frames(options.replay)
    target, words = options.target or "", options.words
    if options.replay:
        target, words = taped(options.replay, words, options.trust)
    typed = typed_target(target, words, options.seed, overwrite=options.overwrite)
    if options.round_robin:
        return rate_players(typed, options)
    chosen, asked = split(typed)
    if options.on is not None or options.resume:
        return sim_on(chosen, asked, options)
    draws = bool(options.gif or options.png)
    if chosen.is_foreign:
        if options.show or draws:
            raise InputError("--show, --gif and --png draw our worlds: leave them out")
        return sim_theirs(chosen, asked, options)
    game = open_game(drawn(chosen, asked, show=options.show, pictures=draws), asked)
    keepsakes: list[Keepsake] = [Tape(options.record)] if options.record else []
    if draws:
        keepsakes.append(Pictures(options.gif, options.png, fps=options.fps))
    if options.plot:
        keepsakes.append(Plot(options.plot, game))
    make_room(options.output)
    with profiled(on=options.perf_profile) as account:
        played = play(game, keepsakes, fps=options.fps if options.show else None, as_json=options.json)
    code = report(kept_in(options.output, played, *account), as_json=options.json)
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


def taped(tape: Path, words: list[str] | None, trusted: Path | None) -> tuple[str, list[str]]:
    """The target of a tape, and the words that play it."""
    from hotloop.envs.tapes import read

    found = read(tape).target
    check_trust(tape, [Target(found)], trusted)
    return found, [f"player=tape:{tape}", *(words or ())]


def keep_frames(tape: Path) -> int:
    """Draw a tape step by step into a file beside it."""
    from hotloop.core.errors import ExitCode
    from hotloop.core.record import FRAMES_SUFFIX, write_frames
    from hotloop.envs.tapes import read
    from hotloop.lab.sim.frames import frames_of_tape

    path = tape.with_name(f"{tape.name}{FRAMES_SUFFIX}")
    make_room_for(path)
    found = frames_of_tape(read(tape))
    write_frames(path, found)
    remark(
        f"saved {path}: {len(found.frames)} frames of {found.title}; hotloop report {tape.parent} shows them"
    )
    return ExitCode.FINE


def sim_on(target: Target, asked: "SimSettings", options: SimOptions) -> int:
    """Play the episodes in pieces, each with a seed of its own, wherever there is room."""
    from hotloop.lab.sweep import experiments
    from hotloop.lab.sweep.cells import FOLDER as SHELVES
    from hotloop.lab.sweep.cells import LocalExecutor, shelf_of

    make_room(options.output)
    cells = experiments.sims_of(target, asked)
    with sweeps.executor(options.on, cells, LocalExecutor(), timed=False) as (executor, machines):
        shelf = shelf_of(SHELVES, "sim", cells, resume=options.resume, machines=machines)
        with bar(target.name) as progress, stdout_kept_clean():
            played = experiments.sim(target, asked, executor, shelf, progress)
    return report(kept_in(options.output, played), as_json=options.json)


def rate_players(target: Target, options: SimOptions) -> int:
    """Let players meet in both seats, and rate them."""
    from hotloop.lab.sim.games import round_robin

    make_room(options.output)
    lists = options.round_robin or []
    names = [name.strip() for word in lists for name in word.split(",") if name.strip()]
    with bar(target.name) as progress, stdout_kept_clean():
        played = round_robin(target, names, progress)
    return report(kept_in(options.output, played), as_json=options.json)


def sim_theirs(target: Target, asked: "SimSettings", options: SimOptions) -> int:
    """Play somebody else's environment."""
    from hotloop.envs.tapes import write_played
    from hotloop.lab.sim import games

    tape = options.record
    make_room(options.output)
    with bar(target.name) as progress, stdout_kept_clean():
        played, kept = games.play(target, asked, progress, keep=tape is not None)
    if tape is not None and kept is not None:
        write_played(tape, *kept)
    return report(kept_in(options.output, played), as_json=options.json)


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
    from hotloop.lab.measure.policy import is_trained

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
