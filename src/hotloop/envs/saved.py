"""Saved envs: what `Batch.save` gives and `Batch.load` takes."""

import hashlib

from hotloop.core.errors import InputError


def sealed(stamp: bytes, content: bytes) -> bytes:
    """A saved env in one piece: whose it is, a checksum, and what it is."""
    return stamp + checksum(content) + b"\n" + content


def unsealed(saved: bytes) -> bytes:
    """What was sealed; InputError where an older version wrote it, or a byte of it is not as it was."""
    if saved.startswith(b"hotloop 1 "):
        raise InputError("the saved env is of an older version, without a checksum: begin anew with this one")
    head, _, content = saved.partition(b"\n")
    if head.rpartition(b" ")[2] != checksum(content):
        raise InputError("the saved env is damaged: its checksum does not fit")
    return content


def checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=8).hexdigest().encode()
