"""The face for coding agents: commands as tools of the Model Context Protocol, and one page to work by."""

from pathlib import Path


def guide() -> str:
    """How to make a simulation faster with Hotloop, and how not to fool oneself."""
    return Path(__file__).with_name("guide.md").read_text(encoding="utf-8")
