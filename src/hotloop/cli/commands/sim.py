"""hotloop sim: episodes played to the end, drawn and told as they go, and what is kept beside a record."""

import cProfile
import io
import marshal
import pstats
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any, TextIO

from hotloop.cli.main import PIPE_WIDTH, bar, remark, stdout_kept_clean
from hotloop.cli.results import check_trust, make_room, make_room_for, print_records, save_record, write_named
from hotloop.core.clock import now_ns
from hotloop.core.errors import ExitCode, InputError
from hotloop.core.registry import find, worlds
from hotloop.core.settings import Target, apply, describe
from hotloop.options.sim import SimOptions

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from hotloop.core.record import Record
    from hotloop.core.world import Narrator
    from hotloop.lab.measure.policy import Actions
    from hotloop.lab.sim.sim import Game, Moment, SimSettings


PREFIX = "sim."

PLAYERS = {"hero", "villain"}  # Keys that seat players at a game

PROFILE_ROWS = 12  # Functions of cProfile's account that are printed
MOST_FRAMES = 300  # Of a film; a longer episode is filmed from its beginning up to there
PLAIN_EVERY = 100  # Steps between frames where there is no terminal to draw them over one another
MOST_WORDS = 8  # Of any line of numbers


def sim(options: SimOptions) -> int:
    """Play a target, a tape or a tournament, keep and show the record; return its exit code."""
    from hotloop.lab.sim.sim import open_game

    if options.frames and options.replay:
        return keep_frames(options.replay)
    typed = typed_target(options)
    if options.round_robin:
        from hotloop.lab.sim.games import round_robin

        make_room(options.output)
        names = [name.strip() for word in options.round_robin for name in word.split(",") if name.strip()]
        with bar(typed.name) as progress, stdout_kept_clean():
            record = round_robin(typed, names, progress)
        return report(record, options)
    target, asked = split(typed)
    if options.on is not None or options.resume:
        return report(play_cells(target, asked, options), options)
    draws = bool(options.gif or options.png)
    if target.is_foreign:
        if options.show or draws:
            raise InputError("--show, --gif and --png draw our worlds: leave them out")
        return report(play_foreign(target, asked, options), options)
    game = open_game(as_drawn(target, asked, show=options.show, pictures=draws), asked)
    recorders: list[TapeRecorder | FilmRecorder | PlotRecorder] = []
    if options.record:
        recorders.append(TapeRecorder(options.record))
    if draws:
        recorders.append(FilmRecorder(options.gif, options.png, fps=options.fps))
    if options.plot:
        recorders.append(PlotRecorder(options.plot, game))
    make_room(options.output)
    with profiled(on=options.perf_profile) as account:
        played = play(game, [each.watch for each in recorders], options)
    code = report(played, options, *account)
    for recorder in recorders:
        recorder.save(game)
    return code


def report(played: "Record", options: SimOptions, *beside: tuple[str, bytes]) -> int:
    """Keep and show what was played; return its exit code."""
    from hotloop.report.kinds.sim import sim as sections

    record = save_record(options.output, played, *beside)
    return print_records([record], sections(record), as_json=options.json)


def keep_frames(tape: Path) -> int:
    """Draw a tape step by step into a file beside it."""
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


def typed_target(options: SimOptions) -> Target:
    """Return the target with its keys, or that of a tape; without one the first world of games is meant."""
    target, words = options.target or "", [*(options.words or ())]
    if tape := options.replay:
        from hotloop.envs.tapes import read

        target = read(tape).target
        check_trust(tape, [Target(target)], options.trust)
        words = [f"player=tape:{tape}", *words]
    if target.startswith(PREFIX):
        words = [target, *words]
        target = next(name for name, world in worlds().items() if world.contest)
    if "=" in target:
        raise InputError(f"{target} stands where the target should: write hotloop sim grid/guard {target}")
    keys = [*(word.removeprefix(PREFIX) for word in words), *["overwrite=true"] * options.overwrite]
    return Target.typed(target, keys, seed=options.seed)


def split(target: Target) -> "tuple[Target, SimSettings]":
    """Split keys into those of the target and those of the game, by their names in every world.

    Both seats are outside where the other one is given to a run.
    """
    from hotloop.lab.measure.policy import is_trained
    from hotloop.lab.sim.sim import SimSettings

    world = None if target.is_foreign else find(target.name).world
    contest = world.contest if world else None
    names = {}  # What a world whose episodes are games calls keys, and their names in every world
    if contest:
        names = {contest.player: "player", contest.episodes: "episodes", "num_threads": "threads"}
    elif target.is_foreign and PLAYERS & target.keys.keys():
        names = {"num_games": "episodes"}
    keys = {names.get(key, key): value for key, value in target.keys.items()}
    for key, outside in contest.both_outside.items() if contest else ():
        if is_trained(str(keys.get(key, ""))):
            keys |= {key: outside, "opponent": keys[key]}
            break
    ours = {info.name for info in describe(SimSettings)}
    usual = {"episodes": 1} if world and world.history else {}
    try:
        asked = apply(SimSettings, usual, {key: value for key, value in keys.items() if key in ours})
    except InputError as error:
        typed = next((name for name, each in names.items() if each == "episodes"), "episodes")
        raise InputError(str(error).replace("episodes=", f"{typed}=", 1)) from None
    return Target(target.name, {key: value for key, value in keys.items() if key not in ours}), asked


def play_cells(target: Target, asked: "SimSettings", options: SimOptions) -> "Record":
    """Play the episodes in pieces, each with a seed of its own, wherever there is room."""
    from hotloop.cli.commands.sweeps import open_executor
    from hotloop.lab.sweep import experiments as seeds
    from hotloop.lab.sweep.cells import FOLDER, LocalExecutor, shelf_of

    make_room(options.output)
    cells = seeds.sims_of(target, asked)
    with open_executor(options.on, cells, LocalExecutor(), timed=False) as (executor, machines):
        shelf = shelf_of(FOLDER, "sim", cells, resume=options.resume, machines=machines)
        with bar(target.name) as progress, stdout_kept_clean():
            return seeds.sim(target, asked, executor, shelf, progress)


def play_foreign(target: Target, asked: "SimSettings", options: SimOptions) -> "Record":
    """Play an environment of the user, and keep its tape if asked for."""
    from hotloop.envs.tapes import write_played
    from hotloop.lab.sim import games

    tape = options.record
    make_room(options.output)
    with bar(target.name) as progress, stdout_kept_clean():
        played, actions = games.play(target, asked, progress, keep=tape is not None)
    if tape is not None and actions is not None:
        write_played(tape, *actions)
    return played


def as_drawn(target: Target, asked: "SimSettings", *, show: bool, pictures: bool) -> Target:
    """Return the target as it is looked at: one env, unless a key or a tape says how many."""
    from hotloop.lab.measure.policy import TAPE

    if not show and not pictures:
        return target
    if show and pictures:
        raise InputError("--show draws text, --gif and --png draw images: run it twice, the seed is the same")
    if "render_mode" in target.keys:
        raise InputError("leave out render_mode=: --show, --gif and --png decide it")
    if not asked.player.startswith(TAPE):
        target = target.with_keys({"num_envs": target.keys.get("num_envs", 1)})
    if show and find(target.name).world.narrator:
        return target
    return target.with_keys({"render_mode": "ansi" if show else "rgb_array"})


def play(game: "Game", watches: "Sequence[Callable[[Moment], None]]", options: SimOptions) -> "Record":
    """Play a game under a bar, or drawn or told step by step with --show."""
    from hotloop.core.progress import silent
    from hotloop.lab.sim import sim as lab

    spec, player = game.batch.spec, game.asked.player
    if not options.show:
        with bar(spec.target) as progress:
            return lab.sim(game, progress, watches)
    stream = sys.stderr if options.json else sys.stdout
    if narrator := spec.world.narrator:
        told = Narration(stream, narrator(spec.parameters), player=player)
        return lab.sim(game, silent, [*watches, told.watch])
    with open_screen(stream, player=player, fps=options.fps) as screen:
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


class TapeRecorder:
    """The actions of a run, for a file to be replayed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._actions: list[Actions] = []
        make_room_for(path)

    def watch(self, moment: "Moment") -> None:
        if moment.actions is not None:
            self._actions.append(moment.actions.copy())

    def save(self, game: "Game") -> None:
        from hotloop.envs import tapes

        tapes.write(self.path, tapes.record(game.batch, self._actions, game.limit))
        remark(f"saved {self.path}: {len(self._actions):,} steps of {game.batch.spec.num_envs:,} envs")


class FilmRecorder:
    """The first episode of the first env, for a film and for a strip of its moments."""

    def __init__(self, gif: Path | None, png: Path | None, *, fps: float) -> None:
        from hotloop.report.charts import Film

        self._gif, self._png, self._fps = gif, png, fps
        self._film = Film()
        self._is_over = False
        for path in filter(None, (gif, png)):
            make_room_for(path)

    def watch(self, moment: "Moment") -> None:
        self._is_over = self._is_over or any(episode.env == 0 for episode in moment.ended)
        if not self._is_over and len(self._film) < MOST_FRAMES:
            image = moment.batch.render()
            assert not isinstance(image, str), "the batch was made to draw images"
            self._film.add(image)

    def save(self, _: "Game") -> None:
        if self._gif:
            write_named(self._gif, self._film.gif(self._fps))
            remark(f"saved {self._gif}: {len(self._film)} frames")
        if self._png:
            write_named(self._png, self._film.strip())
            remark(f"saved {self._png}")


class PlotRecorder:
    """What a run is about as it goes on, step by step: means over all envs."""

    def __init__(self, paths: Sequence[Path], game: "Game") -> None:
        self._paths, self._world = tuple(paths), game.batch.spec.world
        if not self._world.history:
            raise InputError(f"--plot: {self._world.name} has nothing to plot over time; leave it out")
        for path in self._paths:
            if path.suffix not in (".png", ".svg"):
                raise InputError(f"--plot {path}: expected a name that ends in .png or .svg")
            make_room_for(path)
        infos = {info for labels in self._world.history.values() for info in labels.values()}
        self._seen: dict[str, list[float]] = {info: [] for info in infos}

    def watch(self, moment: "Moment") -> None:
        if moment.actions is not None:
            for info, seen in self._seen.items():
                seen.append(float(moment.episodes.told[info].mean()))

    def save(self, game: "Game") -> None:
        from hotloop.report.charts import StepPanel, png, svg

        if not any(self._seen.values()):
            remark("nothing was played, so there is nothing to plot")
            return
        panels = [
            StepPanel(title=heading, curves={label: self._seen[info] for label, info in labels.items()})
            for heading, labels in self._world.history.items()
        ]
        spec = game.batch.spec
        title = f"{spec.name}, {game.asked.player} play, {spec.num_envs} env{'s'[: spec.num_envs > 1]}"
        for path in self._paths:
            draw = png if path.suffix == ".png" else svg
            write_named(path, draw(title, panels))
            remark(f"saved {path}")


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

        shown = (Text(line, no_wrap=True, overflow="ellipsis") for line in self._lines(moment))
        return Group(*shown, Text.from_ansi(str(moment.batch.render())))

    def _lines(self, moment: "Moment") -> Iterator[str]:
        """Yield the headline, what the world declares without empty infos, returns, and what was counted."""
        from hotloop.lab.measure.record import COVERAGE

        spec, infos = moment.batch.spec, moment.batch.infos
        of = f" of {moment.length:,}" if moment.length else ""
        step = f"step {moment.episodes.ages[0]:,}{of}"
        yield f"{spec.target}  {self._player}  episode {self._played + 1}  {step}"
        for title, labels in spec.world.board.items():
            rows = ((label, infos[info][0].reshape(-1)) for label, info in labels.items())
            if known := [f"{label} {numbers(row)}" for label, row in rows if len(row)]:
                yield f"{title:<9}" + ", ".join(known)
        returns = moment.episodes.returns[0]
        yield f"return   {returns.mean():.3f} per agent: {numbers(returns, '.1f')}"
        counters = moment.batch.counters
        news = {
            name.removeprefix(COVERAGE): count - self._before.get(name, 0)
            for name, count in counters.items()
            if name.startswith(COVERAGE)
        }
        self._before = counters
        yield "last     " + first_words([f"{name} {count}" for name, count in news.items() if count], ", ")


def numbers(row: Any, form: str = "") -> str:
    return first_words([format(value, form) for value in row.tolist()], " ")


def first_words(words: Sequence[str], between: str) -> str:
    return between.join(words[:MOST_WORDS]) + (" ..." if len(words) > MOST_WORDS else "")


@contextmanager
def open_screen(stream: TextIO, *, player: str, fps: float) -> Iterator[Screen]:
    """Yield a screen that a terminal redraws in place, or that writes frames to another stream."""
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
        batch = moment.batch
        if moment.actions is None:
            self._say(f"{batch.spec.target}  {self._player}")
            return
        ended = next((episode for episode in moment.ended if episode.env == 0), None)
        if ended is None or not ended.cut:  # a cut has begun the next episode: nothing is left of the step
            rows = {
                "actions": moment.actions[0],
                "observations": (batch.final_observations if ended else batch.observations)[0],
                "rewards": batch.rewards[0],
                **{name: info[0] for name, info in batch.infos.items()},
            }
            self._say(self._narrator.tell(rows))
        if ended:
            self._played += 1
            came_to = {"steps": ended.length, "return": ended.return_per_agent, **ended.outcomes}
            facts = ", ".join(f"{name} {value:,.4g}" for name, value in came_to.items())
            self._say(f"episode {self._played} {'was cut off' if ended.cut else 'is over'}: {facts}")

    def _say(self, line: str) -> None:
        print(line, file=self._stream, flush=True)
