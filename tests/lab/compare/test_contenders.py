import pytest

from hotloop.core.errors import InputError
from hotloop.core.settings import Target
from hotloop.lab.compare.contenders import TargetContender, workload_differences

USER = """
import hotloop

def toy(agents=20):
    return hotloop.make("grid/toy", num_envs=2, agents=agents)
"""


def contender(target: str, **given: object) -> TargetContender:
    return TargetContender(Target(target, {"num_envs": "2"} | given))


def test_a_contender_is_called_by_its_target_and_its_keys():
    assert TargetContender(Target("grid/toy", {"encoder": "original"})).name == "grid/toy encoder=original"


def test_variants_are_what_comparisons_are_for():
    a, b = contender("grid/toy"), contender("grid/toy", encoder="original", threads="2")
    assert workload_differences(a, b, allowed=False) == ()


@pytest.mark.parametrize(
    ("given", "named"), [({"agents": "30"}, "agents 20 against 30"), ({"seed": "1"}, "seed 42 against 1")]
)
def test_different_workloads_are_refused_by_name_unless_allowed(given, named):
    a, b = contender("grid/toy"), contender("grid/toy", **given)
    with pytest.raises(InputError, match=rf"different workloads \({named}\).*--unlike"):
        workload_differences(a, b, allowed=False)
    assert workload_differences(a, b, allowed=True) == (named,)


def test_two_presets_are_unlike():
    with pytest.raises(InputError, match="target grid/toy against grid/arena"):
        workload_differences(contender("grid/toy"), contender("grid/arena"), allowed=False)


def test_somebody_elses_callable_is_like_what_it_answers_like(tmp_path):
    (tmp_path / "user.py").write_text(USER)
    other = TargetContender(Target(f"{tmp_path}/user.py:toy", {}))
    assert workload_differences(contender("grid/toy"), other, allowed=False) == ()
    assert contender("grid/toy").agreement(other).difference is None
    assert other.spec.described.world is None


def test_a_side_refuses_a_player_nobody_knows():
    with pytest.raises(InputError, match="unknown player 'techer'"):
        contender("grid/toy").side("techer")
