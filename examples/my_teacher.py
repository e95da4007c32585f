"""A teacher of one's own for CartPole: `hotloop train gym:CartPole-v1 train.teacher=my_teacher.py:Teacher`.

It is called with what every agent sees, [rows, numbers], and says what each should do, [rows].
"""

from typing import Any

import numpy as np


class Teacher:
    """Pushes the cart to where the pole falls."""

    def __call__(self, observations: Any) -> Any:
        angle, speed = observations[:, 2], observations[:, 3]
        return np.where(angle + speed > 0, 1, 0)
