"""Loops of other people: a run around them, callbacks of their libraries, where their numbers are drawn."""
