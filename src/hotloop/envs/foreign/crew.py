"""What steps the envs of a trainer's batch: this thread, threads, processes, or the user's own batch."""

import json
import mmap
import multiprocessing
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import HotloopError, InputError, TheirError
from hotloop.core.process import lifeline
from hotloop.envs.foreign.forms import Arrays, Form, Member, Numbers, ask, first_reset, form_from, show
from hotloop.envs.foreign.inside import attribute, is_a, mask_in
from hotloop.envs.foreign.single import five
from hotloop.envs.foreign.subject import close_env, first_of, second_of, seeded
from hotloop.envs.foreign.vector import SAME_STEP, autoreset_of, single_space

# One after another; in threads, for envs that let go of the interpreter; in processes of their own.
SYNC, THREADS, PROCESSES = VECTORS = ("sync", "threads", "async")

STEP, BEGIN, END = b"s", b"b", b"e"

DONE = b""

CLOSE_S = 5.0  # What a process gets to close its envs before it is ended

Make = Callable[[], Any]  # Makes one env

Begun = Sequence[tuple[int, int | None]]  # Envs, and the seed that each begins an episode with


class Crew(Protocol):
    """Envs that all belong to one batch."""

    def begin(self, begun: Begun) -> None:
        """Begin episodes in some envs."""

    def step(self) -> None:
        """Step every env by the actions that were put into their array."""

    def close(self) -> None: ...


class Here:
    """One after another, in this thread."""

    def __init__(self, form: Form, envs: Sequence[Any], arrays: Arrays, actions: NDArray[Any]) -> None:
        self.envs = envs
        self.members: list[Member] = [form.member(env, arrays, place) for place, env in enumerate(envs)]
        self._actions = actions

    def begin(self, begun: Begun) -> None:
        for place, seed in begun:
            self.members[place].begin(seed)

    def step(self) -> None:
        for member, action in zip(self.members, self._actions, strict=True):
            member.step(action)
            lifeline.end_copy()  # before the next env makes two of it

    def close(self) -> None:
        for member in self.members:
            member.close()


class Threads(Here):
    """In threads, each with its own envs."""

    def __init__(
        self, form: Form, envs: Sequence[Any], arrays: Arrays, actions: NDArray[Any], workers: int
    ) -> None:
        super().__init__(form, envs, arrays, actions)
        self._shares = shared_out(len(envs), workers)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="hotloop-env")

    def step(self) -> None:
        for _ in self._pool.map(self._step_some, self._shares):
            pass

    def _step_some(self, share: range) -> None:
        for place in share:
            self.members[place].step(self._actions[place])
            lifeline.end_copy()

    def close(self) -> None:
        self._pool.shutdown()
        super().close()


class Worker(NamedTuple):
    """A process, the pipe to it, and its envs."""

    process: Any
    pipe: Connection
    share: range


class Processes:
    """In processes, each with its own envs; arrays and actions are memory that all of them share.

    A step costs each process one byte to go and an empty message back. They are forked, so that whatever
    makes an env need not be pickled.
    """

    def __init__(
        self, form: Form, makers: Sequence[Make], arrays: Arrays, actions: NDArray[Any], workers: int
    ) -> None:
        self._name = form.name
        context = multiprocessing.get_context("fork")
        self._workers: list[Worker] = []
        for share in shared_out(len(makers), workers):
            mine, theirs = context.Pipe()
            others = [worker.pipe for worker in self._workers] + [mine]
            process = context.Process(
                target=serve,
                args=(theirs, others, form, {place: makers[place] for place in share}, arrays, actions),
                daemon=True,
            )
            process.start()
            theirs.close()
            self._workers.append(Worker(process, mine, share))
        self._wait(self._workers)

    def begin(self, begun: Begun) -> None:
        asked = [(worker, [each for each in begun if each[0] in worker.share]) for worker in self._workers]
        told = [worker for worker, some in asked if some]
        for worker, some in asked:
            if some:
                self._tell(worker, BEGIN + json.dumps(some).encode())
        self._wait(told)

    def step(self) -> None:
        for worker in self._workers:
            self._tell(worker, STEP)
        self._wait(self._workers)

    def _tell(self, worker: Worker, what: bytes) -> None:
        try:
            worker.pipe.send_bytes(what)
        except OSError as error:
            raise self._ended(worker) from error

    def _wait(self, workers: Sequence[Worker]) -> None:
        """Until all have answered; the first that could not is the error."""
        for worker in workers:
            try:
                said = worker.pipe.recv_bytes()
            except (EOFError, OSError) as error:
                raise self._ended(worker) from error
            if said != DONE:
                raise TheirError(f"{said.decode()} (in the worker of {named(worker.share)})")

    def _ended(self, worker: Worker) -> TheirError:
        """What is said of a process that is gone."""
        worker.process.join(CLOSE_S)
        code = worker.process.exitcode
        how = "closed its pipe" if code is None else f"ended with {code}"
        if code is not None and code < 0:
            how = f"was ended by {signal.Signals(-code).name}"
        return TheirError(
            f"{self._name}: the worker of {named(worker.share)} {how} in the middle of its work; "
            "vector=sync runs the envs in this process, where a debugger reaches them"
        )

    def close(self) -> None:
        for worker in self._workers:
            with suppress(OSError):  # it may be gone already
                worker.pipe.send_bytes(END)
            worker.pipe.close()
        for worker in self._workers:
            worker.process.join(CLOSE_S)
            if worker.process.is_alive():
                worker.process.terminate()
                worker.process.join()
        self._workers = []


def serve(
    pipe: Connection,
    others: Sequence[Connection],
    form: Form,
    makers: dict[int, Make],
    arrays: Arrays,
    actions: NDArray[Any],
) -> None:
    """What a process does: make its envs, then as it is told, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the trainer, which then ends this one
    for other in others:
        other.close()
    members: dict[int, Member] = {}
    try:
        members |= {place: form.member(make(), arrays, place) for place, make in makers.items()}
        pipe.send_bytes(DONE)
        while (told := pipe.recv_bytes()) != END:
            carry_out(told, members, actions)
            pipe.send_bytes(DONE)
    except (EOFError, ConnectionError):
        pass
    except BaseException as error:  # noqa: BLE001 - whatever it is, the trainer has to know
        traceback.print_exc()
        sys.stderr.flush()
        said = str(error) if isinstance(error, HotloopError) else f"{form.name} raised: {error!r}"
        pipe.send_bytes(said.encode())
    for member in members.values():
        member.close()


def carry_out(told: bytes, members: dict[int, Member], actions: NDArray[Any]) -> None:
    if told == STEP:
        for place, member in members.items():
            member.step(actions[place])
        return
    for place, seed in json.loads(told[1:]):
        members[place].begin(seed)


def shared_out(envs: int, workers: int) -> list[range]:
    """Envs in a row, as evenly as they go, none without any."""
    ends = [envs * worker // workers for worker in range(workers + 1)]
    return [range(*each) for each in pairwise(ends) if each[0] < each[1]]


def named(share: range) -> str:
    return f"env {share[0]}" if len(share) == 1 else f"envs {share[0]} to {share[-1]}"


def room(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """An array of zeros in memory that processes forked from this one share."""
    kind = np.dtype(dtype)
    count = int(np.prod(shape))
    memory = mmap.mmap(-1, max(1, count * kind.itemsize))
    return np.frombuffer(memory, kind, count).reshape(shape)


# Where a batch of Gymnasium's kind says what an env showed at the end of its episode.
LAST_SEEN = ("final_obs", "final_observation")


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
    form = form_from(name, observed, acted)
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
