"""How long measurements may take, cut down where a test asks what is said and not how sure it is."""

import pytest

PASSES = {
    "hotloop.lab.profile.probes.WARM_NS": 1_000_000,
    "hotloop.lab.profile.probes.PASS_NS": 5_000_000,
    "hotloop.probes.resources.SHORTEST_NS": 1_000_000,
    "hotloop.probes.samples.SHORTEST_NS": 1_000_000,
}
"""The passes in which a profile's probes look."""

ROUNDS = {
    "hotloop.lab.measure.loop.BOXED_WARMUP_NS": 50_000_000,
    "hotloop.lab.measure.loop.BOXED_ROUND_NS": 10_000_000,
    "hotloop.lab.sweep.scale.BOX_NS": 20_000_000,
    "hotloop.options.sweeps.CONFIRM_S": 0.5,
}
"""The rounds that commands ask for by themselves."""


def shorten_passes(patch: pytest.MonkeyPatch) -> None:
    for name, ns in PASSES.items():
        patch.setattr(name, ns)


def shorten(patch: pytest.MonkeyPatch) -> None:
    """Cut down all of them."""
    shorten_passes(patch)
    for name, ns in ROUNDS.items():
        patch.setattr(name, ns)
