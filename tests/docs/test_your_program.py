from support.pages import ROOT, blocks


def test_the_script_of_the_page_is_the_example() -> None:
    (script,) = (block for block in blocks(ROOT / "docs/your-program.md") if block.word == "train.py")
    assert script.text == (ROOT / "examples/train.py").read_text("utf-8")
