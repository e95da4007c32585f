"""A batch whose arrays are torch tensors on the CPU, to try what trains on a GPU where there is none."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hotloop.envs.batch import Batch
from hotloop.envs.cuda import DeviceBatch
from hotloop.envs.native import EngineWrapper
from hotloop.envs.open import make


class TensorEngine(EngineWrapper):
    """A host's engine that shows its arrays as tensors over the same memory."""

    def arrays(self) -> dict[str, Any]:
        return {name: torch.from_numpy(array) for name, array in self._behind.arrays().items()}

    def step(self, actions: Any) -> None:
        self._behind.step(actions.numpy())

    def choose(self, player: int, actions: Any) -> None:
        self._behind.choose(player, actions.numpy())


class TensorBatch(DeviceBatch):
    """See `DeviceBatch`."""

    def new_actions(self) -> Any:
        return torch.from_numpy(Batch.new_actions(self))

    def digest(self) -> NDArray[np.uint64]:
        return Batch.digest(self)

    def use_stream(self, stream: int) -> None:
        raise AssertionError("there is no stream on a CPU")


def tensor_batch(target: str, **given: Any) -> TensorBatch:
    """A world's batch as tensors."""
    host = make(target, **given)
    engine: Any = TensorEngine(host.engine)
    return TensorBatch(engine, host.spec)
