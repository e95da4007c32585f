"""Elo ratings: what is known of them by hand."""

import pytest

from hotloop.stats.elo import MEAN, rate


def test_a_player_that_scores_ten_times_as_often_is_400_points_stronger() -> None:
    rated = rate({("strong", "weak"): (100_000.0, 110_000)})
    assert rated["strong"].elo - rated["weak"].elo == pytest.approx(400, abs=0.1)
    assert (rated["strong"].elo + rated["weak"].elo) / 2 == pytest.approx(MEAN)


def test_who_wins_all_games_keeps_a_finite_rating_and_more_games_narrow_it() -> None:
    few, many = (rate({("a", "b"): (float(games), games)})["a"] for games in (4, 400))
    assert MEAN < few.elo < many.elo < MEAN + 2_000
    even = [rate({("a", "b"): (games / 2, games)})["a"] for games in (20, 2_000)]
    assert even[0].elo == even[1].elo == pytest.approx(MEAN)
    assert even[0].high - even[0].low > 5 * (even[1].high - even[1].low)


def test_draws_make_equals_and_strength_carries_over() -> None:
    rated = rate({("a", "b"): (75.0, 100), ("b", "c"): (75.0, 100), ("c", "d"): (50.0, 100)})
    assert rated["a"].elo > rated["b"].elo > rated["c"].elo
    assert rated["c"].elo == pytest.approx(rated["d"].elo, abs=1)
    assert rated["a"].elo - rated["c"].elo == pytest.approx(2 * 190.8, abs=8)
