import os
import resource

import pytest

from hotloop.core.process.lifeline import MESSAGES_FROM, set_apart


@pytest.mark.parametrize(
    ("limit", "least"),
    [(64, 32), (MESSAGES_FROM, MESSAGES_FROM // 2), (4_096, MESSAGES_FROM), (-1, MESSAGES_FROM)],
)
def test_a_line_lies_beyond_what_others_open_however_few_may_be_open(
    monkeypatch: pytest.MonkeyPatch, limit: int, least: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    copy = set_apart(0)
    os.close(copy)
    assert least <= copy < (limit if limit > 0 else 1 << 20)
