"""Functions with 2, 5 and 20% of the CPU time, as a script and as an env: python shares.py 10 known.json"""
import json
import sys
import threading
import time
from itertools import repeat

NUMBERS = list(range(1_000))


def two():
    for _ in repeat(None, 200):
        pass
    sum(NUMBERS[:400])


def five():
    for _ in repeat(None, 500):
        pass
    sum(NUMBERS)


def twenty():
    for _ in repeat(None, 2_000):
        pass
    for _ in repeat(None, 4):
        sum(NUMBERS)


def others():
    for _ in repeat(None, 7_300):
        pass
    for _ in repeat(None, 15):
        sum(NUMBERS)


PARTS = (two, five, twenty, others)


def waits():
    time.sleep(3600)


class Env:
    num_actions = 2

    def __init__(self):
        self.took = dict.fromkeys([part.__name__ for part in PARTS], 0)

    def reset(self, seed=None):
        return 0

    def step(self, action):
        now = time.perf_counter_ns
        last = now()
        for part in PARTS:
            part()
            last, before = now(), last
            self.took[part.__name__] += last - before
        return 0, 0.0, False, False, {}

    def known(self):
        whole = sum(self.took.values())
        return {name: ns / whole for name, ns in self.took.items()}


def main(seconds, path):
    for name in ("sleeper", "dreamer"):
        threading.Thread(target=waits, name=name, daemon=True).start()
    env = Env()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(100):
            env.step(0)
    with open(path, "w") as file:
        json.dump(env.known(), file)


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2])
