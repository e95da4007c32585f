"""One side of a budget, measured by that side's own Python and code: `python -P gauge.py '<settings>'`.

Settings are JSON: target (name, keys) and policy. Orders come in and answers go out as lines of JSON; what
the measured program prints goes to stderr. An answer has a record as its JSON text, or an error and its code.

    {"do": "bench"} or with rounds, iterations, warmup        {"do": "phases", "env_steps": N or null}
    {"do": "count", "env_steps": N or null, "layout": K}      {"do": "profile", "folder": F}

The first answer says that it is there.
"""

import json
import resource
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from hotloop.core.errors import ExitCode, HotloopError
from hotloop.core.process.serve import serve
from hotloop.core.record import Record, Resources
from hotloop.core.settings import Target
from hotloop.lab import bench as benching
from hotloop.lab.measure.loop import Rounds
from hotloop.lab.measure.resources import count_by, open_counter
from hotloop.lab.measure.target import Opener
from hotloop.lab.profile.probes import choose
from hotloop.lab.profile.profile import ProfilePlan, measure, profile
from hotloop.probes.instructions import Counter

LOOK_S = 0.5  # Of clean and of watched play, each, in one look at the phases
ONCE = Rounds(count=1, iterations=1, warmup=0)  # A bench that only tells what there is

Order = Mapping[str, Any]


class Gauge:
    """What measures one target, as often as it is asked."""

    def __init__(self, target: Target, policy: str) -> None:
        self.target, self.policy = target, policy
        self._counter: Counter | None = None
        self._layout = 0

    def bench(self, order: Order) -> Record:
        """The speed, and the peak of this process's memory with it."""
        given = {key: order[key] for key in ("count", "iterations", "warmup") if key in order}
        rounds = Rounds(**given, box_iterations="iterations" not in given, box_warmup="warmup" not in given)
        record = benching.bench(self.target, rounds, policy=self.policy)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return replace(record, resources=Resources(rss_peak_bytes=peak))

    def count(self, order: Order) -> Record:
        """The instructions of an env-step, by a process whose memory lies as it is asked for."""
        layout = order.get("layout", 0)
        if self._counter is None or layout != self._layout:
            self.close()
            elsewhere = {"layout": layout} if layout else {}  # not every version that is measured knows it
            self._counter, self._layout = open_counter(self.target, self.policy, **elsewhere), layout
        found = count_by(self._counter, env_steps=order.get("env_steps"))
        record = benching.bench(self.target, ONCE, policy=self.policy)
        return replace(record, instructions=found, notices=())

    def phases(self, order: Order) -> Record:
        """Where the time goes, over a stretch of about half a second where none is asked for."""
        steps = order.get("env_steps") or self._steps_for(LOOK_S)
        return measure(ProfilePlan(target=self.target, policy=self.policy, steps=steps, warmup=steps // 4))

    def profile(self, order: Order) -> Record:
        """All that a profile says, with the functions below a step and their stacks in a folder."""
        with closing(Opener()) as opener:
            plan = ProfilePlan(
                target=self.target,
                opener=opener,
                steps=self._steps_for(LOOK_S),
                policy=self.policy,
                probes=choose(["samples"]),
                files=Path(order["folder"]),
            )
            return profile(plan)

    def close(self) -> None:
        if self._counter:
            self._counter.close()
            self._counter = None

    def _steps_for(self, seconds: float) -> int:
        """Env-steps that take about so long, a power of two of them: the same for much the same code."""
        rounds = Rounds(count=3, iterations=2_000, warmup=2_000, box_iterations=True, box_warmup=True)
        speed = benching.bench(self.target, rounds, policy=self.policy).metrics["env_steps_per_s"].median
        steps = 1
        while steps < speed * seconds:
            steps *= 2
        return steps


def answer_to(order: Order, gauge: Gauge) -> dict[str, Any]:
    do: dict[str, Callable[[Order], Record]] = {
        "bench": gauge.bench,
        "count": gauge.count,
        "phases": gauge.phases,
        "profile": gauge.profile,
    }
    try:
        return {"record": do[order["do"]](order).to_json()}
    except HotloopError as error:
        return {"error": str(error), "code": int(error.exit_code)}
    except Exception as error:  # noqa: BLE001 - whatever the measured program raises is an answer
        return {"error": f"{type(error).__name__}: {error}", "code": int(ExitCode.USAGE)}


def main() -> None:
    settings = json.loads(sys.argv[1])
    sys.path.append(str(Path.cwd()))
    gauge = Gauge(Target(**settings["target"]), settings["policy"])
    serve(lambda orders: chain([{"ready": True}], (answer_to(order, gauge) for order in orders)))
    gauge.close()


if __name__ == "__main__":
    main()
