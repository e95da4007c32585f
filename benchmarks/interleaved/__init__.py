"""Measuring several sides in turns, on one core of one machine, and judging them in pairs."""
