"""A build backend that answers pip with a name and a version, and builds nothing.

Installed under the name of a package's own backend, it lets `pip download` fetch a source distribution
without running any of its code and without its build requirements. NAME and VERSION come from the
environment.
"""

import os
from pathlib import Path


def get_requires_for_build_wheel(config_settings: object = None) -> list[str]:
    return []


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: object = None) -> str:
    name, version = os.environ["NAME"], os.environ["VERSION"]
    folder = Path(metadata_directory) / f"{name}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return folder.name


def build_wheel(
    wheel_directory: str, config_settings: object = None, metadata_directory: object = None
) -> str:
    raise RuntimeError("this backend only names a package")
