"""What a benchmark leaves behind: a table on the terminal, and the table and its raw values in files."""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hotloop.core.clock import utc_now
from hotloop.core.code import code
from hotloop.core.files import free_path, write_new
from hotloop.core.machine import machine
from hotloop.envs import native
from hotloop.stats.intervals import FEWEST
from hotloop.stats.ratio import Ratio
from hotloop.stats.summary import Summary, summarise
from interleaved.rounds import Blocks
from interleaved.sides import BENCHMARKS
from interleaved.stepping import Block

RESULTS = BENCHMARKS / "results"
RATE_HEADER = ["agent-steps/s", "over the rounds", "CV", "ns per agent-step"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SideValues:
    """What the rounds say about one side."""

    ns_per_agent_step: list[float]
    """Raw, one a round."""
    agent_steps_per_block: int
    agent_steps_per_s: Summary
    tokens_used: float | None
    """Mean tokens in use per agent, looked at after each block; None for a side without tokens."""


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


def rounds_of(arguments: argparse.Namespace) -> int:
    """Tell how many rounds were asked for."""
    return FEWEST if arguments.quick else int(arguments.rounds)


def side_values(blocks: Blocks) -> dict[str, SideValues]:
    """Sum up the blocks of every side."""
    return {name: _side_values(rows) for name, rows in blocks.items()}


def _side_values(blocks: Sequence[Block]) -> SideValues:
    costs = [block.ns_per_agent_step for block in blocks]
    used = [block.tokens_used for block in blocks if block.tokens_used is not None]
    return SideValues(
        ns_per_agent_step=costs,
        agent_steps_per_block=blocks[0].agent_steps,
        agent_steps_per_s=summarise([1e9 / cost for cost in costs]),
        tokens_used=sum(used) / len(used) if used else None,
    )


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
        "code": code(asdict(built) if built else None, BENCHMARKS),
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
