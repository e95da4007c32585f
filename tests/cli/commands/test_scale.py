import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from PIL import Image

Command = Callable[..., Any]

QUICK = ("--repeats", "1", "--steps", "20")


def test_a_sweep_says_its_laws_and_leaves_a_record_with_pictures(hotloop: Command) -> None:
    said = hotloop("scale", "grid/toy", "agents=2,4,8", "num_envs=2", *QUICK)
    assert said.code == 0
    assert "an env-step" in said.out
    assert "└─" in said.out
    assert re.search(r"3 cells, about \d+ s", said.err)
    [record] = Path("artifacts/throughput").glob("*.json")
    assert ET.fromstring(record.with_suffix(".svg").read_text()).tag.endswith("svg")
    with Image.open(record.with_suffix(".png")) as picture:
        assert picture.size[0] > 100
    assert len(list(Path("artifacts/sweeps").glob("*/*.json"))) == 3
    again = hotloop("scale", "grid/toy", "agents=2,4,8", "num_envs=2", *QUICK, "--resume", "--json")
    assert again.code == 0
    assert [each["at"] for each in again.json["sweep"]["points"]] == [{"agents": n} for n in ("2", "4", "8")]


def test_ten_thousand_cells_are_asked_about(hotloop: Command) -> None:
    many = ",".join(map(str, range(1, 101)))
    said = hotloop("scale", "grid/toy", f"agents={many}", f"num_envs={many}", "--repeats", "1")
    assert said.code == 64
    assert re.search(r"10,000 cells, about \d", said.err)
    assert "--yes" in said.err


def test_bad_axes_are_usage_errors(hotloop: Command) -> None:
    for words, line in (
        (("agents=10",), "needs an axis"),
        (("agent=1,2",), "did you mean agents?"),
        (("agents=1,2", "--resume"), "nothing to resume"),
        (("--grid", "wrong"), "unknown grid"),
    ):
        said = hotloop("scale", "grid/toy", *words)
        assert (said.code, said.out) == (64, "")
        assert line in said.err
