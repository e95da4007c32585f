import pytest
from support import stalling, theirs

from hotloop.core import spans
from hotloop.core.errors import InputError
from hotloop.envs.foreign.functions import find, watching


def test_a_method_is_in_a_span_for_as_long_as_it_is_watched() -> None:
    kept = theirs.Env._encode
    env = theirs.make()
    spans.enable()
    with watching([find("support.theirs.Env._encode")]):
        env.reset()
    env.reset()
    rows = {row.path: row.calls for top in spans.tree() for row in top.walk()}
    spans.start_anew()
    spans.disable()
    assert rows == {"support.theirs.Env._encode": 1}
    assert theirs.Env._encode is kept


def test_a_name_is_looked_for_in_the_targets_own_module_too() -> None:
    assert find("Env._encode", "support.theirs").owner is theirs.Env
    assert find("make", "support.theirs").owner is theirs


def test_a_class_is_found_by_its_name_alone_where_it_is_imported_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert find("Faulty.step").owner.__name__ == theirs.Faulty.__name__
    assert find("Faulty.step", "gym").rows == ("Faulty.step", "Faulty.step")
    assert find("support.theirs.Faulty.step").rows == ("support.theirs.Faulty.step", "Faulty.step")
    other = type("Faulty", (), {"step": lambda self: None, "__module__": "elsewhere"})
    monkeypatch.setattr(stalling, "Faulty", other, raising=False)
    with pytest.raises(
        InputError, match=r"several Faulty; write one of elsewhere.Faulty.step, support.theirs"
    ):
        find("Faulty.step")


def test_an_inherited_method_is_watched_where_it_is_written() -> None:
    assert find("support.theirs.Faulty._encode").owner is theirs.Env


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere.Env.step", "there is no nowhere.Env"),
        ("support.theirs.Env.stepp", "has no function stepp; it has .*_encode"),
        ("support.theirs.LENGTH", "has no function LENGTH"),
        ("builtins.dict.get", "cannot be timed"),
        ("make", "there is no make: write module.Class.method"),
    ],
)
def test_a_name_that_is_no_function_is_refused(name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        find(name)
