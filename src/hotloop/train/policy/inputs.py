"""What a network is shown of a batch on the host: the rows of agents, and of which type each is."""

import torch
from torch import Tensor

from hotloop.envs.batch import Batch


class Sight:
    """The rows of a batch; where there is a network a type, a last column has the type."""

    def __init__(self, batch: Batch, *, by_type: bool) -> None:
        shape = (batch.spec.num_envs * batch.spec.agents, *row_shape(batch))
        self.raw = torch.from_numpy(batch.observations).reshape(shape)
        self.final = torch.from_numpy(batch.final_observations).reshape(shape)
        self.types = torch.from_numpy(batch.infos["breeds"]).reshape(-1) if by_type else None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one row."""
        shape = tuple(self.raw.shape[1:])
        return shape if self.types is None else (shape[0] + 1,)

    def now(self, rows: Tensor) -> Tensor:
        """What some agents see, as a copy."""
        return self.typed(self.raw.index_select(0, rows), rows)

    def last(self, rows: Tensor, before: Tensor) -> Tensor:
        """What some agents saw last; their types, which the batch forgot, are in what they saw `before`."""
        seen = self.final.index_select(0, rows)
        return seen if self.types is None else torch.cat((seen, before[:, -1:]), dim=-1)

    def typed(self, seen: Tensor, rows: Tensor) -> Tensor:
        if self.types is None:
            return seen
        types = self.types.index_select(0, rows).to(seen.dtype)
        return torch.cat((seen, types[:, None]), dim=-1)

    def columns(self, seen: Tensor) -> Tensor:
        """Of rows, what was observed: all but the type."""
        return seen if self.types is None else seen[..., :-1]

    def tell_types(self, seen: Tensor, rows: Tensor | None = None) -> None:
        """Write the types of all agents, or of some, beside what they see."""
        if self.types is not None:
            seen[..., -1] = self.types if rows is None else self.types.index_select(0, rows)


def row_shape(batch: Batch) -> tuple[int, ...]:
    """What one agent sees; observations are [num_envs, agents, ...], or [num_envs, ...] of one agent."""
    shape = batch.observations.shape
    return shape[2:] if len(shape) > 2 else shape[1:]


def with_room(seen: Tensor, *, by_type: bool) -> Tensor:
    """Rows with a column more where there is a network a type."""
    return torch.nn.functional.pad(seen, (0, 1)) if by_type else seen
