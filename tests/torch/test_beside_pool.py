"""Where the layers and `kernpool.pool` differ on purpose: what the docstrings of both say, row by row."""

import inspect

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the layers need the extra 'torch'")

from kernpool import EmptyWindowWarning, pool
from kernpool.torch import (
    AdditiveSimilarity,
    AttentionPooling,
    BilinearSimilarity,
    DotProductSimilarity,
    GaussianSimilarity,
    KernelSimilarity,
    attention_pool,
    dispatch,
)

SIMILARITIES = {
    "gaussian": lambda: GaussianSimilarity(0.9),
    "linear": lambda: KernelSimilarity("logistic", 0.8, form="linear", size=3),
    "epanechnikov": lambda: KernelSimilarity("epanechnikov", 9.0),
    "boxcar": lambda: KernelSimilarity("boxcar", 9.0),
    "dot product": DotProductSimilarity,
    "bilinear": lambda: BilinearSimilarity(3, 3),
    "additive": lambda: AdditiveSimilarity(3, 3, 4),
}
ROUTES = ("dense", "fused", "blocks", "weights")
# By the engine or torch's own attention, in blocks of queries, densely, or with weights; additive scores do not stream.
WAYS = [(name, route) for name in SIMILARITIES for route in ROUTES if (name, route) != ("additive", "fused")]


def make(*batch, rows=5, keys=6):
    generator = torch.Generator().manual_seed(0)
    shapes = ((rows, 3), (keys, 3), (keys, 2))
    return [torch.randn(*batch, *shape, generator=generator) for shape in shapes]


def pooled_by(route, tensors, similarity, monkeypatch, **conditions):
    if route == "blocks":
        monkeypatch.setattr(dispatch, "FEW_NUMBERS", 1 << 60)
        monkeypatch.setattr(dispatch, "MOST_LOGITS", 0)
        monkeypatch.setattr(dispatch, "_is_unmodified", lambda _: False)
    if route == "weights":
        return attention_pool(*tensors, similarity=similarity, return_weights=True, **conditions)[0]
    return attention_pool(
        *tensors, similarity=similarity, algorithm="auto" if route == "blocks" else route, **conditions
    )


@pytest.mark.covering
@pytest.mark.parametrize("wrong", [torch.inf, -torch.inf, torch.nan])
@pytest.mark.parametrize(("name", "route"), WAYS)
def test_a_key_or_query_that_is_no_number_makes_nan(name, route, wrong, monkeypatch):
    """At least of the queries that see it, at most of its sequence; and every way to pool agrees."""
    similarity = SIMILARITIES[name]()
    for place in ("key", "query"):
        query, key, value = make(2)
        (key if place == "key" else query)[0, 3, 1] = wrong
        found = pooled_by(route, (query, key, value), similarity, monkeypatch)
        seeing = slice(None) if place == "key" else slice(3, 4)
        assert torch.isnan(found[0, seeing]).all(), place
        assert torch.isfinite(found[1]).all(), place


@pytest.mark.parametrize(("name", "route"), WAYS)
def test_infinite_padding_takes_no_part(name, route, monkeypatch):
    similarity, (query, key, value) = SIMILARITIES[name](), make(2)
    seen = torch.ones(2, 5, 6, dtype=torch.bool)
    seen[0, :, 3], seen[1, 2] = False, False
    expected = attention_pool(query, key, value, seen, similarity=similarity, algorithm="dense")
    key[0, 3], query[1, 2] = torch.inf, -torch.inf
    found = pooled_by(route, (query, key, value), similarity, monkeypatch, attn_mask=seen)
    torch.testing.assert_close(found, expected)


def test_pool_refuses_what_is_no_number():
    for wrong in (np.inf, -np.inf, np.nan):
        with pytest.raises(ValueError, match=r"key holds -?(inf|nan) at index \(1"):
            pool([0.0], [0.0, wrong], [1.0, 2.0])
        with pytest.raises(ValueError, match=r"query holds -?(inf|nan) at index \(0"):
            pool([wrong], [0.0, 1.0], [1.0, 2.0])


@pytest.mark.parametrize("algorithm", ["dense", "fused"])
def test_empty_windows(algorithm):
    """NaN and a warning there, zero with a gradient of zero here; `empty="zero"` is what the layers do."""
    query, key, value = np.array([[0.1], [9.0]]), np.array([[0.0], [0.5]]), np.array([[3.0], [5.0]])
    options = {"kernel": "epanechnikov", "bandwidth": 1.0}
    with pytest.warns(EmptyWindowWarning):
        by_pool = pool(query, key, value, **options)
    assert np.isnan(by_pool[1]).all()
    tensors = [torch.tensor(array, requires_grad=True) for array in (query, key, value)]
    similarity = KernelSimilarity("epanechnikov", 1.0, dtype=torch.float64)
    by_layer = attention_pool(*tensors, similarity=similarity, algorithm=algorithm)
    np.testing.assert_allclose(by_layer.detach(), pool(query, key, value, empty="zero", **options), rtol=1e-12)
    by_layer[1].sum().backward()
    assert not any(tensor.grad.any() for tensor in (*tensors, similarity.log_bandwidth))


@pytest.mark.parametrize("algorithm", ["auto", "dense", "fused"])
def test_nothing_to_pool(algorithm):
    """Errors there; here no queries are no rows, no keys are zeros, and without columns all keys are alike."""
    shapes = {"queries": ((0, 1), (2, 1), (2, 1)), "keys": ((2, 1), (0, 1), (0, 1))}
    shapes |= {"columns": ((2, 0), (3, 0), (3, 1))}
    expected = {"queries": np.empty((0, 1)), "keys": np.zeros((2, 1)), "columns": np.ones((2, 1))}
    for what, of in shapes.items():
        arrays = [np.ones(shape) for shape in of]
        with pytest.raises(ValueError, match="is empty"):
            pool(*arrays)
        tensors = [torch.tensor(array) for array in arrays]
        for similarity in (GaussianSimilarity(dtype=torch.float64), DotProductSimilarity()):
            found = attention_pool(*tensors, similarity=similarity, algorithm=algorithm)
            np.testing.assert_array_equal(found.detach(), expected[what])


def table_in(docstring):
    """The lines between the rules of the table of differences."""
    lines = [line.strip() for line in inspect.cleandoc(docstring).splitlines()]
    rules = [i for i, line in enumerate(lines) if line.startswith("=====")]
    assert len(rules) == 3
    return lines[rules[0] : rules[2] + 1]


def test_both_docstrings_say_the_same():
    tables = [table_in(each.__doc__) for each in (pool, attention_pool, AttentionPooling)]
    assert tables[0] == tables[1] == tables[2]
    for word in ("infinite or NaN", "empty window", "no queries", "no keys", "no columns"):
        assert any(word in line for line in tables[0]), word
