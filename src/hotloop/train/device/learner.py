"""Learning on a GPU: a minibatch's passes are recorded once, and the host only plays them back.

The same as `ppo.PPOLearner`, in everything but who waits for whom: which samples a minibatch has is read on
the device, the optimiser looks there whether it may move, and the losses are read once an update.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from hotloop.train.device.graphs import Recorded
from hotloop.train.networks import Student
from hotloop.train.ppo import Samples, diverged, losses
from hotloop.train.settings import TrainSettings
from hotloop.train.timing import mark

LARGE = 2**62  # The number of a minibatch that there never is


class RecordedLearner:
    """A network, its optimiser, and how it learns; see `ppo.PPOLearner`."""

    def __init__(
        self,
        *,
        network: nn.Module,
        student: Student,
        optimiser: torch.optim.Adam,
        settings: TrainSettings,
        generator: torch.Generator,
        device: torch.device,
    ) -> None:
        self.network, self.student, self.optimiser = network, student, optimiser
        self.settings, self.generator, self.device = settings, generator, device
        self.parameters = [each for group in optimiser.param_groups for each in group["params"]]
        self.losses = torch.compile(losses, dynamic=False) if settings.compile else losses
        self.samples: Samples | None = None
        self.passes: dict[str, Passes] = {}
        """By which terms take part; the tensors they read stay where they are."""
        self.say = torch.zeros((), device=device)
        """The teacher's, while it fades."""
        self.turn = torch.zeros(1, dtype=torch.int64, device=device)
        self.order = torch.zeros(0, 0, dtype=torch.int64, device=device)
        """The samples of every minibatch of an update."""
        self.stuck = torch.zeros((), device=device)
        """1 after a loss or a gradient that is no number: from there on nothing moves."""
        self.first = torch.zeros((), dtype=torch.int64, device=device)
        """The minibatch that it was."""

    def learn(self, samples: Samples, imitating: float) -> dict[str, float]:
        """Go over the samples as often as asked; the mean of every term over all minibatches."""
        self.take_in(samples)
        self.draw_order()
        kind = "imitation" if imitating >= 1 else "ppo" if imitating <= 0 else "fade"
        self.say.fill_(imitating)
        says: float | Tensor = self.say if kind == "fade" else imitating
        passes = self.passes.setdefault(kind, Passes(self, says))
        passes.sums.zero_()
        mark("shuffle")
        for _ in range(len(self.order)):
            passes.forward()
            mark("forward")
            passes.backward()
            mark("backward")
            passes.move()
            mark("optimiser")
        return self.means(passes)

    def take_in(self, samples: Samples) -> None:
        """Put samples where the recorded passes read them; what lies there already is not copied."""
        mine = self.samples
        if mine is None or not alike(mine, samples):
            advantages, returns = samples.advantages.clone(), samples.returns.clone()
            self.samples = replace(samples, advantages=advantages, returns=returns)
            self.passes = {}
            return
        for name, array in samples.arrays():
            copy(array, getattr(mine, name))
        if samples.memory is not None and mine.memory is not None:
            for one, other in zip(samples.memory, mine.memory, strict=True):
                copy(one, other)

    def draw_order(self) -> None:
        """Shuffle the samples for every epoch; those of a network with a memory by rows."""
        samples, settings = self.samples, self.settings
        assert samples is not None
        recurrent = samples.memory is not None
        count = samples.actions.shape[1] if recurrent else samples.actions.shape[0]
        size = settings.minibatch_size // (settings.num_steps if recurrent else 1)
        drawn = [
            torch.randperm(count, generator=self.generator, device=self.device)
            for _ in range(settings.update_epochs)
        ]
        order = torch.cat(drawn).reshape(-1, size)
        if self.order.shape == order.shape:
            self.order.copy_(order)
        else:
            self.order = order
        self.turn.zero_()
        self.stuck.zero_()
        self.first.fill_(LARGE)

    def means(self, passes: "Passes") -> dict[str, float]:
        """What the update came to; this waits for the device. DivergedError where something is no number."""
        found: list[float] = (passes.sums / len(self.order)).tolist()
        terms = dict(zip((*passes.names, "grad_norm"), found, strict=True))
        mark("read")
        if float(self.stuck):
            assert self.samples is not None
            number = int(self.first)
            epoch, minibatch = divmod(number, len(self.order) // self.settings.update_epochs)
            minibatch_rows = self.order[number]
            raise diverged(
                self.network, terms, self.samples, minibatch_rows, epoch=epoch, minibatch=minibatch
            )
        return terms


class Passes:
    """The three recorded parts of a gradient step, for one choice of the terms that take part."""

    def __init__(self, learner: RecordedLearner, imitating: float | Tensor) -> None:
        self.learner, self.imitating = learner, imitating
        self.names: tuple[str, ...] = ()
        self.sums = torch.zeros(0)
        self.total = self.terms = torch.zeros(())
        self.limit = learner.settings.max_grad_norm or float("inf")
        self.forward = Recorded(self.go_forward, learner.device)
        self.backward = Recorded(lambda: torch.autograd.backward((self.total,)), learner.device)
        self.move = Recorded(self.go_on, learner.device)
        self.optimiser: Any = learner.optimiser

    def go_forward(self) -> None:
        learner = self.learner
        assert learner.samples is not None
        part = learner.samples.take(learner.order.index_select(0, learner.turn)[0])
        terms = learner.losses(learner.student, part, learner.settings, self.imitating)
        self.total, self.names = terms["total"], tuple(terms)
        self.terms = torch.stack([term.detach() for term in terms.values()])
        if not len(self.sums):
            self.sums = torch.zeros(len(terms) + 1, device=learner.device)

    def go_on(self) -> None:
        """Move, where loss and gradients are numbers; the optimiser divides by `grad_scale` on its way."""
        learner = self.learner
        norm = nn.utils.get_total_norm([each.grad for each in learner.parameters], foreach=True)
        wrong = ~torch.isfinite(norm + self.total.detach())
        learner.stuck.copy_(torch.maximum(learner.stuck, wrong.float()))
        learner.first.copy_(torch.where(wrong, torch.minimum(learner.first, learner.turn[0]), learner.first))
        self.optimiser.grad_scale = ((norm + 1e-6) / self.limit).clamp(min=1)
        self.optimiser.found_inf = learner.stuck
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        self.sums += torch.cat((self.terms, norm[None]))
        learner.turn += 1


def alike(one: Samples, other: Samples) -> bool:
    """Whether both have the same arrays, of the same shapes."""
    mine, theirs = dict(one.arrays()), dict(other.arrays())
    return mine.keys() == theirs.keys() and all(mine[name].shape == theirs[name].shape for name in mine)


def copy(array: Tensor, to: Tensor) -> None:
    if array.data_ptr() != to.data_ptr():
        to.copy_(array)
