"""What these tests share: profiles of envs that need no warming up."""

import pytest

from hotloop.lab.profile import profile


@pytest.fixture(autouse=True)
def warm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "WARMUP", 100)
