"""What to do when numbers stop being numbers."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from hotloop.core.errors import HotloopError
from hotloop.train.kernels import Number
from hotloop.train.ppo import Samples


class DivergedError(HotloopError):
    """A loss or a gradient that is no number; carries what is needed to look at it."""

    def __init__(self, where: str, evidence: dict[str, Any]) -> None:
        super().__init__(where)
        self.where, self.evidence = where, evidence


def check_finite(
    network: nn.Module,
    terms: dict[str, Number],
    samples: Samples,
    indices: Tensor,
    *,
    epoch: int,
    minibatch: int,
) -> None:
    """Stop at the first loss or gradient norm that is not finite, and name what it came from."""
    if math.isfinite(terms["total"] + terms["grad_norm"]):
        return
    arrays = dict(samples.take(indices).arrays())
    there = {**arrays, **{name: torch.as_tensor(term) for name, term in terms.items()}}
    first = next((name for name, array in there.items() if not torch.isfinite(array).all()), "?")
    where = f"epoch {epoch}, minibatch {minibatch}: first in {first}"
    evidence = {
        "epoch": epoch,
        "minibatch": minibatch,
        "first": first,
        "indices": indices,
        "samples": arrays,
        "losses": {name: float(term) for name, term in terms.items()},
        "network": network.state_dict(),
    }
    raise DivergedError(where, evidence)
