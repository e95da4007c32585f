"""Our worlds as other libraries know environments: Gymnasium, PettingZoo, PufferLib."""
