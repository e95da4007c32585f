"""What is kept of a run beside its record: a tape, a film, a strip of pictures."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli.console import remark
from hotloop.cli.results import keep_new, make_room_for
from hotloop.core.errors import InputError

if TYPE_CHECKING:
    from hotloop.lab.measure.policy import Actions
    from hotloop.lab.sim.sim import Game, Moment


MOST_FRAMES = 300  # Of a film; a longer episode is filmed from its beginning up to there


class Tape:
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


class Pictures:
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

    def save(self, game: "Game") -> None:
        if self._gif:
            keep_new(self._gif, self._film.gif(self._fps))
            remark(f"saved {self._gif}: {len(self._film)} frames")
        if self._png:
            keep_new(self._png, self._film.strip())
            remark(f"saved {self._png}")


class Plot:
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

        panels = [
            StepPanel(title=heading, curves={label: self._seen[info] for label, info in labels.items()})
            for heading, labels in self._world.history.items()
        ]
        spec = game.batch.spec
        if not any(self._seen.values()):
            remark("nothing was played, so there is nothing to plot")
            return
        title = f"{spec.name}, {game.asked.player} play, {spec.num_envs} env{'s'[: spec.num_envs > 1]}"
        for path in self._paths:
            draw = png if path.suffix == ".png" else svg
            keep_new(path, draw(title, panels))
            remark(f"saved {path}")
