"""The page for an agent, which needs no package beyond Hotloop itself."""

from pathlib import Path

PAGE = Path(__file__).with_name("guide.md")


def guide() -> str:
    """How to make a simulation faster with Hotloop, and how not to fool oneself."""
    return PAGE.read_text(encoding="utf-8")
