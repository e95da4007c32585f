from dataclasses import replace
from pathlib import Path

from support.records import PROFILE

from hotloop.core.record import Record, stacks
from hotloop.core.record.profile import Finding
from hotloop.core.time_tree import Trace
from hotloop.report.files import about_trace, files_beside, folder_of, markdown_page, pictured, trace_files

STACKS = {(("slow<T>", "/a/env.py", 3),): 1.0}
FOUND = Finding(probe="cprofile", files=("cprofile.pstats", "cprofile.speedscope.json"))
RECORD = replace(PROFILE, findings=(Finding(probe="resources"), FOUND))


def filled(folder: Path) -> Path:
    """What a probe would have written there."""
    (folder / "cprofile.pstats").write_bytes(b"stats")
    stacks.write(folder / "cprofile.speedscope.json", "mine", STACKS)
    return folder


def drawn(record: Record, folder: Path) -> Record:
    """The record with the pictures of all its findings."""
    findings = tuple(pictured(record.target.name, folder, found) for found in record.findings)
    return replace(record, findings=findings)


def test_a_folder_is_named_after_its_target() -> None:
    assert folder_of(Path("room"), "my env.py:make[a=1]") == Path("room/my-env.py-make-a-1-")


def test_stacks_are_drawn_and_the_record_names_the_picture(tmp_path: Path) -> None:
    record = drawn(RECORD, filled(tmp_path))
    assert record.findings[1].files == (*FOUND.files, "cprofile.svg")
    assert record.findings[0].files == ()
    picture = (tmp_path / "cprofile.svg").read_text(encoding="utf-8")
    assert "grid/toy, cprofile" in picture
    assert "slow&lt;T&gt;" in picture


def test_the_record_the_web_page_and_the_probes_files_lie_beside_the_page(tmp_path: Path) -> None:
    kept = dict(files_beside(drawn(RECORD, filled(tmp_path)), tmp_path))
    assert list(kept) == [
        *(".json", ".html", ".cprofile.pstats", ".cprofile.speedscope.json", ".cprofile.svg")
    ]
    assert kept[".cprofile.pstats"] == b"stats"
    assert "click a box to zoom" in str(kept[".html"])
    assert "<h2>cprofile</h2>" in str(kept[".html"])


def test_a_profile_without_further_probes_has_no_web_page(tmp_path: Path) -> None:
    plain = replace(PROFILE, findings=(Finding(probe="resources"),))
    assert [suffix for suffix, _ in files_beside(plain, tmp_path)] == [".json"]


def test_the_page_is_markdown() -> None:
    assert markdown_page(PROFILE).startswith("# Profile of grid/toy, 2025-01-02 03:04 UTC\n")


def test_a_trace_is_kept_in_two_formats_and_says_what_it_is_of() -> None:
    about = about_trace(PROFILE)
    assert about["run_id"] == PROFILE.run_id
    assert about["machine"].startswith("Example CPU")
    files = dict(trace_files(Trace(tracks={}, slices=(), slow={}, about=about)))
    assert list(files) == [".trace.json", ".speedscope.json"]
    assert "grid/toy" in str(files[".speedscope.json"])
