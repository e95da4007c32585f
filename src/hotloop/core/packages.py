"""Packages that not everybody needs: imported when they are used, named with what installs them."""

import importlib
import json
import shlex
import shutil
import sys
from importlib import metadata
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlparse

from hotloop.core.errors import MissingError

EXTRAS = {
    "PIL": "pictures",
    "gymnasium": "envs",
    "mcp": "mcp",
    "pettingzoo": "envs",
    "py-spy": "profile",
    "line_profiler": "profile",
    "memray": "profile",
    "yappi": "profile",
    "pyarrow": "parquet",
    "ray": "ray",
    "tensorboard": "train",
    "torch": "train",
}
"""Package to the extra of Hotloop that brings it."""

DISTRIBUTIONS = {"PIL": "pillow", "stable_baselines3": "stable-baselines3"}
"""Package to the name that installs it, if it has another one."""

INSTEAD = {
    "mlflow": ", or leave out the sink",
    "tensorboard": ", or leave it out with train.tensorboard=false",
    "wandb": ", or leave out the sink",
}
"""Package to what works without it."""


def need(package: str) -> ModuleType:
    """Import a package; MissingError with the line that installs it if it is missing."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        missing = (error.name or package).partition(".")[0]
        line = f"{missing} is not installed: {install_line(missing)}{INSTEAD.get(missing, '')}"
        raise MissingError(line) from None


def install_line(package: str) -> str:
    """Return the command that installs a package beside this copy of Hotloop, as that was installed."""
    prefix, extra = Path(sys.prefix), EXTRAS.get(package)
    name = DISTRIBUTIONS.get(package, package)
    if (prefix / "uv-receipt.toml").exists():
        return f"uv tool install {source(extra)}" if extra else f"uv tool install --with {name} {source()}"
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx install --force {source(extra)}" if extra else f"pipx inject hotloop {name}"
    if told("INSTALLER").strip() == "conda":
        return f"conda install -c conda-forge {name}"
    return f"{installer()} {source(extra) if extra else name}"


def installer() -> str:
    """Return how pip, or uv's, installs into this Python."""
    here, python = Path(sys.executable).parent, shlex.quote(sys.executable)
    if told("INSTALLER").strip() == "uv":
        return "uv pip install" if is_first("python", here) else f"uv pip install --python {python}"
    return "pip install" if is_first("pip", here) else f"{python} -m pip install"


def is_first(program: str, folder: Path) -> bool:
    """Return whether a shell that is asked for a program finds the one in a folder."""
    found = shutil.which(program)
    return found is not None and Path(found).parent == folder


def source(extra: str | None = None) -> str:
    """Return what this copy was installed from, with an extra, as words of a shell."""
    extras = f"[{extra}]" if extra else ""
    direct = json.loads(told("direct_url.json") or "{}")
    url = str(direct.get("url", ""))
    if "dir_info" in direct:
        folder = shlex.quote(unquote(urlparse(url).path) + extras)
        return f"-e {folder}" if direct["dir_info"].get("editable") else folder
    if "vcs_info" in direct:
        url = f"{direct['vcs_info']['vcs']}+{url}@{direct['vcs_info']['commit_id']}"
    return shlex.quote(f"hotloop{extras} @ {url}" if url else f"hotloop{extras}")


def told(file: str) -> str:
    """Return a file that the installer wrote beside Hotloop; nothing if there is none."""
    try:
        return metadata.distribution("hotloop").read_text(file) or ""
    except metadata.PackageNotFoundError:
        return ""
