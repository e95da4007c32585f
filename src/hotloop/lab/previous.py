"""The previous profile: the last one of the same target in a folder, and what has changed since."""

from dataclasses import replace
from pathlib import Path

from hotloop.core.errors import InputError
from hotloop.core.record import Comparison, Record, read
from hotloop.lab.versus import IN_TURNS, forbidding, versus
from hotloop.stats.metrics import with_metrics


def find(folder: Path, target: str) -> Record | None:
    """The latest whole profile of a target among a folder's records; None where there is none."""
    paths = (path for path in folder.glob("profile-*.json") if path.suffixes == [".json"])
    found = [record for path in paths if (record := read_profile(path, target))]
    return max(found, key=lambda record: record.created, default=None)


def read_profile(path: Path, target: str) -> Record | None:
    """A record that a profile can be held against; None for any other file."""
    try:
        record = read(path)
    except InputError:
        return None
    is_one = record.kind == "profile" and record.target.name == target
    return with_metrics(record) if is_one and not record.partial and record.work.env_steps else None


def with_previous(record: Record, previous: Record | None) -> Record:
    """Hold a finished profile against the previous one, and say what is unlike; its verdict stays its own.

    What two runs one after the other could not have shown is called the same, within a band as wide as that.
    """
    if previous is None or record.partial or not record.work.env_steps:
        return record
    compared = versus(previous, record, unlike=True)
    if compared.outcome == "cannot tell" and not forbidding(previous, record, compared.band):
        compared = within_noise(compared)
    return replace(record, comparisons=(*record.comparisons, compared))


def within_noise(comparison: Comparison) -> Comparison:
    """Widen the band to the noise, where nothing but that kept the two from being the same."""
    ratio = comparison.ratio
    if ratio is None or not ratio.low <= 1 <= ratio.high:
        return comparison
    band = max(ratio.high, 1 / ratio.low) - 1
    why = f"within noise: a change of less than {band:.0%} would not have shown; {IN_TURNS}"
    return replace(comparison, outcome="same", band=band, why=why)
