"""Scale: the axes of a sweep, and what a target costs at every place of it."""
