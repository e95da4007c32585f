"""Which command lines run in a process of their own."""

from typing import Any

import pytest

from hotloop.cli.isolated import ON_RAY, foreign


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ({"target": "grid/toy", "words": ["num_envs=4"]}, []),
        ({"target": "gym:CartPole-v1"}, ["gym:CartPole-v1"]),
        ({"target": "prospector", "policy": "my.py:Policy"}, ["my.py:Policy"]),
        ({"target": "prospector", "policy": "tape:a.npz"}, []),
        ({"target": "prospector", "words": ["train.network=my_net.py:Net"]}, ["my_net.py:Net"]),
        ({"target": "prospector", "words": ["run=a"], "resume": True}, []),
        ({"target": "run=a", "words": [], "resume": True}, ["the run that goes on"]),
        ({"target": None, "words": None, "resume": True}, ["the run that goes on"]),
        ({"target": "run=a", "words": [], "resume": False}, []),
        ({"target": None, "replay": "mismatch.npz"}, ["mismatch.npz"]),
        ({"target": "prospector", "words": ["train.collect=ray"]}, [ON_RAY]),
        ({"target": "prospector", "words": ["ranks=2"], "on": "ray"}, [ON_RAY]),
        ({"target": "prospector", "words": ["ranks=2", "ranks_on=ray"]}, [ON_RAY]),
        ({"target": "prospector", "words": ["train.ranks=2"], "on": "ray://head:1"}, []),
        ({"target": "prospector", "words": ["collect=ray://head:1"]}, []),
    ],
)
def test_somebody_elses_code_or_process_is_what_makes_it_so(asked: dict[str, Any], names: list[str]) -> None:
    assert list(foreign(asked)) == names
