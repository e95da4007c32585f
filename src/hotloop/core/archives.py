"""Archives whose parts are unpacked when they are read: how much that may come to, found out beforehand."""

import io
import zipfile

ROOM = 256 << 20
"""Bytes that any archive may unpack to."""

SHARE = 100
"""Times its own size that a larger one may: actions of a game shrink to a twentieth, zeros to nothing."""


def check_room(content: bytes) -> None:
    """Refuse an archive that is small and unpacks to more than a machine may have; ValueError says how much.

    What a part is said to hold is all that is ever read of it, so it need not be unpacked to be believed.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        size = sum(part.file_size for part in archive.infolist())
    if size > max(ROOM, SHARE * len(content)):
        raise ValueError(
            f"{len(content):,} bytes would unpack to {size >> 20:,} MiB, which none of ours does"
        )
