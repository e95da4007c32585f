"""The program that is looked at from outside: plays a target for some seconds, and ends.

`python -m hotloop.lab.workers.played '{"target": {"name": .., "keys": {..}}, "policy": .., "seconds": ..}'`
"""

import json
import sys

from hotloop.core.clock import now_ns
from hotloop.core.target import Target
from hotloop.lab.profile.probes import drawn, staged

STRETCH_NS = 50_000_000  # From which on a stretch whose actions are drawn together is long enough


def main() -> None:
    asked = json.loads(sys.argv[1])
    with staged(Target(**asked["target"]), asked["policy"]) as (subject, script):
        end_ns = now_ns() + asked["seconds"] * 1_000_000_000
        calls = 1
        while (begin := now_ns()) < end_ns:
            drawn(subject, script, calls)()
            if now_ns() - begin < STRETCH_NS:
                calls *= 2


if __name__ == "__main__":
    main()
