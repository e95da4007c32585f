"""Which rung of the ladder a program is to be, said through its environment by what runs it."""

# Environment variables: the rung's name, and the file that the program writes its updates into.
RUNG, RUNG_FILE = "HOTLOOP_RUNG", "HOTLOOP_RUNG_FILE"

ENV_ONLY, ROLLOUT, TRAINER, TRAINER_EVAL = RUNGS = ("env_only", "rollout", "trainer", "trainer_eval")

EVAL_EVERY = 5  # Rollouts between two evaluations by default
