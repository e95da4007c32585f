"""A program with spans that prints a number: `python job.py N`."""

import sys

import hotloop

with hotloop.span("work"):
    total = sum(i * i for i in range(int(sys.argv[1])))
print(f"total={total}")
