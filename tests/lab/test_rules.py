"""The rules of docs/method.md, one test each, which fails where its rule is broken."""

from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import median, stdev

import numpy as np
import pytest
from support import faulty_targets, fooling
from support.drawn import text
from support.profiles import profile
from support.records import BENCH, MACHINE, PROFILE, bench_with
from support.sides import DIFFERS, FakeContender, steady

from hotloop.core.errors import ExitCode, InputError, SetupError
from hotloop.core.record import Record
from hotloop.core.record.comparison import A, B, Ratio, Validation
from hotloop.core.settings import Target
from hotloop.core.spans.device import DeviceStream
from hotloop.envs.batch import Batch
from hotloop.envs.open import open_target
from hotloop.judge.compare import ComparisonInput, compare_stored, conclude, weigh
from hotloop.judge.judge import judge
from hotloop.lab.bench import bench
from hotloop.lab.compare.compare import CompareSettings, compare
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure.loop import BLOCK, Length, Plan, Rounds, Warmup, orders
from hotloop.lab.measure.record import describe_path
from hotloop.lab.measure.resources import subtract
from hotloop.lab.measure.settle import AGAIN
from hotloop.lab.profile import profile as profiling
from hotloop.lab.profile.slow import rerun
from hotloop.lab.validate import bundle
from hotloop.lab.validate.shadow import Shadowing
from hotloop.report.kinds.bench import bench as bench_sections
from hotloop.report.kinds.compare import compare as compare_sections
from hotloop.report.kinds.compare import headline, phases
from hotloop.stats.histogram import Histogram
from hotloop.stats.summary import label, ratio, summarise
from hotloop.train import timing
from hotloop.train.timing import choose_how, mark, span

SHORT = Rounds(count=7, iterations=64, warmup=64)
TOY = Target("grid/toy", {"num_envs": "8", "agents": "3"})
BRIEF = CompareSettings(plan=Plan(budget_ns=1_000_000_000))
STEADY = [4.0e6, 4.1e6, 3.9e6, 4.05e6, 3.95e6, 4.0e6, 4.0e6]
EQUAL = Ratio(estimate=1.0, low=0.995, high=1.005, pairs=40)
FASTER = Ratio(estimate=1.2, low=1.18, high=1.22, pairs=40)
FOUND = ComparisonInput(
    band=0.02, ratio=FASTER, second=FASTER, others=(FASTER,), fresh=(FASTER,), noise=EQUAL
)


@pytest.fixture
def quick(monkeypatch):
    """No warm-up, where the sides are made up."""
    monkeypatch.setattr("hotloop.lab.compare.compare.warm_up", lambda *_, **__: Warmup(Length(10_000)))


def against(a: FakeContender, b_ns: float, **b) -> Record:
    return compare(a, FakeContender("b", steady(b_ns), **b), BRIEF)


def codes(record: Record) -> set[str]:
    return {each.code for each in judge(record).notices}


def test_rule_1_clean_and_instrumented_passes_are_different_passes(monkeypatch):
    """The watched passes are made ten times as long: the speed does not know it, the overhead does."""

    def paced(batch: Batch, actions, calls: int) -> int:
        for chosen in actions[:calls]:
            batch.step(chosen)
        return 1_000

    def watched(view, watch, actions) -> int:
        turn(view, watch, actions)
        return 10_000

    turn = profiling.StepView.turn
    monkeypatch.setattr(profiling, "WARMUP", 40)
    monkeypatch.setattr(profiling, "play", paced)
    monkeypatch.setattr(profiling.StepView, "turn", watched)
    record = profile(TOY, profiling.PAIRS * 8)
    assert record.values["env_steps_per_s"] == pytest.approx([8e9 / 1_000] * profiling.PAIRS)
    assert (record.overhead.ratio, *record.overhead.ci95) == pytest.approx((10, 10, 10))


def test_rule_2_what_ran_is_attested(monkeypatch):
    """Counters decide, not what was asked for; those that stand still attest nothing."""
    counters = {"env_steps": 4, "native_steps": 3, "reference_steps": 1}
    assert describe_path("auto", counters).ran == {"native": 0.75, "reference": 0.25}
    with pytest.raises(SetupError, match=r"asked for but 75\.0% of the steps"):
        describe_path("native", counters)
    fell_back = replace(BENCH, target=replace(BENCH.target, impl="reference"))
    assert "reference (fell back)" in text(bench_sections([fell_back]))
    real, first = Batch.counters.fget, dict[int, dict[str, int]]()
    for name in ("env_steps", "native_steps"):
        still = property(lambda it, name=name: real(it) | {name: first.setdefault(id(it), real(it))[name]})
        monkeypatch.setattr(Batch, "counters", still)
        for measured in (lambda: bench(TOY, SHORT), lambda: profile(TOY, 640)):
            with pytest.raises(SetupError, match=r"stood still|0\.0% of the steps"):
                measured()


def test_rule_3_work_is_counted(quick):
    """One event more is different work, and named; the warm-up is in no count, resets are counted apart."""
    a = FakeContender("a", steady(100), work={"tokens": 1.0})
    record = against(a, 50, work={"tokens": 1.000_01})
    assert record.exit_code == ExitCode.CANNOT_TELL
    assert "different work: tokens" in record.comparisons[0].why
    measured = bench(Target("grid/toy", {"num_envs": "8", "max_steps": "4"}), SHORT)
    assert (measured.method.warmup, measured.work.env_steps) == (64, 7 * 64)
    assert measured.work.resets == 7 * 64 // 4


def test_rule_4_phases_add_up(monkeypatch):
    monkeypatch.setattr(profiling, "WARMUP", 40)
    record = profile(TOY, profiling.PAIRS * 8)
    rows = {phase.path: phase.total_ns for phase in record.phases}
    inside = sum(ns for path, ns in rows.items() if path.startswith("wall/step/"))
    assert inside + record.unaccounted_ns == rows["wall/step"]
    assert rows["wall/python"] + rows["wall/step"] == rows["wall"]
    step = {phase.path: phase.total_ns for phase in PROFILE.phases}["wall/step"]
    assert "unaccounted" not in codes(replace(PROFILE, unaccounted_ns=round(0.05 * step)))
    assert "unaccounted" in codes(replace(PROFILE, unaccounted_ns=round(0.051 * step)))


class Queue:
    """A stream of a device: work is queued in no time of the host's."""

    host_ms = busy_until_ms = 0.0

    def launch(self, ms: float) -> None:
        self.busy_until_ms = max(self.busy_until_ms, self.host_ms) + ms

    def wait(self) -> None:
        self.host_ms = max(self.host_ms, self.busy_until_ms)

    def event(self) -> "Moment":
        return Moment(self)


class Moment:
    def __init__(self, queue: Queue) -> None:
        self.queue, self.at_ms = queue, 0.0

    def record(self) -> None:
        self.at_ms = max(self.queue.busy_until_ms, self.queue.host_ms)

    def elapsed_time(self, other: "Moment") -> float:
        return other.at_ms - self.at_ms


def test_rule_5_time_on_a_gpu_is_measured_on_the_gpu():
    """Work is charged to who queued it, not to who waited for it; nothing else is done by itself on a GPU."""
    queue = Queue()
    stream = DeviceStream(queue.event, queue.wait)
    timing.watch(stream)
    try:
        with span("learn"):
            queue.launch(30)
            mark("forward")
        with span("logging"):
            queue.wait()
        rows = {row.path: row.total_ns for top in stream.read() for row in top.walk()}
    finally:
        timing.watch(None)
    assert (rows["learn/forward"], rows["logging"]) == (30_000_000, 0)
    assert choose_how("auto", "cuda") == "events"


def test_rule_6_a_comparison_is_interleaved_and_paired(quick):
    """Every side once a round, each order as often, the same steps; pairs, never without an interval."""
    a, b = FakeContender("a", steady(100)), FakeContender("b", steady(103))
    record = compare(a, b, BRIEF)
    made = [*a.made[:2], *b.made[:1]]
    assert len({side.turns for side in made}) == 1
    assert len({side.counters()["env_steps"] for side in made}) == 1
    places = Counter(
        (side, place) for order in islice(orders((A, B, AGAIN)), BLOCK) for place, side in enumerate(order)
    )
    assert set(places.values()) == {2}
    drifting = [100.0 * 2**k for k in range(8)]  # what moves slowly moves both of a pair
    found = ratio(drifting, [1.1 * ns for ns in drifting])
    assert (found.estimate, found.low, found.high) == pytest.approx((1 / 1.1,) * 3)
    with pytest.raises(InputError, match="too few"):
        ratio(drifting[:5], drifting[:5])
    said = text(compare_sections(record))
    assert "[0.9" in said
    assert "A against itself" in said
    assert "could see" in said


def test_rule_7_three_verdicts(quick):
    """Beyond the band, and twice, or inside it; all else cannot be told, which is never green."""
    a = FakeContender("a", steady(100))
    told = [against(a, ns) for ns in (90, 100.5, 110)]
    assert [each.comparisons[0].outcome for each in told] == ["faster", "same", "slower"]
    assert [each.exit_code for each in told] == [ExitCode.FINE, ExitCode.FINE, ExitCode.REGRESSION]
    for ns in (90, 110):
        once = compare(a, FakeContender("b", steady(ns), steady(100)), BRIEF)
        assert (once.comparisons[0].outcome, once.exit_code) == ("cannot tell", ExitCode.CANNOT_TELL)
    assert weigh(FOUND)[0] == "faster"
    edge = replace(FOUND, ratio=Ratio(estimate=1.02, low=1.01, high=1.03, pairs=40))
    for doubted in (edge, replace(FOUND, second=EQUAL), replace(FOUND, second=None)):
        assert weigh(doubted)[0] == "cannot tell"
    assert conclude(edge, *sides_of(BENCH), ()).visible > 0.02


def sides_of(record: Record):
    compared = compare_stored(record, record)
    return compared.a, compared.b


def test_rule_8_unlike_things_are_not_compared():
    other_method = replace(BENCH.method, version=BENCH.method.version - 1)
    unlike = {
        "machine": replace(BENCH, machine=MACHINE | {"fingerprint": "ba9876543210", "cpu": "Other CPU"}),
        "workload": replace(BENCH, target=replace(BENCH.target, workload_hash="x", params={"agents": 3})),
        "method": replace(BENCH, method=other_method),
    }
    for what, other in unlike.items():
        with pytest.raises(InputError, match=what):
            compare_stored(BENCH, other)
        compared = compare_stored(BENCH, other, unlike=True)
        assert compared.unlike[0].startswith(what)
        assert what in text([headline(compared)])
    variant = replace(BENCH, target=replace(BENCH.target, impl="reference", variant={"num_envs": 7}))
    assert compare_stored(BENCH, variant).unlike == ()


def test_rule_9_spread_is_robust():
    """The spread is a sample's; words, drift, a cold start; no percentile of too few values."""
    values = [1.0, 2.0, 4.0]
    assert summarise(values).cv == pytest.approx(stdev(values) / np.mean(values))
    words = {0.049: "excellent", 0.099: "good", 0.199: "fair", 0.201: "unstable"}
    assert {cv: label(cv) for cv in words} == words
    assert judge(bench_with([1.0, 2.0, 1.1, 2.1, 1.2, 1.9])).exit_code == ExitCode.UNSTABLE
    assert "drift" in codes(bench_with([4.0e6 - 1e4 * k for k in range(20)]))
    assert "warmup" in codes(bench_with([2.0e6, *(4.0e6 + 1e4 * (k % 3) for k in range(20))]))
    few, enough = Histogram(), Histogram()
    few.add(range(20))
    enough.add(range(1_000))
    assert few.percentile(0.99) is None
    assert enough.percentile(0.99) is not None


def test_rule_10_correctness_outranks_everything(quick):
    wrong = Validation(comparisons=9, mismatches=1)
    spoiled = bench_with([1.0, 2.0, 1.1, 2.1, 1.2, 1.9], partial=True, validation=wrong)
    assert judge(spoiled).exit_code == ExitCode.MISMATCH
    assert weigh(replace(FOUND, difference="step 3, rewards[0]"))[0] == "cannot tell"
    b = FakeContender("b", steady(50))
    record = compare(FakeContender("a", steady(100), agrees=DIFFERS), b, BRIEF)
    assert (record.exit_code, record.comparisons[0].outcome) == (ExitCode.MISMATCH, "cannot tell")
    assert not b.made, "what is not equal is not timed"


def test_rule_11_equality_means_all_of_it(tmp_path):
    """Every field, at once, with its place; and a file that shows the same again."""
    place = Path(fooling.__file__)
    for name, field in (("counting", "infos.age"), ("flagging", "terminals"), ("drawing", "random.rng")):
        honest, other = (TargetContender(Target(f"{place}:{each}")) for each in ("honest", name))
        assert honest.agreement(other).difference.field.startswith(field)
    wrong = Target(f"{faulty_targets.__file__}:wrong_when_old", {"num_envs": 2})
    right = Target("grid/toy", {"agents": 4, "num_envs": 2, "impl": "native"})
    shadowing = Shadowing(open_target(right), open_target(wrong))
    shadowing.reset()
    for chosen in np.random.default_rng(3).integers(0, 5, (40, 2, 4), np.int32):
        shadowing.step(chosen)
    found = shadowing.difference
    assert found.step == 30
    assert found.field
    kept = bundle.write_bundle(
        bundle.bundle_of(shadowing, tape="policy", reference=right, candidate=wrong), tmp_path / "x.bundle"
    )
    assert bundle.play_bundle(bundle.read_bundle(kept)).difference == found


def test_rule_12_the_workload_is_named_and_looked_at():
    record = bench(Target("grid/arena", {"num_envs": "4"}), SHORT, policy="teacher")
    assert record.method.policy.startswith("teacher")
    assert "teacher" in text(bench_sections([record]))
    assert {"move", "noop"} & record.work.coverage.keys()
    assert sum(record.work.coverage.values()) > 0


def test_rule_13_instruction_counts_are_a_second_axis():
    """The start-up cancels; what they say stands beside the time and never in its place."""
    start = 900_000_000
    assert subtract(((64, start + 640), (1_064, start + 10_640)), isa="x86_64").per_env_step == 10.0
    same = replace(FOUND, ratio=EQUAL, second=None, instructions=2.0)
    edge = replace(same, ratio=Ratio(estimate=1.02, low=1.01, high=1.03, pairs=40))
    assert weigh(same)[0] == "same"
    assert weigh(edge) == (
        "cannot tell",
        "the interval reaches over the edge of 2%; B takes 100.0% more instructions",
    )


def test_rule_14_from_part_to_whole():
    """Half of the time made twice as fast is a third more, which stands beside what was seen."""
    from hotloop.lab.compare.compare import phase_ratio

    costs = {A: [{"python": 50.0, "actions": 50.0}] * 24, B: [{"python": 50.0, "actions": 25.0}] * 24}
    part = phase_ratio(costs, "actions", 0.5, 1, None)
    assert part.worth == pytest.approx(4 / 3)
    whole = conclude(replace(FOUND, phases=(part,)), *sides_of(BENCH), ())
    said = text(phases(whole))
    assert "1.333" in said
    assert "all phases together: 1.333 predicted; seen 1.200" in said


def test_rule_15_time_passes(monkeypatch):
    """The slowest step is kept with its seed and number, and can be come to again; pauses are marked."""
    monkeypatch.setattr(profiling, "WARMUP", 20)
    target = Target("support.stalling:make", {"at": "60", "seconds": "0.3"})
    record = profile(target, 100)
    (slowest,) = (step for step in record.slow.steps if step.wall_ns >= 300_000_000)
    assert (slowest.step, slowest.seed) == (60, 42)
    assert slowest.gc_ns <= record.slow.pauses.total_ns
    again = rerun(Record.from_json(record.to_json()), slowest.rank).again
    assert (again.slow.step, again.same_way, again.outcome) == (60, True, "slow again")


def test_rule_16_every_gate_has_a_self_test():
    """A planted slow-down turns each gate red, and a thing against itself stays green."""
    dragged = Target("grid/toy", {"num_envs": "8", "agents": "3", "drag": "20000"})
    for _ in range(5):  # other tests start dozens of processes meanwhile: it may not be able to tell
        slow = compare(TargetContender(TOY), TargetContender(dragged), CompareSettings(plan=Plan()))
        if slow.exit_code != ExitCode.CANNOT_TELL:
            break
    assert slow.exit_code == ExitCode.REGRESSION, slow.comparisons
    itself = compare(TargetContender(TOY), TargetContender(TOY), BRIEF)
    assert itself.exit_code in (ExitCode.FINE, ExitCode.CANNOT_TELL)
    before, after = bench_with(STEADY * 2), bench_with([speed / 2 for speed in STEADY * 2])
    assert (
        judge(replace(after, comparisons=(compare_stored(before, after),))).exit_code == ExitCode.REGRESSION
    )
    assert (
        judge(replace(before, comparisons=(compare_stored(before, before),))).exit_code != ExitCode.REGRESSION
    )


def test_rule_17_no_number_without_its_machine_commit_and_spread():
    record = Record.from_json(bench(TOY, SHORT).to_json())
    assert record.machine["fingerprint"]
    assert record.code["commit"]
    speed = record.metrics["env_steps_per_s"]
    assert speed.cv is not None
    assert speed.ci95[0] <= median(record.values["env_steps_per_s"]) <= speed.ci95[1]
    said = text(bench_sections([record]))
    assert record.machine["fingerprint"] in said
    assert record.code["commit"][:8] in said
    assert f"{speed.cv:.1%} {label(speed.cv)}" in said
