# Spans and marks, natively: what hotloop.core.spans.python is in plain Python, name by name.

from hotloop.core.spans.python import (
    Marks,
    Region,
    disable,
    enable,
    enabled,
    glance,
    keep,
    lap,
    mark,
    moment,
    opened,
    read,
    read_here,
    span,
    take,
    watch,
)

__all__ = [
    "Marks",
    "Region",
    "disable",
    "enable",
    "enabled",
    "glance",
    "keep",
    "lap",
    "mark",
    "moment",
    "opened",
    "read",
    "read_here",
    "span",
    "take",
    "watch",
]
