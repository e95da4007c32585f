from hotloop.core.project import places

TEXT = '''# a comment = with [everything]
title = "x"
[suite.nightly] # [not.this]
items = [
  { target = "a,b", keys = { agents = 1 }, do = "bench" },
  # { target = "left out" },
  { target = "x=1", do = "profile" },
]
[budget."a b"]
reason = """
[no.table]
metric = 1
"""
keys.agents = 3
metric = 'x'
[[suite.other.items]]
target = "1"
[[suite.other.items]]
target = "2"
keys = { a = [
  1,
  2,
], b = 3 }
'''


LAST = '  { target = "x=1", do = "profile" },'


def line_of(*keys: str) -> str:
    return TEXT.splitlines()[places(TEXT)[keys] - 1]


def test_tables_and_keys_are_found_on_their_lines() -> None:
    assert line_of("title") == 'title = "x"'
    assert line_of("suite", "nightly") == "[suite.nightly] # [not.this]"
    assert line_of("budget", "a b", "metric") == "metric = 'x'"
    assert line_of("budget", "a b", "keys", "agents") == "keys.agents = 3"


def test_items_of_lists_are_found_by_their_number() -> None:
    assert line_of("suite", "nightly", "items", "0", "keys", "agents").startswith('  { target = "a,b"')
    assert line_of("suite", "nightly", "items", "1", "target") == LAST
    assert line_of("suite", "nightly", "items", "1", "do") == LAST
    assert line_of("suite", "other", "items", "1", "target") == 'target = "2"'
    assert line_of("suite", "other", "items", "1", "keys", "b") == "], b = 3 }"


def test_what_stands_in_text_or_comments_is_no_key() -> None:
    assert not any("no" in keys or "not" in keys for keys in places(TEXT))
