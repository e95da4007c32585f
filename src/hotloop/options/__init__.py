"""The flags of every command, declared once: names, defaults, ranges, help, and what excludes what."""
