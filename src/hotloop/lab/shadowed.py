"""A batch in training that its twin shadows: both step as the policy chooses, and are compared."""

from pathlib import Path
from typing import Any, cast

from hotloop.core.errors import InputError
from hotloop.core.settings import by_role
from hotloop.core.validation import Validation
from hotloop.envs.batch import Batch
from hotloop.envs.targets import make
from hotloop.lab import bundle, replay
from hotloop.lab.shadowing import Shadowing

ENVS = 8
"""Of the twin: as many of the batch's first envs are compared."""
LEVELS = {"true": None, "smoke": 10_000, "soak": 100_000}
"""Comparisons after which the batch goes on alone, None is never; one is one agent's output at one step."""


def comparisons_of(word: str) -> int | None:
    """How much to compare: `true`, `smoke`, `soak` or a number of comparisons."""
    if word in LEVELS:
        return LEVELS[word]
    if word.isdecimal() and int(word) > 0:
        return int(word)
    raise InputError(f"validate={word} does not fit: expected true, smoke, soak or a number of comparisons")


class Shadowed:
    """Stands in for a batch: what is not a step or a reset is the batch's own."""

    def __init__(self, batch: Batch, most: int | None, *, reference: Batch | None = None) -> None:
        if batch.spec.impl == "reference":
            raise InputError("validate= compares native code with its twin: leave out impl=reference")
        self._batch = batch
        self._most = most
        self.shadowing = Shadowing(reference or twin_of(batch), batch)

    @property
    def done(self) -> bool:
        """Whether there is nothing left to compare."""
        enough = self._most is not None and self.shadowing.comparisons >= self._most
        return enough or self.shadowing.difference is not None

    def reset(self, seeds: object = None) -> None:
        if seeds is not None:
            raise InputError("a batch that is shadowed begins with its own seeds: leave the seeds out")
        self.shadowing.reset()

    def reset_many(self, indices: Any, seeds: object = None) -> None:
        if seeds is not None:
            raise InputError("a batch that is shadowed goes on with its own seeds: leave the seeds out")
        if self.done:
            self._batch.reset_many(indices)
        else:
            self.shadowing.reset_many(int(env) for env in indices)

    def step(self, actions: Any) -> None:
        if self.done:
            self._batch.step(actions)
        else:
            self.shadowing.step(actions)

    def validation(self) -> Validation:
        return self.shadowing.validation()

    def keep_difference(self, folder: Path) -> Path | None:
        """Write what it takes to see the first difference again; None where there is none."""
        if self.shadowing.difference is None:
            return None
        return bundle.write(replay.of(self.shadowing, tape="policy"), folder / f"difference{bundle.SUFFIX}")

    def close(self) -> None:
        self.shadowing.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)


def shadow(batch: Batch, word: str | None) -> tuple[Batch, Shadowed | None]:
    """What a trainer is given as its batch, and who compares, where somebody asked for that."""
    if word is None:
        return batch, None
    shadowed = Shadowed(batch, comparisons_of(word))
    return cast("Batch", shadowed), shadowed


def twin_of(batch: Batch) -> Batch:
    """The twin of the first few envs."""
    spec = batch.spec
    workload = by_role(spec.parameters, "workload") | by_role(spec.settings, "workload")
    return make(spec.target, **workload, num_envs=min(ENVS, spec.num_envs), impl="reference")
