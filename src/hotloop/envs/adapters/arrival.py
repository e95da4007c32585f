"""Something to do once a package has been imported, without importing it."""

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType


def when_imported(package: str, action: Callable[[], object]) -> None:
    """Act at once if the package is imported already, otherwise when its first import is done."""
    if package in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, ImportHook(package, action))


class ImportHook:
    """Stands before the finders of Python's imports, and lets them do all of the work."""

    def __init__(self, package: str, action: Callable[[], object]) -> None:
        self._package = package
        self._action = action
        self._looking = False

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._package or self._looking:
            return None
        self._looking = True
        try:
            spec = find_spec(name)
        finally:
            self._looking = False
        if spec is not None and spec.loader is not None:
            self._follow(spec.loader)
        return spec

    def _follow(self, loader: object) -> None:
        run: Callable[[ModuleType], None] = loader.exec_module  # type: ignore[attr-defined]

        def run_and_act(module: ModuleType) -> None:
            run(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self._action()

        loader.exec_module = run_and_act  # type: ignore[attr-defined]
