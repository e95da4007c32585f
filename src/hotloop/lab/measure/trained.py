"""A trained run where a policy is expected: `run:NAME`, or the path of a checkpoint."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hotloop.core.errors import InputError, unknown
from hotloop.core.machine import need
from hotloop.core.spans import span
from hotloop.envs.batch import Batch
from hotloop.envs.foreign.single import SeveralSubject
from hotloop.envs.foreign.subject import ForeignSubject
from hotloop.envs.foreign.training import EXPECTED, TrainingView
from hotloop.envs.subject import Proxy, Subject

if TYPE_CHECKING:
    from hotloop.train.evaluation import PolicyRunner

RUN, CHECKPOINT = "run:", ".pt"

POLICY = "policy"  # The row of a tree that choosing actions is


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

    def __init__(self, policy: str, *, row: str | None = None) -> None:
        """`row` names the span of a choice; None has none."""
        need("torch")
        self._checkpoint = checkpoint_of(policy)
        self._name = policy
        self._subject: Subject | None = None
        self._batch: Batch
        self._mirror: TrainingView | None = None
        """Of somebody's env, which is no batch."""
        self._actor: PolicyRunner
        self._others: list[Trained] = []
        """At the second and further envs of several that are stepped one after another."""
        self._choose = span(row)(self._ask) if row else self._ask

    def __call__(self, subject: Subject) -> Any:
        return self._choose(subject)

    def sit(self, subject: Subject) -> Batch:
        """Take a seat at a batch, or at somebody's env as one; refuses what it was not trained on."""
        from hotloop.train.evaluation import seat

        subject = behind(subject)
        if isinstance(subject, SeveralSubject):
            self._others = [Trained(self._name) for _ in subject.subjects[1:]]
            return self.sit(subject.subjects[0])
        if subject is not self._subject:
            batch, self._mirror = seen_as_batch(subject)
            self._actor = seat(self._checkpoint, batch, seed=batch.spec.seed, threads=batch.spec.threads)
            self._subject, self._batch = subject, batch
        return self._batch

    def _ask(self, subject: Subject) -> Any:
        several = behind(subject)
        if isinstance(several, SeveralSubject):
            if len(self._others) != len(several.subjects) - 1:
                self.sit(several)
            each = zip((self, *self._others), several.subjects, strict=True)
            return tuple(player.choose_for(one) for player, one in each)
        return self.choose_for(subject)

    def choose_for(self, subject: Subject) -> Any:
        """The actions of one subject as it is now."""
        fresh = self._subject is None
        batch = self.sit(subject)
        if self._mirror is None:
            if not fresh:
                self._actor.note(np.flatnonzero(batch.terminals | batch.truncations).tolist())
            return self._actor.choose()
        ended = self._mirror.look()
        if not fresh:
            self._actor.note(ended)
        return self._mirror.own(self._actor.choose())


def behind(subject: Subject) -> Subject:
    """The subject behind those that stand in front of it; several that are one stay together."""
    while isinstance(subject, Proxy) and not isinstance(subject, SeveralSubject):
        subject = subject.inner
    return subject


def seen_as_batch(subject: Subject) -> tuple[Batch, TrainingView | None]:
    """A batch itself, or somebody's env as one."""
    if isinstance(subject, Batch):
        return subject, None
    if not isinstance(subject, ForeignSubject):
        raise InputError(f"{subject.spec.name}: {EXPECTED}; give a policy of its own, module:callable")
    mirror = TrainingView(subject)
    return mirror.batch, mirror
