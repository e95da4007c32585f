import pytest

from hotloop.core import registry
from hotloop.core.errors import InputError
from hotloop.core.settings import Target
from hotloop.envs.open import make
from hotloop.lab.sweep.scale import read


def axes(*words: str, name: str = "grid/toy", grid: str | None = None):
    return read(Target.typed(name, words), grid)


def test_a_key_of_several_values_is_an_axis_and_the_rest_stays() -> None:
    found = axes("agents=10,20", "encoder=original,optimized", "num_envs=8")
    assert found.values == {"agents": ("10", "20"), "encoder": ("original", "optimized")}
    assert found.target.words == "grid/toy num_envs=8"
    assert found.target_at(found.places[-1]).words == "grid/toy num_envs=8 agents=20 encoder=optimized"


def test_envs_is_short_for_num_envs_and_steps_is_no_key_of_the_target() -> None:
    found = axes("envs=1,2", "steps=100,200")
    assert found.places[0].keys == {"num_envs": "1"}
    assert [place.steps for place in found.places[:2]] == [100, 200]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "needs an axis"),
        (("agents=10",), "needs an axis"),
        (("steps=10",), "is one value"),
        (("agents=10,",), "a value is empty"),
        (("agents=10,10",), "is one value"),
        (("steps=10,zero",), "expected a length"),
    ],
)
def test_what_is_no_axis_is_refused(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        axes(*words)


def test_an_unknown_grid_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"did you mean agents\? .* crowding"):
        axes(grid="agent")


def test_the_classic_grids_are_there_for_anybody() -> None:
    assert axes(name="my.py:make", grid="agents").values["agents"][-1] == "1000"
    assert axes(name="my.py:make", grid="envs").values["num_envs"] == (
        "50",
        "100",
        "200",
        "300",
        "400",
        "500",
    )
    assert axes(name="my.py:make", grid="steps").values["steps"][-1] == "5000"


@pytest.mark.parametrize("name", [name for name, world in registry.worlds().items() if world.sizes])
def test_every_size_of_a_worlds_own_grids_can_be_made(name: str) -> None:
    for grid in registry.worlds()[name].sizes:
        found = axes("num_envs=1", name=name, grid=grid)
        for place in found.places:
            make(name, **found.target_at(place).keys).close()
