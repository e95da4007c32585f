import io
import sys

import numpy as np
import pytest
from PIL import Image

from hotloop.core.errors import SetupError
from hotloop.report.charts import STRIP_GAP, Film

RED, BLUE = (200, 30, 40), (10, 60, 220)


def film(frames: int) -> Film:
    """A red dot that wanders over a blue ground."""
    made = Film()
    for k in range(frames):
        image = np.full((20, 30, 3), BLUE, np.uint8)
        image[5, k] = RED
        made.add(image)
    return made


def test_a_gif_has_every_frame_in_its_colours_at_its_speed() -> None:
    with Image.open(io.BytesIO(film(7).gif(fps=20))) as gif:
        assert (gif.format, gif.n_frames, gif.size, gif.info["duration"]) == ("GIF", 7, (30, 20), 50)
        for k in range(7):
            gif.seek(k)
            shown = np.asarray(gif.convert("RGB"))
            assert tuple(shown[5, k].tolist()) == RED
            assert tuple(shown[0, 0].tolist()) == BLUE


def test_a_strip_shows_the_beginning_the_middle_and_the_end() -> None:
    with Image.open(io.BytesIO(film(9).strip())) as strip:
        assert (strip.format, strip.size) == ("PNG", (3 * 30 + 2 * STRIP_GAP, 20))
        shown = np.asarray(strip)
    columns = np.flatnonzero((shown[5] == RED).all(axis=-1)).tolist()
    assert columns == [0, 30 + STRIP_GAP + 4, 2 * (30 + STRIP_GAP) + 8]


@pytest.mark.parametrize("frames", [1, 2])
def test_a_short_film_has_a_short_strip(frames: int) -> None:
    with Image.open(io.BytesIO(film(frames).strip())) as strip:
        assert strip.size == (frames * 30 + (frames - 1) * STRIP_GAP, 20)
    with Image.open(io.BytesIO(film(frames).gif(fps=10))) as gif:
        assert gif.n_frames == frames


def test_without_pillow_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(SetupError, match=r"pip install .*\[pictures\]'"):
        Film()
