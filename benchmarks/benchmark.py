"""What every benchmark shares: sides in turns on chosen cores, and a table and its raw values left in files.

Sides, their turns and their ratios are the lab's own, those of `hotloop compare`.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import hotloop
from hotloop.core.clock import utc_now
from hotloop.core.files import free_path, write_new
from hotloop.core.machine import code, machine
from hotloop.core.record import Metric
from hotloop.core.turn_clock import Turn
from hotloop.envs import native
from hotloop.lab.measure.loop import Tally, rounds_of
from hotloop.lab.measure.policy import RANDOM
from hotloop.lab.measure.sides import Side, SubjectSide, no_collection
from hotloop.stats.summary import FEWEST, Ratio, ratio, summarise

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
RATE_HEADER = ["agent-steps/s", "over the rounds", "CV", "ns per agent-step"]

Taken = TypeVar("Taken")


@dataclass(frozen=True, slots=True, kw_only=True)
class SideValues:
    """What the rounds say about one side."""

    ns_per_agent_step: list[float]
    """Raw, one a round."""
    agent_steps_per_block: int
    """In a turn."""
    agent_steps_per_s: Metric
    tokens_used: float | None
    """Mean tokens in use per agent; None for a side without tokens."""


def usable_cores() -> list[int]:
    """List the cores a process may be pinned to; none where the system cannot pin."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def one_core() -> list[int]:
    """Choose the core all sides share: the last, since the first does more of the system's own work."""
    return usable_cores()[-1:]


def pin(cores: Collection[int]) -> None:
    """Keep this process, and those it starts from now on, on these cores; none means anywhere."""
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)


@contextmanager
def pinned(cores: Collection[int]) -> Iterator[None]:
    """Keep what is started meanwhile on these cores."""
    before = usable_cores()
    pin(cores)
    try:
        yield
    finally:
        pin(before)


def batch_side(name: str, target: str, *, warmup_calls: int, **given: Any) -> SubjectSide:
    """A batch of this process that is played at random, made and warmed up."""
    side = SubjectSide(name, hotloop.make(target, impl="native", **given), RANDOM)
    side.turn(warmup_calls * side.subject.spec.num_envs)
    return side


def in_turns(turns: Mapping[str, Callable[[], Taken]], rounds: int) -> dict[str, list[Taken]]:
    """What each side's turns gave, one value a round."""
    taken: dict[str, list[Taken]] = {name: [] for name in turns}
    with no_collection():
        for number, round_ in enumerate(islice(rounds_of(turns), rounds), 1):
            print(f"\rround {number} of {rounds}", end="", file=sys.stderr, flush=True)
            for name, each in round_.items():
                taken[name].append(each)
    print(file=sys.stderr)
    return taken


def measure(sides: Sequence[Side], *, rounds: int, agent_steps: int) -> dict[str, SideValues]:
    """Let warm sides take turns of as many agent-steps each."""
    work = {side.name: Tally(side.counters) for side in sides}
    agents = {side.name: agents_of(side) for side in sides}
    turns = {
        side.name: partial(counted_turn, side, max(1, agent_steps // agents[side.name]), work[side.name])
        for side in sides
    }
    return {
        name: side_values(taken, agents[name], tokens_used(work[name].gained))
        for name, taken in in_turns(turns, rounds).items()
    }


def counted_turn(side: Side, env_steps: int, work: Tally) -> Turn:
    turn = side.turn(env_steps)
    work.note()
    return turn


def agents_of(side: Side) -> int:
    """Agents of each env, by what a side that has been warmed up did."""
    done = side.counters()
    return done["agent_steps"] // done["env_steps"]


def tokens_used(gained: Mapping[str, int]) -> float | None:
    return gained["tokens"] / gained["agent_steps"] if "tokens" in gained else None


def side_values(turns: Sequence[Turn], agents: int = 1, tokens: float | None = None) -> SideValues:
    """Sum up the turns of a side."""
    costs = [turn.ns_per_env_step / agents for turn in turns]
    return SideValues(
        ns_per_agent_step=costs,
        agent_steps_per_block=turns[0].env_steps * agents,
        agent_steps_per_s=summarise([1e9 / cost for cost in costs]),
        tokens_used=tokens,
    )


def speed_ratio(values: Mapping[str, SideValues], fast: str, slow: str) -> Ratio:
    """Say how many times as fast as `slow` the side `fast` is: the median round and its sign interval."""
    return ratio(values[slow].ns_per_agent_step, values[fast].ns_per_agent_step)


def parser(description: str | None, *, rounds: int = 12) -> argparse.ArgumentParser:
    """Make the parser every benchmark shares."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument(
        "--rounds", type=even_rounds, default=rounds, help=f"at least {FEWEST} (default {rounds})"
    )
    made.add_argument("--quick", action="store_true", help="few, short rounds: to try it, not to publish")
    made.add_argument("--output", type=Path, default=RESULTS, help="folder of the result files")
    return made


def even_rounds(word: str) -> int:
    """Read a number of rounds, made even: every order has its mirror image."""
    count = int(word)
    if count < FEWEST:
        raise argparse.ArgumentTypeError(f"{count} rounds give no interval, {FEWEST} or more do")
    return count + count % 2


def rounds_asked(arguments: argparse.Namespace) -> int:
    """Tell how many rounds were asked for."""
    return FEWEST if arguments.quick else int(arguments.rounds)


def rate_cells(values: SideValues) -> list[str]:
    """Write a side's rate: median, extremes over the rounds, coefficient of variation, and the cost."""
    rates = values.agent_steps_per_s
    extremes = f"{_millions(rates.min)} .. {_millions(rates.max)}"
    return [_millions(rates.median), extremes, percent(rates.cv), f"{1e9 / rates.median:.1f}"]


def tokens_cell(values: SideValues) -> str:
    return "none" if values.tokens_used is None else f"{values.tokens_used:.1f}"


def percent(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.1%}"


def ratio_text(ratio: Ratio, digits: int = 2) -> str:
    """Write `estimate [low, high]`, never the bare estimate."""
    return f"{ratio.estimate:.{digits}f} [{ratio.low:.{digits}f}, {ratio.high:.{digits}f}]"


def resolution(ratio: Ratio) -> str:
    """Say which differences a comparison with this interval could not have seen."""
    widest = max(ratio.high / ratio.estimate, ratio.estimate / ratio.low) - 1
    return f"{ratio.pairs} pairs; a difference under {widest:.1%} would not have shown."


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Draw a Markdown table whose columns line up on a terminal too."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(_line(line, widths) for line in lines)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"


def _millions(rate: float) -> str:
    return f"{rate / 1e6:.3f} M"


def publish(name: str, text: str, values: Mapping[str, object], arguments: argparse.Namespace) -> None:
    """Print the text under its machine and commit; write it, and the values, to new files."""
    made, built, folder = utc_now(), native.build(), arguments.output
    origin = {
        "benchmark": name,
        "created": made.isoformat(),
        "quick": arguments.quick,
        "text": text,
        "machine": machine(),
        "code": code(asdict(built) if built else None, HERE),
    }
    page = f"# {name}\n\n{_origin(origin)}\n\n{text}\n"
    path = free_path(folder / f"{name.replace('/', '-')}-{made:%Y%m%d-%H%M}.json", beside=(".md",))
    write_new(path, json.dumps(origin | dict(values), indent=1, default=asdict) + "\n")
    write_new(path.with_suffix(".md"), page)
    print(f"{page}\nwritten: {path} and {path.with_suffix('.md').name}")


def _origin(facts: Mapping[str, Any]) -> str:
    at, built = facts["machine"], facts["code"]
    dirty = " with uncommitted changes" if built["dirty"] else ""
    load = "unknown" if at["load"] is None else f"{at['load']:.1f}"
    return (
        f"{facts['created']}, commit {built['commit']}{dirty}; {at['cpu']}, {at['cores']} cores, "
        f"{at['kernel']}, load {load} at the end, Python {at['python']}, {built['compiler']}."
    )
