"""A trained run where a policy is expected: `run:NAME`, or the path of a checkpoint."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hotloop.core.errors import InputError, unknown
from hotloop.core.packages import need
from hotloop.core.spans import span
from hotloop.envs.batch import Batch
from hotloop.envs.subject import Proxy, Subject

if TYPE_CHECKING:
    from hotloop.train.evaluation import Actor

RUN, CHECKPOINT = "run:", ".pt"

POLICY = "policy"
"""The row of a tree that choosing actions is."""


def is_trained(policy: str) -> bool:
    """Whether a policy is the name of a run or a checkpoint's path."""
    return policy.startswith(RUN) or policy.endswith(CHECKPOINT)


def checkpoint_of(policy: str) -> Path:
    """The file of a policy; InputError where there is no such run, or it has none."""
    from hotloop.lab.training import folder

    if not policy.startswith(RUN):
        if not Path(policy).is_file():
            raise InputError(f"there is no checkpoint {policy}: give a file of train_dir/NAME/checkpoints")
        return Path(policy)
    name, runs = (
        policy.removeprefix(RUN),
        [path.name for path in sorted(folder.ROOT.glob("*")) if path.is_dir()],
    )
    if name not in runs:
        there = f"there are {', '.join(runs)}" if runs else f"train one with hotloop train TARGET run={name}"
        raise unknown("run", name, runs, there)
    return folder.last_checkpoint(folder.find(folder.ROOT, name))[0]


class Trained:
    """Chooses what a run finds best, for one batch after another; asked of each as it is then."""

    def __init__(self, policy: str, *, timed: bool) -> None:
        need("torch")
        self._checkpoint = checkpoint_of(policy)
        self._name = policy
        self._batch: Batch | None = None
        self._actor: Actor
        self._choose = span(POLICY)(self._ask) if timed else self._ask

    def __call__(self, subject: Subject) -> Any:
        return self._choose(subject)

    def sit(self, subject: Subject) -> Batch:
        """Take a seat at a batch; refuses what it was not trained on."""
        from hotloop.train.player import seat

        batch = subject.behind if isinstance(subject, Proxy) else subject
        if not isinstance(batch, Batch):
            raise InputError(
                f"{self._name} was trained on a world of ours and {subject.spec.name} is none: "
                "give a policy of its own, module:callable"
            )
        if batch is not self._batch:
            threads = batch.spec.threads
            self._actor = seat(self._checkpoint, batch, seed=batch.spec.seed, threads=threads)
            self._batch = batch
        return batch

    def _ask(self, subject: Subject) -> Any:
        fresh = self._batch is None
        batch = self.sit(subject)
        if not fresh:
            self._actor.note(np.flatnonzero(batch.terminals | batch.truncations).tolist())
        return self._actor.choose()
