"""Does the gate see what is planted, and nothing where there is nothing?

    ./.venv/bin/python benchmarks/gate.py [--only nothing|speed|instructions] [--quick]

Each case is a commit of a small project, held by `hotloop gate`'s own way against the commit before: built,
measured in turns, judged, and measured again before it is red. Nothing planted must never be red; a tenth
more time, and 3% more instructions, always.
"""

import sys
from collections import Counter

import benchmark
from hotloop.core.errors import ExitCode
from hotloop.lab.gate.init import TURNS, Planted, SelfTestCase, self_test
from hotloop.lab.gate.measure import COUNTED, SPEEDS

CASES = {
    "nothing": (20, Planted(name="nothing", metric=SPEEDS[0], expected=ExitCode.FINE)),
    "speed": (
        10,
        Planted(
            name="a tenth more time",
            turns=round(1.11 * TURNS),
            metric=SPEEDS[0],
            expected=ExitCode.REGRESSION,
        ),
    ),
    "instructions": (
        10,
        Planted(
            name="3% more instructions",
            turns=TURNS + 11,
            metric=COUNTED,
            max_change=0.02,
            expected=ExitCode.REGRESSION,
        ),
    ),
}
"""How often, and what is planted: turns of the env's loop, which is nearly all of its step."""

QUICK, QUICK_S = 1, 0.5
HEADER = ["planted", "runs", "as expected", "red", "cannot tell", "green", "measured"]


def row(planted: Planted, found: list[SelfTestCase]) -> list[str]:
    said = Counter(case.found for case in found)
    changes = sorted(case.change for case in found if case.change is not None)
    measured = f"{changes[0]:+.1%} .. {changes[-1]:+.1%}" if changes else "nothing"
    counts = [said["regression"], said["cannot_tell"], said["fine"]]
    right = sum(case.passed for case in found)
    return [planted.name, str(len(found)), str(right), *map(str, counts), measured]


def tried(planted: Planted, seconds: float) -> SelfTestCase:
    """One case in a project of its own, said as soon as it is known."""
    (case,) = self_test(cases=[planted], seconds=seconds)
    change = "" if case.change is None else f", {case.change:+.1%}"
    print(f"{case.name}: {case.found}{change}; {case.why}", file=sys.stderr, flush=True)
    return case


def main() -> None:
    parser = benchmark.parser(__doc__)
    parser.add_argument("--only", choices=sorted(CASES), help="one kind of case")
    arguments = parser.parse_args()
    rows, kept = [], {}
    for name, (times, planted) in CASES.items():
        if arguments.only in (None, name) and not (arguments.quick and planted.metric == COUNTED):
            wanted = [planted] * (QUICK if arguments.quick else times)
            found = [tried(each, QUICK_S if arguments.quick else 6.0) for each in wanted]
            rows.append(row(planted, found))
            kept[name] = found
    benchmark.publish("gate", benchmark.table(HEADER, rows), {"cases": kept}, arguments)


if __name__ == "__main__":
    main()
