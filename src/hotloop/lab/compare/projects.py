"""Sides of a comparison whose projects must not meet: each in a process of its own, which also times it."""

import gc
from collections.abc import Mapping, Sequence

from hotloop.core.target import Target
from hotloop.core.turn_clock import Turn, collect_rest
from hotloop.envs.projects import Process
from hotloop.lab.measure.sides import SubjectSide
from hotloop.lab.measure.target import check_player, open_subject
from hotloop.lab.validate.equal import is_ignored


class RemoteSide:
    """A side in another process; only one of them runs at a time."""

    def __init__(
        self,
        name: str,
        target: Target,
        policy: str,
        *,
        profile: bool,
        process: Process | None = None,
        ignore: Sequence[str] = (),
        seed: int | None = None,
    ) -> None:
        """In a new process, or in one that was started for it and is closed with it."""
        self.name, self._ignore = name, ignore
        self._process = process or Process(name)
        try:
            collects = gc.isenabled()
            self._side = self._process.new(
                f"{__name__}:open_side", name, target, policy, profile=profile, collects=collects, seed=seed
            )
        except BaseException:
            self._process.close()
            raise

    @property
    def grain(self) -> int:
        grain: int = self._side.grain
        return grain

    def turn(self, env_steps: int, run_in: int | None = None) -> Turn:
        taken: Turn = self._side.turn(env_steps, run_in)
        return taken

    def show_env_by_env(self, autoreset: str) -> None:
        self._side.show_env_by_env(autoreset)

    def seen(self) -> Mapping[str, str]:
        return {name: told for name, told in self._side.seen().items() if not is_ignored(name, self._ignore)}

    def counters(self) -> Mapping[str, int]:
        counters: Mapping[str, int] = self._side.counters()
        return counters

    def close(self) -> None:
        self._process.close()


class OwnSide(SubjectSide):
    """The side itself, in its process, which leaves no garbage for its next turn."""

    def turn(self, env_steps: int, run_in: int | None = None) -> Turn:
        taken = super().turn(env_steps, run_in)
        collect_rest()
        return taken

    def seen(self) -> Mapping[str, str]:
        return dict(super().seen())

    def counters(self) -> Mapping[str, int]:
        return dict(super().counters())


def open_side(
    name: str, target: Target, policy: str, *, profile: bool, collects: bool, seed: int | None = None
) -> OwnSide:
    """Open a side here, with the garbage collector as it is where it is compared."""
    subject = open_subject(target, profile=profile)
    if seed is not None:
        subject.reseed(seed)
    check_player(subject, policy)
    gc.collect()
    gc.freeze()
    if not collects:
        gc.disable()
    return OwnSide(name, subject, policy)
