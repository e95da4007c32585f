"""Policies over every kind of action are read as torch's own distributions read them."""

import pytest
import torch
from torch import Tensor
from torch.distributions import Categorical, Normal

from hotloop.core.world import Acts
from hotloop.train.actions import NUMBERED, Actions, actions_of

RANDOM = torch.Generator().manual_seed(1)


def outputs(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=RANDOM)


def drawn(actions: Actions, said: Tensor, masks: Tensor | None = None) -> tuple[Tensor, Tensor]:
    uniforms = torch.rand(len(said), *actions.shape, generator=RANDOM)
    return actions.draw(said, masks, uniforms)


def test_several_choices_are_as_likely_as_each_of_them_together() -> None:
    actions, said = actions_of(Acts(choices=(2, 3))), outputs(400, 5)
    chosen, likely = drawn(actions, said)
    theirs = [Categorical(logits=said[:, :2]), Categorical(logits=said[:, 2:])]
    torch.testing.assert_close(likely, sum(each.log_prob(chosen[:, k]) for k, each in enumerate(theirs)))
    found = actions.read(said, chosen)
    torch.testing.assert_close(found[0], likely)
    torch.testing.assert_close(found[1], sum(each.entropy() for each in theirs))


def test_real_numbers_are_normally_distributed() -> None:
    actions, said = actions_of(Acts(low=(-1.0, -1.0), high=(1.0, 1.0))), outputs(4_000, 4)
    chosen, likely = drawn(actions, said)
    theirs = Normal(said[:, :2], said[:, 2:].exp())
    torch.testing.assert_close(likely, theirs.log_prob(chosen).sum(-1), rtol=1e-3, atol=1e-3)
    found = actions.read(said, chosen)
    torch.testing.assert_close(found[0], theirs.log_prob(chosen).sum(-1))
    torch.testing.assert_close(found[1], theirs.entropy().sum(-1))
    standard = (chosen - said[:, :2]) / said[:, 2:].exp()
    assert abs(float(standard.mean())) < 0.05
    assert float(standard.std()) == pytest.approx(1, abs=0.05)
    assert torch.equal(actions.likeliest(said, None), said[:, :2])


def test_no_uniform_number_makes_an_action_infinite() -> None:
    actions = actions_of(Acts(low=(-1.0,), high=(1.0,)))
    chosen, likely = actions.draw(torch.zeros(2, 2), None, torch.tensor([[0.0], [1 - 2**-24]]))
    assert torch.isfinite(chosen).all()
    assert torch.isfinite(likely).all()


@pytest.mark.parametrize("actions", [NUMBERED, actions_of(Acts(choices=(2, 3)))])
def test_what_a_mask_forbids_is_never_chosen(actions: Actions) -> None:
    masks = torch.tensor([True, False, True, False, True]).expand(500, 5)
    chosen, _ = drawn(actions, outputs(500, 5), masks)
    allowed = {0, 2, 4} if not actions.shape else {(0, 0), (0, 2)}
    assert {tuple(each) if actions.shape else each for each in chosen.tolist()} == allowed
    best = actions.likeliest(outputs(500, 5), masks)
    assert {tuple(each) if actions.shape else each for each in best.tolist()} <= allowed
