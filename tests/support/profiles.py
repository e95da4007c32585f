"""Profiles of targets, with an opener that is closed after them."""

from contextlib import closing
from typing import Any

from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.settings import Target
from hotloop.lab.measure.target import Opener
from hotloop.lab.profile.profile import ProfilePlan
from hotloop.lab.profile.profile import profile as run_profile


def profile(
    target: Target, steps: int | None = None, progress: Progress = silent, *, time: Any = (), **more: Any
) -> Record:
    """Profile a target; `more` are fields of the plan."""
    with closing(Opener()) as opener:
        usual: dict[str, Any] = {"opener": opener} | more
        return run_profile(ProfilePlan(target=target, steps=steps, time=tuple(time), **usual), progress)
