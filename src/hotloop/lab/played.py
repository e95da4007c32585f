"""The program that is looked at from outside: plays a target for some seconds, and ends.

`python -m hotloop.lab.played '{"target": ..., "given": {...}, "policy": ..., "seconds": ...}'`
"""

import json
import sys

from hotloop.core.clock import now_ns
from hotloop.lab.probing import drawn, staged

CALLS = 256
"""Whose actions are drawn together."""


def main() -> None:
    asked = json.loads(sys.argv[1])
    with staged(asked["target"], asked["given"], asked["policy"]) as (subject, script):
        end_ns = now_ns() + asked["seconds"] * 1_000_000_000
        while now_ns() < end_ns:
            drawn(subject, script, CALLS)()


if __name__ == "__main__":
    main()
