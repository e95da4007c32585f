"""Games against somebody, as sim plays and reports them."""

import numpy as np
import pytest
from support import table

import hotloop
from hotloop.cli.commands.sim import split
from hotloop.cli.main import main
from hotloop.core import registry
from hotloop.core.errors import InputError
from hotloop.core.record import Record
from hotloop.core.settings import Target
from hotloop.lab.measure.policy import AheadPlay, play_of
from hotloop.lab.sim.sim import SimSettings, open_game, sim
from hotloop.report.kinds.sim import about_games, share_line, split_line
from hotloop.report.section import text_of
from hotloop.stats.summary import wilson_interval


def played(**keys: object) -> Record:
    target, asked = split(Target("cards/mirror", dict(keys)))
    return sim(open_game(target, asked))


def test_a_contests_keys_are_names_for_everybodys() -> None:
    target, asked = split(
        Target.typed("cards", ["hero=simple", "num_games=5", "num_threads=2", "villain=first"])
    )
    assert asked == SimSettings(player="simple", episodes=5)
    assert target.keys == {"threads": "2", "villain": "first"}


def test_a_record_says_who_won_why_it_ended_and_where_the_time_went() -> None:
    record = played(hero="passive", villain="first", num_games=40)
    assert record.values["contest.won"] == (0.0,) * 40
    assert 0 < sum(record.values["contest.began"]) < 40
    assert record.values["contest.ended.life"] == (40.0,)
    assert record.values["contest.games_per_s"][0] > 0
    parts = ("env.step", "inference", "(forward", "selection", "encoding", "rest")
    assert all(f"{part} " in split_line(record) for part in parts)
    told = "\n".join(f"{name}: {text_of(value)}" for name, value in about_games(record).rows)
    for line in ("player: passive against first", "steps a game: mean ", "p5 ", "p95 ", "cpu: ", "gpu: none"):
        assert line in told
    assert "in a network" in told
    assert record.resources is not None
    assert record.resources.rss_peak_bytes
    assert share_line(record, None).startswith("0.0% [0.0%, 8.8%] of 40")
    assert "no clean split" in split_line(played(num_games=4, num_threads=2))


def test_the_same_seed_plays_the_same_games() -> None:
    one, again = (played(num_games=20, seed=9) for _ in range(2))
    assert one.values["contest.won"] == again.values["contest.won"]
    assert one.values["episode_length"] == again.values["episode_length"]


def test_no_games_are_refused() -> None:
    with pytest.raises(InputError, match="num_games=0 does not fit: expected int from 1"):
        played(num_games=0)


def test_without_a_target_the_first_contest_is_meant(
    tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sim", "sim.hero=simple", "sim.villain=random", "sim.num_games=3", "--output", str(tmp_path)]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "games/s" in told
    assert "cards/mirror" in told


def test_a_game_is_told_decision_by_decision(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sim", "cards/keywords", "hero=simple", "villain=simple", "num_games=1", "--show"]
    assert main([*words, "--output", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "hero plays" in told
    assert "villain draws a card" in told
    assert "episode 1 is over" in told


def test_a_wilson_interval_is_known() -> None:
    low, high = wilson_interval(8, 10)
    assert (round(low, 4), round(high, 4)) == (0.4902, 0.9433)
    assert wilson_interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize("impl", ["native", "reference"])
def test_random_play_draws_uniformly_among_legal_actions(impl: str) -> None:
    batch = hotloop.make("cards/mirror", num_envs=64, impl=impl, encode=False)
    batch.reset()
    assert batch.masks is not None
    counts: dict[int, list[int]] = {}
    for _ in range(100 if impl == "native" else 20):
        actions = batch.choose("random")
        assert batch.masks[np.arange(64), 0, actions[:, 0]].all()
        for legal, chosen in zip(batch.masks[:, 0].sum(-1).tolist(), actions[:, 0].tolist(), strict=True):
            counts.setdefault(legal, []).append(chosen)
        batch.step(actions)
    two = np.bincount(counts[2], minlength=2)
    assert abs(two[0] / two.sum() - 0.5) < 0.1


def test_random_play_under_masks_is_measured_with_legal_actions() -> None:
    batch = hotloop.make("cards/mirror", num_envs=4)
    play = play_of("random", batch)
    assert isinstance(play, AheadPlay)
    batch.reset()
    for actions in play.draw(50):
        batch.step(actions)
    assert batch.counters["coverage.options_refused"] == 0


def test_random_play_takes_the_first_action_where_none_is_legal(monkeypatch: pytest.MonkeyPatch) -> None:
    found = registry.PresetTarget(world=table.world, preset="default")
    monkeypatch.setattr(registry, "find", lambda target: found)
    batch = hotloop.make("table", num_envs=2, impl="reference")
    batch.reset()
    assert batch.masks is not None
    batch.masks[:] = False
    assert batch.choose("random").tolist() == [[0, 0], [0, 0]]
