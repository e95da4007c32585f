"""Training: PPO over a batch, and what is seen, logged and timed around it."""
