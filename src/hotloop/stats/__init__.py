"""Pure functions of numbers: summaries, intervals, paired comparison, drift."""
