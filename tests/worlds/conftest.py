from collections.abc import Callable

import pytest

import hotloop
from hotloop.core.errors import SetupError


@pytest.fixture
def has_kernels() -> Callable[[str], bool]:
    """Whether this processor has the instructions that some kernels need."""

    def has(name: str) -> bool:
        try:
            hotloop.make("prospector", num_envs=1, impl="native", kernels=name)
        except SetupError:
            return False
        return True

    return has
