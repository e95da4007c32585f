"""Who plays in sim: trained runs in either seat, and tapes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import hotloop
from hotloop.cli.commands.sim import split
from hotloop.cli.main import main
from hotloop.core.errors import InputError
from hotloop.core.record import Record
from hotloop.core.settings import Target
from hotloop.lab.sim.sim import open_game, sim
from hotloop.lab.training.settings import RunFolder
from hotloop.train.settings import TrainSettings
from hotloop.train.trainer import Trainer


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of a few steps."""
    folder = tmp_path_factory.mktemp("runs")
    settings = TrainSettings(
        num_steps=8,
        minibatch_size=64,
        update_epochs=1,
        embedding=8,
        hidden=(8,),
        torch_threads=1,
        opponents=("self",),
    )
    trainer = Trainer(hotloop.make("cards/mirror", num_envs=8, villain="none"), settings)
    trainer.update()
    run = RunFolder(folder=folder / "train_dir/tiny")
    run.claim(Target("cards/mirror"))
    trainer.save(run.checkpoints)
    return folder


@pytest.fixture
def there(runs: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(runs)
    return runs


def played(target: str = "cards/mirror", **keys: object) -> Record:
    return sim(open_game(*split(Target(target, {"num_games": 8, **keys}))))


def test_a_run_plays_many_games_at_once_in_either_seat(there: Path) -> None:
    hero = played(hero="run:tiny", villain="random")
    assert hero.method.policy == "run:tiny against random"
    assert hero.values["contest.split.inference/forward"][0] > 0
    assert hero.work.coverage["options_refused"] == 0
    villain = played(hero="passive", villain="run:tiny")
    assert villain.method.policy == "passive against run:tiny"
    assert villain.work.coverage["options_refused"] == 0
    assert sum(villain.values["contest.won"]) < 8
    both = played(hero="run:tiny", villain="run:tiny", seed=4)
    again = played(hero="run:tiny", villain="run:tiny", seed=4)
    assert both.values["contest.won"] == again.values["contest.won"]
    assert both.work.coverage["decisions_made"] == both.work.env_steps


def test_what_one_seat_chooses_does_not_depend_on_where_the_other_is_played(there: Path) -> None:
    inside, outside = (
        open_game(
            *split(Target("cards/mirror", {"num_games": 4, "hero": hero, "villain": villain, "seed": 2}))
        )
        for hero, villain in (("passive", "first"), ("passive", "run:tiny"))
    )
    assert inside.batch.spec.parameters.villain == "first"
    assert outside.batch.spec.parameters.villain == "none"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"hero": "run:nobody"}, "there are tiny"),
        ({"hero": "nothing.pt"}, "there is no checkpoint nothing.pt"),
        ({"hero": "run:tiny", "max_actions": 10}, "was trained with num_actions=20, and cards/mirror has 10"),
        ({"hero": "run:tiny", "max_permanents": 12}, "was trained with observation="),
        ({"hero": "smple"}, "did you mean simple"),
    ],
)
def test_a_player_that_cannot_sit_down_is_refused(there: Path, keys: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        played(**keys)


def test_a_checkpoint_of_another_version_is_refused(there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hotloop.train import checkpoint

    identity = checkpoint.identity
    monkeypatch.setattr(
        checkpoint, "identity", lambda batch, shape: identity(batch, shape) | {"parts": [["hand", 7]]}
    )
    with pytest.raises(InputError, match="was trained with parts="):
        played(hero="run:tiny")


def test_a_tape_plays_the_same_games_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tape, out = tmp_path / "games.npz", ["--output", str(tmp_path)]
    words = ["sim", "cards/keywords", "hero=simple", "villain=simple", "num_games=2", "num_envs=1", "seed=3"]
    assert main([*words, "--show", "--record", str(tape), *out]) == 0
    first = capsys.readouterr().out
    assert main(["sim", "cards/keywords", f"hero=tape:{tape}", "--show", *out]) == 0
    again = capsys.readouterr().out
    told, retold = (
        [line for line in text.splitlines() if line.startswith("turn")] for text in (first, again)
    )
    assert told == retold
    assert len(told) > 10
    with pytest.raises(InputError, match="was recorded on cards/keywords"):
        open_game(*split(Target("cards/mirror", {"hero": f"tape:{tape}"})))
