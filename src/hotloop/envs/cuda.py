"""The only door to the CUDA module: whether it is there, and batches that live in a GPU's memory."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import DeviceError, InputError
from hotloop.core.world import Plan, World
from hotloop.envs.batch import Batch
from hotloop.envs.native import EngineWrapper, build_of, plain_values
from hotloop.envs.spec import BatchSettings, Build

CLOCK = "CUDA events and the clocks of warps"  # What phases are timed with


if TYPE_CHECKING:
    from hotloop.envs.native import NativeBatch

    class DeviceEngine(NativeBatch):
        """An engine whose arrays are torch tensors on a GPU; a step is only begun when it returns."""

        def wait(self) -> None:
            """Return when everything asked for is done."""

        def use_stream(self, stream: int, /) -> None:
            """Work on a stream, given as its address; 0 is the default one."""

        def step_host(self, actions: NDArray[np.int32], /) -> None:
            """Step with actions that are on the host, which are copied."""

        def host_arrays(self) -> dict[str, NDArray[Any]]:
            """Copies of every array."""

        def digests(self) -> NDArray[np.uint64]: ...

        def bytes_an_env(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """The GPU that batches live on."""

    name: str
    memory: int  # Bytes of it
    capability: str


@cache
def _load() -> ModuleType | ImportError:
    try:
        return importlib.import_module("hotloop._cuda")
    except ImportError as error:
        return error


def _cuda() -> ModuleType:
    """Return the CUDA module, which the caller knows is there."""
    module = _load()
    assert not isinstance(module, ImportError)
    return module


def device() -> Device | str:
    """The GPU in use, or why there is none."""
    module = _load()
    if isinstance(module, ImportError):
        return "this installation has no CUDA module; build it with HOTLOOP_CUDA=ON where there is nvcc"
    try:
        name, memory, major, minor = module.device()
    except DeviceError as error:
        return f"no GPU can be used ({error})"
    return Device(name=name, memory=memory, capability=f"{major}.{minor}")


def why_not(world: str) -> str | None:
    """Why this world cannot run on a GPU here; None where it can."""
    found = device()
    if isinstance(found, str):
        return found
    return None if world in _cuda().WORLDS else f"this build has no {world} for a GPU"


def build() -> Build | None:
    """How the CUDA module was built; None where there is none."""
    return None if isinstance(_load(), ImportError) else build_of(_cuda(), CLOCK)


def copy_bandwidth(gigabytes: int = 4, times: int = 20) -> float:
    """Bytes a second, read and written, of copies inside the GPU's memory: the bound of what moves bytes."""
    found: float = _cuda().copy_bandwidth(gigabytes << 30, times)
    return found


def make_engine(world: World, plan: Plan, options: BatchSettings) -> "DeviceEngine":
    """A batch on the GPU; `why_not` must have said None. DeviceError where its memory is too small."""
    if plan.get("memmap"):
        raise InputError("device=cuda: a memory-mapped file is the host's; keep everything in memory")
    engine: DeviceEngine = _cuda().make(
        world.native_name,
        plain_values(plan),
        options.num_envs,
        options.seed,
        options.autoreset,
        options.profile,
        options.seed_step,
    )
    return engine


class HostViews(EngineWrapper):
    """A GPU's engine as one on the host: its arrays are NumPy copies, made anew after every call."""

    def __init__(self, engine: "DeviceEngine") -> None:
        super().__init__(engine)
        self._engine = engine
        self._arrays = engine.host_arrays()

    def arrays(self) -> dict[str, NDArray[Any]]:
        return self._arrays

    def step(self, actions: NDArray[np.int32]) -> None:
        self._engine.step_host(actions)
        self._look()

    def load(self, env: int, saved: bytes) -> None:
        self._engine.load(env, saved)
        self._look()

    def fork(self, env: int, into: int) -> None:
        self.load(into, self.save(env))

    def choose(self, player: int, actions: NDArray[np.int32]) -> None:
        chosen = upload(actions)
        self._engine.choose(player, chosen)
        actions[...] = chosen.cpu().numpy()

    def _look(self) -> None:
        for name, rows in self._engine.host_arrays().items():
            self._arrays[name][...] = rows


class DeviceBatch(Batch):
    """A batch whose arrays are torch tensors in the GPU's memory; `step` takes such tensors in place.

    A step is only begun when it returns; whatever torch does next on the same stream sees its results.
    """

    @property
    def on_device(self) -> "DeviceEngine":
        """What steps it; OrderError once it is closed."""
        return cast("DeviceEngine", self.engine)

    def use_stream(self, stream: int) -> None:
        """Work on a stream from now on, given as torch's `stream.cuda_stream`; 0 is the default one."""
        self.on_device.use_stream(stream)

    def wait(self) -> None:
        self.on_device.wait()

    def draw(self, random: np.random.Generator, calls: int) -> list[Any]:
        return [upload(actions) for actions in super().draw(random, calls)]

    def fold(self, actions: Sequence[Any]) -> NDArray[np.int32]:
        return super().fold([on_host(each) for each in actions])

    def digest(self) -> NDArray[np.uint64]:
        return self.on_device.digests()

    def host_views(self) -> Mapping[str, NDArray[Any]]:
        """Every array as a NumPy copy."""
        return self.on_device.host_arrays()

    def answers(self) -> dict[str, NDArray[Any]]:
        copied = self.on_device.host_arrays()
        infos = {f"infos.{name}": copied.pop(name) for name in self.infos}
        return {**copied, **infos, "digest": self.digest()}

    def new_actions(self) -> Any:
        return upload(super().new_actions())

    def _accept(self, actions: Any) -> Any:
        """Copy what is on the host, counted as converted; say what is wrong with the rest."""
        if isinstance(actions, np.ndarray):
            return upload(super()._accept(actions).reshape(self.spec.num_envs, self.spec.agents))
        if not hasattr(actions, "is_cuda"):
            raise InputError(f"actions must be a torch tensor of int32, not {type(actions).__name__}")
        shape = tuple(actions.shape)
        if shape not in self._action_shapes:
            raise InputError(f"actions have the shape {shape}: expected {self._action_shapes[0]}")
        if not actions.is_cuda:
            raise InputError(f"actions are on {actions.device}: expected cuda, as the envs are")
        raise InputError(f"actions are {actions.dtype}: expected contiguous torch.int32")

    def _check_range(self, actions: Any) -> None:
        super()._check_range(on_host(actions))


def upload(actions: NDArray[np.int32]) -> Any:
    """Actions [num_envs, agents] as a tensor in the GPU's memory."""
    return _cuda().upload(actions)


def on_host(actions: Any) -> NDArray[Any]:
    """Actions as a NumPy array, copied where they are a tensor."""
    return np.asarray(actions if isinstance(actions, np.ndarray) else actions.cpu())


def require_host(batch: Batch, who: str) -> None:
    """Refuse a batch of tensors where NumPy arrays are read."""
    if isinstance(batch, DeviceBatch):
        raise InputError(f"{who} reads NumPy arrays: add host_views=true, or leave out device=cuda")
