"""The options of gate."""

from dataclasses import dataclass
from pathlib import Path

from hotloop.options.option import JsonOptions, OptionRule, TargetOptions, argument, option

MOST_S = 3_600


@dataclass(frozen=True, kw_only=True)
class GateOptions(TargetOptions, JsonOptions):
    """Check the speed budgets of hotloop.toml; for CI.

    A budget is [budget.NAME] with a target, a metric and either limit, or max_change with against (a branch,
    tag, commit or saved baseline); optional are reason, owner, expires and enforce = false (a goal to reach).
    The other commit is built separately, and both take turns; a miss is measured again before it counts, and
    is then explained by phase and function. Exit: 0 all met, 2 an answer changed, 3 a budget is missed or
    expired, 4 cannot tell, for example without a baseline.
    """

    examples = (
        "hotloop gate --init my_env.py:make",
        "hotloop gate",
        "hotloop gate --list",
        "hotloop gate --only speed --bisect",
        "hotloop gate --self-test",
    )
    guarded = True
    rules = (
        OptionRule(
            given=("init",),
            needs=("target", "self_test"),
            says="--init needs a target to measure: hotloop gate --init my_env.py:make",
        ),
        OptionRule(
            given=("target",),
            needs=("init", "self_test"),
            says="{target} is given and not used: budgets name their targets; --init takes one",
        ),
    )

    target: str | None = argument("With --init: what to measure first.", "TARGET", None)
    only: list[str] | None = option(None, "Only this budget; may be repeated.", "NAME")
    only_list: bool = option(False, "Show the budgets and measure nothing.", flags=("--list",))
    bisect: bool = option(False, "Find the commit that first missed a budget.")
    no_explain: bool = option(False, "Do not profile both commits when a budget is missed.")
    unlike: bool = option(False, "The change is meant to change answers: compare speed alone.")
    build: str | None = option(
        None,
        "What builds a commit in its checkout.  [default: pip install . where there is something to]",
        "CMD",
    )
    budget: float = option(
        6.0,
        "Seconds that one run of a comparison may take.",
        "S",
        above=0,
        most=MOST_S,
        expected=f"seconds, above 0 and up to {MOST_S:,}",
    )
    init: bool = option(False, "Measure TARGET and write a first hotloop.toml, with CI jobs.")
    self_test: bool = option(False, "Plant a slow-down, no change and a mismatch: are they told apart?")
    output: Path | None = option(
        None, "Where records go.  [default: artifacts/gate beside hotloop.toml]", "DIR"
    )
