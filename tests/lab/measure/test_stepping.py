import gc
from collections.abc import Iterator

import pytest

from hotloop.core import spans
from hotloop.lab.measure.sides import GC, collecting, no_collection


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    yield
    spans.disable()
    if was_on:
        gc.enable()


def pauses() -> int:
    return sum(row.calls for top in spans.tree() for row in top.walk() if row.path.rpartition("/")[2] == GC)


def test_each_collection_is_a_span_where_it_happens() -> None:
    with collecting(automatic=False):
        spans.enable()
        with spans.span("work"):
            gc.collect()
        spans.disable()
    assert [row.path for top in spans.tree() for row in top.walk()] == ["work", f"work/{GC}"]


def test_what_was_left_by_others_is_collected_before() -> None:
    spans.enable()
    with collecting(automatic=False):
        pass
    assert pauses() == 0


@pytest.mark.parametrize("automatic", [True, False])
def test_the_collector_is_on_only_where_it_was_asked_for_and_only_inside(automatic: bool) -> None:
    before = list(gc.callbacks)
    with collecting(automatic=automatic):
        assert gc.isenabled() is automatic
    assert not gc.isenabled()
    assert gc.callbacks == before


def test_a_collector_that_was_on_stays_on() -> None:
    gc.enable()
    with collecting(automatic=True):
        pass
    assert gc.isenabled()


def test_an_error_leaves_nothing_behind() -> None:
    before = list(gc.callbacks)
    with pytest.raises(KeyError), collecting(automatic=True):
        raise KeyError
    assert gc.callbacks == before
    assert not gc.isenabled()


@pytest.mark.parametrize("frozen", [True, False])
def test_what_somebody_froze_stays_frozen_and_nothing_else_does(frozen: bool) -> None:
    gc.unfreeze()
    if frozen:
        gc.freeze()
    with no_collection():
        assert gc.get_freeze_count() > 0
    assert (gc.get_freeze_count() > 0) is frozen
    gc.freeze()
