import pytest

from hotloop.core.errors import InputError
from hotloop.core.settings import Target
from hotloop.envs.callables import call, literal, parameters_of
from hotloop.envs.open import open_target

USER = """
import hotloop

NUMBER = 3

def toy(agents=20, num_envs=2):
    return hotloop.make("grid/toy", num_envs=num_envs, agents=agents)

def needs(size):
    return size

def raises():
    inner()

def inner():
    raise KeyError("no such thing")
"""


@pytest.fixture
def user(tmp_path):
    path = tmp_path / "theirs.py"
    path.write_text(USER)
    return path


def test_a_callable_of_a_file_makes_a_batch_that_keeps_its_own_name(user):
    batch = open_target(Target(f"{user}:toy", {"agents": "5"}))
    assert (batch.spec.name, batch.spec.agents) == (f"{user}:toy", 5)
    assert batch.spec.described.world is None


def test_a_callable_of_a_module_is_found_from_the_current_folder(user, monkeypatch):
    monkeypatch.chdir(user.parent)
    assert open_target(Target("theirs:toy", {})).spec.name == "theirs:toy"


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        (
            "raises",
            {},
            r"raised: KeyError: .no such thing. \(theirs.py:\d+ in raises > theirs.py:\d+ in inner\)",
        ),
        ("needs", {}, r"missing a required argument: 'size'; give its arguments as key=value"),
        ("toy", {"agnts": "3"}, "unexpected keyword argument 'agnts'"),
        ("toi", {}, r"unknown callable 'toi': did you mean toy\?"),
        ("NUMBER", {}, "is a int: expected something that can be called"),
    ],
)
def test_what_is_wrong_with_somebodys_callable_is_said_in_one_line(user, name, given, message):
    with pytest.raises(InputError, match=message):
        open_target(Target(f"{user}:{name}", given))


def test_a_file_that_is_not_there_or_does_not_run_is_named(tmp_path):
    with pytest.raises(InputError, match=r"there is no file nowhere.py"):
        call("nowhere.py:make", {})
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    with pytest.raises(InputError, match=r"broken.py cannot be imported: ModuleNotFoundError"):
        call(f"{tmp_path}/broken.py:make", {})
    with pytest.raises(InputError, match="there is no module 'no_such_module'"):
        call("no_such_module:make", {})


@pytest.mark.parametrize(
    ("word", "value"),
    [("3", 3), ("0.5", 0.5), ("true", True), ("None", None), ("[1, 2]", [1, 2]), ("abc", "abc")],
)
def test_words_become_what_they_spell(word, value):
    assert literal(word) == value


def test_a_class_that_hands_on_what_it_is_given_has_the_arguments_of_its_base():
    class Base:
        def __init__(self, size, seed=0): ...

    class Middle(Base): ...

    class Handing(Middle):
        def __init__(self, fast=True, **more): ...

    class New:
        def __new__(cls, **more): ...

    assert parameters_of(Handing) == ("fast", "more", "size", "seed")
    assert parameters_of(New) == ("more",)
    assert parameters_of(lambda seed, **more: None) == ("seed", "more")
