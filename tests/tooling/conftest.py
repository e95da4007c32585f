"""What the tests of the package share."""

from pathlib import Path

import pytest
from support.packages import build


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive, and the wheel built from it."""
    dist = tmp_path_factory.mktemp("dist")
    build(dist)
    return dist
