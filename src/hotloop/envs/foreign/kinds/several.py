"""Several envs that no vector env takes, as one subject: each call steps them one after another."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.notices import Notice
from hotloop.envs.foreign.subject import ForeignSubject
from hotloop.envs.spec import Spec
from hotloop.envs.subject import Proxy


class SeveralSubject(Proxy):
    """Subjects of one kind; seeds are one after another, and each plays its own actions."""

    def __init__(self, subjects: Sequence[Any]) -> None:
        super().__init__(subjects[0])
        self.subjects: list[ForeignSubject] = list(subjects)
        first = self.subjects[0].spec
        self._all = first.with_envs(len(self.subjects), agent_names=())
        self.reseed(first.seed)

    def reseed(self, seed: int) -> None:
        self._all = self._all.with_seed(seed)
        for env, subject in enumerate(self.subjects):
            subject.reseed(seed + env)

    @property
    def spec(self) -> Spec:
        return self._all

    def reset(self) -> None:
        for subject in self.subjects:
            subject.reset()

    def reset_some(self, envs: Sequence[int]) -> None:
        for env in envs:
            self.subjects[env].reset()

    @property
    def resets_together(self) -> bool:
        return False

    def wait(self) -> None:
        for subject in self.subjects:
            subject.wait()

    def step(self, actions: Any) -> None:
        for subject, own in zip(self.subjects, actions, strict=True):
            subject.step(own)

    def close(self) -> None:
        for subject in self.subjects:
            subject.close()

    def draw(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
        return list(zip(*(subject.draw(random, calls) for subject in self.subjects), strict=True))

    def legal(self, random: np.random.Generator, actions: Sequence[Any]) -> Sequence[Any]:
        rows = zip(*actions, strict=True)
        own = (each.legal(random, row) for each, row in zip(self.subjects, rows, strict=True))
        return list(zip(*own, strict=True))

    def settle(self, actions: Any) -> Any:
        return tuple(each.settle(own) for each, own in zip(self.subjects, actions, strict=True))

    def choose(self, player: str) -> Any:
        return tuple(subject.choose(player) for subject in self.subjects)

    @property
    def whole_numbers(self) -> None:
        return None

    def fold(self, actions: Sequence[Any]) -> NDArray[Any]:
        rows = zip(*actions, strict=True)
        return np.concatenate(
            [each.fold(list(row)) for each, row in zip(self.subjects, rows, strict=True)], axis=1
        )

    def unfold(self, row: NDArray[Any]) -> Any:
        return tuple(each.unfold(row[env : env + 1]) for env, each in enumerate(self.subjects))

    @property
    def observation(self) -> Any:
        return [subject.observation for subject in self.subjects]

    @property
    def masks(self) -> NDArray[np.bool_] | None:
        told = [subject.masks for subject in self.subjects]
        masks = [each for each in told if each is not None]
        return np.concatenate(masks) if len(masks) == len(told) else None

    @property
    def told(self) -> Mapping[str, Any]:
        each = [subject.told for subject in self.subjects]
        return {name: [told.get(name) for told in each] for name in each[0]}

    def answers(self) -> Mapping[str, NDArray[Any]]:
        return together([subject.answers() for subject in self.subjects])

    def everything(self) -> Mapping[str, NDArray[Any]]:
        return together([subject.everything() for subject in self.subjects])

    def unseen(self) -> Sequence[str]:
        return sorted({name for subject in self.subjects for name in subject.unseen()})

    def generators(self) -> Sequence[Mapping[str, Any]]:
        return [each for subject in self.subjects for each in subject.generators()]

    def faults(self, actions: Iterable[Any] | None = None) -> tuple[Notice, ...]:
        """Those of the first; the others are like it."""
        return self.subjects[0].faults(None if actions is None else [own[0] for own in actions])

    @property
    def counters(self) -> dict[str, int]:
        rows = [subject.counters for subject in self.subjects]
        return {name: sum(row[name] for row in rows) for name in rows[0]}

    @property
    def resets(self) -> int:
        return sum(subject.resets for subject in self.subjects)

    def phase_totals(self) -> dict[str, int]:
        rows = [subject.phase_totals() for subject in self.subjects]
        return {name: sum(row.get(name, 0) for row in rows) for name in rows[0]}

    @property
    def env(self) -> Any:
        return self.subjects[0].env


def together(rows: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Fields of one shape in all envs with an axis of envs; of others each env's own."""
    joined: dict[str, NDArray[Any]] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        each = [row.get(name) for row in rows]
        found = [part for part in each if part is not None]
        if len(found) == len(rows) and len({(part.shape, part.dtype) for part in found}) == 1:
            joined[name] = np.concatenate(found)
        else:
            joined |= {f"{name}.{env}": part for env, part in enumerate(each) if part is not None}
    return joined
