"""The tree of a watched loop: spans of all its turns added up, native phases below the step they are of."""

from collections.abc import Iterable, Mapping

from hotloop.core.record import Phase
from hotloop.core.slow import Spread
from hotloop.core.spans import Span
from hotloop.envs.foreign.spec import STEP
from hotloop.envs.subject import Subject
from hotloop.lab.phases import WALL

LOOP = "loop"
"""The span around one turn."""
ELSE = f"{WALL}/everything else"
"""What the loop does beside the env and the policy: Python, and the counting of work."""
NATIVE = "native step"


def native_place(paths: Iterable[str]) -> str:
    """Where native steps stand among the paths of a loop: below our own env's step, if it has a row."""
    within = f"{WALL}/{STEP}"
    inner = [path for path in paths if path.startswith(f"{within}/Hotloop") and path.count("/") == 2]
    return f"{inner[0] if inner else within}/{NATIVE}"


class Tree:
    """Rows by path, from `wall` inwards; what other threads did side by side is not among them."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._totals: dict[str, list[int]] = {}
        """Path to calls and ns."""
        self.wall_ns = self.loop_ns = self.else_ns = self.calls = 0

    def add(self, tops: Iterable[Span], wall_ns: int, calls: int, native_before: Mapping[str, int]) -> None:
        """Take in one turn: its spans, its wall time, and what native phases had taken before it."""
        self.wall_ns += wall_ns
        self.calls += calls
        for top in tops:
            if top.path == LOOP:
                self.loop_ns += top.total_ns
                self.else_ns += top.self_ns
                for row in (each for child in top.children for each in child.walk()):
                    self._count(WALL + row.path.removeprefix(LOOP), row.calls, row.total_ns)
        self._add_native(calls, native_before)

    def _add_native(self, calls: int, before: Mapping[str, int]) -> None:
        gained = {name: ns - before.get(name, 0) for name, ns in self._subject.phase_totals().items()}
        if "step" not in gained:
            return
        place = native_place(self._totals)
        self._count(place, calls, gained.pop("step"))
        for name, ns in gained.items():
            self._count(f"{place}/{name}", calls, ns // self._subject.spec.threads)

    def _count(self, path: str, calls: int, ns: int) -> None:
        row = self._totals.setdefault(path, [0, 0])
        row[0] += calls
        row[1] += ns

    @property
    def unaccounted_ns(self) -> int:
        """What the wall has beyond the loop: the instrument's own beginning and end."""
        return self.wall_ns - self.loop_ns

    def share(self, name: str) -> float:
        """Of the wall time, of all rows of a name."""
        ns = sum(ns for path, (_, ns) in self._totals.items() if path.rpartition("/")[2] == name)
        return ns / self.wall_ns if self.wall_ns else 0.0

    def has(self, name: str) -> bool:
        return any(path.rpartition("/")[2] == name for path in self._totals)

    def rows(self, spreads: Mapping[str, Spread]) -> tuple[Phase, ...]:
        """The whole first, then parents before their children."""
        totals = {WALL: [self.calls, self.wall_ns], **self._totals, ELSE: [self.calls, self.else_ns]}
        return tuple(
            self._row(path, calls, ns, spreads.get(path, Spread(path=path, calls=0)))
            for path, (calls, ns) in totals.items()
        )

    def _row(self, path: str, calls: int, ns: int, spread: Spread) -> Phase:
        return Phase(
            path=path,
            calls=calls,
            total_ns=ns,
            mean_ns=ns / calls if calls else 0.0,
            p50_ns=spread.p50_ns,
            p95_ns=spread.p95_ns,
            p99_ns=spread.p99_ns,
            max_ns=spread.max_ns,
            share=ns / self.wall_ns,
        )
