"""Window metrics of a batch on a GPU: added up there, and read when a window is closed."""

from collections.abc import Mapping
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from hotloop.envs.batch import Batch
from hotloop.train.device.graphs import Recorded
from hotloop.train.windows import MOST_SAMPLED, WindowEpisodes

FIRST = 3  # Sums before those of the infos: episodes, returns, lengths


class DeviceWindows:
    """See `Windows`; sums are in float64, but in no order that could be told beforehand."""

    def __init__(self, batch: Batch, *, compiled: bool = False) -> None:
        arrays: Any = batch
        envs, agents = batch.spec.num_envs, batch.spec.agents
        device = arrays.rewards.device
        self._batch = arrays
        self._returns = torch.zeros(envs, agents, dtype=torch.float64, device=device)
        self._lengths = torch.zeros(envs, dtype=torch.int64, device=device)
        self._whole = torch.ones(envs, dtype=torch.bool, device=device)
        self._infos: dict[str, Tensor] = {
            name: info for name, info in arrays.infos.items() if info.numel() and info.numel() % envs == 0
        }
        self._sums = torch.zeros(FIRST + len(self._infos), dtype=torch.float64, device=device)
        self._ends = torch.zeros(2, dtype=torch.float64, device=device)
        """The lowest return, and the highest one's opposite."""
        self._ends.fill_(float("inf"))
        self._calls = 0
        self._sampled = torch.linspace(0, envs - 1, min(envs, MOST_SAMPLED)).long().to(device)
        add = torch.compile(self.add, dynamic=False) if compiled else self.add
        self._add = Recorded(add, device)

    def step(self, batch: Batch) -> None:
        """Count a step; nothing is read from the device."""
        self._calls += 1
        self._add()

    def add(self) -> None:
        batch = self._batch
        over = batch.terminals | batch.truncations
        counted = over & self._whole
        self._lengths += 1
        self._returns += batch.rewards.reshape(self._returns.shape)
        returns = self._returns.mean(dim=1)
        columns = [torch.ones_like(returns), returns, self._lengths.double()]
        columns += [per_env(info) for info in self._infos.values()]
        self._sums += torch.stack(columns).masked_fill_(~counted, 0).sum(dim=1)
        low = torch.stack((returns, -returns)).masked_fill_(~counted, float("inf"))
        torch.minimum(self._ends, low.amin(dim=1), out=self._ends)
        self._returns.masked_fill_(over[:, None], 0)
        self._lengths.masked_fill_(over, 0)
        self._whole |= over

    def close(self) -> WindowEpisodes:
        """What happened since the window before; this waits for the device."""
        count, returns, lengths, *infos = self._sums.tolist()
        low, high = self._ends.tolist()
        names = self._infos
        window = WindowEpisodes(
            env_steps=self._calls * len(self._lengths),
            episodes=int(count),
            return_sum=returns,
            return_min=low if count else None,
            return_max=-high if count else None,
            length_sum=int(lengths),
            infos={name: total / count for name, total in zip(names, infos, strict=True)} if count else {},
            sampled={name: self.mean_sampled(info) for name, info in names.items()} if self._calls else {},
        )
        self._calls = 0
        self._sums.zero_()
        self._ends.fill_(float("inf"))
        return window

    def mean_sampled(self, info: Tensor) -> float:
        return float(per_env(info)[self._sampled].mean())

    def state(self) -> dict[str, NDArray[Any]]:
        """Nothing: a run that goes on begins its episodes anew."""
        return {}

    def restore(self, state: Mapping[str, NDArray[Any]] | None) -> None:
        """None says that episodes are under way of which the beginning is not known; they do not count."""
        if state is None:
            self._whole.fill_(False)


def per_env(info: Tensor) -> Tensor:
    """One number an env: the info's, or the mean of those it has."""
    return info.double().reshape(len(info), -1).mean(dim=1) if info.ndim > 1 else info.double()
