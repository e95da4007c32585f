import base64
from dataclasses import replace
from pathlib import Path

import pytest

from hotloop.cli.main import main
from hotloop.core.errors import ExitCode, InputError
from hotloop.core.record import FRAMES_SUFFIX, PICTURE, Frame, Frames, read_frames, write_frames
from hotloop.envs import tapes
from hotloop.lab.sim import frames as lab

PNG = b"\x89PNG"


def taped(tmp_path: Path, *words: str) -> Path:
    path = tmp_path / "x.npz"
    asked = [
        "sim",
        *words,
        "episodes=1",
        "num_envs=1",
        "--record",
        str(path),
        "--output",
        str(tmp_path / "r"),
    ]
    assert main(asked) == ExitCode.FINE
    return path


def test_a_map_is_drawn_after_every_step_and_the_slowest_is_marked(tmp_path: Path, capsys) -> None:
    tape = taped(tmp_path, "grid/toy", "steps=20")
    assert main(["sim", "--replay", str(tape), "--frames"]) == ExitCode.FINE
    found = read_frames(tape.with_name(f"x.npz{FRAMES_SUFFIX}"))
    assert [frame.step for frame in found.frames] == list(range(21))
    assert all(base64.b64decode(frame.picture.removeprefix(PICTURE))[:4] == PNG for frame in found.frames)
    assert sum(frame.note is not None for frame in found.frames) == 1
    assert len({frame.picture for frame in found.frames}) > 1
    assert main(["sim", "--replay", str(tape), "--frames"]) == ExitCode.USAGE


def test_a_world_without_a_picture_is_told(tmp_path: Path) -> None:
    found = lab.frames_of_tape(tapes.read(taped(tmp_path, "cards/mirror")))
    assert found.frames[0].text == "the beginning"
    assert all(frame.text and frame.picture is None for frame in found.frames)


def test_a_long_tape_is_bounded_and_keeps_its_last_and_its_marks(tmp_path: Path, monkeypatch) -> None:
    tape = tapes.read(taped(tmp_path, "grid/toy", "steps=50"))
    monkeypatch.setattr(lab, "MOST", 10)
    monkeypatch.setattr(lab, "slowest_step", lambda _: (33, 1_000))
    steps = [frame.step for frame in lab.frames_of_tape(tape).frames]
    assert steps == [0, 5, 10, 15, 20, 25, 30, 33, 35, 40, 45, 50]
    monkeypatch.setattr(lab, "LARGEST", 10)
    assert lab.frames_of_tape(tape).frames == ()


def test_the_tape_is_played_again_with_its_own_keys(tmp_path: Path, capsys) -> None:
    tape = taped(tmp_path, "grid/toy", "steps=20", "agents=5")
    assert main(["sim", "--replay", str(tape), "--output", str(tmp_path / "again")]) == ExitCode.FINE
    assert "agents=5" in capsys.readouterr().out.replace("\n", "")


@pytest.mark.parametrize(
    "words", [["--frames"], ["--replay", "none.npz"], ["--replay", "none.npz", "--frames"], []]
)
def test_what_cannot_be_replayed_is_said_in_one_line(capsys, words: list[str]) -> None:
    assert main(["sim", *words]) == ExitCode.USAGE
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_frames_that_are_none_are_refused(tmp_path: Path) -> None:
    fine = Frames(target="x", title="x", frames=(Frame(step=0, text="hello"),))
    for number, bad in enumerate(
        (
            replace(fine, format="other"),
            replace(fine, frames=(Frame(step=0, picture="https://elsewhere.example/x.png"),)),
        )
    ):
        write_frames(tmp_path / f"{number}.json", bad)
        with pytest.raises(InputError, match="no frames"):
            read_frames(tmp_path / f"{number}.json")
