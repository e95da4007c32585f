"""Elo ratings of players from the scores of their games, with intervals (Bradley and Terry's model)."""

from collections.abc import Mapping
from dataclasses import dataclass

MEAN = 1_000.0  # The mean rating of all players
SCALE = 173.717792761  # 400 / ln 10: a player that scores ten times as often is 400 points stronger
Z = 1.959963984540054

# Drawn games that every pair has besides its own: a player that wins all games keeps a finite rating.
PRIOR_DRAWS = 1.0

STEPS = 100

PRECISION = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """How strong a player is."""

    elo: float
    low: float  # Of the interval that holds the rating in 95% of cases
    high: float


# Two players to the first one's score (a draw is half a point) and their games.
Scores = Mapping[tuple[str, str], tuple[float, int]]


def rate(scores: Scores) -> dict[str, Rating]:
    """Return the most likely rating of every player; the first turn is taken to be worth nothing."""
    import numpy as np

    names = list(dict.fromkeys(name for pair in scores for name in pair))
    count = len(names)
    won, games = np.zeros((count, count)), np.zeros((count, count))
    for (one, other), (score, played) in scores.items():
        i, j = names.index(one), names.index(other)
        won[i, j] += score
        won[j, i] += played - score
        games[i, j] += played
        games[j, i] += played
    met = games > 0
    won, games = won + met * PRIOR_DRAWS / 2, games + met * PRIOR_DRAWS
    strengths = np.zeros(count)
    for _ in range(STEPS):
        expected = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
        weights = games * expected * (1 - expected)
        information = np.diag(weights.sum(axis=1)) - weights
        move = np.linalg.pinv(information) @ (won - games * expected).sum(axis=1)
        strengths += np.clip(move, -1, 1)
        if np.abs(move).max() < PRECISION:
            break
    spread = np.sqrt(np.diag(np.linalg.pinv(information))) * SCALE * Z
    elos = MEAN + (strengths - strengths.mean()) * SCALE
    return {
        name: Rating(elo=float(elo), low=float(elo - half), high=float(elo + half))
        for name, elo, half in zip(names, elos, spread, strict=True)
    }
