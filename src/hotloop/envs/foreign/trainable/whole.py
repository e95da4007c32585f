"""Envs that the user's own batch steps: a batch object, a vector env, a VecEnv of Stable-Baselines3."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError
from hotloop.core.process import lifeline
from hotloop.envs.foreign.actions import mask_in
from hotloop.envs.foreign.single import five
from hotloop.envs.foreign.spec import attribute, is_a
from hotloop.envs.foreign.subject import close_env, first_of, second_of, seeded
from hotloop.envs.foreign.trainable.crew import Begun
from hotloop.envs.foreign.trainable.members import Arrays, Form, ask, first_reset, show
from hotloop.envs.foreign.trainable.spaces import Numbers, doing_of, reader_of
from hotloop.envs.foreign.vector import SAME_STEP, autoreset_of, single_space

LAST_SEEN = ("final_obs", "final_observation")
"""Where a batch of Gymnasium's kind says what an env showed at the end of its episode."""


def counts_envs(env: Any) -> bool:
    """Whether an object is several envs behind one step."""
    number = attribute(env, "num_envs")
    return (
        isinstance(number, (int, np.integer))
        and not isinstance(number, bool)
        and not is_a(env, "gymnasium", "Env")
    )


def form_of_batch(name: str, env: Any) -> Form:
    """How a batch, which is reset once for that, is read and acted on; InputError where it cannot be."""
    if autoreset_of(env) != SAME_STEP:
        raise InputError(
            f"{name} begins the next episode in the step after an end: a training takes batches that begin "
            "it in the same step, such as autoreset_mode=AutoresetMode.SAME_STEP of Gymnasium's"
        )
    observed = attribute(env, "single_observation_space") or attribute(env, "observation_space")
    acted = attribute(env, "single_action_space") or single_space(env)
    if observed is None or acted is None:
        raise InputError(f"{name} is a {type(env).__name__} without the spaces of one env: give it both")
    form = Form(name=name, reader=reader_of(name, observed), doing=doing_of(name, acted))
    given = first_reset(name, env) if not is_vec_env(env) else ask(name, env.reset)
    seen = first_of(given)
    if isinstance(seen, (Mapping, tuple)) or len(seen) != env.num_envs:
        raise InputError(
            f"{name}: expected observations as one array with a row for each of {env.num_envs} envs"
        )
    if mask_in(second_of(given), seen) is not None:
        raise InputError(f"{name} says which actions are legal: train on single envs with masks instead")
    return form


def is_vec_env(env: Any) -> bool:
    return is_a(env, "stable_baselines3.common.vec_env", "VecEnv")


@dataclass(slots=True)
class Whole:
    """One batch that steps all envs of a training, and begins their next episodes by itself."""

    form: Form
    env: Any
    arrays: Arrays
    actions: NDArray[Any]
    _seen: NDArray[np.float32] = field(init=False)

    def __post_init__(self) -> None:
        self._seen = np.zeros_like(self.arrays["observations"])

    def begin(self, begun: Begun) -> None:
        """Begin all envs, env i by the batch's own rule from the first seed."""
        if len(begun) != self.env.num_envs:
            raise InputError(
                f"{self.form.name} can only be reset as a whole: leave out what resets single envs"
            )
        seed = begun[0][1]
        if is_vec_env(self.env):
            if seed is not None:
                self.env.seed(seed)
            given = ask(self.form.name, self.env.reset)
        elif seed is None:
            given = ask(self.form.name, self.env.reset)
        else:
            given = ask(self.form.name, partial(seeded, self.env.reset, seed))
        self._show("observations", first_of(given))

    def step(self) -> None:
        arrays = self.arrays
        self._seen[...] = arrays["observations"]
        seen, rewards, ended, cut, infos = five(ask(self.form.name, partial(self.env.step, self._own())))
        arrays["rewards"][...] = np.asarray(rewards).reshape(arrays["rewards"].shape)
        over = np.asarray(ended, bool)
        limits = cut_by_time(infos, len(over))
        arrays["terminals"][...] = over & ~limits
        arrays["truncations"][...] = np.asarray(cut, bool) | (over & limits)
        self._show("observations", seen)
        for place in np.flatnonzero(over | arrays["truncations"]).tolist():
            last = last_seen(infos, place)
            row = arrays["final_observations"][place]
            if last is None:  # it says nothing: what was seen before the last action stands for it
                row[...] = self._seen[place]
            else:
                show(self.form, last, row)
        lifeline.end_copy()

    def _own(self) -> NDArray[Any]:
        """The actions as the batch takes them."""
        doing, rows = self.form.doing, self.actions[:, 0]
        if doing.acts is None:
            return np.asarray(rows.astype(np.int64) + doing.start)
        return np.array([doing.own(row) for row in rows])

    def _show(self, name: str, seen: Any) -> None:
        rows = self.arrays[name]
        given = np.asarray(seen)
        if isinstance(self.form.reader, Numbers) and given.size == rows.size:
            rows[...] = given.reshape(rows.shape)
            return
        for place, row in enumerate(rows):
            show(self.form, given[place], row)

    def close(self) -> None:
        close_env(self.env)


def cut_by_time(infos: Any, envs: int) -> NDArray[np.bool_]:
    """Which ends are only a time limit's, as Stable-Baselines3 says it env by env."""
    if isinstance(infos, Mapping):
        return np.zeros(envs, bool)
    return np.array([bool(info.get("TimeLimit.truncated")) for info in infos])


def last_seen(infos: Any, place: int) -> Any:
    """What an env showed at the end of its episode; None if the env does not report it."""
    if not isinstance(infos, Mapping):
        return infos[place].get("terminal_observation")
    found = next((infos[name] for name in LAST_SEEN if name in infos), None)
    return None if found is None else found[place]
