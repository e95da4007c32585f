"""Small git repositories with an env in them, for what compares commits."""

import subprocess
from pathlib import Path

ENV = """
import os

class Env:
    num_actions = 3

    def __init__(self, size):
        self.size = size
        self.counters = {"moves": 0, "marked": int(os.environ.get("MARKED", 0))}

    def reset(self, seed=None):
        self.at = self.steps = 0
        return self.at, {}

    def step(self, action):
        self.at = (self.at + action) % self.size
        self.steps += 1
        self.counters["moves"] += 1
        return self.at, float(action), self.steps >= 10, False, {"steps": self.steps}

def make(size=5):
    return Env(size)
"""


class Project:
    """A repository that commits what it is given."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self.git("init", "--quiet")

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=Nobody", "-c", "user.email=nobody@example.org")
        done = subprocess.run(
            ["git", *who, *words], cwd=self.root, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def commit(self, **files: str) -> str:
        """Commit Python files by name without suffix; returns the commit."""
        for name, text in files.items():
            path = self.root / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "next")
        return self.git("rev-parse", "HEAD")
