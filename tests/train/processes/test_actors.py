from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from hotloop.core.errors import InputError
from hotloop.core.settings import Target
from hotloop.train.actors import Actor, ActorPool, ActorsLostError, cores_each, open_batch, shares
from hotloop.train.settings import TrainSettings, check_crew
from hotloop.train.trainer import Trainer

TARGET = Target("prospector/short", {"num_envs": 4, "seed": 42})

SETTINGS = TrainSettings(
    num_steps=16, minibatch_size=32, update_epochs=1, torch_threads=1, total_timesteps=640, collect="ray"
)


class Late:
    """What a method of an actor will have returned, once somebody asks."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call


class OneActor:
    """An actor in this process."""

    def __init__(self, made: Actor) -> None:
        self.made = made

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.made, name)
        return SimpleNamespace(remote=lambda *given: Late(lambda: method(*given)))


class InlineRay:
    """As much of Ray as collecting asks for, in this process: what is asked for is done when fetched."""

    class exceptions:  # noqa: N801 - as Ray spells it
        class RayError(Exception): ...

        class RayTaskError(RayError):
            cause: Exception | None = None

        class ObjectStoreFullError(RayError): ...

        class OutOfDiskError(RayError): ...

        class GetTimeoutError(RayError): ...

    def remote(self, kind: type[Actor]) -> Any:
        made = SimpleNamespace(remote=lambda *given: OneActor(kind(*given)))
        return SimpleNamespace(options=lambda **_: made)

    def put(self, what: Any) -> Any:
        return {name: array.copy() for name, array in what.items()}

    def get(self, late: Sequence[Late], timeout: float | None = None) -> list[Any]:
        return [each.call() for each in late]


def trained(crew: ActorPool | None, updates: int) -> tuple[dict[str, Any], list[float]]:
    """The weights after some updates, and how old what was learned from was."""
    batch = open_batch(TARGET)
    trainer = Trainer(batch, SETTINGS, crew=crew)
    old = [trainer.update().losses.get("staleness", 0.0) for _ in range(updates)]
    batch.close()
    return {name: part.clone() for name, part in trainer.network.state_dict().items()}, old


def crew_of(actors: int, staleness: int) -> ActorPool:
    return ActorPool(ray=InlineRay(), target=TARGET, actors=actors, cores=[2], staleness=staleness)


def test_one_actor_that_is_waited_for_learns_what_is_learned_in_place() -> None:
    crew = crew_of(1, 0)
    by_actor, old = trained(crew, 3)
    in_place, _ = trained(None, 3)
    # Copies of the same weights lie elsewhere in memory, by which sums differ in their last bits.
    assert all(torch.allclose(by_actor[name], part, atol=1e-4) for name, part in in_place.items())
    assert old == [0.0, 0.0, 0.0]
    assert crew.counters["env_steps"] == 3 * 64
    assert sum(each.env_steps for each in crew.take_windows()) == 3 * 64
    assert crew.take_windows() == []


@pytest.mark.parametrize("staleness", [1, 2])
def test_what_is_learned_from_is_older_by_as_many_updates_as_are_allowed_and_no_more(staleness: int) -> None:
    _, old = trained(crew_of(2, staleness), 4)
    assert old == [float(min(number, staleness)) for number in range(4)]


def test_actors_that_are_gone_cost_the_update_under_way_and_nothing_else(tmp_path: Path) -> None:
    crew, batch = crew_of(2, 1), open_batch(TARGET)
    trainer = Trainer(batch, SETTINGS, crew=crew)
    trainer.update()

    def gone(late: Sequence[Late]) -> list[Any]:
        failed = InlineRay.exceptions.RayTaskError()
        failed.cause = InlineRay.exceptions.OutOfDiskError()
        raise failed

    crew.ray.get = gone
    with pytest.raises(ActorsLostError, match="nothing is lost but the update under way"):
        trainer.update()
    path = trainer.save_last(tmp_path)
    batch.close()
    batch = open_batch(TARGET)
    again = Trainer(batch, SETTINGS, resume=path)
    assert (again.steps, again.updates) == (64, 1)
    batch.close()


@pytest.mark.parametrize(
    ("machines", "actors", "share"), [([2], 2, 1.0), ([2, 2], 5, 0.5), ([1], 8, 0.125), ([16, 16], 4, 1.0)]
)
def test_all_actors_find_room_whatever_the_machines_are(
    machines: list[int], actors: int, share: float
) -> None:
    assert cores_each(machines, actors) == share


def test_actors_share_the_envs_and_have_seeds_of_their_own() -> None:
    found = shares(TARGET, 2)
    assert [each["num_envs"] for each in found] == [2, 2]
    assert len({each["seed"] for each in found}) == 2


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("ObjectStoreFullError", "object store is full"),
        ("GetTimeoutError", "no room for the actors"),
        ("RayTaskError", "an actor cannot collect: last"),
        ("RayError", "the actors are gone: last"),
    ],
)
def test_what_became_of_the_actors_is_one_line(error: str, said: str) -> None:
    crew = crew_of(1, 0)
    with pytest.raises(ActorsLostError, match=said), crew.explain_losses():
        raise getattr(InlineRay.exceptions, error)("first\nlast")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"actors": 3}, "actors=3 does not divide num_envs=4"),
        ({"actors": 2, "lstm": 8}, "has no lstm"),
        ({"actors": 2, "ranks": 2}, "has no ranks"),
    ],
)
def test_what_actors_do_not_do_is_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        check_crew(TrainSettings(collect="ray", **keys), 4)
