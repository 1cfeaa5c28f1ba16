"""The torch layers: the numbers of `pool`, masks, gradients, and training that selects the bandwidth."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

torch = pytest.importorskip("torch", reason="the layers need the extra 'torch'")

from kernpool import NadarayaWatsonRegressor, pool, pooling_weights
from kernpool.datasets import make_sine_power
from kernpool.torch import (
    AdditiveSimilarity,
    AttentionPooling,
    DotProductSimilarity,
    GaussianSimilarity,
    attention_pool,
    masked_softmax,
)

PARAMETERIZATIONS = ["log_bandwidth", "inverse_bandwidth"]


def gaussian_layer(width=1.0, parameterization="inverse_bandwidth"):
    return AttentionPooling(GaussianSimilarity(width, parameterization=parameterization, dtype=torch.float64))


def columns(*arrays):
    return [torch.tensor(array)[:, None] for array in arrays]


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("keys", [50, 3000, 40_000])
@pytest.mark.parametrize("route", ["dense", "weights", "fused"])
def test_values_far_from_zero_keep_their_digits(route, keys, rows, generator):
    """One column near 10 000: rounding is that of single precision, not of a sum over the keys."""
    arrays = [generator.normal(size=(size, 1)) for size in (rows, keys)]
    arrays.append(np.column_stack([generator.normal(size=keys), generator.normal(10_000.0, size=keys)]))
    query, key, value = (array.astype(np.float32) for array in arrays)
    tensors = [torch.from_numpy(array).requires_grad_() for array in (query, key, value)]
    more = {"return_weights": True} if route == "weights" else {"algorithm": route}
    pooled = attention_pool(*tensors, similarity=GaussianSimilarity(3.0, dtype=torch.float32), **more)
    pooled = pooled[0] if route == "weights" else pooled
    expected = pool(*(array.astype(np.float64) for array in (query, key, value)), bandwidth=3.0)
    assert_allclose(pooled.detach().numpy(), expected, rtol=2e-6, atol=2e-6)
    pooled[:, 1].sum().backward()
    slope = tensors[0].grad.numpy()
    assert_allclose(slope, attention_slope(query, key, value[:, 1], 3.0), rtol=0, atol=2e-5)
    assert_allclose(tensors[2].grad.sum().item(), rows, rtol=1e-5)


def attention_slope(query, key, value, width):
    """The derivative of the weighted mean by the query: the covariance of keys and values over the squared width."""
    query, key, value = query.astype(np.float64), key.astype(np.float64)[:, 0], value.astype(np.float64)
    weights = pooling_weights(query, key[:, None], bandwidth=width)
    mean = weights @ value
    return np.sum(weights * (key - query) * (value - mean[:, None]), axis=1, keepdims=True) / width**2


@pytest.mark.parametrize("parameterization", PARAMETERIZATIONS)
def test_training_to_convergence_is_bandwidth_selection(parameterization):
    sample = make_sine_power(random_state=0)
    x, y = columns(sample.x_train, sample.y_train)
    layer = gaussian_layer(1.0, parameterization)
    optimizer = torch.optim.LBFGS(
        layer.parameters(), max_iter=200, tolerance_grad=1e-12, tolerance_change=1e-14, line_search_fn="strong_wolfe"
    )

    def closure():
        optimizer.zero_grad()
        loss = torch.mean((layer(x, x, y, exclude_self=True) - y) ** 2)
        loss.backward()
        return loss

    optimizer.step(closure)
    model = NadarayaWatsonRegressor(bandwidth="loo").fit(sample.x_train[:, None], sample.y_train)
    assert 1 / layer.similarity.bandwidth == pytest.approx(1 / model.bandwidth_[0], rel=1e-4)
    assert closure().item() == pytest.approx(model.loo_error_, rel=1e-9)


def test_gradients(generator):
    query, key, value = (torch.tensor(generator.normal(size=(2, 4, 2)), requires_grad=True) for _ in range(3))
    mask = torch.tensor(generator.random((2, 4, 4)) < 0.6)
    mask[0, 1] = False
    for parameterization in PARAMETERIZATIONS:
        layer = gaussian_layer(0.8, parameterization)
        assert torch.autograd.gradcheck(lambda q, k, v, layer=layer: layer(q, k, v, mask), (query, key, value))
    additive = AttentionPooling(AdditiveSimilarity(2, 2, 3, dtype=torch.float64))
    assert torch.autograd.gradcheck(lambda q, k, v: additive(q, k, v, mask), (query, key, value))


@pytest.mark.parametrize("keys", [3, 5, 9])
def test_dot_product_is_that_of_torch(keys, generator):
    shapes = (3, 5, 4), (3, keys, 4), (3, keys, 2), (5, keys)
    query, key, value, bias = (torch.tensor(generator.normal(size=shape)) for shape in shapes)
    bias[2, 1] = -torch.inf
    for options in ({"attn_mask": bias}, {"is_causal": True}):
        expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, **options)
        found = attention_pool(query, key, value, similarity=DotProductSimilarity(), **options)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_masked_softmax(dtype):
    logits = torch.tensor([[[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]] * 2, dtype=dtype)
    before = logits.clone()
    by_sequence = masked_softmax(logits, torch.tensor([2, 0]))
    torch.testing.assert_close(by_sequence[0, 0], torch.softmax(torch.tensor([1.0, 2.0, -torch.inf], dtype=dtype), -1))
    assert by_sequence[1].eq(0).all()
    by_query = masked_softmax(logits, torch.tensor([[1, 3], [0, 2]]))
    assert by_query[0, 0].tolist() == [1, 0, 0]
    assert by_query[1, 0].tolist() == [0, 0, 0]
    mask = torch.tensor([[[True, True, False]], [[False, False, False]]])
    torch.testing.assert_close(masked_softmax(logits, mask), by_sequence)
    assert torch.equal(logits, before)
    torch.testing.assert_close(masked_softmax(logits), torch.softmax(logits, -1))
    assert masked_softmax(torch.zeros(1, 1, 2), [1]).tolist() == [[[1.0, 0.0]]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_reaches_as_far_as_single(dtype):
    """Squares of half precision overflow at 256 bandwidths, and then every weight would be NaN."""
    query, key = torch.tensor([[1000.0]], dtype=dtype), torch.tensor([[0.0], [1.0]], dtype=dtype)
    found = AttentionPooling(GaussianSimilarity())(query, key, torch.tensor([[10.0], [20.0]], dtype=dtype))
    assert found.dtype == dtype
    assert found.item() in (15.0, 20.0)  # bfloat16 cannot tell 999 from 1000
