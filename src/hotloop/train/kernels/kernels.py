"""What the trainer does with whole arrays beside the network's own passes: in torch, or natively."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.graph import increment_version

from hotloop.core.errors import MissingError, SetupError
from hotloop.core.world import Acts
from hotloop.train.actions import NUMBERED, Actions, actions_of
from hotloop.train.kernels import load
from hotloop.train.kernels.passes import Passes, can_pass
from hotloop.train.networks import ActorCritic, Student
from hotloop.train.normalize import CLIP, ObservationScale
from hotloop.train.settings import TrainSettings

if TYPE_CHECKING:
    from hotloop.train.ppo import Samples


Number = Tensor | float  # A tensor if reading it would wait for a device

USUAL_THREADS = torch.get_num_threads()  # What torch found fit for the machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """What is to be made smaller."""

    terms: dict[str, Number]  # Among them their sum, `total`
    backward: Callable[[], None]  # Adds its gradient to that of every parameter


# One step of an optimiser with the gradients there are, which it uses up; the norm they had. Nothing moves
# where that is no number.
Move = Callable[[], Number]


def use_threads(count: int) -> None:
    """Let torch work with so many from now on; 0 is the usual number."""
    torch.set_num_threads(count or USUAL_THREADS)


class Kernels:
    """The arithmetic in torch's own operations, on every device: the specification of `NativeKernels`."""

    def __init__(self, *, records: bool = False, actions: Actions = NUMBERED) -> None:
        self.name = "graphs" if records else "torch"
        self.records = records
        """Whether it is to be recorded as CUDA graphs: see `train/device/graphs.py`."""
        self._actions = actions

    def scale(self, scale: ObservationScale, raw: Tensor, out: Tensor) -> None:
        """Write observations [rows, ...] into their place, scaled if they are to be."""
        scale.write(raw, out)

    def choose(
        self,
        logits: Tensor,
        masks: Tensor | None,
        uniforms: Tensor,
        *,
        acting: Tensor,
        actions: Tensor,
        log_probs: Tensor,
    ) -> None:
        """Choose by policies [rows, actions] at numbers from [0, 1): actions for the batch and for torch."""
        drawn, likely = self._actions.draw(logits, masks, uniforms)
        actions.copy_(drawn)
        acting.copy_(actions)
        log_probs.copy_(likely)

    def objective(
        self, student: Student, samples: "Samples", indices: Tensor, settings: TrainSettings, imitating: float
    ) -> Objective:
        """Return the objective of a minibatch; `imitating` 1 is imitation alone, 0 is PPO alone."""
        from hotloop.train.ppo import losses  # which has its kernels from here

        terms = losses(student, samples.take(indices), settings, imitating)
        return Objective(
            terms={name: term.detach() for name, term in terms.items()},
            backward=partial(torch.autograd.backward, (terms["total"],)),
        )

    def adopt(self, network: nn.Module, settings: TrainSettings) -> None:
        """Take over from now on what can be of a network's passes: none."""

    def mover(self, optimiser: torch.optim.Adam, limit: float) -> Move:
        """Return a function that clips gradients to a norm and applies one Adam step."""
        parameters = [each for group in optimiser.param_groups for each in group["params"]]

        def move() -> Tensor:
            norm = nn.utils.clip_grad_norm_(parameters, limit, foreach=True)
            if math.isfinite(norm):
                optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            return norm

        return move


# In the order in which they are found.
TERMS = ("value", "policy", "entropy", "approx_kl", "clip_fraction", "imitation")


SLOW = "plain"  # The kernels of a processor for which torch's products are faster


class NativeKernels(Kernels):
    """See `Kernels`; tensors are on the host, contiguous and of 32 bits.

    An operation of torch costs some microseconds before it does anything, and a loss is dozens of them, each
    of which goes over all its arrays. Here the loss and its gradient by logits and values are found in one
    pass that reads the samples where they lie, and torch is left the passes through the network.
    """

    def __init__(self, run: Any, actions: Actions = NUMBERED) -> None:
        super().__init__(actions=actions)
        self.name = f"native.{run.name}"
        self._run = run

    def scale(self, scale: ObservationScale, raw: Tensor, out: Tensor) -> None:
        if not scale.active or raw.dtype != torch.float32 or not out.is_contiguous():
            scale.write(raw, out)
            return
        self._run.scale(raw.numpy(), scale.shift.numpy(), scale.scale.numpy(), CLIP, out.numpy())

    def choose(
        self,
        logits: Tensor,
        masks: Tensor | None,
        uniforms: Tensor,
        *,
        acting: Tensor,
        actions: Tensor,
        log_probs: Tensor,
    ) -> None:
        self._run.choose(
            logits.numpy(),
            None if masks is None else masks.numpy(),
            uniforms.numpy(),
            acting.numpy(),
            actions.numpy(),
            log_probs.numpy(),
        )

    def objective(
        self, student: Student, samples: "Samples", indices: Tensor, settings: TrainSettings, imitating: float
    ) -> Objective:
        if isinstance(student, ActorCritic) and student.passes and student.learns_at_once:
            return self._passed(student.passes, samples, indices, settings, imitating)
        logits, values, _ = student(*samples.inputs(indices))
        numbers = samples.flat_indices(indices)
        rows = (logits.detach().reshape(-1, logits.shape[-1]), values.detach().reshape(-1), numbers)
        living = None
        if samples.memory is not None and samples.alive is not None:
            living = samples.alive.flatten()[numbers].nonzero()[:, 0]
            rows = (rows[0][living], rows[1][living], numbers[living])
        by, terms = self._learn(rows, samples, settings, imitating)
        if living is not None:  # gradients in the places they belong to, and none in the others
            shapes = [(len(numbers), *each.shape[1:]) for each in by]
            by = [
                each.new_zeros(shape).index_copy_(0, living, each)
                for each, shape in zip(by, shapes, strict=True)
            ]
        return Objective(
            terms=terms,
            backward=partial(
                torch.autograd.backward,
                (logits, values),
                (by[0].reshape(logits.shape), by[1].reshape(values.shape)),
            ),
        )

    def _passed(
        self, passes: Passes, samples: "Samples", indices: Tensor, settings: TrainSettings, imitating: float
    ) -> Objective:
        """All of it natively: rows are read where they lie, and autograd is not asked."""
        logits, values = passes.forward(samples.observations, indices, keep=True)
        by, terms = self._learn((logits, values[:, 0], indices), samples, settings, imitating)
        by[1] = by[1][:, None]
        return Objective(
            terms=terms, backward=partial(passes.add_gradients, samples.observations, indices, by)
        )

    def adopt(self, network: nn.Module, settings: TrainSettings) -> None:
        if self._run.name == SLOW or settings.compile or settings.mixed_precision:
            return
        for each in network.modules():
            if isinstance(each, ActorCritic) and each.lstm is None and can_pass(*each.plain):
                layers, heads = each.plain
                each.passes = Passes(layers, heads, self._run)

    def _learn(
        self,
        rows: tuple[Tensor, Tensor, Tensor],
        samples: "Samples",
        settings: TrainSettings,
        imitating: float,
    ) -> tuple[list[Tensor], dict[str, Number]]:
        """Return the gradients by logits and values, and the terms that take part with their sum.

        `rows` are the logits and values of some samples, and the places of those among all.
        """
        logits, values, numbers = (each.contiguous() for each in rows)
        by = [torch.empty_like(logits), torch.empty_like(values)]
        found = self._run.learn(
            logits.numpy(),
            values.numpy(),
            numbers.numpy(),
            flat(samples.actions),
            flat(samples.log_probs),
            flat(samples.advantages),
            flat(samples.returns),
            None if samples.masks is None else samples.masks.reshape(-1, logits.shape[-1]).numpy(),
            None if samples.labels is None else flat(samples.labels),
            settings.clip_coef,
            settings.vf_coef,
            settings.ent_coef,
            imitating,
            settings.norm_adv,
            *(each.numpy() for each in by),
        )
        terms = dict(zip(TERMS, found, strict=True))
        total = settings.vf_coef * terms["value"]
        names = ["value"]
        if imitating < 1:
            total += (1 - imitating) * (terms["policy"] - settings.ent_coef * terms["entropy"])
            names += TERMS[1:5]
        if imitating > 0 and samples.labels is not None:
            total += imitating * terms["imitation"]
            names.append("imitation")
        return by, {"total": total, **{name: terms[name] for name in names}}

    def mover(self, optimiser: torch.optim.Adam, limit: float) -> Move:
        [group] = optimiser.param_groups
        parameters = group["params"]
        states = [state_of(optimiser, each) for each in parameters]
        kept = [
            (flat(each.detach()), flat(state["exp_avg"]), flat(state["exp_avg_sq"]))
            for each, state in zip(parameters, states, strict=True)
        ]
        moved = [flat(state["step"]) for state in states]
        rule = (float(group["lr"]), *group["betas"], group["eps"])

        def move() -> float:
            steps = float(moved[0][0]) + 1
            arrays = [
                (at, flat(each.grad), mean, square)
                for each, (at, mean, square) in zip(parameters, kept, strict=True)
                if each.grad is not None
            ]
            norm: float = self._run.move(arrays, *rule, steps, limit)
            if math.isfinite(norm):
                for count in moved:
                    count[0] = steps
                for each in parameters:
                    increment_version(each)
            for each in parameters:
                each.grad = None
            return norm

        return move


def flat(tensor: Tensor) -> NDArray[Any]:
    """A view of a contiguous tensor's memory, as one row."""
    return tensor.reshape(-1).numpy()


def state_of(optimiser: torch.optim.Adam, parameter: Tensor) -> dict[str, Tensor]:
    """What Adam keeps of a parameter, under torch's own names; as it begins where it has kept nothing yet."""
    state: dict[str, Tensor] = optimiser.state[parameter]
    if not state:
        state["step"] = torch.zeros(())
        state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
    return state


class HalfNativeKernels(NativeKernels):
    """Scales observations and moves weights natively; torch's operations read actions of several numbers."""

    choose, objective = Kernels.choose, Kernels.objective

    def __init__(self, run: Any, actions: Actions) -> None:
        super().__init__(run, actions)
        self.name += "+torch"


def find_kernels(
    settings: TrainSettings, num_actions: int, *, fixed_shapes: bool = True, acts: Acts | None = None
) -> Kernels:
    """The native ones where they can run and are not refused, torch's elsewhere, on a GPU recorded."""
    on_gpu = settings.device == "cuda"
    actions, fixed_shapes = actions_of(acts), fixed_shapes and acts is None
    if settings.kernels == "graphs" and not on_gpu:
        raise MissingError("kernels=graphs: a GPU records them; use device=cuda, or leave it out")
    if on_gpu and fixed_shapes and settings.kernels in ("auto", "graphs"):
        return Kernels(records=True)
    if settings.kernels == "graphs":
        raise SetupError(
            "kernels=graphs: rows that may be nobody's, tokens without a build with HOTLOOP_CUDA=ON, nets "
            "of yours and actions of several numbers cannot be recorded; use kernels=torch, or leave it out"
        )
    if settings.kernels == "torch":
        return Kernels(actions=actions)
    why_not = obstacle(settings, num_actions)
    if why_not is None:
        made = load().make(load().NAMES[0], torch.get_num_threads(), torch_threads())
        return NativeKernels(made) if acts is None else HalfNativeKernels(made, actions)
    if settings.kernels == "native":
        raise SetupError(f"kernels=native: {why_not}; use kernels=torch, or leave it out")
    return Kernels(actions=actions)


@cache
def torch_threads() -> int:
    """How torch's own threads are called together, as an address; 0 where they are not to be had.

    They wait for torch's next operation anyway: others would have to take the cores from them first.
    """
    module = load()
    return 0 if isinstance(module, ImportError) else int(module.find_openmp(str(Path(torch.__file__).parent)))


def obstacle(settings: TrainSettings, num_actions: int) -> str | None:
    """Why the native kernels cannot run; None where they can."""
    module = load()
    if settings.device != "cpu":
        return f"they run on the CPU, and the network lives on {settings.device}"
    if isinstance(module, ImportError):
        return f"the native module is not there ({module})"
    if num_actions > module.MOST_ACTIONS:
        return f"they know at most {module.MOST_ACTIONS} actions, and there are {num_actions}"
    return None
