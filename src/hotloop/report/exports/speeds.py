"""What every export is about: the speeds that records hold."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hotloop.core.record.metadata import own_commit
from hotloop.core.record.record import Metric, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """One metric of one record."""

    record: Record
    name: str
    metric: Metric
    values: tuple[float, ...]
    """Of the rounds."""

    @property
    def commit(self) -> str:
        commit, dirty = own_commit(self.record.code)
        return f"{commit}-dirty" if dirty else commit

    @property
    def unit(self) -> str:
        return self.name.removesuffix("_per_s").replace("_", "-") + "/s"


def speeds(records: Sequence[Record], *, headline: bool = False) -> Iterator[Speed]:
    """Every speed of whole records, or of each the one that is judged."""
    for record in records:
        for name, metric in record.metrics.items():
            is_speed = name.endswith("_per_s") and name in record.values
            if is_speed and not record.partial and (not headline or name == record.method.headline):
                yield Speed(record=record, name=name, metric=metric, values=record.values[name])
