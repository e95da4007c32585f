"""The options of sim."""

from dataclasses import dataclass
from pathlib import Path

from hotloop.options.option import (
    CellsOptions,
    OptionRule,
    TargetOptions,
    argument,
    option,
    seed_option,
    trust_option,
)


@dataclass(frozen=True, kw_only=True)
class SimOptions(TargetOptions, CellsOptions):
    """Play whole episodes and sum up what happened.

    Its own keys: player=NAME (random, or one of the world's), episodes=N, steps=N (cuts an episode off; a
    world that never ends is cut off after 1000). Every env plays its share, so that short episodes do not
    count more often than long ones; a world with a history to plot is played once unless you say how often.
    hero=PLAYER villain=PLAYER num_games=N seat two players at a game: random, run:NAME, module:callable. A
    record is saved and never overwrites another.
    """

    examples = (
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
    isolated = True
    rules = (
        OptionRule(
            given=("frames",), needs=("replay",), says="--frames draws a tape: give --replay TAPE, too"
        ),
        OptionRule(
            given=("replay",),
            excludes=("target",),
            says="--replay {replay} says itself what is played: leave out {target}",
        ),
        OptionRule(
            given=("trust",),
            needs=("replay",),
            says="--trust is for what --replay plays: leave it out",
        ),
        OptionRule(
            given=(),
            needs=("target", "replay"),
            says="sim needs a TARGET, or --replay TAPE: hotloop sim --help says how",
        ),
        OptionRule(
            given=("on", "resume", "round_robin"),
            excludes=("show", "record", "gif", "png", "plot", "perf_profile"),
            says="--on and --round-robin play unseen: leave out what draws, records or profiles",
        ),
    )

    target: str | None = argument(
        "A preset such as grid/guard, or any target that bench takes; --replay uses the tape's.",
        "TARGET",
        None,
    )
    seed: int | None = seed_option()
    show: bool = option(False, "Draw or describe one env as it plays.")
    fps: float = option(10.0, "Frames a second.", "F", min=0.1, max=50)
    record: Path | None = option(None, "Save seeds and actions for --replay.", "TAPE")
    replay: Path | None = option(None, "Play a tape again, with the keys it was recorded with.", "TAPE")
    frames: bool = option(False, "With --replay: also draw its first env for the page of report.")
    trust: Path | None = trust_option()
    gif: Path | None = option(None, "Film the first episode, up to 300 steps.", "F")
    png: Path | None = option(None, "Save three moments of that film.", "F")
    plot: list[Path] | None = option(
        None, "Plot what changed over the steps, as .png or .svg; may be given twice.", "F"
    )
    perf_profile: bool = option(False, "Save cProfile's result of the run with the record.")
    overwrite: bool = option(False, "Replace an existing log.")
    round_robin: list[str] | None = option(
        None,
        "Let every player meet every other in both seats; rate them by Elo. A list with commas.",
        "PLAYERS",
    )
