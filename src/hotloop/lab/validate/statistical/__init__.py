"""Validation where bytes cannot be equal: pairs of episodes, their numbers, policy transfer."""
