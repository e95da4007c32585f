"""What a training run can be told, in the community's names, and what is around it."""

from collections.abc import Mapping
from dataclasses import dataclass

from hotloop.core.errors import InputError
from hotloop.core.settings import parameter
from hotloop.envs.spec import MAX_SEED

HERE = "here"  # Where envs are stepped by default: in the process that learns
AUTO = 0  # As many threads as bear a minibatch best


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSettings:
    """How a network is trained on a batch; how the batch is run is the batch's own business."""

    algorithm: str = parameter(
        "ppo",
        choices=("ppo", "dqn", "double_dqn"),
        role="workload",
        help="PPO from every rollout, or deep Q-learning from a replay of what was seen.",
    )
    total_timesteps: int = parameter(
        10_000_000, low=1, role="workload", help="Env-steps to train for, over the whole life of a run."
    )
    num_steps: int = parameter(64, low=1, role="workload", help="Steps of every env in one rollout.")
    minibatch_size: int = parameter(
        4_096,
        low=1,
        role="workload",
        help="Samples of one gradient step; with PPO it must divide the rollout's.",
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
    networks: str = parameter(
        "auto",
        choices=("auto", "one", "type"),
        role="workload",
        help="One for all agents, or one a type where a world has types; auto is one a type with DQN.",
    )
    buffer_size: int = parameter(
        50_000, low=1, role="workload", help="Observations that the replay keeps, the last ones."
    )
    learning_starts: int = parameter(
        1_000, low=1, role="workload", help="Transitions that the replay has before DQN begins to learn."
    )
    train_frequency: int = parameter(
        4, low=1, role="workload", help="Steps of every env between two times that DQN learns."
    )
    gradient_steps: int = parameter(
        1, low=1, role="workload", help="Minibatches that DQN learns from each time."
    )
    target_network_frequency: int = parameter(
        250,
        low=1,
        role="workload",
        help="Minibatches after which the target network becomes the present one.",
    )
    start_e: float = parameter(
        1.0, low=0.0, high=1.0, role="workload", help="Share of random actions at the beginning."
    )
    end_e: float = parameter(
        0.05, low=0.0, high=1.0, role="workload", help="Share of random actions once exploration has ended."
    )
    exploration_fraction: float = parameter(
        0.2, low=0.0, high=1.0, role="workload", help="Share of total_timesteps over which it falls."
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
    batched: bool = parameter(
        True,
        role="variant",
        help="Ask DQN's network for all agents of a step at once; false asks for one after another.",
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
    ranks: int = parameter(
        1,
        low=1,
        high=1_024,
        role="variant",
        help="Processes that train together, each with its share of num_envs and of each minibatch.",
    )
    ranks_on: str = parameter(
        HERE,
        role="variant",
        help="Where ranks after the first run: here, or as tasks of Ray (ray) or a cluster (ray://HOST:PORT).",
    )
    collect: str = parameter(
        HERE,
        role="variant",
        help="Where envs are stepped: here, by Ray actors (ray), or by those of a cluster (ray://HOST:PORT).",
    )
    actors: int = parameter(8, low=1, high=10_000, role="variant", help="Of train.collect=ray.")
    staleness: int = parameter(
        1, low=0, high=64, role="variant", help="Updates by which what actors collect may be old."
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


def check_ranks(settings: TrainSettings, num_envs: int) -> None:
    """Refuse ranks that nothing can be shared out among."""
    ranks = settings.ranks
    if ranks == 1:
        return
    if family(settings.algorithm) != "ppo":
        raise InputError(f"ranks={ranks} is for algorithm=ppo: leave it out with {settings.algorithm}")
    for name, amount in (("num_envs", num_envs), ("minibatch_size", settings.minibatch_size)):
        if amount % ranks:
            raise InputError(f"ranks={ranks} does not divide {name}={amount}: use a multiple of {ranks}")


def check_crew(settings: TrainSettings, num_envs: int) -> None:
    """Refuse what actors do not do."""
    if settings.collect == HERE:
        return
    beyond = {
        "ranks": settings.ranks > 1,
        "lstm": settings.lstm > 0,
        "teacher": bool(settings.supervised_steps or settings.fade_steps),
        "opponents": bool(settings.opponents),
        "algorithm": settings.algorithm != "ppo",
    }
    for name, asked in beyond.items():
        if asked:
            raise InputError(f"train.collect={settings.collect} has no {name}: leave one of them out")
    if num_envs % settings.actors:
        raise InputError(
            f"actors={settings.actors} does not divide num_envs={num_envs}: use another number of either"
        )


# Keys that only one family of algorithms reads.
OWN_KEYS: Mapping[str, frozenset[str]] = {
    "ppo": frozenset(
        (
            *("update_epochs", "gae_lambda", "clip_coef", "vf_coef", "ent_coef", "norm_adv", "norm_reward"),
            *("lstm", "opponents", "past_every", "past_kept", "teacher", "supervised_steps", "fade_steps"),
        )
    ),
    "dqn": frozenset(
        (
            *("buffer_size", "learning_starts", "train_frequency", "gradient_steps", "batched"),
            *("target_network_frequency", "start_e", "end_e", "exploration_fraction"),
        )
    ),
}

# What is usual with a family of algorithms, where that is not the default.
USUAL: Mapping[str, Mapping[str, object]] = {
    "ppo": {},
    "dqn": {"minibatch_size": 256, "max_grad_norm": 10.0, "anneal_lr": False},
}


def family(algorithm: str) -> str:
    """`ppo` or `dqn`, of which double DQN is one."""
    return "ppo" if algorithm == "ppo" else "dqn"


def usual_for(given: Mapping[str, object]) -> dict[str, object]:
    """Keys as given, over what is usual with their algorithm; refuses those that it does not read."""
    algorithm = str(given.get("algorithm", "ppo"))
    mine = family(algorithm)
    others = {key for name, keys in OWN_KEYS.items() if name != mine for key in keys}
    for key in given:
        if key in others:
            raise InputError(f"{key} means nothing to algorithm={algorithm}: leave it out")
    return {**USUAL[mine], **given}


def check_sizes(settings: TrainSettings, rows: int) -> None:
    """Refuse minibatches that do not divide a rollout, and a replay that one does not fit into."""
    if family(settings.algorithm) != "ppo":
        if fault := replay_fault(settings, rows):
            raise InputError(fault)
        return
    samples, size = rows * settings.num_steps, settings.minibatch_size
    if settings.lstm and size % settings.num_steps:
        raise InputError(
            f"minibatch_size={size} cuts through sequences: with lstm it must be a multiple of "
            f"num_steps={settings.num_steps}"
        )
    if samples % size:
        unit = settings.num_steps if settings.lstm else 1
        parts = samples // unit
        fitting = [unit * part for part in range(1, parts + 1) if parts % part == 0]
        below, above = [fit for fit in fitting if fit < size][-1:], [fit for fit in fitting if fit > size][:1]
        near = " or ".join(map(str, below + above))
        raise InputError(
            f"minibatch_size={size} does not divide a rollout of {samples} samples "
            f"({rows} rows of {settings.num_steps} steps): use {near}"
        )


def replay_fault(settings: TrainSettings, rows: int) -> str | None:
    """Return why a replay is too small for so many rows per step; None if it is not.

    It needs room for a minibatch beside a step under way, and must be learned from some time.
    """
    asked = f"buffer_size={settings.buffer_size}"
    room = settings.buffer_size - 3 * rows
    if room < settings.minibatch_size:
        return (
            f"{asked} is too small for minibatch_size={settings.minibatch_size} and {rows} rows a step: "
            f"use {settings.minibatch_size + 3 * rows} or more"
        )
    if room < settings.learning_starts:
        return (
            f"{asked} never has learning_starts={settings.learning_starts}: use at most {room}, "
            "or a larger buffer_size"
        )
    return None


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
