"""What a training run can be told, in the community's names, and what is around it."""

from dataclasses import dataclass

from hotloop.core.errors import InputError
from hotloop.core.settings import parameter
from hotloop.envs.settings import MAX_SEED

AUTO = 0
"""As many threads as bear a minibatch best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSettings:
    """How a network is trained on a batch; how the batch is run is the batch's own business."""

    total_timesteps: int = parameter(
        10_000_000, low=1, role="workload", help="Env-steps to train for, over the whole life of a run."
    )
    num_steps: int = parameter(64, low=1, role="workload", help="Steps of every env in one rollout.")
    minibatch_size: int = parameter(
        4_096, low=1, role="workload", help="Samples of one gradient step; must divide the rollout's samples."
    )
    update_epochs: int = parameter(4, low=1, role="workload", help="Passes over each rollout.")
    learning_rate: float = parameter(
        1e-3, low=0.0, high=1.0, role="workload", help="Adam's step size at the beginning."
    )
    anneal_lr: bool = parameter(
        True, role="workload", help="Lower the learning rate in a line to 0 at total_timesteps."
    )
    gamma: float = parameter(
        0.99, low=0.0, high=1.0, role="workload", help="What a reward is worth one step later."
    )
    gae_lambda: float = parameter(
        0.95, low=0.0, high=1.0, role="workload", help="How far advantages trust rewards over values."
    )
    clip_coef: float = parameter(
        0.2, low=0.0, high=1.0, role="workload", help="How far a probability ratio may move from 1."
    )
    vf_coef: float = parameter(0.5, low=0.0, role="workload", help="Weight of the value loss.")
    ent_coef: float = parameter(0.01, low=0.0, role="workload", help="Weight of the entropy bonus.")
    max_grad_norm: float = parameter(
        0.5, low=0.0, role="workload", help="Gradients are scaled down to this norm; 0 leaves them."
    )
    norm_adv: bool = parameter(
        True, role="workload", help="Give the advantages of every minibatch mean 0 and deviation 1."
    )
    norm_obs: bool = parameter(
        True, role="workload", help="Scale vector observations by their running mean and deviation."
    )
    norm_reward: bool = parameter(
        True, role="workload", help="Scale rewards by the running deviation of discounted returns."
    )
    hidden: tuple[int, ...] = parameter(
        (128, 128), low=1, role="workload", help="Widths of the trunk that policy and value share."
    )
    network: str = parameter(
        "", role="workload", help="A network of your own instead, my_net.py:Net, made with (shape, outputs)."
    )
    embedding: int = parameter(64, low=1, role="workload", help="Width of a token's embedding.")
    lstm: int = parameter(
        0, low=0, role="workload", help="Width of an LSTM between trunk and heads; 0 is none."
    )
    opponents: tuple[str, ...] = parameter(
        (),
        role="workload",
        help="Who plays the other seat, one of them in each game: self, past, or players of the world.",
    )
    past_every: int = parameter(
        20, low=1, role="workload", help="Rollouts after which the network joins its earlier selves."
    )
    past_kept: int = parameter(
        8, low=1, high=64, role="workload", help="Earlier selves that are kept for `past`, the last ones."
    )
    teacher: str = parameter(
        "",
        role="workload",
        help="Who labels observations while imitating: a player of the world, or my_teacher.py:Teacher.",
    )
    supervised_steps: int = parameter(
        0, low=0, role="workload", help="Env-steps of pure imitation before PPO; 0 is none."
    )
    fade_steps: int = parameter(
        0, low=0, role="workload", help="Env-steps over which imitation fades out and PPO in."
    )
    stagger: int = parameter(
        0,
        low=0,
        role="workload",
        help="Steps of random play first, in which envs begin anew in turn, so as not to stay in step.",
    )
    seed: int = parameter(
        1, low=0, high=2**63 - 1, role="workload", help="Decides the network, the actions and the shuffling."
    )
    mixed_precision: bool = parameter(False, role="variant", help="Multiply matrices in bfloat16.")
    compile: bool = parameter(
        False, role="variant", help="Let torch.compile translate the network; needs a C++ compiler."
    )
    kernels: str = parameter(
        "auto",
        choices=("auto", "native", "torch", "graphs"),
        role="variant",
        help="Who chooses actions, finds losses, moves weights: native code on a CPU, CUDA graphs, torch.",
    )
    device: str = parameter("cpu", choices=("cpu", "cuda"), role="variant", help="Where the network lives.")
    torch_threads: int = parameter(
        AUTO,
        low=0,
        high=256,
        role="variant",
        words={"auto": AUTO},
        help="Threads of one torch operation; auto, or 0, tries a minibatch with some counts first.",
    )
    log_every: int = parameter(10, low=1, role="variant", help="Rollouts between two log entries.")
    checkpoint_every: int = parameter(
        100, low=0, role="variant", help="Rollouts between two checkpoints; 0 is only at the end."
    )


def check_sizes(settings: TrainSettings, rows: int) -> None:
    """Refuse minibatches that do not divide a rollout, and name the nearest sizes that do."""
    samples, size = rows * settings.num_steps, settings.minibatch_size
    if settings.lstm and size % settings.num_steps:
        raise InputError(
            f"minibatch_size={size} cuts through sequences: with lstm it must be a multiple of "
            f"num_steps={settings.num_steps}"
        )
    if samples % size:
        near = " or ".join(
            map(str, nearest_divisors(samples, size, settings.num_steps if settings.lstm else 1))
        )
        raise InputError(
            f"minibatch_size={size} does not divide a rollout of {samples} samples "
            f"({rows} rows of {settings.num_steps} steps): use {near}"
        )


def nearest_divisors(samples: int, size: int, unit: int) -> list[int]:
    """The nearest sizes below and above that divide the samples and are multiples of a unit."""
    fitting = [unit * part for part in range(1, samples // unit + 1) if (samples // unit) % part == 0]
    below = [fit for fit in fitting if fit < size][-1:]
    above = [fit for fit in fitting if fit > size][:1]
    return below + above


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """How a run is looked at."""

    timing: str = parameter(
        "auto",
        choices=("auto", "events", "sync", "async", "off"),
        role="variant",
        help="How the tree of its time is taken; auto is by events on a GPU; off for the last bit of speed.",
    )
    tensorboard: bool = parameter(True, role="variant", help="Write the metrics for TensorBoard, too.")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalSettings:
    """When a policy is evaluated, and on what."""

    every: int = parameter(
        0, low=0, role="variant", help="Rollouts between two evaluations; 0 is none, as for speed."
    )
    episodes: int = parameter(64, low=1, high=1_000_000, role="variant", help="Episodes of an evaluation.")
    steps: int = parameter(0, low=0, role="variant", help="Cut an episode off after so many; 0 is never.")
    seed: int = parameter(
        1_000_003, low=0, high=MAX_SEED, role="variant", help="Decides the episodes, the same every time."
    )
    greedy: bool = parameter(
        False, role="variant", help="Take the most likely action instead of drawing from the policy."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilerSettings:
    """A window of rollouts under torch's own profiler."""

    enabled: bool = parameter(False, role="variant", help="Leave a trace of some rollouts, for Perfetto.")
    wait_steps: int = parameter(1, low=0, role="variant", help="Rollouts that are let by first.")
    warmup_steps: int = parameter(
        1, low=1, role="variant", help="Rollouts that are profiled and thrown away."
    )
    active_steps: int = parameter(1, low=1, role="variant", help="Rollouts whose trace is kept.")
    record_shapes: bool = parameter(False, role="variant", help="Keep the shapes of all tensors.")

    @property
    def rollouts(self) -> int:
        """That it takes until the trace is there."""
        return self.wait_steps + self.warmup_steps + self.active_steps
