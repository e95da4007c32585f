"""The options of validate."""

from dataclasses import dataclass
from pathlib import Path

from hotloop.core.errors import InputError
from hotloop.options.compare import BUDGET_S, MOST_S
from hotloop.options.option import (
    CellsOptions,
    OptionRule,
    Options,
    TargetOptions,
    argument,
    ignore_option,
    needs,
    option,
    trust_option,
)

SMOKE, SOAK = "smoke", "soak"

AMOUNT = SMOKE  # About a minute
TRANSFER_STEPS = 30_000  # Env-steps of each side's policy


@dataclass(frozen=True, kw_only=True)
class ValidateOptions(TargetOptions, CellsOptions):
    """Check that a fast version does the same as the slow one.

    TARGET is the candidate; it is compared with its reference. Both play the same actions, random, scripted
    and adversarial (actions that do not exist, resets in the middle, short episodes), and must show the same
    observations, rewards, flags, infos, random numbers and state at every step; then the candidate repeats
    them in other batch sizes and with more threads. The first difference is named, and shrunk into a bundle
    that --replay plays again. Exit code 2: they differ. --statistical compares the distributions of returns,
    lengths, observations, rewards and transitions instead, and says how large a difference could have gone
    unseen.
    """

    examples = (
        "hotloop validate grid/toy",
        "hotloop validate grid soak --against original",
        "hotloop validate prospector/short 20000",
        "hotloop validate prospector/short 20000 --policy run:first",
        "hotloop validate fast.py:make 5000 --against slow.py:make",
        'hotloop validate fast.py:make 5000 --against "gym:CartPole-v1" --mode tolerance:1e-5',
        "hotloop validate port.py:make 512 --against gym:CartPole-v1 --statistical",
        "hotloop validate --replay artifacts/throughput/NAME.bundle",
        "hotloop validate grid --against original --adoption",
        "hotloop validate grid/toy 2000 --seeds 40 --on ray",
    )
    isolated = True
    rules = (
        OptionRule(
            given=("replay",),
            excludes=("target",),
            says="--replay {replay} says itself what is played: leave out {target}",
        ),
        needs("trust", "replay"),
        OptionRule(
            given=(),
            needs=("target", "replay"),
            says="validate needs a TARGET, or --replay BUNDLE: hotloop validate --help says how",
        ),
        needs("transfer", "statistical"),
        OptionRule(
            given=("statistical",),
            excludes=("mode", "ignore"),
            says="--mode and --ignore are about single numbers: leave them out of --statistical",
        ),
        OptionRule(
            given=("statistical",),
            excludes=("seeds", "on", "resume"),
            says="--statistical plays seeds of its own, here: leave out --seeds, --on and --resume",
        ),
    )

    words: list[str] | None = argument(
        f"A minute, at least 100,000 comparisons, or N env-steps  [default: {AMOUNT}]; then parameters.",
        "[smoke|soak|N] KEY=VALUE",
        None,
    )
    against: str | None = option(
        None,
        "reference (the Python twin), a way of the world's own such as the grid's original, cuda, "
        "path.py:callable, or a quoted target with keys; a callable has the target's keys unless it is given "
        "its own.  [default: reference]",
        "OTHER",
        tool="reference (the Python twin of what ships), or the slow one as a target.",
    )
    mode: str = option(
        "bytes",
        "How equal: bytes, ulp:N or tolerance:T, of floating-point numbers.",
        "M",
        tool="How equal floating-point numbers are: bytes, ulp:N or tolerance:T.",
    )
    ignore: list[str] | None = ignore_option()
    policy: str | None = option(
        None,
        "Who plays in the place of the world's players: one of them, run:NAME, tape:FILE, module:callable.",
        "NAME",
    )
    statistical: bool = option(
        False,
        "Where bytes cannot be equal: compare distributions; N is then pairs of episodes a policy.",
        tool="Compare distributions; amount is then a number of episodes, and needs no mode.",
    )
    transfer: int | None = option(
        None,
        "With --statistical: env-steps that a policy is trained for on each side, then played on both; "
        f"0 trains none.  [default: {TRANSFER_STEPS}]",
        "STEPS",
        min=0,
    )
    replay: Path | None = option(None, "Play again what was found to differ, from its bundle.", "BUNDLE")
    trust: Path | None = trust_option()
    adoption: bool = option(False, "Where the candidate stands on its way to the default; times both.")
    budget: float | None = option(
        None,
        f"Seconds that --adoption may time for.  [default: {BUDGET_S:g}]",
        "S",
        above=0,
        most=MOST_S,
        expected=f"seconds, above 0 and up to {MOST_S:,}",
    )
    seeds: int | None = option(None, "Validate N seeds, from seed= on, each a cell.", "N", min=1, max=100_000)

    def __post_init__(self) -> None:
        """Refuse words that do not say how much."""
        Options.__post_init__(self)
        _ = self.amount

    @property
    def amount(self) -> str:
        """Return smoke, soak or a number: of env-steps, or of episodes where distributions are compared."""
        amounts = [word for word in self.words or () if "=" not in word]
        if len(amounts) > 1:
            raise InputError(f"{' and '.join(amounts)} both say how much: give one, smoke, soak or a number")
        amount = amounts[0] if amounts else AMOUNT
        if amount not in (SMOKE, SOAK) and not (amount.isdecimal() and int(amount) > 0):
            number = "a number of episodes" if self.statistical else "a number of steps, such as 5000"
            raise InputError(f"{amount} does not say how much: expected smoke, soak or {number}")
        return amount

    @property
    def keys(self) -> list[str]:
        """Return the words that are parameters of the target."""
        return [word for word in self.words or () if "=" in word]
