"""What PPO and DQN have in common: what a trainer asks of them, Adam's settings, the threads of torch.

`Trainer` chooses between the two; no other module needs to know which it is.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from hotloop.core.clock import now_ns
from hotloop.core.errors import HotloopError
from hotloop.train.arithmetic import USUAL_THREADS, Kernels, use_threads
from hotloop.train.networks import Memory, Network, Student, make_student
from hotloop.train.normalize import ObservationScale
from hotloop.train.settings import AUTO, TrainSettings

PhaseName = Literal["imitation", "fade", "ppo", "explore", "dqn", "double_dqn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What one rollout and the learning from it came to; the trainer counts `index` and steps over a run."""

    index: int = 0  # From 0, over the whole life of a run
    steps: int = 0  # Env-steps of the run so far, these included
    agent_steps: int  # Steps of living agents: in this rollout, or in the run so far
    phase: PhaseName
    # Every term of the objective, grad_norm, and what is reported with them: means over all minibatches.
    losses: Mapping[str, float]
    learning_rate: float
    # Share of labels that were the policy's most likely action; None while no teacher labels.
    agreement: float | None = None


class Policy(Protocol):
    """What it takes to act as a network was trained to."""

    network: Any  # One of `networks.Network`; nn.Module declares none of its attributes
    student: Student
    observation_scale: ObservationScale
    kernels: Kernels
    device: torch.device
    draws: bool  # Whether actions are drawn by what the network says; else the highest is taken


class DivergedError(HotloopError):
    """A loss or a gradient that is no number; carries what is needed to look at it."""

    def __init__(self, where: str, evidence: dict[str, Any]) -> None:
        super().__init__(where)
        self.where, self.evidence = where, evidence


def set_learning_rate(optimiser: torch.optim.Adam, settings: TrainSettings, steps: int) -> float:
    """Give an optimiser the learning rate of the rollout that begins after so many env-steps."""
    left = 1 - steps / settings.total_timesteps if settings.anneal_lr else 1.0
    rate = settings.learning_rate * max(left, 0.0)
    for group in optimiser.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)  # the recorded steps read it where it is
        else:
            group["lr"] = rate
    return rate


def load_optimiser(optimiser: torch.optim.Adam, state: dict[str, Any]) -> None:
    """Take over what it has gathered; how it runs is this run's own business."""
    [mine] = optimiser.param_groups
    kept = {name: mine[name] for name in ("lr", "capturable", "fused")}
    optimiser.load_state_dict(state)
    optimiser.param_groups[0].update(kept)


ROUNDS = 12  # Of every count
WARM_ROUNDS = 2  # Before them: threads are made, memory is touched

# Before a count is given up that has been slower in all of them than another is on the whole.
FEWEST_ROUNDS = 4

BOX_NS = 2_000_000_000  # No new round begins after so long

# Multiplications of one minibatch's forward pass below which a barrier costs more than it brings.
WORTH_SHARING = 20_000_000


AS_ASKED = "as asked"

# Gives a network's passes to its kernels, with as many threads as torch has now.
Adopt = Callable[[nn.Module], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How many threads torch works with, and why.

    More threads meet at a barrier after every operation, and where another program has one of the cores they
    wait there for whole slices of the scheduler's time. So each count is judged by what its rounds took
    together: a median would not see that every fifth is ten times as long. The slowest round of each is left
    out, for one thing that happened once says nothing about the run.
    """

    threads: int
    why: str
    # Of each count that was tried, what one round took: the mean without the slowest.
    round_ns: Mapping[int, int] = field(default_factory=dict)

    @property
    def is_measured(self) -> bool:
        """Return whether it was measured rather than set."""
        return self.why != AS_ASKED

    @property
    def text(self) -> str:
        """Return one line for people."""
        tried = ", ".join(f"{count}: {ns / 1e6:.2f} ms" for count, ns in sorted(self.round_ns.items()))
        several = "thread" if self.threads == 1 else "threads"
        return f"torch works with {self.threads} {several} ({self.why}{f'; {tried}' if tried else ''})"


def fit_threads(
    network: Network, seen: Tensor, settings: TrainSettings, adopt: Adopt = lambda network: None
) -> Fit:
    """Return the threads of the settings, or the fastest for a minibatch; `seen` is like all rows."""
    if settings.torch_threads != AUTO:
        return Fit(threads=settings.torch_threads, why=AS_ASKED)
    if settings.device != "cpu":
        return Fit(threads=USUAL_THREADS, why="the network is on the GPU")
    if USUAL_THREADS == 1:
        return Fit(threads=1, why="there is one core")
    weights = dict(network.named_parameters()).items()  # a table is looked up, not multiplied by
    products = sum(each.numel() for name, each in weights if each.ndim > 1 and not name.endswith(".table"))
    if products * settings.minibatch_size < WORTH_SHARING:
        return Fit(threads=1, why="a minibatch is too small to be shared")
    powers = {1 << power for power in range(USUAL_THREADS.bit_length())}
    counts = sorted(count for count in powers | {USUAL_THREADS} if count <= USUAL_THREADS)
    rounds = benchmark_thread_counts(counts, piece_of_work(network, seen, settings, adopt))
    best = min(rounds, key=lambda count: (rounds[count], count))
    return Fit(threads=best, why="auto: the least for a minibatch", round_ns=rounds)


def benchmark_thread_counts(among: list[int], work: Callable[[int], None]) -> dict[int, int]:
    """Return the time of a round of each count; they take turns, without those that cannot win any more."""
    taken: dict[int, list[int]] = {count: [] for count in among}
    begin_ns = now_ns()
    for count in among * WARM_ROUNDS:
        timed(count, work)
    for number in range(1, ROUNDS + 1):
        if number > FEWEST_ROUNDS:
            least = min(map(mean_but_slowest, taken.values()))
            among = [count for count, each in taken.items() if min(each) <= least]
        for count in among:
            taken[count].append(timed(count, work))
        if number >= FEWEST_ROUNDS and now_ns() - begin_ns > BOX_NS:
            break
    return {count: round(mean_but_slowest(each)) for count, each in taken.items()}


def mean_but_slowest(rounds: list[int]) -> float:
    return fmean(sorted(rounds)[:-1] or rounds)


def timed(count: int, work: Callable[[int], None]) -> int:
    use_threads(count)
    begin_ns = now_ns()
    work(count)
    return now_ns() - begin_ns


def piece_of_work(
    network: Network, seen: Tensor, settings: TrainSettings, adopt: Adopt = lambda network: None
) -> Callable[[int], None]:
    """Return a function that does a minibatch forward and back, and its share of collecting, on copies."""
    copies: dict[int, tuple[nn.Module, Student]] = {}
    rows, steps, size = len(seen), settings.num_steps, settings.minibatch_size
    minibatches = settings.update_epochs * max(1, rows * steps // size)
    looks = max(1, round(steps / minibatches))
    in_steps = steps if settings.lstm else 1
    learned, looked = inputs_of(network, seen, in_steps, size // in_steps), inputs_of(network, seen, 1, rows)

    def work(count: int) -> None:
        if count not in copies:
            fresh = deepcopy(network)
            adopt(fresh)
            copies[count] = fresh, make_student(fresh, replace(settings, compile=False))
        copy, student = copies[count]
        with torch.no_grad():
            for _ in range(looks):
                student(*looked)
        logits, values, _ = student(*learned)
        torch.autograd.backward(logits.sum() + values.sum())
        copy.zero_grad(set_to_none=True)

    return work


def inputs_of(
    network: Network, seen: Tensor, steps: int, rows: int
) -> tuple[Tensor, Memory | None, Tensor | None]:
    """Return inputs for so many steps of rows: one batch for a network without a memory."""
    memory = network.first_memory(rows, torch.device("cpu"))
    if memory is None:
        return torch.zeros(steps * rows, *seen.shape[1:], dtype=seen.dtype), None, None
    shown = torch.zeros(steps, rows, *seen.shape[1:], dtype=seen.dtype)
    return shown, memory, torch.zeros(steps, rows, dtype=torch.bool)
