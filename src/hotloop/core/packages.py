"""Packages that not everybody needs: imported when they are used, named with what installs them."""

import importlib
from types import ModuleType

from hotloop.core.errors import SetupError

INSTALL = {
    "gymnasium": "pip install 'hotloop[envs]'",
    "pettingzoo": "pip install 'hotloop[envs]'",
    "pufferlib": "pip install pufferlib",
    "mcp": "pip install 'hotloop[mcp]'",
    "mlflow": "pip install mlflow, or leave out the sink",
    "ray": "pip install 'hotloop[ray]'",
    "stable_baselines3": "pip install stable-baselines3",
    "tensorboard": "pip install 'hotloop[train]', or leave it out with train.tensorboard=false",
    "torch": "pip install 'hotloop[train]'",
    "wandb": "pip install wandb, or leave out the sink",
}
"""Package to the line that installs it."""


def need(package: str) -> ModuleType:
    """Import a package; SetupError with the line that installs it where it is missing."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        missing = (error.name or package).partition(".")[0]
        line = INSTALL.get(missing, f"pip install {missing}")
        raise SetupError(f"{missing} is not installed: {line}") from None
