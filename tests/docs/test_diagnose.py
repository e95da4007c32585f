from support.pages import ROOT

from hotloop.judge.rules import RULES


def test_the_table_of_rules_is_that_of_the_code() -> None:
    rows = [f"| {rule.name} | {rule.symptom} | {rule.needs} |" for rule in RULES]
    assert "\n".join(rows) in (ROOT / "docs" / "diagnose.md").read_text(encoding="utf-8")
