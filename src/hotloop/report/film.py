"""Pictures of a run in one file: a film as GIF, or some of its moments beside one another as PNG."""

import io
from typing import TYPE_CHECKING, Any

from hotloop.core.errors import MissingError
from hotloop.core.machine import install_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOMENTS = 3  # Of a strip: the beginning, the end, and what lies between at even distances
GAP = 8  # Pixels between two moments


def pillow() -> Any:
    """Return the library that writes pictures."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingError(f"pictures need Pillow: {install_line('PIL')}") from None
    return Image


class Film:
    """Frames in the order they were taken."""

    def __init__(self) -> None:
        self._pillow = pillow()
        self._frames: list[Any] = []

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, image: "NDArray[np.uint8]") -> None:
        """Keep a copy of [height, width, 3], a byte a pixel."""
        adaptive = self._pillow.Palette.ADAPTIVE
        self._frames.append(self._pillow.fromarray(image).convert("P", palette=adaptive))

    def gif(self, fps: float) -> bytes:
        """Return all frames, over and over."""
        first, *others = self._frames
        file = io.BytesIO()
        first.save(
            file,
            "GIF",
            save_all=True,
            append_images=others,
            duration=round(1_000 / fps),
            loop=0,
            optimize=True,
        )
        return file.getvalue()

    def strip(self) -> bytes:
        """Return a few moments from left to right, as PNG."""
        count = min(MOMENTS, len(self._frames))
        chosen = [self._frames[k * (len(self._frames) - 1) // max(count - 1, 1)] for k in range(count)]
        width, height = chosen[0].size
        strip = self._pillow.new("RGB", (count * (width + GAP) - GAP, height), "white")
        for k, frame in enumerate(chosen):
            strip.paste(frame.convert("RGB"), (k * (width + GAP), 0))
        file = io.BytesIO()
        strip.save(file, "PNG", optimize=True)
        return file.getvalue()
