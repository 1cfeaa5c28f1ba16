"""The memory: what it holds after appending and forgetting, what it pools to, and that nothing is lost."""

import copy

import pytest

torch = pytest.importorskip("torch", reason="the layers need the extra 'torch'")

from kernpool import pool
from kernpool.torch import AttentionPooling, GaussianSimilarity, KernelSimilarity, KeyValueMemory, attention_pool
from tests.support.together import often, together


def gaussian(width=0.7):
    return GaussianSimilarity(width, dtype=torch.float64)


def made(**options):
    return KeyValueMemory(2, 1, pooling=AttentionPooling(gaussian()), dtype=torch.float64, **options)


@pytest.fixture
def rows(generator):
    return torch.tensor(generator.normal(size=(50, 2))), torch.tensor(generator.normal(size=(50, 1)))


@pytest.fixture
def query(generator):
    return torch.tensor(generator.normal(size=(6, 2)))


@pytest.mark.parametrize("steps", [[50], [1] * 50, [7, 0, 3, 40], [0, 50], [30, 5, 5, 5, 5]])
@pytest.mark.parametrize("capacity", [1, 6, 50, 80, None])
def test_rows_are_the_same_however_they_come_and_the_oldest_make_room(steps, capacity, rows, query):
    memory, start = made(capacity=capacity), 0
    for step in steps:
        memory.append(*(tensor[start : start + step] for tensor in rows))
        start += step
        kept = start if capacity is None else min(start, capacity)
        assert len(memory) == kept
        key, value = (tensor[start - kept : start] for tensor in rows)
        assert torch.equal(memory.key, key)
        assert torch.equal(memory.value, value)
    assert memory.age.tolist() == list(range(kept - 1, -1, -1))
    expected = pool(query.numpy(), key.numpy(), value.numpy(), bandwidth=0.7)
    torch.testing.assert_close(memory(query).detach(), torch.tensor(expected), rtol=0, atol=1e-12)


def test_the_reserve_stays_small(rows):
    memory = made(capacity=10)
    for _ in range(40):
        memory.append(rows[0][:3], rows[1][:3])
    assert len(memory._keys) <= 20


def test_rows_are_forgotten_by_count_and_by_mask(rows):
    memory = made()
    memory.append(*rows)
    memory.evict(10)
    assert torch.equal(memory.key, rows[0][10:])
    mask = torch.arange(40) % 3 == 0
    memory.evict(mask)
    assert torch.equal(memory.value, rows[1][10:][~mask])
    assert torch.equal(memory.age, torch.arange(39, -1, -1)[~mask])  # ages count what was appended, not what is left
    memory.append(rows[0][:1], rows[1][:1])
    assert torch.equal(memory.age[:-1], torch.arange(40, 0, -1)[~mask])
    memory.evict(len(memory))
    assert len(memory) == 0
    memory.append(*rows)
    memory.reset()
    assert len(memory) == 0
    memory.append(rows[0][:2], rows[1][:2])
    assert memory.age.tolist() == [1, 0]


def test_an_empty_memory_gives_zeros(query):
    memory = made(half_life=3.0)
    query.requires_grad_()
    pooled, weights = memory(query, return_weights=True)
    assert torch.equal(pooled, torch.zeros(6, 1, dtype=torch.float64))
    assert weights.shape == (6, 0)
    pooled.sum().backward()
    assert query.grad.eq(0).all()


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_decay_is_a_weight_of_one_half_per_half_life(kernel, rows, query):
    similarity = KernelSimilarity(kernel, 0.7, dtype=torch.float64)
    memory = made(half_life=4.0)
    memory.append(*rows)
    memory.evict(torch.arange(50) % 5 == 1)
    kept = torch.arange(50) % 5 != 1
    weight = 0.5 ** (torch.arange(49, -1, -1).double() / 4.0)[kept]
    expected = pool(
        query.numpy(),
        rows[0][kept].numpy(),
        rows[1][kept].numpy(),
        kernel=kernel,
        bandwidth=0.7,
        key_weight=weight.numpy(),
        empty="zero",
    )
    found = memory(query, similarity=similarity).detach()
    torch.testing.assert_close(found, torch.tensor(expected), rtol=0, atol=1e-12)


def test_what_is_copied_in_is_a_copy(rows, query):
    memory = made()
    key, value = rows[0].clone().requires_grad_(), rows[1].clone()
    memory.append(key, value)
    before = memory(query)
    with torch.no_grad():
        key.zero_()
        value.zero_()
    assert torch.equal(memory(query), before)
    assert not memory.key.requires_grad


def test_appending_between_forward_and_backward(rows, query):
    """An online learner predicts, remembers, and then steps."""
    memory = made(capacity=30)
    memory.append(rows[0][:20], rows[1][:20])
    query.requires_grad_()
    loss = memory(query).square().sum()
    expected = torch.autograd.grad(
        attention_pool(query, rows[0][:20], rows[1][:20], similarity=memory.pooling.similarity).square().sum(),
        [query, *memory.parameters()],
    )
    for i in range(20, 45):
        memory.append(rows[0][i : i + 1], rows[1][i : i + 1])
    memory.evict(3)
    loss.backward()
    torch.testing.assert_close(query.grad, expected[0])
    torch.testing.assert_close(memory.pooling.similarity.log_bandwidth.grad, expected[1])


def test_rows_remembered_in_inference_mode_can_be_trained_over(rows, query):
    memory = made()
    with torch.inference_mode():
        memory.append(*rows)
        memory.evict(torch.arange(50) < 2)
        memory(query)
    memory.append(rows[0][:1], rows[1][:1])
    memory(query.requires_grad_()).sum().backward()
    assert torch.isfinite(query.grad).all()


@pytest.mark.parametrize("kept", [0, 3, 80])
def test_state_loads_into_a_memory_of_another_size(kept, rows, query, tmp_path):
    memory = made(half_life=9.0)
    memory.append(*rows)
    memory.evict(torch.arange(50) % 4 == 0)
    torch.save(memory.state_dict(), tmp_path / "memory.pt")
    other = made(half_life=9.0)
    other.append(torch.ones(kept, 2).double(), torch.ones(kept, 1).double())
    assert str(other.load_state_dict(torch.load(tmp_path / "memory.pt", weights_only=True))) == (
        "<All keys matched successfully>"
    )
    assert torch.equal(other(query), memory(query))
    for one in (memory, other):
        one.append(rows[0][:2], rows[1][:2])
    assert torch.equal(other.age, memory.age)


def test_state_within_a_larger_module_and_a_smaller_capacity(rows):
    module = torch.nn.ModuleDict({"memory": made()})
    module["memory"].append(*rows)
    state = module.state_dict()
    names = {f"memory.{name}" for name in ("key", "value", "position", "appended", "pooling.similarity.log_bandwidth")}
    assert set(state) == names
    assert state["memory.key"].untyped_storage().nbytes() == 50 * 2 * 8  # without the reserve
    small = torch.nn.ModuleDict({"memory": made(capacity=5)})
    small.load_state_dict(state)
    assert torch.equal(small["memory"].key, rows[0][-5:])
    assert len(state["memory.key"]) == 50  # the caller's dictionary is left alone
    assert set(state) == names


def changed(state, **changes):
    """Return a state with some entries changed by a function of their tensor, or left out (None)."""
    new = {name: change and change(state[name].clone()) for name, change in changes.items()}
    return {name: tensor for name, tensor in (state | new).items() if tensor is not None}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"key": lambda rows: rows.index_fill(0, torch.tensor([7]), torch.nan)}, "key holds NaN or infinity in row 7"),
        ({"value": lambda rows: -rows / 0.0}, "value holds NaN or infinity in row 0"),
        ({"value": lambda rows: rows.to(torch.complex64)}, "value must hold floating-point numbers"),
        ({"key": lambda rows: rows.long()}, "key must hold floating-point numbers"),
        ({"value": lambda rows: rows[:-1]}, "there are 50 keys, 49 values and 50 positions"),
        ({"value": lambda rows: rows[:, 0]}, r"value must have shape \(rows, 1\)"),
        ({"position": lambda at: at.flip(0)}, "position must increase"),
        ({"position": lambda at: at // 2}, "position must increase"),
        ({"position": lambda at: at - 1}, "position must increase from 0"),
        ({"position": lambda at: at + 1}, "less than appended"),
        ({"position": lambda at: at.index_fill(0, torch.tensor([49]), 2**62)}, "less than appended"),
        ({"position": lambda at: at[:, None]}, r"position must have shape \(rows,\)"),
        ({"position": lambda at: at.double()}, "position must hold integers"),
        ({"appended": lambda count: count - 1}, "less than appended"),
        ({"appended": lambda _: torch.tensor(2**60)}, "less than appended"),
        ({"appended": lambda _: torch.tensor(torch.nan)}, "appended must hold integers"),
        ({"appended": lambda _: torch.tensor([50, 50])}, "be one number"),
        ({"key": lambda rows: rows.to_sparse()}, "key must be a dense tensor"),
        ({"key": lambda rows: rows[:, :1]}, r"key must have shape \(rows, 2\), got \(50, 1\)"),
        ({"position": None}, r'Missing key.*"position"'),
    ],
)
def test_a_state_is_refused_that_no_appending_leaves(changes, message, rows, query):
    saved, memory = made(), made(half_life=8.0)
    saved.append(*rows)
    memory.append(rows[0][:9] + 1.0, rows[1][:9])
    before, pooled = memory.state_dict(), memory(query)
    with pytest.raises(RuntimeError, match=message):
        memory.load_state_dict(changed(saved.state_dict(), **changes))
    assert all(torch.equal(tensor, before[name]) for name, tensor in memory.state_dict().items())
    assert torch.equal(memory(query), pooled)


def test_a_state_is_refused_that_a_lower_precision_makes_infinite(rows):
    saved, memory = made(), KeyValueMemory(2, 1, dtype=torch.float16)
    saved.append(rows[0] * 1e6, rows[1])
    with pytest.raises(RuntimeError, match="key holds NaN or infinity"):
        memory.load_state_dict(saved.state_dict(), strict=False)
    assert len(memory) == 0


def test_entries_of_another_module_are_told():
    with pytest.raises(RuntimeError, match=r'Unexpected key.*"other"'):
        made().load_state_dict(made().state_dict() | {"other": torch.zeros(1)})


def test_a_state_after_forgetting_loads(rows):
    saved, memory = made(capacity=20), made()
    saved.append(*rows)
    saved.evict(torch.arange(20) % 3 == 1)
    memory.load_state_dict(saved.state_dict())
    assert torch.equal(memory.age, saved.age)
    saved.evict(len(saved))
    memory.load_state_dict(saved.state_dict())
    assert len(memory) == 0


def test_it_moves_and_copies_as_a_module(rows, query):
    memory = made(half_life=8.0)
    memory.append(*rows)
    expected = memory(query)
    reference = copy.deepcopy(memory)
    reference.append(*rows)
    assert len(memory) == 50
    memory.half()
    assert memory.key.dtype == memory.value.dtype == torch.float16
    assert memory.age.dtype == torch.int64
    torch.testing.assert_close(memory(query.half()).double(), expected, rtol=0, atol=0.02)
    memory.append(rows[0].half(), rows[1].half())
    assert len(memory) == 100
    assert memory.extra_repr() == "key_size=2, value_size=1, rows=100, half_life=8.0"


@pytest.mark.parametrize(
    ("key", "value", "error", "message"),
    [
        (torch.zeros(3, 2), torch.zeros(3, 1).double(), TypeError, "key is in torch.float32, the memory in torch.flo"),
        (torch.zeros(3, 2).double(), torch.zeros(3, 1).half(), TypeError, "value is in torch.float16"),
        (torch.zeros(3, 4).double(), torch.zeros(3, 1).double(), ValueError, r"key must have shape \(rows, 2\), got"),
        (torch.zeros(2).double(), torch.zeros(1, 1).double(), ValueError, r"a single row is key\[None\]"),
        (torch.zeros(3, 2).double(), torch.zeros(4, 1).double(), ValueError, "key has 3 rows and value has 4"),
        (torch.zeros(3, 2).double(), [[1.0]] * 3, TypeError, "value must be a tensor, got list"),
        (torch.tensor([[0.0, 1.0], [torch.nan, 1.0]]).double(), torch.zeros(2, 1).double(), ValueError, "in row 1"),
        (torch.zeros(1, 2).double(), torch.tensor([[torch.inf]]).double(), ValueError, "value holds NaN or infinity"),
        (torch.zeros(1, 2, device="meta").double(), torch.zeros(1, 1).double(), ValueError, "key is on meta"),
    ],
)
def test_bad_rows_change_nothing(key, value, error, message, rows):
    memory = made(capacity=50)
    memory.append(*rows)
    with pytest.raises(error, match=message):
        memory.append(key, value)
    assert torch.equal(memory.key, rows[0])
    assert memory.age[-1] == 0


@pytest.mark.parametrize(
    ("rows_to_evict", "error", "message"),
    [
        (51, ValueError, "cannot evict 51 rows of 50"),
        (-1, ValueError, "cannot evict -1 rows"),
        (True, TypeError, "got bool"),
        (torch.zeros(50), TypeError, "got a tensor of torch.float32"),
        (torch.zeros(49).bool(), ValueError, r"rows must have shape \(50,\)"),
    ],
)
def test_bad_evictions(rows_to_evict, error, message, rows):
    memory = made()
    memory.append(*rows)
    with pytest.raises(error, match=message):
        memory.evict(rows_to_evict)
    assert len(memory) == 50


def test_bad_configuration(query):
    narrow = AttentionPooling(GaussianSimilarity(), algorithm="fused")
    planes = AttentionPooling(GaussianSimilarity(), degree=1)
    for options, error, message in (
        ({"key_size": 0}, ValueError, "key_size must be at least 1, got 0"),
        ({"capacity": 0}, ValueError, "capacity must be at least 1, got 0"),
        ({"half_life": 0.0}, ValueError, "half_life must be a positive, finite number of rows"),
        ({"pooling": GaussianSimilarity()}, TypeError, "pooling must be an AttentionPooling, got GaussianSimilarity"),
        ({"half_life": 3.0, "pooling": narrow}, ValueError, "half_life adds to the logits"),
        ({"half_life": 3.0, "pooling": planes}, ValueError, "half_life adds to the logits"),
    ):
        with pytest.raises(error, match=message):
            KeyValueMemory(**({"key_size": 2, "value_size": 1} | options))
    memory = KeyValueMemory(2, 1)
    with pytest.raises(ValueError, match="nothing to pool with"):
        memory(query.float())
    with pytest.raises(TypeError, match=r"query in torch.float64, key in torch.float32"):
        memory(query, similarity=GaussianSimilarity())


def test_threads_that_change_one_memory_lose_nothing():
    """Rows of one thread are ones, of another minus ones, in pairs of which an answer never sees one alone."""
    memory = KeyValueMemory(1, 1, pooling=AttentionPooling(gaussian()), dtype=torch.float64)
    key, value = torch.zeros(2, 1).double(), torch.tensor([[1.0], [-1.0]]).double()
    seen = []

    def append():
        for _ in range(100):
            memory.append(key, value)

    def forget():
        for _ in range(50):
            memory.evict(min(2, len(memory)))

    def ask():
        seen.extend((memory(key[:1]).item(), len(memory) % 2) for _ in range(100))

    with often():
        together(append, forget, append, ask)
    assert all(abs(mean) < 1e-12 and odd == 0 for mean, odd in seen)
    assert 300 <= len(memory) <= 400  # some were to be forgotten before any came
    assert torch.equal(memory.value, value.repeat(len(memory) // 2, 1))
    assert (memory.age[:-1] > memory.age[1:]).all()
