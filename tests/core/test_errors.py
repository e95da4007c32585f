import itertools

import pytest

from hotloop.core.errors import ExitCode, HotloopError, InputError, SetupError, unknown, worst


def test_verdicts_rank_mismatch_regression_cannot_tell_unstable():
    order = [ExitCode.MISMATCH, ExitCode.REGRESSION, ExitCode.CANNOT_TELL, ExitCode.UNSTABLE, ExitCode.FINE]
    for graver, milder in itertools.combinations(order, 2):
        assert worst([milder, graver]) is worst([graver, milder]) is graver


@pytest.mark.parametrize("code", list(ExitCode))
def test_a_mismatch_outranks_whatever_else_happened(code):
    assert worst([code, ExitCode.MISMATCH]) is ExitCode.MISMATCH


def test_a_run_that_broke_off_is_no_verdict():
    assert worst([ExitCode.REGRESSION, ExitCode.INTERRUPTED]) is ExitCode.INTERRUPTED


def test_nothing_held_against_a_run_is_fine():
    assert worst([]) is ExitCode.FINE


def test_errors_carry_their_exit_code():
    assert InputError("x").exit_code is ExitCode.USAGE
    assert SetupError("x").exit_code is ExitCode.FAULT
    assert HotloopError("x").exit_code is ExitCode.FAULT


def test_an_input_error_is_a_value_error():
    assert isinstance(InputError("x"), ValueError)


def test_an_unknown_word_gets_the_nearest_one():
    error = unknown("probe", "memroy", ["phases", "memory"], "see hotloop doctor")
    assert str(error) == "unknown probe 'memroy': did you mean memory? see hotloop doctor"


def test_an_unknown_word_like_no_other_gets_no_suggestion():
    assert str(unknown("probe", "xyz", ["memory"], "see docs")) == "unknown probe 'xyz': see docs"
