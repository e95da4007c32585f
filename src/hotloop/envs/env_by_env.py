"""Sides of unlike width or interface, env by env: the same rows of actions in, the same fields out.

A single env, a batch of a library and an object with `num_envs` show the same episodes in other forms. This
shows what all of them have: observations, rewards and flags, the first axis the envs.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError, Notice
from hotloop.core.settings import Target
from hotloop.envs.foreign.subject import NAMES
from hotloop.envs.foreign.vector import NEXT_STEP, SAME_STEP
from hotloop.envs.projects import is_apart, new_apart
from hotloop.envs.spec import Spec
from hotloop.envs.subject import Subject, SubjectGroup

SINGLES = ("gymnasium", "reset and step")  # Interfaces of one env, whose episodes Hotloop begins itself

VEC_ENV = "stable-baselines3"

BATCHES = ("gymnasium vector", "batched", VEC_ENV)  # Interfaces of many envs behind one call

MOST_ENVS = 1_024

OPENING_NS = 15_000_000_000  # What opening one instance after another may take

# What a VecEnv calls a truncation in an env's infos, since it has one flag for both ends.
TIME_LIMIT = "TimeLimit.truncated"


def is_single(subject: Subject) -> bool:
    return subject.spec.interface in SINGLES


def is_batch(subject: Subject) -> bool:
    return subject.spec.interface in BATCHES


class EnvByEnv(SubjectGroup):
    """One subject of many envs, or several instances one after another, as a batch of envs.

    Single envs are shown as a batch with this convention of autoreset shows them.
    """

    resets_together = True
    can_save = False

    def __init__(self, subjects: Sequence[Subject], autoreset: str, envs: int | None = None) -> None:
        super().__init__(subjects)
        self._width = subjects[0].spec.num_envs
        self._autoreset = autoreset
        envs = envs or self._width * len(self.subjects)
        self._spec = subjects[0].spec.with_envs(envs)
        self._waits = is_single(subjects[0]) and autoreset == NEXT_STEP
        """Whether an env that ended spends the next call on its reset."""
        if self._waits and self._width > 1:
            raise InputError(
                f"{self._spec.name} begins the next episode in the step that ends one, the other side in "
                "the step after: give it one env, or another autoreset mode"
            )
        self._ended = [False] * len(self.subjects)
        self._resetting = [False] * len(self.subjects)

    @property
    def spec(self) -> Spec:
        return self._spec

    @property
    def autoreset(self) -> str:
        return self._autoreset

    @property
    def restarts(self) -> bool:
        return all(subject.restarts for subject in self.subjects)

    @property
    def spaces(self) -> tuple[object, object]:
        """The spaces of one env."""
        return self.subjects[0].single_spaces

    def reset(self) -> None:
        super().reset()
        self._ended = [False] * len(self.subjects)
        self._resetting = list(self._ended)

    def reset_some(self, envs: Sequence[int]) -> None:
        if len(envs):
            self.reset()

    def step(self, actions: Any) -> None:
        rows, width = np.asarray(actions), self._width
        for number, subject in enumerate(self.subjects):
            self._resetting[number] = self._waits and self._ended[number]
            self._ended[number] = False
            if not self._resetting[number]:
                first = number * width
                subject.step(subject.unfold(rows[first : first + width]))
                if self._waits:
                    seen = subject.everything()
                    self._ended[number] = bool(np.any(seen["terminals"]) or np.any(seen["truncations"]))

    def legal(self, random: np.random.Generator, actions: Sequence[Any]) -> Sequence[Any]:
        return actions

    def settle(self, actions: Any) -> Any:
        """Return the rows that the drawn actions of every instance come to now."""
        if isinstance(actions, np.ndarray):
            return actions
        settled = ((each, each.settle(own)) for each, own in zip(self.subjects, actions, strict=True))
        return self._rows(each.fold([own])[0] for each, own in settled)

    def choose(self, player: str) -> Any:
        return self._rows(each.fold([each.choose(player)])[0] for each in self.subjects)

    def _rows(self, parts: Iterable[NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate(list(parts))[: self._spec.num_envs]

    def fold(self, actions: Sequence[Any]) -> NDArray[Any]:
        rows = [np.asarray(each) for each in actions]
        return np.array(rows) if rows else np.zeros((0, self._spec.num_envs), np.int32)

    def unfold(self, row: NDArray[Any]) -> Any:
        return row

    def answers(self) -> Mapping[str, NDArray[Any]]:
        return self.everything()

    def everything(self) -> Mapping[str, NDArray[Any]]:
        parts = [self._fields_of(number) for number in range(len(self.subjects))]
        answers = {}
        for name in parts[0]:
            rows = [part[name] for part in parts if name in part]
            if len(rows) == len(parts) and len({each.shape[1:] for each in rows}) == 1:
                answers[name] = np.concatenate(rows)[: self._spec.num_envs]
        return answers

    def _fields_of(self, number: int) -> dict[str, NDArray[Any]]:
        subject, resetting = self.subjects[number], self._resetting[number]
        seen = subject.everything()
        if any(name not in seen for name in NAMES[1:4]):
            raise InputError(f"{self._spec.name} does not show rewards and flags of each env")
        shown = {name: rows for name, rows in seen.items() if name.partition(".")[0] == "observations"}
        if not is_single(subject):
            over, cut = np.asarray(seen["terminals"], bool), seen["truncations"]
            if subject.spec.interface == VEC_ENV:  # its infos say which ends were a time limit's
                said = (seen.get(f"infos.{env}.{TIME_LIMIT}") for env in range(len(over)))
                cut = over & np.array([limit is not None and bool(np.any(limit)) for limit in said])
                over = over & ~cut
            return {**shown, "rewards": seen["rewards"], **flags_of(over, cut)}
        return of_single(seen, self._autoreset, resetting=resetting)

    def unseen(self) -> Sequence[str]:
        """Return what the interfaces show in unlike forms, such as infos, and so is not compared."""
        seen = self.subjects[0].everything()
        return sorted(name for name in seen if name.removeprefix("next_").partition(".")[0] not in NAMES[:4])

    def generators(self) -> tuple[()]:
        return ()

    def faults(self, actions: Iterable[Any] | None = None) -> tuple[Notice, ...]:
        return ()


def of_single(seen: Mapping[str, NDArray[Any]], autoreset: str, *, resetting: bool) -> dict[str, Any]:
    """Return what a single env showed, as a batch with that convention shows it."""
    following = {
        name.removeprefix("next_"): rows
        for name, rows in seen.items()
        if name.startswith("next_observations")
    }
    last = {name: rows for name, rows in seen.items() if name.partition(".")[0] == "observations"}
    flags = flags_of(seen["terminals"], seen["truncations"])
    if resetting:
        nothing = {name: np.zeros_like(rows) for name, rows in flags.items()}
        return {**following, "rewards": np.zeros_like(seen["rewards"]), **nothing}
    return {**(following if autoreset == SAME_STEP else last), "rewards": seen["rewards"], **flags}


def flags_of(over: Any, cut: Any) -> dict[str, NDArray[Any]]:
    """Return both flags as truth values; an episode that was over anyway was not cut off."""
    terminals = np.asarray(over, bool)
    return {"terminals": terminals, "truncations": np.asarray(cut, bool) & ~terminals}


def open_instances(target: Target, envs: int, autoreset: str) -> Subject:
    """Open a foreign target as often as it takes for so many envs, or as time allows.

    Each instance is seeded where the envs of the one before it end: env i has the seed of the target plus i.
    """
    if is_apart(target):
        return new_apart(target, f"{__name__}:open_instances", envs, autoreset)

    from hotloop.envs.foreign.open import open_foreign

    begin, subjects, made = now_ns(), list[Subject](), 0
    try:
        while made < min(envs, MOST_ENVS) and (not made or now_ns() - begin < OPENING_NS):
            subjects.append(open_foreign(target, timed=False, seeds_before=made))
            made += subjects[-1].spec.num_envs
        return EnvByEnv(subjects, autoreset, min(made, envs))
    except BaseException:
        for subject in subjects:
            subject.close()
        raise
