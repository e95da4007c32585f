"""Samples to learn from, at random."""

import torch

from hotloop.train.ppo import Samples


def samples(count: int = 12, actions: int = 4) -> Samples:
    generator = torch.Generator().manual_seed(5)
    return Samples(
        observations=torch.randn(count, 3, generator=generator),
        actions=torch.randint(actions, (count,), generator=generator),
        log_probs=-torch.rand(count, generator=generator) - 0.5,
        advantages=torch.randn(count, generator=generator),
        returns=torch.randn(count, generator=generator),
        labels=torch.randint(actions, (count,), generator=generator),
    )
