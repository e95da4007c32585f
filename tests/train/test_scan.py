import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hotloop.train.normalise import scan


def plain(values: torch.Tensor, decays: torch.Tensor) -> torch.Tensor:
    """The recurrence as it is written down."""
    found = values.clone()
    for time in range(len(values) - 2, -1, -1):
        found[time] = values[time] + decays[time] * found[time + 1]
    return found


def test_a_short_recurrence_by_hand() -> None:
    values = torch.tensor([1.0, 2.0, 4.0])
    decays = torch.tensor([0.5, 0.25, 9.0])
    assert scan(values, decays).tolist() == [1 + 0.5 * (2 + 0.25 * 4), 2 + 0.25 * 4, 4]


@given(st.integers(1, 70), st.integers(1, 3), st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_the_scan_is_the_loop_over_time(steps: int, rows: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(steps, rows, generator=generator, dtype=torch.float64)
    decays = torch.rand(steps, rows, generator=generator, dtype=torch.float64)
    decays *= torch.rand(steps, rows, generator=generator) > 0.2
    torch.testing.assert_close(scan(values, decays), plain(values, decays), atol=1e-12, rtol=1e-12)


def test_what_is_given_stays_as_it_was() -> None:
    values, decays = torch.ones(5, 2), torch.full((5, 2), 0.5)
    scan(values, decays)
    assert values.eq(1).all()
    assert decays.eq(0.5).all()
