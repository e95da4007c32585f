import torch
from torch.nn.functional import embedding_bag

import hotloop
from hotloop.train.networks import BITS, SPREAD, UNUSED, ActorCritic, SumOfEntries, TokenBag, default_network
from hotloop.train.normalize import row_shape
from hotloop.train.settings import TrainSettings


def network_for(target: str, **given: object) -> ActorCritic:
    batch = hotloop.make(target, num_envs=2, impl="reference")
    return default_network(batch.spec, row_shape(batch), TrainSettings(**given))  # type: ignore[arg-type]


def test_vectors_are_read_by_a_plain_network() -> None:
    network = network_for("prospector")
    logits, values, memory = network(torch.randn(5, 260))
    assert logits.shape == (5, 69)
    assert values.shape == (5,)
    assert memory is None
    assert network.trunk[0].in_features == 260


def test_tokens_are_read_by_a_bag_of_embeddings() -> None:
    network = network_for("grid/toy")
    assert isinstance(network.encoder, TokenBag)
    logits, values, _ = network(torch.zeros(5, 200, 3, dtype=torch.uint8))
    assert logits.shape == (5, 9)
    assert values.shape == (5,)


def test_a_fresh_policy_is_nearly_uniform() -> None:
    logits, _, _ = network_for("prospector")(torch.randn(50, 260))
    probabilities = logits.softmax(-1)
    assert probabilities.max() < 2 / 69


def test_how_many_threads_there_are_decides_no_weight() -> None:
    before = torch.get_num_threads()
    made = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        made.append(network_for("prospector", seed=3))
        assert torch.get_num_threads() == threads
    torch.set_num_threads(before)
    for one, *others in zip(*(network.parameters() for network in made), strict=True):
        assert all(torch.equal(one, other) for other in others)


def test_the_seed_alone_decides_the_weights() -> None:
    torch.manual_seed(1)
    one = network_for("prospector", seed=3)
    torch.manual_seed(2)
    other, third = network_for("prospector", seed=3), network_for("prospector", seed=4)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert not torch.equal(one.trunk[0].weight, third.trunk[0].weight)


def test_steps_together_are_steps_one_by_one() -> None:
    network = network_for("prospector", lstm=16)
    seen = torch.randn(4, 3, 260)
    begins = torch.zeros(4, 3, dtype=torch.bool)
    begins[2, 1] = True
    memory = network.first_memory(3, torch.device("cpu"))
    together = network(seen, memory, begins)
    logits, values = [], []
    for time in range(4):
        one, value, memory = network(seen[time : time + 1], memory, begins[time : time + 1])
        logits.append(one)
        values.append(value)
    torch.testing.assert_close(together[0], torch.cat(logits))
    torch.testing.assert_close(together[1], torch.cat(values))
    torch.testing.assert_close(together[2], memory)


def test_a_memory_forgets_where_an_episode_begins_and_only_there() -> None:
    network = network_for("prospector", lstm=16)
    seen = torch.randn(1, 2, 260)
    empty = network.first_memory(2, torch.device("cpu"))
    full = (torch.randn(2, 16), torch.randn(2, 16))
    fresh = network(seen, empty, torch.zeros(1, 2, dtype=torch.bool))[1]
    told = network(seen, full, torch.tensor([[True, False]]))[1]
    torch.testing.assert_close(told[0, 0], fresh[0, 0])
    assert not torch.allclose(told[0, 1], fresh[0, 1])


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
