import re

from support.pages import ROOT, prose

from hotloop.core.registry import probes


def test_the_table_of_probes_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", prose(ROOT / "docs/profiling.md"), re.MULTILINE)
    told = {name: purpose.replace("`", "").removeprefix("always there: ") for name, purpose in rows}
    declared = {name: probe.purpose for name, probe in probes().items()}
    assert {name: told.get(name) for name in declared} == declared
    assert "phases" in told
