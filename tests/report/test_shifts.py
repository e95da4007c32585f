from hotloop.core.target import Target
from hotloop.lab.profile.profile import profile
from hotloop.report.shifts import shares, shifts


def test_one_line_names_the_targets_and_the_phases_that_move():
    records = [
        profile(Target(target, {"num_envs": 4}), 200) for target in ("grid/arena", "grid/guard", "grid/toy")
    ]
    line = shifts(records)
    assert line.startswith("grid/arena → grid/guard → grid/toy: ")
    assert "\n" not in line
    assert line.count(" → ") == 2 + 4 * 2
    assert abs(sum(shares(records[0]).values()) - 1) < 0.05


def test_one_target_has_nothing_to_move_to():
    assert shifts([profile(Target("grid/toy", {"num_envs": 4}), 200)]) == ""
