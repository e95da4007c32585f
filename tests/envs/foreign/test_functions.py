import pytest
from support import stalling, theirs

from hotloop.core import spans
from hotloop.core.errors import InputError
from hotloop.envs.foreign.phases import find, watching


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
    only, other = (
        type("Only", (), {"step": lambda self: None, "__module__": home})
        for home in (theirs.__name__, "elsewhere")
    )
    monkeypatch.setattr(theirs, "Only", only, raising=False)
    assert find("Only.step").owner is only
    assert find("Only.step", "gym").rows == ("Only.step", "Only.step")
    assert find("support.theirs.Only.step").rows == ("support.theirs.Only.step", "Only.step")
    monkeypatch.setattr(stalling, "Only", other, raising=False)
    with pytest.raises(InputError, match=r"several Only; write one of elsewhere.Only.step, support.theirs"):
        find("Only.step")


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


def test_a_function_may_be_named_with_its_file_as_a_target_is() -> None:
    found = find(f"{theirs.__file__}:Env._encode")
    assert (found.name, found.owner.__qualname__) == ("Env._encode", "Env")
    assert find("support.theirs:make").name == "make"
