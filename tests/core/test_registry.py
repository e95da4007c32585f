import sys

import pytest

from hotloop.core import registry
from hotloop.core.errors import InputError
from hotloop.core.machine import install_line
from hotloop.core.registry import Obstacle, ProbeError, find, package_missing, presets, worlds

WORLD = """
from hotloop.core.world import World
world = World(name="{name}", summary="", parameters=object, presets={{"arena": {{}}, "toy": {{"agents": 2}}}},
              phases=(), plan=dict, layout=None, twin=None)
"""


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A package of worlds in the place of ours."""
    files = {
        "places/__init__.py": "",
        "places/grid/__init__.py": WORLD.format(name="grid"),
        "places/farm/__init__.py": WORLD.format(name="farm"),
        "places/_draft/__init__.py": "raise RuntimeError('a folder with _ is not looked into')",
        "places/notes/__init__.py": "",
        "places/single.py": "raise RuntimeError('a file is no world')",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "WORLDS", "places")
    yield tmp_path
    for name in [name for name in sys.modules if name.split(".")[0] == "places"]:
        del sys.modules[name]


@pytest.mark.usefixtures("folders")
def test_a_world_is_a_folder_that_declares_one():
    assert sorted(worlds()) == ["farm", "grid"]


@pytest.mark.usefixtures("folders")
def test_a_target_is_a_world_and_a_preset():
    found = find("grid/toy")
    assert (found.world.name, found.preset, found.target) == ("grid", "toy", "grid/toy")


@pytest.mark.usefixtures("folders")
def test_a_bare_world_means_its_default_preset():
    assert find("grid").preset == "arena"


@pytest.mark.usefixtures("folders")
def test_finding_one_world_imports_no_other():
    find("grid/toy")
    assert "places.farm" not in sys.modules


@pytest.mark.usefixtures("folders")
def test_every_preset_of_a_world_can_be_found():
    targets = [found.target for found in presets(worlds()["farm"])]
    assert targets == ["farm/arena", "farm/toy"]
    assert [find(target).target for target in targets] == targets


@pytest.mark.usefixtures("folders")
@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("grid/tyo", "unknown target 'grid/tyo': did you mean grid/toy? hotloop worlds lists them"),
        ("gird", "unknown target 'gird': did you mean grid? hotloop worlds lists them"),
        ("gird/toy", "unknown target 'gird/toy': did you mean grid/toy? hotloop worlds lists them"),
        ("zzz", "unknown target 'zzz': hotloop worlds lists them"),
        ("", "unknown target '': hotloop worlds lists them"),
        ("notes", "unknown target 'notes': hotloop worlds lists them"),
    ],
)
def test_an_unknown_target_gets_the_nearest(target, message):
    with pytest.raises(InputError) as refused:
        find(target)
    assert str(refused.value) == message


@pytest.mark.usefixtures("folders")
def test_a_preset_that_is_empty_is_no_default():
    with pytest.raises(InputError, match="unknown target 'grid/'"):
        find("grid/")


def test_a_probe_is_a_file_that_declares_one(folders, monkeypatch):
    declared = "from hotloop.core.registry import Probe\n"
    declared += "probe = Probe(name='mine', purpose='', why_not=lambda: None, look=None)\n"
    for name, text in {"__init__": "", "mine": declared, "shared": "probe = 3", "_draft": "raise"}.items():
        (folders / "eyes").mkdir(exist_ok=True)
        (folders / "eyes" / f"{name}.py").write_text(text)
    monkeypatch.setattr(registry, "PROBES", "eyes")
    assert [*registry.probes()] == ["mine"]


def test_every_probe_says_what_it_is_for_and_is_named_like_its_file():
    found = registry.probes()
    assert {"cprofile", "instructions", "line", "memory", "pyspy", "resources", "threads", "torch"} <= {
        *found
    }
    for name, probe in found.items():
        assert probe.name == name
    assert sorted(found) == sorted(registry.probe_names())
    for probe in found.values():
        assert probe.purpose
        assert "\n" not in probe.purpose


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
