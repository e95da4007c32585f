from collections.abc import Callable

import pytest

import hotloop


@pytest.fixture
def has_kernels() -> Callable[[str], bool]:
    """Whether this processor has the instructions that some kernels need."""

    def has(name: str) -> bool:
        try:
            hotloop.make("prospector", num_envs=1, impl="native", kernels=name)
        except ValueError:
            return False
        return True

    return has
