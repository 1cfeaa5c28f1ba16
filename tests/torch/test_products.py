"""Gaussian similarities as dot products of centred points: right to the rounding of differences, and differentiable."""

import pytest

torch = pytest.importorskip("torch", reason="the layers need the extra 'torch'")

from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from kernpool.torch import AttentionPooling, GaussianSimilarity, Request, attention_pool, choose_route, dispatch

FORMS = {
    "shared": {},
    "per_feature": {"form": "per_feature", "size": 2},
    "linear": {"form": "linear", "size": 2},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("condition", ["none", "lengths", "bias", "leave-one-out", "attention", "double"])
def test_gradients(condition, form, generator, monkeypatch):
    """Of every input and of the widths, once and twice where torch's own attention does not stream."""
    similarity = GaussianSimilarity(1.5, dtype=torch.float64, **FORMS[form])
    (name,) = similarity.state_dict()
    leaves = [torch.tensor(generator.normal(size=(2, 4, 2))) for _ in range(3)]
    options = {
        "lengths": {"valid_lens": torch.tensor([2, 4])},
        "bias": {"attn_mask": torch.tensor(generator.normal(size=(4, 4)))},
        "leave-one-out": {"exclude_self": True},
    }.get(condition, {})
    monkeypatch.setattr(dispatch, "TINY", 0)
    if condition == "attention":
        monkeypatch.setattr(dispatch, "PAIRS_TO_STREAM", 0)
    layer = AttentionPooling(similarity)

    def pooled(query, key, value, widths):
        return torch.func.functional_call(layer, {f"similarity.{name}": widths}, (query, key, value), options)

    inputs = [leaf.requires_grad_() for leaf in (*leaves, *(each.detach().clone() for each in similarity.parameters()))]
    if condition == "double":  # as the gradients of the same numbers in double precision
        single = [(100.0 * leaf).detach().float().requires_grad_() for leaf in inputs[:3]]
        twice = [leaf.detach().double().requires_grad_() for leaf in single]
        for given in (single, twice):
            torch.sin(layer(*given)).sum().backward()
        for one, other in zip(single, twice, strict=True):
            torch.testing.assert_close(one.grad.double(), other.grad, rtol=1e-5, atol=1e-6)
        return
    assert choose_route(Request.check(*leaves, similarity=similarity, **options)).way in ("products", "attention")
    assert torch.autograd.gradcheck(pooled, inputs)
    if condition != "attention":
        assert torch.autograd.gradgradcheck(pooled, inputs)


@pytest.mark.parametrize("apart", [1.2, 3.7, 9e3, 0.3, 0.6])
@pytest.mark.parametrize("columns", [1, 8, 64])
def test_clusters(apart, columns, generator):
    """Two tight ones at so many widths from their mean, or one-hot rows: values, and gradients that nearly cancel."""
    rows, value = (torch.tensor(generator.normal(size=(60, wide))).float() for wide in (columns, 2))
    rows = rows * 0.05 + apart * (torch.arange(60)[:, None] % 2 * 2 - 1) * (torch.arange(columns) == 0)
    rows = 1e3 + (torch.eye(columns)[torch.arange(60) % columns] / apart if apart < 1 else rows)
    found = []
    for dtype in (torch.float32, torch.float64):
        similarity = GaussianSimilarity(1.0, dtype=dtype)
        leaves = [tensor.to(dtype, copy=True).requires_grad_() for tensor in (rows, rows, value)]
        pooled = attention_pool(*leaves, similarity=similarity)
        found.append([pooled, *torch.autograd.grad(pooled.sum(), [*leaves, *similarity.parameters()])])
    for single, right in zip(*found, strict=True):
        assert (single - right).abs().max() <= 4e-6 * (value.max() - value.min())


def test_numbers_near_the_largest():
    value = torch.full((600, 8), 6e4).half()
    value[::4] *= -1
    for rows in (4, 600):
        query = torch.zeros(rows, 1).half()
        assert attention_pool(query, query, value[:rows], similarity=GaussianSimilarity()).eq(3e4).all()
    far = torch.zeros(99, 1).index_fill(0, torch.tensor(0), 1e38)
    assert attention_pool(far, 0 * far, 1 + far, similarity=GaussianSimilarity(0.4))[0] == 0
    with FakeTensorMode(shape_env=ShapeEnv()):
        assert AttentionPooling(GaussianSimilarity())(*[torch.ones(99, 2)] * 3).shape == (99, 2)


def test_a_program_is_right_for_other_spreads_than_that_of_its_example(generator):
    layer, near = AttentionPooling(GaussianSimilarity(1.0)), torch.tensor(generator.normal(size=(3, 99, 2))).float()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for spread in (1.0, 1e3):
        rows = near * spread + 1e3
        torch.testing.assert_close(compiled(*rows), layer(*rows), rtol=1e-6, atol=1e-6)
