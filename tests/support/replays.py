"""Replays of two sides that are closed afterwards."""

from contextlib import closing

from hotloop.envs.subject import Subject
from hotloop.lab.validate.equal import BOX_NS, STEPS, Agreement, Reach, replay


def replay_both(a: Subject, b: Subject, *, steps: int = STEPS, box_ns: int = BOX_NS) -> Agreement:
    """Replay two sides and close them."""
    with closing(a), closing(b):
        return replay(a, b, reach=Reach(steps=steps, needed=0, box_ns=box_ns))
