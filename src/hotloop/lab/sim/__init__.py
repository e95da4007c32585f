"""Sim: episodes of our worlds and of other people's, played to their end: who plays, what it looks like."""
