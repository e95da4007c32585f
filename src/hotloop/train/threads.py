"""How many threads torch works with, which is set for the whole process: trainers in turns each set it."""

import torch

USUAL = torch.get_num_threads()
"""What torch found fit for the machine."""


def use(count: int) -> None:
    """Let torch work with so many from now on; 0 is the usual number."""
    torch.set_num_threads(count or USUAL)
