from hotloop.core.machine import install_line
from hotloop.core.registry import Obstacle, ProbeError, package_missing


def test_a_package_that_is_there_is_no_obstacle() -> None:
    assert package_missing("json") is None


def test_a_missing_package_is_named_with_what_installs_it() -> None:
    assert package_missing("no_such_package") == Obstacle(
        why="no_such_package is not installed", remedy=install_line("no_such_package")
    )


def test_torch_comes_with_the_trainer(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = package_missing("torch")
    assert found is not None
    assert "[train]" in found.remedy


def test_an_error_of_a_probe_carries_its_reason_and_its_remedy() -> None:
    error = ProbeError("it is dark", "light a lamp")
    assert error.obstacle == Obstacle(why="it is dark", remedy="light a lamp")
    assert str(error) == "it is dark: light a lamp"
