from hotloop.core.target import Target
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure.turns import RUN_IN


def test_a_turn_counts_env_steps_and_its_run_in_is_not_among_them():
    side = TargetContender(Target("grid/toy", {"num_envs": "4"})).side("random")
    turn = side.turn(80)
    assert turn.env_steps == 80
    assert side.counters()["env_steps"] == 80 + 80 // RUN_IN
    assert turn.ns_per_env_step == turn.ns / 80


def test_a_part_of_a_call_is_made_a_whole_one():
    side = TargetContender(Target("grid/toy", {"num_envs": "4"})).side("random")
    assert side.turn(81).env_steps == 84
    assert side.turn(1).env_steps == 4


def test_two_sides_of_one_seed_are_played_alike():
    given = ({"num_envs": "2", "encoder": name} for name in ("original", "optimized"))
    a, b = (TargetContender(Target("grid/toy", keys)).side("random") for keys in given)
    for side in (a, b):
        side.turn(30)
    assert a.counters()["tokens"] == b.counters()["tokens"] > 0
