"""The options of train."""

from dataclasses import dataclass
from pathlib import Path

from hotloop.options.option import OutputOptions, TargetOptions, argument, option, trust_option


@dataclass(frozen=True, kw_only=True)
class TrainOptions(TargetOptions, OutputOptions):
    """Train a policy with PPO or DQN, and show where the time went.

    With supervised_steps it first imitates a scripted player. All files of a run are in train_dir/<run>/:
    logs/script.log and logs/metrics.jsonl, tensorboard/, checkpoints/. Every log_every rollouts it prints a
    tree of the time, which adds up. A run is never overwritten: to use a name again, give --resume, which
    takes the run's own settings and lets new ones override them. Ctrl-C finishes the current update and saves
    a checkpoint and a record marked partial. With validate=true (or smoke, soak, a number of comparisons) the
    world's Python twin checks the first envs while the policy plays; a difference is exit code 2.
    train.timing=off turns timing off. Your env may be a Gymnasium env or a parallel PettingZoo env;
    vector=async steps it in processes; other keys are passed to your function. train.network and
    train.teacher name your own network and teacher. train.ranks=N trains in N processes, here, as started by
    torchrun, or (--on) as Ray tasks on the machines of a cluster, each with its share of envs.
    """

    examples = (
        "hotloop train prospector run=first total_timesteps=1000000",
        "hotloop train grid/guard supervised_steps=200000 fade_steps=100000 train.eval.every=10",
        "hotloop train prospector run=first --resume total_timesteps=2000000",
        "hotloop train prospector train.profiler.enabled=true total_timesteps=200000",
        "hotloop train prospector validate=smoke total_timesteps=100000",
        "hotloop train gym:CartPole-v1 num_envs=8 num_steps=32 minibatch_size=256 total_timesteps=60000",
        "hotloop train gym:CartPole-v1 train.algorithm=dqn total_timesteps=50000",
        "hotloop train my_env.py:make num_envs=64 vector=async train.network=my_net.py:Net",
        "hotloop train prospector run=both train.ranks=2 total_timesteps=1000000",
        "hotloop train prospector train.ranks=4 --on ray://head:10001",
        "torchrun --nproc-per-node 2 --no-python hotloop train prospector run=both",
        "hotloop train prospector --keys",
    )
    isolated = True
    stop_s = 600.0  # An update may take as long until it is over and its checkpoint written

    target: str | None = argument("A preset such as prospector, gym:ID or my_env.py:make.", "TARGET", None)
    words: list[str] | None = argument(
        "run=NAME, validate=..., keys of the world and of its batch, and train.KEY; --keys lists them.",
        "KEY=VALUE",
        None,
    )
    resume: bool = option(False, "Continue run=NAME from its last checkpoint.")
    keys: bool = option(False, "List every key and what it is for; train nothing.")
    on: str | None = option(
        None,
        "Where ranks after the first run: ray (started on this machine for it) or ray://HOST:PORT.",
        "RAY",
    )
    folder: Path = option(Path("train_dir"), "Where runs are kept.", "DIR")
    trust: Path | None = trust_option()
