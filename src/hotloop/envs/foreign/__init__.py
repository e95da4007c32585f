"""Somebody else's environments as subjects: Gymnasium's, PettingZoo's, PufferLib's, and plain objects."""
