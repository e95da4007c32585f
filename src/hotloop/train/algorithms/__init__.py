"""The ways to learn: PPO with imitation before it, and deep Q-learning with its replay."""
