"""A run as it happens, told line by line: for worlds that draw no picture."""

from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from hotloop.core.world import Narrator
    from hotloop.lab.sim import Moment


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
