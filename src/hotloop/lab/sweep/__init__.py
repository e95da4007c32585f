"""One target at many settings: cells, what runs them, and the experiments that consist of them."""
