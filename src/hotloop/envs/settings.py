"""How a batch is run, whatever its world: the settings both engines are made with."""

from dataclasses import dataclass

from hotloop.core.settings import parameter

MAX_SEED = 2**64 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings:
    """How a world is run; but for the seed, none of it changes a result."""

    num_envs: int = parameter(64, low=1, high=1 << 20, role="variant", help="Envs stepped by one call.")
    impl: str = parameter(
        "auto",
        choices=("auto", "native", "reference"),
        role="variant",
        help="Native code, the Python twin, or native where it is there.",
    )
    device: str = parameter(
        "cpu",
        choices=("cpu", "cuda"),
        role="variant",
        help="Where the envs live: the host, or an NVIDIA GPU.",
    )
    host_views: bool = parameter(
        False, role="variant", help="Show a GPU's arrays as NumPy copies instead of torch tensors."
    )
    threads: int = parameter(1, low=1, high=256, role="variant", help="Threads of one native step.")
    seed: int = parameter(42, low=0, high=MAX_SEED, role="workload", help="Decides every env's episodes.")
    autoreset: bool = parameter(
        True, role="workload", help="Begin the next episode in the step that ends one."
    )
    seed_step: int = parameter(
        0,
        low=0,
        high=MAX_SEED,
        role="workload",
        help="Every next episode's seed is the last one plus this; 0 mixes it from seed, env and episode.",
    )
    profile: bool = parameter(
        False, role="variant", env="HOTLOOP_PROFILING", help="Time every phase of a step."
    )
    strict: bool = parameter(
        False, role="variant", help="Refuse actions out of range instead of letting the world count them."
    )
    render_mode: str = parameter(
        "none",
        choices=("none", "rgb_array", "ansi"),
        role="variant",
        help="What render() gives: nothing, an image, or coloured text.",
    )
    drag: int = parameter(
        0,
        low=0,
        high=100_000_000,
        role="variant",
        help="For testing gates: turns of an empty loop for each env-step, a slow-down that changes nothing.",
    )
