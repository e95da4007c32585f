import gc
import re

import pytest

import hotloop
from hotloop.core import spans
from hotloop.core.spans import monitor


def test_it_prints_duration_cpu_and_memory_to_stderr(capsys, spin):
    gc.collect()
    with monitor("load") as seen:
        block = bytearray(256 << 20)
        spin(2_000_000)
    printed = capsys.readouterr()
    assert printed.out == ""
    line = r"load: \d+\.\d{3} s, CPU \d+\.\d{3} s \(\d+% of a core\), memory [\d.]+ MiB \([+-][\d.]+\)\n"
    assert re.fullmatch(line, printed.err), printed.err
    assert len(block) == 256 << 20
    assert seen.wall_ns >= 2_000_000
    assert 0 < seen.cpu_ns
    assert seen.rss_bytes > seen.rss_change_bytes > 128 << 20


def test_it_prints_and_lets_the_error_through_where_the_block_fails(capsys):
    with pytest.raises(KeyError), monitor("load"):
        raise KeyError
    assert capsys.readouterr().err.startswith("load: ")


def test_it_is_a_span_where_spans_are_enabled(capsys):
    spans.enable()
    with monitor("load"), spans.span("inner"):
        pass
    rows = [row.path for top in spans.tree() for row in top.walk()]
    spans.start_anew()
    spans.disable()
    assert rows == ["load", "load/inner"]
    assert capsys.readouterr().err


def test_the_package_offers_all_of_it():
    assert hotloop.monitor is monitor
    assert hotloop.mark is spans.mark
    assert hotloop.span is spans.span
    assert hotloop.spans is spans
