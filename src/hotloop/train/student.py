"""The student: a network as it is called, in which precision and through which compiler."""

import shutil
from typing import Any

import torch
from torch import Tensor, nn

from hotloop.core.errors import SetupError
from hotloop.train.networks import Memory
from hotloop.train.rollout import Student
from hotloop.train.settings import TrainSettings


def make_student(network: nn.Module, settings: TrainSettings) -> Student:
    """What collecting and learning call."""
    called: Any = compiled(network) if settings.compile else network
    if not settings.mixed_precision:
        return called  # type: ignore[no-any-return]
    try_bfloat16(settings.device)

    def student(
        observations: Tensor, memory: Memory | None, begins: Tensor | None
    ) -> tuple[Tensor, Tensor, Memory | None]:
        with torch.autocast(settings.device, dtype=torch.bfloat16):
            logits, values, memory = called(observations, memory, begins)
        kept = None if memory is None else (memory[0].float(), memory[1].float())
        return logits.float(), values.float(), kept

    return student


def compiled(network: nn.Module) -> Any:
    if not any(map(shutil.which, ("g++", "c++", "clang++"))):
        raise SetupError("compile=true needs a C++ compiler, and none is found: install g++, or leave it out")
    return torch.compile(network)


def try_bfloat16(device: str) -> None:
    """Multiply once, because some machines promise matrix instructions that they do not let anybody use."""
    ones = torch.ones(64, 64, dtype=torch.bfloat16, device=device)
    try:
        ones @ ones
    except RuntimeError as error:
        raise SetupError(
            f"mixed_precision=true: this machine cannot multiply bfloat16 matrices ({error}): "
            "set the environment variable ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16, or leave it out"
        ) from None
