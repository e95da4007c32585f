"""What the trainer does with whole arrays beside the network's own passes: in torch, or natively."""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd import profiler
from torch.autograd.graph import increment_version

from hotloop.core.errors import MissingError, SetupError
from hotloop.core.world import Acts
from hotloop.train import load_kernels
from hotloop.train.actions import NUMBERED, Actions, actions_of
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


# Of a network: all of it is packed anew for every minibatch, and should stay in a core's own cache.
MOST_WEIGHTS = 1 << 20


class NativePasses:
    """Natively what `layers`, each with a ReLU behind it, and `heads` beside one another do with rows.

    Torch shares every operation out among its threads, which meet after each of them. Here a thread takes its
    rows through all layers, and they meet once: see `native/learn/network.h`. Torch's own operations are what
    it must agree with, but for rounding; autograd sees one operation.
    """

    def __init__(self, layers: Sequence[nn.Linear], heads: Sequence[nn.Linear], run: Any) -> None:
        self._parts = (*layers, *heads)
        self._heads = tuple(head.out_features for head in heads)
        widths = [self._parts[0].in_features, *(layer.out_features for layer in layers)]
        self._run, self._network = run, load_kernels().Network(widths, list(self._heads))
        self._weights = [(part.weight.detach().numpy(), part.bias.detach().numpy()) for part in self._parts]
        self._packed: tuple[int, ...] = ()
        """The versions of the weights that were taken last."""
        self.last = 0
        """The number of the last pass that can be gone back on."""
        sizes = [each.numel() for each in self.parameters]
        together = torch.split(torch.empty(sum(sizes)), sizes)
        self._gradients = [part.view_as(each) for part, each in zip(together, self.parameters, strict=True)]
        """Room for those of all weights and biases, one after the other, so that ranks send them as one."""

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """A copy of a network has weights of its own, and its passes are torch's until kernels adopt it."""
        return type(None), ()

    def __call__(self, seen: Tensor, index: Tensor | None = None) -> tuple[Tensor, ...]:
        """What every head says of rows [samples, inputs], or of those that `index` names."""
        if not torch.is_grad_enabled():
            return self.forward(seen.detach(), index, keep=False)
        told: tuple[Tensor, ...] = Pass.apply(self, seen, index, *self.parameters)  # type: ignore[no-untyped-call]
        return told

    @property
    def parameters(self) -> list[Tensor]:
        """Weights and bias of every layer and head."""
        return [each for part in self._parts for each in (part.weight, part.bias)]

    @staticmethod
    def fits(seen: Tensor) -> bool:
        return seen.dtype == torch.float32 and seen.ndim == 2 and seen.is_contiguous()

    def forward(self, seen: Tensor, index: Tensor | None, *, keep: bool) -> tuple[Tensor, ...]:
        """`keep` keeps what the way back needs."""
        versions = tuple(each._version for each in self.parameters)  # noqa: SLF001 - torch says it nowhere else
        if versions != self._packed:
            self._network.pack(self._run, self._weights)
            self._packed = versions
        rows = len(seen) if index is None else len(index)
        heads = tuple(torch.empty(rows, width) for width in self._heads)
        with trace_region("native forward"):
            self._network.forward(
                self._run, seen.numpy(), numbers(index), [each.numpy() for each in heads], keep
            )
        self.last += keep
        return heads

    def backward(
        self,
        seen: Tensor,
        index: Tensor | None,
        by_heads: Sequence[Tensor],
        by_seen: Tensor | None,
        found: Sequence[Tensor],
    ) -> None:
        """Find the gradients of all weights and biases, in their order; of no rows they are zeros."""
        if not len(seen if index is None else index):
            for gradient in found:
                gradient.zero_()
            return
        pairs = [
            (weights.numpy(), bias.numpy()) for weights, bias in zip(found[::2], found[1::2], strict=True)
        ]
        by = [each.contiguous().numpy() for each in by_heads]
        with trace_region("native backward"):
            self._network.backward(self._run, seen.numpy(), numbers(index), by, pairs, numbers(by_seen))

    def new_gradients(self) -> list[Tensor]:
        return [torch.empty_like(each) for each in self.parameters]

    def add_gradients(self, seen: Tensor, index: Tensor | None, by_heads: Sequence[Tensor]) -> None:
        """Add to the gradient of every weight, as autograd would; the first ones lie in room of ours."""
        first = all(weight.grad is None for weight in self.parameters)
        found = self._gradients if first else self.new_gradients()
        self.backward(seen, index, by_heads, None, found)
        for weight, gradient in zip(self.parameters, found, strict=True):
            weight.grad = gradient if weight.grad is None else weight.grad + gradient


class Pass(torch.autograd.Function):
    """One pass; only the last one can be gone back on."""

    @staticmethod
    def forward(
        ctx: Any, passes: NativePasses, seen: Tensor, index: Tensor | None, *_: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.passes, ctx.index, ctx.by_seen = passes, index, seen.requires_grad
        ctx.save_for_backward(seen)
        told = passes.forward(seen.detach(), index, keep=True)
        ctx.number = passes.last
        return told

    @staticmethod
    def backward(ctx: Any, *by_heads: Tensor) -> tuple[Any, ...]:
        passes: NativePasses = ctx.passes
        if ctx.number != passes.last:
            raise RuntimeError("another pass has gone through the network since: this one is forgotten")
        [seen] = ctx.saved_tensors
        by_seen = torch.empty_like(seen) if ctx.by_seen else None
        found = passes.new_gradients()
        passes.backward(seen.detach(), ctx.index, by_heads, by_seen, found)
        return None, by_seen, None, *found


def trace_region(name: str) -> AbstractContextManager[Any]:
    """A row of torch's profiler, where it is on; off, asking for one takes longer than a pass may."""
    on = profiler._is_profiler_enabled  # noqa: SLF001 - nothing else says it
    return profiler.record_function(name) if on else nullcontext()


def numbers(tensor: Tensor | None) -> Any:
    return None if tensor is None else tensor.numpy()


def can_pass(layers: Sequence[nn.Module], heads: Sequence[nn.Module]) -> bool:
    """Whether these are plain layers on the host, of 32 bits, and not too many weights."""
    every = (*layers, *heads)
    if not all(isinstance(each, nn.Linear) and each.bias is not None for each in every):
        return False
    weights = [weight for each in every for weight in each.parameters()]
    return (
        all(weight.dtype == torch.float32 and weight.device.type == "cpu" for weight in weights)
        and sum(weight.numel() for weight in weights) <= MOST_WEIGHTS
    )


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
            # All of it natively: rows are read where they lie, and autograd is not asked.
            passes = student.passes
            logits, values = passes.forward(samples.observations, indices, keep=True)
            by, terms = self._learn((logits, values[:, 0], indices), samples, settings, imitating)
            by[1] = by[1][:, None]
            backward = partial(passes.add_gradients, samples.observations, indices, by)
            return Objective(terms=terms, backward=backward)
        logits, values, _ = student(*samples.inputs(indices))
        numbers = indices
        if samples.memory is not None:  # the samples of a row are a row's length apart
            steps, count = samples.log_probs.shape
            numbers = (torch.arange(0, steps * count, count)[:, None] + indices).flatten()
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

    def adopt(self, network: nn.Module, settings: TrainSettings) -> None:
        if self._run.name == SLOW or settings.compile or settings.mixed_precision:
            return
        for each in network.modules():
            if isinstance(each, ActorCritic) and each.lstm is None and can_pass(*each.plain):
                layers, heads = each.plain
                each.passes = NativePasses(layers, heads, self._run)

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
        made = load_kernels().make(load_kernels().NAMES[0], torch.get_num_threads(), torch_threads())
        return NativeKernels(made) if acts is None else HalfNativeKernels(made, actions)
    if settings.kernels == "native":
        raise SetupError(f"kernels=native: {why_not}; use kernels=torch, or leave it out")
    return Kernels(actions=actions)


@cache
def torch_threads() -> int:
    """How torch's own threads are called together, as an address; 0 where they are not to be had.

    They wait for torch's next operation anyway: others would have to take the cores from them first.
    """
    module = load_kernels()
    return 0 if isinstance(module, ImportError) else int(module.find_openmp(str(Path(torch.__file__).parent)))


def obstacle(settings: TrainSettings, num_actions: int) -> str | None:
    """Why the native kernels cannot run; None where they can."""
    module = load_kernels()
    if settings.device != "cpu":
        return f"they run on the CPU, and the network lives on {settings.device}"
    if isinstance(module, ImportError):
        return f"the native module is not there ({module})"
    if num_actions > module.MOST_ACTIONS:
        return f"they know at most {module.MOST_ACTIONS} actions, and there are {num_actions}"
    return None
