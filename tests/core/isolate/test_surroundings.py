import os

import pytest

from hotloop.core.isolate.surroundings import Surroundings


def test_variables_of_our_own_are_not_blamed_on_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTLOOP_FIRST_INSTANCE", "3")
    monkeypatch.setenv("THEIRS", "3")
    before = Surroundings()
    monkeypatch.setenv("HOTLOOP_FIRST_INSTANCE", "4")
    assert not [each for each in before.settle() if "variables" in each]
    monkeypatch.setenv("THEIRS", "4")
    assert [each for each in before.settle() if "variables" in each] == ["changed the variables THEIRS"]
    assert (os.environ["HOTLOOP_FIRST_INSTANCE"], os.environ["THEIRS"]) == ("4", "3")
