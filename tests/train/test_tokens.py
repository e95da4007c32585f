import torch
from torch.nn.functional import embedding_bag

from hotloop.train.networks import BITS, SPREAD, UNUSED, SumOfEntries, TokenBag


def some_tokens(rows: int = 9, tokens: int = 6) -> torch.Tensor:
    """Random tokens, of which each row uses a number of the first, the last row none."""
    generator = torch.Generator().manual_seed(2)
    found = torch.randint(250, (rows, tokens, 3), generator=generator, dtype=torch.uint8)
    for row in range(rows):
        found[row, (row * 5) % (tokens + 1) :] = UNUSED
    found[-1] = UNUSED
    return found


def filled(width: int = 4) -> TokenBag:
    bag = TokenBag(width)
    with torch.no_grad():
        bag.table.normal_(generator=torch.Generator().manual_seed(3))
    return bag


def test_a_row_is_the_sum_of_its_tokens_embeddings() -> None:
    bag, tokens = filled(), some_tokens()
    for row, found in zip(tokens.tolist(), bag(tokens), strict=True):
        total = torch.zeros(4)
        for location, feature, value in row:
            if location != UNUSED:
                code = (location << 16 | feature << 8 | value) * SPREAD % 2**32
                total += bag.table[code >> (32 - BITS)]
        torch.testing.assert_close(found, total.relu())


def test_a_row_without_tokens_is_nothing() -> None:
    assert filled()(some_tokens())[-1].tolist() == [0.0] * 4


def test_the_order_of_tokens_does_not_matter() -> None:
    bag, tokens = filled(), some_tokens()
    torch.testing.assert_close(bag(tokens), bag(tokens.flip(1)))


def test_a_different_value_reads_differently() -> None:
    bag = filled()
    one = torch.tensor([[[10, 3, 7]]], dtype=torch.uint8)
    other = torch.tensor([[[10, 3, 8]]], dtype=torch.uint8)
    assert not torch.equal(bag(one), bag(other))


def test_the_gradient_is_torchs_own() -> None:
    table = torch.randn(1 << BITS, 3, requires_grad=True)
    twin = table.detach().clone().requires_grad_()
    keys = torch.randint(40, (30,))
    counts = torch.tensor([5, 0, 12, 13])
    weights = torch.randn(4, 3)
    (SumOfEntries.apply(table, keys, counts) * weights).sum().backward()
    (embedding_bag(keys, twin, counts.cumsum(0) - counts, mode="sum") * weights).sum().backward()
    assert table.grad is not None
    torch.testing.assert_close(table.grad, twin.grad)
    assert table.grad.count_nonzero() == keys.unique().numel() * 3
