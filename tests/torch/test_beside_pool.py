"""Where the layers and `kernpool.pool` differ on purpose: what the docstrings of both say, row by row."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the layers need the extra 'torch'")

from kernpool import EmptyWindowWarning, get_kernel, pool
from kernpool.kernels import BUILT_IN
from kernpool.torch import (
    AdditiveSimilarity,
    BilinearSimilarity,
    DotProductSimilarity,
    GaussianSimilarity,
    KernelSimilarity,
    attention_pool,
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


def pooled_by(route, tensors, similarity, **conditions):
    if route == "weights":
        return attention_pool(*tensors, similarity=similarity, return_weights=True, **conditions)[0]
    return attention_pool(*tensors, similarity=similarity, algorithm=route, **conditions)


@pytest.mark.covering
@pytest.mark.parametrize("wrong", [torch.inf, -torch.inf, torch.nan])
@pytest.mark.parametrize(("name", "route"), WAYS)
def test_a_key_or_query_that_is_no_number_makes_nan(name, route, wrong):
    """At least of the queries that see it, at most of its sequence; and every way to pool agrees."""
    similarity = SIMILARITIES[name]()
    for place in ("key", "query", "value"):
        query, key, value = make(2)
        {"key": key, "query": query, "value": value}[place][0, 3, 1] = wrong
        found = pooled_by(route, (query, key, value), similarity)
        seeing = slice(3, 4) if place == "query" else slice(None)
        if place == "value":
            assert not torch.isfinite(found[0, :, 1]).any()
        else:
            assert torch.isnan(found[0, seeing]).all(), place
        assert torch.isfinite(found[1]).all(), place


@pytest.mark.parametrize(("name", "route"), WAYS)
@pytest.mark.parametrize("condition", ["mask", "lengths", "causal"])
@pytest.mark.parametrize("anything", [(torch.inf, torch.nan, -torch.inf), (1e30, 1e30, -1e30)])
def test_what_takes_no_part_may_be_anything(name, route, condition, anything):
    """Keys that no query sees, and queries that see no key; gradients are finite, too."""
    similarity, (query, key, value) = SIMILARITIES[name](), make(2)
    if (route, condition) == ("fused", "lengths") and name in ("dot product", "bilinear"):
        pytest.skip("torch's own attention knows no lengths")
    seen = torch.ones(2, 5, 6, dtype=torch.bool)
    seen[0, :, 3:], seen[1, 2] = False, False
    conditions = {
        "mask": {"attn_mask": seen},
        "lengths": {"valid_lens": torch.tensor([[3] * 5, [6, 6, 0, 6, 6]])},
        "causal": {"is_causal": True},
    }[condition]
    hidden = [key[:, 5], value[:, 5]] if condition == "causal" else [key[0, 3:], value[0, 3:], query[1, 2]]
    expected = attention_pool(query, key, value, similarity=similarity, algorithm="dense", **conditions)
    for tensor, wrong in zip(hidden, anything, strict=False):
        tensor[:] = wrong
    tensors = [tensor.requires_grad_() for tensor in (query, key, value)]
    found = pooled_by(route, tensors, similarity, **conditions)
    torch.testing.assert_close(found, expected)
    found.sum().backward()
    maps = similarity.parameters() if route != "fused" else ()  # which map padding as well, to infinity
    assert all(torch.isfinite(each.grad).all() for each in (*tensors, *maps))


@pytest.mark.parametrize("algorithm", ["dense", "fused"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kernel", [name for name in BUILT_IN if get_kernel(name).is_compact])
def test_empty_windows(kernel, masked, algorithm):
    """NaN and a warning there, zero with a gradient of zero here; `empty="zero"` is what the layers do."""
    query, key, value = np.array([[0.1], [9.0]]), np.array([[0.0], [0.5]]), np.array([[3.0], [5.0]])
    mask = np.array([[True, False], [True, True]]) if masked else None
    options = {"kernel": kernel, "bandwidth": 1.0, "attn_mask": mask}
    with pytest.warns(EmptyWindowWarning):
        by_pool = pool(query, key, value, **options)
    assert np.isnan(by_pool[1]).all()
    tensors = [torch.tensor(array, requires_grad=True) for array in (query, key, value)]
    similarity, mask = KernelSimilarity(kernel, dtype=torch.float64), None if mask is None else torch.tensor(mask)
    by_layer = attention_pool(*tensors, mask, similarity=similarity, algorithm=algorithm)
    np.testing.assert_allclose(by_layer.detach(), pool(query, key, value, empty="zero", **options), rtol=1e-12)
    assert by_layer[1] == 0
    by_layer[1].sum().backward()
    assert not any(tensor.grad.any() for tensor in (*tensors, similarity.log_bandwidth))
