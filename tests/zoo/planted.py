"""A village with one thing wrong, and a script that plays it: python planted.py encoder small"""
import logging
import os
import random
import sqlite3
import sys
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np

SIDE = 48
PEOPLE = 120
CELLS = 200

# how much of the thing that is wrong, by plant and size
VIEW = {"small": 8, "medium": 11, "large": 23}
VISITS = {"small": 2_800, "medium": 5_000, "large": 20_000}
LINES = {"small": 8, "medium": 16, "large": 60}
COMMITS = {"small": 80, "medium": 30, "large": 5}
CHUNKS = {"small": 2, "medium": 4, "large": 12}


class Village:
    num_actions = 4

    def __init__(self, plant="", size="medium"):
        self.plant, self.size = plant, size
        self.rng = random.Random(0)
        self.tick = 0
        if plant == "query":
            self.open_visits(VISITS[size])
        if plant == "log":
            self.open_log()
        if plant == "commit":
            self.open_ledger()
        if plant == "idle":
            self.pool = ThreadPoolExecutor(max_workers=1)
            self.chunks = [os.urandom(20_000) for _ in range(CHUNKS[size])]

    # -- what every village does

    def reset(self, seed=None, options=None):
        self.rng = random.Random(seed)
        self.tick = 0
        self.x = [self.rng.randrange(SIDE) for _ in range(PEOPLE)]
        self.y = [self.rng.randrange(SIDE) for _ in range(PEOPLE)]
        self.food = [[self.rng.random() for _ in range(SIDE)] for _ in range(SIDE)]
        self.heat = [0.5] * CELLS
        self.water = [1.0] * CELLS
        self.hunger = [0.0] * PEOPLE
        self.age = [0] * PEOPLE
        self.coins = [10] * PEOPLE
        self.rumors = [{0}] * PEOPLE
        return self.look(), {}

    def step(self, action):
        self.tick += 1
        self.move(action)
        self.eat()
        self.grow()
        self.warm()
        self.flow()
        self.trade()
        self.gossip()
        self.get_older()
        if self.plant == "query":
            self.remember()
        if self.plant == "log":
            self.tell()
        if self.plant == "commit":
            self.write_down()
        if self.plant == "idle":
            self.pack()
        reward = sum(self.coins) / PEOPLE - sum(self.hunger)
        return self.look(), float(reward), self.tick >= 500, False, {}

    def move(self, action):
        dx, dy = ((0, 1), (1, 0), (0, -1), (-1, 0))[int(action)]
        self.x[0], self.y[0] = (self.x[0] + dx) % SIDE, (self.y[0] + dy) % SIDE
        for i in range(2 - self.tick % 2, PEOPLE, 2):
            self.x[i] = (self.x[i] + self.rng.randrange(3) - 1) % SIDE
            self.y[i] = (self.y[i] + self.rng.randrange(3) - 1) % SIDE

    def eat(self):
        for i in range(PEOPLE):
            row = self.food[self.x[i]]
            bite = min(row[self.y[i]], 0.3)
            row[self.y[i]] -= bite
            self.hunger[i] = max(0.0, self.hunger[i] + 0.1 - bite)

    def grow(self):
        for row in self.food[self.tick % 10 :: 10]:
            for i in range(SIDE):
                row[i] = min(1.0, row[i] + 0.02 * (1.0 - row[i]) + 0.001 * row[i - 1])

    def warm(self):
        heat = self.heat
        for i in range(0, len(heat) - 1):
            heat[i] += 0.1 * (heat[i - 1] - 2.0 * heat[i] + heat[i + 1])

    def flow(self):
        water = self.water
        for i in range(len(water)):
            if water[i] > water[i - 1]:
                drop = 0.25 * (water[i] - water[i - 1])
                water[i] -= drop
                water[i - 1] += drop
            else:
                water[i] *= 0.999

    def trade(self):
        for i in range(PEOPLE):
            j = (i * 7 + self.tick) % PEOPLE
            if self.hunger[i] > self.hunger[j] and self.coins[i] > 0:
                self.coins[i] -= 1
                self.coins[j] += 1

    def gossip(self):
        for i in range(PEOPLE):
            j = (i + self.tick) % PEOPLE
            if abs(self.x[i] - self.x[j]) + abs(self.y[i] - self.y[j]) < 6:
                self.rumors[i] = {*self.rumors[i], j} if len(self.rumors[i]) < 8 else {i}

    def get_older(self):
        for i in range(PEOPLE):
            self.age[i] += 1
            if self.age[i] > 60 * (i + 10):
                self.age[i] = 0
                self.hunger[i] = 0.0

    def look(self):
        if self.plant == "encoder":
            return self.encode(VIEW[self.size])
        return np.array([self.x[0], self.y[0], self.hunger[0], self.coins[0]], dtype=np.float32)

    # -- what may be wrong

    def encode(self, radius):
        width = 2 * radius + 1
        view = np.zeros((width, width, 2), dtype=np.float32)
        for dx in range(-radius, radius + 1):
            for dy in range(-radius, radius + 1):
                cx, cy = (self.x[0] + dx) % SIDE, (self.y[0] + dy) % SIDE
                view[dx + radius, dy + radius, 0] = self.food[cx][cy]
                view[dx + radius, dy + radius, 1] = self.heat[cx]
        return view

    def open_visits(self, count):
        self.db = sqlite3.connect(":memory:")
        self.db.execute("CREATE TABLE visits (person INTEGER, cell INTEGER, tick INTEGER)")
        rows = [(i % PEOPLE, (i * 7919) % (SIDE * SIDE), i) for i in range(count)]
        self.db.executemany("INSERT INTO visits VALUES (?, ?, ?)", rows)
        self.db.commit()

    def remember(self):
        cell = self.x[0] * SIDE + self.y[0]
        found = self.db.execute("SELECT person, tick FROM visits WHERE cell = ? LIMIT 60", (cell,)).fetchall()
        if found:
            self.hunger[0] = max(0.0, self.hunger[0] - 0.001)

    def open_log(self):
        self.logger = logging.getLogger("village")
        self.logger.setLevel(logging.INFO)
        self.logger.propagate = False
        if not self.logger.handlers:
            handler = logging.FileHandler(os.path.join(tempfile.mkdtemp(), "village.log"))
            handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
            self.logger.addHandler(handler)

    def tell(self):
        for line in range(LINES[self.size]):
            i = line % PEOPLE
            self.logger.info("tick %d: person %d at %d, %d is hungry by %.3f", self.tick, i, self.x[i], self.y[i], self.hunger[i])

    def open_ledger(self):
        self.ledger = sqlite3.connect(os.path.join(tempfile.mkdtemp(), "village.db"))
        self.ledger.execute("CREATE TABLE steps (tick INTEGER, hunger REAL)")
        self.ledger.commit()

    def write_down(self):
        self.ledger.execute("INSERT INTO steps VALUES (?, ?)", (self.tick, self.hunger[0]))
        if self.tick % COMMITS[self.size] == 0:
            self.ledger.commit()

    def pack(self):
        # one worker in the pool: the other cores have nothing to do, and neither have we
        if self.tick % 10:
            return
        list(self.pool.map(zlib.crc32, self.chunks))
        list(self.pool.map(lambda chunk: zlib.compress(chunk, 1), self.chunks))


def main(plant, size, steps):
    village = Village(plant, size)
    village.reset(seed=1)
    for step in range(steps):
        _, _, done, _, _ = village.step(step % 4)
        if done:
            village.reset(seed=step)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 10_000)
