import math

import pytest
import torch

from hotloop.train.actions import allowed, chosen, log_probabilities, read, sample


def test_log_probabilities_add_up_to_one() -> None:
    log_probs = log_probabilities(torch.randn(5, 7) * 10, None)
    torch.testing.assert_close(log_probs.exp().sum(-1), torch.ones(5))


def test_a_forbidden_action_has_no_probability_at_all() -> None:
    masks = torch.tensor([[True, False, True]])
    probabilities = log_probabilities(torch.tensor([[0.0, 50.0, 0.0]]), masks).exp()
    assert probabilities.tolist() == [[0.5, 0.0, 0.5]]


def test_masked_entropy_is_that_of_the_allowed_actions() -> None:
    masks = torch.tensor([[True, True, False, False], [True, False, False, False]])
    logits = torch.tensor([[1.0, 1.0, 9.0, 9.0], [0.0, 5.0, 5.0, 5.0]])
    _, found = read(allowed(logits, masks), torch.tensor([0, 0]))
    torch.testing.assert_close(found, torch.tensor([math.log(2), 0.0]))


def test_masked_entropy_has_a_gradient_that_is_a_number() -> None:
    logits = torch.tensor([[0.3, -0.2, 4.0]], requires_grad=True)
    _, entropies = read(allowed(logits, torch.tensor([[True, True, False]])), torch.tensor([0]))
    entropies.sum().backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
    assert logits.grad[0, 2] == 0


def test_entropy_by_hand() -> None:
    log_probs = torch.tensor([[0.5, 0.25, 0.25]]).log()
    _, found = read(log_probs, torch.tensor([0]))
    torch.testing.assert_close(found, torch.tensor([1.5 * math.log(2)]))


@pytest.mark.parametrize("masked", [False, True])
def test_what_is_read_off_a_policy_and_its_gradient_are_those_of_the_definitions(masked: bool) -> None:
    torch.manual_seed(1)
    logits = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    actions = torch.tensor([0, 1, 2, 3, 6])
    masks = torch.rand(5, 7) < 0.5 if masked else torch.ones(5, 7, dtype=torch.bool)
    masks[torch.arange(5), actions] = True
    found = read(allowed(logits, masks), actions)
    log_probs = torch.log_softmax(allowed(logits, masks), -1)
    entropies = -(log_probs.exp() * log_probs).sum(-1)
    for ours, plain in zip(found, (chosen(log_probs, actions), entropies), strict=True):
        torch.testing.assert_close(ours, plain)
    assert torch.autograd.gradcheck(lambda given: read(allowed(given, masks), actions), (logits,))


def test_logits_of_half_the_width_get_a_gradient_of_their_own_type() -> None:
    logits = torch.zeros(2, 3, dtype=torch.bfloat16, requires_grad=True)
    log_probs, entropies = read(logits, torch.tensor([0, 2]))
    (log_probs.sum() + entropies.sum()).backward()  # type: ignore[no-untyped-call]
    assert log_probs.dtype == torch.float32
    assert logits.grad is not None
    assert logits.grad.dtype == torch.bfloat16


def test_chosen_picks_each_rows_action() -> None:
    log_probs = torch.tensor([[-1.0, -2.0, -3.0], [-4.0, -5.0, -6.0]])
    assert chosen(log_probs, torch.tensor([2, 0])).tolist() == [-3.0, -4.0]


def test_a_number_picks_the_action_whose_stretch_it_falls_into() -> None:
    log_probs = torch.tensor([[0.25, 0.5, 0.25]]).log().expand(6, 3).contiguous()
    uniforms = torch.tensor([0.0, 0.2, 0.25, 0.7, 0.76, 1 - 2**-24])
    assert sample(log_probs, uniforms).tolist() == [0, 0, 1, 1, 2, 2]


def test_forbidden_actions_are_never_drawn() -> None:
    masks = torch.zeros(1000, 8, dtype=torch.bool)
    masks[:, [2, 5]] = True
    log_probs = log_probabilities(torch.randn(1000, 8), masks)
    uniforms = torch.rand(1000)
    uniforms[0], uniforms[1] = 0.0, 1 - 2**-24
    assert set(sample(log_probs, uniforms).tolist()) == {2, 5}


def test_draws_follow_the_probabilities() -> None:
    log_probs = torch.tensor([[0.1, 0.6, 0.3]]).log().expand(20_000, 3).contiguous()
    drawn = sample(log_probs, torch.rand(20_000, generator=torch.Generator().manual_seed(3)))
    shares = drawn.bincount(minlength=3) / 20_000
    torch.testing.assert_close(shares, torch.tensor([0.1, 0.6, 0.3]), atol=0.015, rtol=0)
