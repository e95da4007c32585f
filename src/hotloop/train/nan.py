"""What to do when numbers stop being numbers."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hotloop.core.errors import HotloopError

if TYPE_CHECKING:
    from hotloop.train.ppo import Learner, Samples


class DivergedError(HotloopError):
    """A loss or a gradient that is no number; carries what is needed to look at it."""

    def __init__(self, where: str, evidence: dict[str, Any]) -> None:
        super().__init__(where)
        self.where, self.evidence = where, evidence


def check_finite(
    learner: "Learner",
    terms: dict[str, Tensor],
    part: "Samples",
    indices: Tensor,
    *,
    epoch: int,
    minibatch: int,
) -> None:
    """Stop at the first loss or gradient norm that is not finite, and name what it came from."""
    if torch.isfinite(terms["total"] + terms["grad_norm"]):
        return
    arrays = dict(part.arrays())
    first = next(
        (name for name, array in {**arrays, **terms}.items() if not torch.isfinite(array).all()), "?"
    )
    where = f"epoch {epoch}, minibatch {minibatch}: first in {first}"
    evidence = {
        "epoch": epoch,
        "minibatch": minibatch,
        "first": first,
        "indices": indices,
        "samples": arrays,
        "losses": {name: term.detach() for name, term in terms.items()},
        "network": learner.network.state_dict(),
    }
    raise DivergedError(where, evidence)
