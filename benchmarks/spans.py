"""Measure what a mark and a span cost, on and off, natively and in plain Python.

    ./.venv/bin/python benchmarks/spans.py [--rounds 20] [--quick]

Each value is the mean of many calls in a loop, less the loop itself, by the CPU clock of the thread: what
else the machine does meanwhile is not in it, and none of these calls waits. The kinds take turns. A call
while spans are off is the no-op that a program pays everywhere else; "CPU" is with `enable(cpu=True)`.
"""

from collections.abc import Callable
from time import thread_time
from timeit import Timer
from typing import Any

import benchmark
from hotloop.core import spans
from hotloop.core.record import Metric
from hotloop.core.spans import python
from hotloop.stats.summary import summarise

CALLS = 20_000
LIMITS_NS = {"mark, off": 15, "mark": 60, "mark by number": 60, "span": 300}
"""What is promised for the compiled ones."""
STATEMENTS = {
    "mark": 'mark("step")',
    "mark by number": "number(0)",
    "span": 'with span("learn"): pass',
}
ENGINES: dict[str, Any] = {"": spans, " (plain Python)": python}


def timer(engine: Any, statement: str, *, on: bool, cpu: bool = False) -> Callable[[], float]:
    """Give ns a call, with spans on or off, and with or without CPU time."""
    marks = engine.Marks(("forward", "step"))
    names = {"mark": engine.mark, "number": marks.mark, "span": engine.span}
    body, empty = (Timer(code, timer=thread_time, globals=names) for code in (statement, "pass"))

    def measure() -> float:
        if on:
            engine.enable(cpu=cpu)
        else:
            engine.disable()
        marks.start()
        ns = (body.timeit(CALLS) - empty.timeit(CALLS)) / CALLS * 1e9
        engine.disable()
        return ns

    return measure


def kinds() -> dict[str, Callable[[], float]]:
    found = {
        f"{name}{'' if on else ', off'}{which}": timer(engine, statement, on=on)
        for which, engine in ENGINES.items()
        for name, statement in STATEMENTS.items()
        for on in (True, False)
    }
    for which, engine in ENGINES.items():
        for name in ("span", "mark"):
            found[f"{name}, CPU{which}"] = timer(engine, STATEMENTS[name], on=True, cpu=True)
    return found


def row(name: str, ns: Metric) -> list[str]:
    promised = f"{LIMITS_NS[name]} ns" if name in LIMITS_NS else ""
    return [
        name,
        f"{ns.median:.0f} ns",
        f"{ns.min:.0f} .. {ns.max:.0f} ns",
        benchmark.percent(ns.cv),
        promised,
    ]


def main() -> None:
    arguments = benchmark.parser(__doc__, rounds=20).parse_args()
    values = benchmark.in_turns(kinds(), benchmark.rounds_asked(arguments))
    sums = {name: summarise(raw) for name, raw in values.items()}
    headings = ["what", "median", "over the rounds", "CV", "at most"]
    text = benchmark.table(headings, [row(name, ns) for name, ns in sums.items()])
    benchmark.publish("spans", text, {"ns": values, "summaries": sums}, arguments)


if __name__ == "__main__":
    main()
