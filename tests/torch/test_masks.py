"""Masks, dropout and bad input of the torch layers."""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the layers need the extra 'torch'")

from kernpool import pool
from kernpool.torch import (
    AdditiveSimilarity,
    AttentionPooling,
    BilinearSimilarity,
    DotProductSimilarity,
    GaussianSimilarity,
    KernelSimilarity,
    MultiheadPooling,
    attention_pool,
    dispatch,
    masked_softmax,
)


def tensors(generator, *shapes):
    return [torch.tensor(generator.normal(size=shape)) for shape in shapes]


def gaussian():
    return GaussianSimilarity(dtype=torch.float64)


def test_causal_pooling_is_that_of_pool_and_the_first_query_without_itself_gets_zero(generator):
    x, y = generator.normal(size=(7, 2)), generator.normal(size=(7, 1))
    layer = AttentionPooling(gaussian())
    for is_causal, exclude_self in ((False, True), (True, False), (True, True)):
        mask = np.tri(7, k=0 if is_causal else 7) > np.eye(7) * exclude_self
        options = {"is_causal": is_causal, "exclude_self": exclude_self}
        found = layer(*map(torch.tensor, (x, x, y)), **options).detach().numpy()
        np.testing.assert_allclose(found, pool(x, x, y, attn_mask=mask, empty="zero"), rtol=0, atol=1e-12)
    assert found[0] == 0


def test_masks_combine(generator):
    """All at once is the one mask of what takes part in each."""
    query, key, value = tensors(generator, (2, 6, 2), (2, 6, 2), (2, 6, 1))
    by_mask, lengths = torch.tensor(generator.random((2, 6, 6)) < 0.7), torch.tensor([4, 6])
    bias = torch.tensor(generator.normal(size=(6, 6))).masked_fill(~by_mask[0], -torch.inf)
    rows, columns = torch.arange(6)[:, None], torch.arange(6)
    for attn_mask in (by_mask, bias):
        allowed = attn_mask if attn_mask.dtype == torch.bool else attn_mask > -torch.inf
        allowed = allowed & (columns < lengths[:, None, None]) & (columns < rows)
        together = allowed if attn_mask.dtype == torch.bool else attn_mask.where(allowed, -torch.inf)
        found = attention_pool(
            query, key, value, attn_mask, similarity=gaussian(), valid_lens=lengths, is_causal=True, exclude_self=True
        )
        torch.testing.assert_close(found, attention_pool(query, key, value, together, similarity=gaussian()))


def test_dropout_is_for_training_only(generator):
    query, key, value = tensors(generator, (4, 2), (400, 2), (400, 1))
    layer = AttentionPooling(gaussian(), dropout=0.25)
    plain = AttentionPooling(gaussian())(query, key, value)
    layer.eval()
    assert torch.equal(layer(query, key, value), plain)
    layer.train()
    torch.manual_seed(0)
    pooled, weights = layer(query, key, value, return_weights=True)
    assert not torch.equal(pooled, plain)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(4, dtype=torch.float64))  # as they are before dropout
    # On average nothing changes: the mean over many draws is within five of its standard errors.
    draws = torch.stack([layer(query, key, value) for _ in range(400)])
    error = draws.std(dim=0) / 20
    assert torch.all((draws.mean(dim=0) - plain).abs() < 5 * error)
    assert AttentionPooling(gaussian(), dropout=1.0)(query, key, value).eq(0).all()
    layer = AttentionPooling(KernelSimilarity("epanechnikov", dtype=torch.float64), dropout=0.5)
    query = torch.tensor([[0.0], [9.0]], dtype=torch.float64, requires_grad=True)
    layer(query, key := torch.linspace(-1, 1, 20, dtype=torch.float64)[:, None], key)[0].backward()
    assert (query.grad[:, 0] != 0).tolist() == [True, False]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"attn_mask": torch.ones(2, 5)}, ValueError, r"one mask per sequence is attn_mask\[:, None, :\]"),
        ({"attn_mask": torch.ones(4, 1, 5)}, ValueError, "does not broadcast"),
        ({"query": torch.zeros(1, 3), "attn_mask": torch.ones(4, 5).bool()}, ValueError, "does not broadcast"),
        ({"attn_mask": torch.ones(4, 5).long()}, TypeError, r"use attn_mask.bool\(\)"),
        ({"attn_mask": [[True]]}, TypeError, "attn_mask must be a dense tensor, got list"),
        ({"attn_mask": torch.ones(4, 5, device="meta")}, ValueError, "query on cpu, .*attn_mask on meta"),
        ({"key": np.zeros((2, 5, 3))}, TypeError, "key must be a dense tensor, got ndarray"),
        ({"key": torch.zeros(2, 5, 3).long()}, TypeError, "one floating-point dtype, got .*key in torch.int64"),
        ({"value": torch.zeros(2, 5, 3).double()}, TypeError, "query in torch.float32, .*value in torch.float64"),
        ({"value": torch.zeros(2, 5, 3, device="meta")}, ValueError, "key on cpu, value on meta; move them with"),
        (
            {name: torch.zeros(2, 4, 3, device="meta") for name in ("query", "value")}
            | {"key": torch.zeros(2, 4, 3, device="meta", dtype=torch.float64)},
            TypeError,
            r"key in torch.float64",
        ),
        ({"key": torch.zeros(3, 5, 3)}, ValueError, r"leading dimensions broadcast, got \(2, 4, 3\), \(3, 5, 3\)"),
        ({"value": torch.zeros(2, 9, 1)}, ValueError, r"got \(2, 4, 3\), \(2, 5, 3\), \(2, 9, 1\)"),
        ({"key": torch.zeros(2, 5, 4)}, ValueError, "expected queries of size 3 and keys of size 3"),
        ({"valid_lens": [1.5]}, ValueError, r"valid_lens must be integers, got torch.float32; use valid_lens.long\(\)"),
        ({"valid_lens": [True, False]}, ValueError, "pass a boolean mask as attn_mask"),
        ({"valid_lens": [1, 2, 3]}, ValueError, r"valid_lens must have shape \(2,\) .* got \(3,\)"),
        ({"valid_lens": [2, -1]}, ValueError, "valid_lens must be between 0 and the number of keys, 5, got -1"),
        ({"valid_lens": np.ma.array([3, 9], mask=[False, True])}, TypeError, "valid_lens is a masked array"),
        ({"query": torch.zeros(2, 2, 4, 3), "valid_lens": [5, 3]}, ValueError, r"is valid_lens\[:, None\]"),
        ({"exclude_self": True}, ValueError, "got 4 queries and 5 keys"),
        ({name: torch.zeros(3) for name in ("query", "key", "value")}, ValueError, r"column is x\[:, None\]"),
    ],
)
def test_bad_input(change, error, message):
    arguments = {"query": torch.zeros(2, 4, 3), "key": torch.zeros(2, 5, 3), "value": torch.zeros(2, 5, 3)} | change
    with pytest.raises(error, match=message):
        AttentionPooling(GaussianSimilarity())(**arguments)


@pytest.mark.parametrize(
    "call",
    [
        lambda: AttentionPooling(GaussianSimilarity(), dropout=-0.1),
        lambda: attention_pool(*[torch.zeros(2, 1)] * 3, similarity=GaussianSimilarity(), dropout_p=float("nan")),
        lambda: MultiheadPooling(4, 2, dropout=2.0),
    ],
)
def test_dropout_is_a_probability(call):
    with pytest.raises(ValueError, match="dropout must be a probability between 0 and 1"):
        call()


@pytest.mark.parametrize("few", [0, 1 << 60])
@pytest.mark.parametrize("shape", [(2, 1), (1, 3), (2, 3), (2, 1, 1), (2, 1, 4), (1, 3, 1)])
def test_lengths_broadcast_over_heads(shape, few, monkeypatch, generator):
    """By the engine, and densely, with gradients; the mask that they mean is made by NumPy."""
    monkeypatch.setattr(dispatch, "FEW_PAIRS", few)
    inputs = [tensor.requires_grad_() for tensor in tensors(generator, (2, 3, 4, 2), (2, 3, 5, 2), (2, 3, 5, 1))]
    lengths = torch.tensor(generator.integers(0, 6, shape))
    spread = np.broadcast_to(lengths.numpy() if len(shape) == 3 else lengths.numpy()[..., None], (2, 3, 4))
    mask = torch.tensor(np.arange(5) < spread[..., None])
    layer, found = AttentionPooling(gaussian()), []
    for condition in ({"valid_lens": lengths}, {"attn_mask": mask}):
        pooled = layer(*inputs, **condition)
        found.append((pooled.detach(), *torch.autograd.grad(pooled.square().sum(), [*inputs, *layer.parameters()])))
    torch.testing.assert_close(*found, rtol=1e-12, atol=1e-14)


ATTENTION_ARGUMENTS = {
    "need_weights": "use return_weights=",
    "causal": "use is_causal=",
    "scale": r"use DotProductSimilarity\(scale=\)",
    "mask": "use attn_mask=",
    "dropout_p": "use dropout= of the constructor",
}


@pytest.mark.parametrize(("name", "remedy"), ATTENTION_ARGUMENTS.items())
def test_arguments_of_other_attention_have_a_remedy(name, remedy):
    inputs, layer = [torch.zeros(2, 5, 1)] * 3, AttentionPooling(GaussianSimilarity())
    with pytest.raises(TypeError, match=rf"^AttentionPooling.forward\(\) has no argument '{name}'; .*{remedy}"):
        layer(*inputs, **{name: True})
    if name not in ("dropout_p", "scale"):  # which the function has
        with pytest.raises(TypeError, match=rf"^attention_pool\(\) has no argument '{name}'; .*{remedy}"):
            attention_pool(*inputs, similarity=layer.similarity, **{name: True})


def test_a_traced_layer_is_the_layer(generator):
    query, key = (tensor.float() for tensor in tensors(generator, (2, 4, 2), (2, 5, 2)))
    layer = AttentionPooling(GaussianSimilarity())
    inputs, expected = (query, key, key), layer(query, key, key)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that torch.jit is deprecated, and that shapes are traced as constants
        traced = torch.jit.trace(layer, inputs)
    for other in (traced, torch.export.export(layer, inputs, strict=True).module()):
        torch.testing.assert_close(other(*inputs), expected)


def test_empty_rows_of_the_softmax_are_zeros_with_a_gradient_of_zero():
    """By a mask, or by logits of minus infinity; NaN is not nothing."""
    for logits, mask in (
        ([[0.5, 1.0, 3.0], [3.0, 2.0, 1.0]], torch.tensor([[True, True, False], [False] * 3])),
        ([[0.5, 1.0, -torch.inf], [-torch.inf] * 3], None),
    ):
        logits = torch.tensor(logits, requires_grad=True)
        weights = masked_softmax(logits, mask)
        weights.square().sum().backward()
        assert weights[1].tolist() == [0, 0, 0]
        assert (logits.grad != 0).tolist() == [[True, True, False], [False] * 3]
    assert torch.isnan(masked_softmax(torch.tensor([[torch.nan, -torch.inf]]))).all()
    for wrong, error, message in (
        ([[6], [-1]], ValueError, "must be between 0 and the number of keys, 5, got"),
        (np.ma.array([1, 2], mask=[False, True]), TypeError, "valid is a masked array"),
    ):
        with pytest.raises(error, match=message):
            masked_softmax(torch.zeros(2, 1, 5), torch.tensor(wrong) if isinstance(wrong, list) else wrong)


@pytest.mark.parametrize("few", [0, 1 << 60])
def test_lengths_and_empty_windows_compile_in_one_graph(few, monkeypatch):
    """By the operator, and densely."""
    monkeypatch.setattr(dispatch, "FEW_PAIRS", few)
    layer = AttentionPooling(KernelSimilarity("epanechnikov", dtype=torch.float64))
    query, key = torch.tensor([[[0.0], [9.0], [0.3]]]).double(), torch.tensor([[[0.1], [0.3], [0.2]]]).double()
    options, found = {"valid_lens": torch.tensor([2]), "is_causal": True, "exclude_self": True}, []
    for function in (layer, torch.compile(layer, fullgraph=True, backend="aot_eager")):
        layer.zero_grad()
        pooled = function(query, key, key, **options)
        pooled.square().sum().backward()
        found.append((pooled.detach(), layer.similarity.log_bandwidth.grad.clone()))
    torch.testing.assert_close(*found, rtol=1e-12, atol=0)


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided, torch.sparse_coo])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")
def test_nested_and_sparse_tensors_are_refused_with_the_remedy(layout):
    plain = torch.ones(2, 5, 2)
    if layout == torch.sparse_coo:
        wrong, words = plain.to_sparse(), "must be a dense tensor, got .*to_dense"
    else:
        wrong = torch.nested.nested_tensor([torch.ones(3, 2), torch.zeros(5, 2)], layout=layout)
        words = "got a nested tensor; pad it with .* as valid_lens"
    for takes_tensors in (
        KernelSimilarity("laplace"),
        DotProductSimilarity(),
        AdditiveSimilarity(2, 2, 3),
        BilinearSimilarity(2, 2),
        lambda query, key: attention_pool(query, key, query, similarity=gaussian()),
        lambda query, key: masked_softmax(query if key is plain else key),
        lambda query, key: MultiheadPooling(2, 1)(query, key, query),
        lambda query, key: attention_pool(plain, plain, plain, query if key is plain else key, similarity=gaussian()),
    ):
        for given in ((wrong, plain), (plain, wrong)):
            with pytest.raises(TypeError, match=words):
                takes_tensors(*given)
