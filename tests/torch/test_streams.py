"""Whatever way a layer pools, its numbers and gradients are those of the dense layer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

torch = pytest.importorskip("torch", reason="the layers need the extra 'torch'")

from kernpool import LocalLinearRegressor, pool
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

double = {"dtype": torch.float64}
SIMILARITIES = {
    "shared": lambda: GaussianSimilarity(0.9, **double),
    "per_feature": lambda: KernelSimilarity("biweight", [2.5, 3.0, 4.0], form="per_feature", **double),
    "linear": lambda: KernelSimilarity("logistic", 0.8, form="linear", size=3, output_size=2, **double),
    "inverse": lambda: GaussianSimilarity(0.7, parameterization="inverse_bandwidth", **double),
    "dot product": DotProductSimilarity,
    "bilinear": lambda: BilinearSimilarity(3, 3, **double),
    "additive": lambda: AdditiveSimilarity(3, 3, 4, **double),
}


def make(generator, *batch, rows=6, keys=6, columns=3, values=2):
    shapes = ((rows, columns), (keys, columns), (keys, values))
    return [torch.tensor(generator.normal(size=(*batch, *shape))) for shape in shapes]


def conditions(generator, batch=2, rows=6, keys=6):
    table = torch.tensor(generator.random((batch, rows, keys)) < 0.6)
    table[0, 2], table[:, :, 4] = False, False
    added = torch.tensor(generator.normal(size=(rows, keys))).masked_fill(~table[1], -torch.inf)
    return {
        "none": {},
        "mask": {"attn_mask": table},
        "shared mask": {"attn_mask": table[0]},
        "mask with more dimensions": {"attn_mask": table.expand(3, batch, rows, keys)},
        "mask of one row": {"attn_mask": table[:, 1:2]},
        "mask of one row, alone": {"attn_mask": table[:, 1:2], "exclude_self": True, "is_causal": True},
        "mask of keys": {"attn_mask": table[1, 1]},
        "float mask": {"attn_mask": added},
        "lengths": {"valid_lens": torch.tensor([3, 0])},
        "lengths per query": {"valid_lens": torch.tensor(generator.integers(0, keys + 1, (batch, rows)))},
        "causal": {"is_causal": True},
        "alone": {"exclude_self": True},
        "strictly causal": {"is_causal": True, "exclude_self": True},
        "all": {"attn_mask": table, "is_causal": True, "valid_lens": torch.tensor([5, 4]), "exclude_self": True},
        "causal float mask": {"attn_mask": added, "is_causal": True},
    }


def outcome(tensors, similarity, **options):
    inputs = [tensor.clone().requires_grad_() for tensor in tensors]
    similarity.zero_grad()
    pooled = attention_pool(*inputs, similarity=similarity, **options)
    torch.sin(pooled).sum().backward()
    parameters = [parameter.grad.clone() for parameter in similarity.parameters()]
    return [pooled.detach(), *(tensor.grad for tensor in inputs), *parameters]


@pytest.mark.covering
@pytest.mark.parametrize("which", list(conditions(np.random.default_rng(0))))
@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("way", ["fused or torch", "blocks"])
def test_every_way_is_the_dense_layer(way, similarity, which, generator, monkeypatch):
    torch.manual_seed(0)
    tensors, options, module = make(generator, 2), conditions(generator)[which], SIMILARITIES[similarity]()
    expected = outcome(tensors, module, algorithm="dense", **options)
    if way == "blocks":
        monkeypatch.setattr("kernpool.torch.algorithms.BLOCK_BYTES", 8 * 80)
        options["algorithm"] = "blocks"
    else:
        monkeypatch.setattr(dispatch, "FEW_PAIRS", 0)
    found = outcome(tensors, module, **options)
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_dropout_in_blocks_drops_the_same_weights_in_both_passes(generator, monkeypatch):
    """Weights are made again for the gradient, with the random numbers of the first time."""
    monkeypatch.setattr("kernpool.torch.algorithms.BLOCK_BYTES", 8 * 40)
    query, key, value = make(generator, rows=8, keys=8)
    value.requires_grad_()
    similarity = GaussianSimilarity(0.9, **double)
    pooled = attention_pool(query, key, value, similarity=similarity, dropout_p=0.5, algorithm="blocks")
    slope = torch.tensor(generator.normal(size=pooled.shape))
    (gradient,) = torch.autograd.grad(pooled, value, slope)
    assert (gradient * value).sum().item() == pytest.approx((pooled * slope).sum().item())  # as it is linear
    whole = attention_pool(query, key, value, similarity=similarity, algorithm="blocks")
    assert not torch.allclose(pooled, whole)


@pytest.mark.parametrize(("columns", "offset"), [(1, 0.0), (3, 100.0), (20, 0.0), (20, 100.0)])
def test_large_problems_are_those_of_the_dense_layer(columns, offset, generator):
    """So large that loops are compiled, with queries that are the keys."""
    rows = 1100 if columns == 3 else 400
    x, y = generator.normal(size=(rows, columns)) + offset, generator.normal(size=(rows, 2))
    similarity = GaussianSimilarity(0.4 * columns**0.5, **double)
    dense, fused = (
        outcome(map(torch.tensor, (x, x, y)), similarity, exclude_self=True, algorithm=algorithm)
        for algorithm in ("dense", "fused")
    )
    for one, other in zip(dense, fused, strict=True):
        assert_allclose(other, one, rtol=1e-9, atol=1e-11)


def test_local_linear_layers(generator):
    X, y, new = generator.normal(size=(90, 2)), generator.normal(size=90), generator.normal(size=(20, 2))
    model = LocalLinearRegressor(bandwidth=[0.9, 1.4]).fit(X, y)
    similarity = GaussianSimilarity([0.9, 1.4], form="per_feature", **double)
    layer = AttentionPooling(similarity, degree=1)
    query, key, value = (torch.tensor(array) for array in (new, X, y[:, None]))
    pooled = layer(query, key, value)
    assert_allclose(pooled[:, 0].detach(), model.predict(new), rtol=0, atol=1e-10)
    alone = layer(key, key, value, exclude_self=True)
    error = torch.mean((alone - value) ** 2)
    assert error.item() == pytest.approx(model.leave_one_out().error, rel=1e-10)
    error.backward()
    step = 1e-6
    with torch.no_grad():
        similarity.log_bandwidth[0] += step
        higher = torch.mean((layer(key, key, value, exclude_self=True) - value) ** 2)
    assert similarity.log_bandwidth.grad[0].item() == pytest.approx((higher - error).item() / step, rel=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "quick"}, "algorithm must be one of 'auto', 'dense', 'fused', 'blocks', got 'quick'"),
        ({"degree": 2}, "degree must be 0"),
        ({"degree": 1, "return_weights": True}, "return_weights=True needs weights"),
        ({"degree": 1, "algorithm": "dense"}, "no dense layer"),
        ({"degree": 1, "algorithm": "blocks"}, "not 'blocks'"),
        ({"degree": 1, "similarity": DotProductSimilarity()}, "needs a similarity of distances, got DotProductSim"),
        ({"algorithm": "fused", "dropout_p": 0.5}, "dropout=0.5 needs the weights"),
        (
            {"algorithm": "fused", "similarity": AdditiveSimilarity(3, 3, 2, **double)},
            "AdditiveSimilarity is not one of",
        ),
        ({"algorithm": "fused", "attn_mask": torch.zeros(6, 6, **double)}, "the mask adds to the logits"),
        ({"degree": 1, "attn_mask": torch.zeros(6, 6, **double)}, "the mask adds to the logits"),
        ({"algorithm": "fused", "similarity": GaussianSimilarity([1.0, 2.0], form="per_feature")}, "size 2"),
    ],
)
def test_what_does_not_go_together(options, message, generator):
    with pytest.raises(ValueError, match=message):
        attention_pool(*make(generator), **{"similarity": GaussianSimilarity(1.0, **double), **options})


@pytest.mark.covering
@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("empty", [{"rows": 0}, {"keys": 0}, {"rows": 0, "keys": 0}, {"values": 0}])
@pytest.mark.parametrize("condition", ["none", "causal", "lengths", "mask", "float mask"])
def test_nothing_to_pool(empty, similarity, condition, generator, monkeypatch):
    """`pool` refuses it; here no queries are no rows, and no keys are zeros, with gradients of zero."""
    query, key, value = make(generator, 2, **empty)
    query = torch.full_like(query, torch.nan) if key.numel() == 0 else query
    rows, keys = query.shape[1], key.shape[1]
    options = {
        "none": {},
        "causal": {"is_causal": True},
        "lengths": {"valid_lens": torch.tensor([0, keys])},
        "mask": {"attn_mask": torch.ones(rows, keys, dtype=torch.bool)},
        "float mask": {"attn_mask": torch.zeros(rows, keys, **double)},
    }[condition]
    for few in (1 << 60, -1):  # densely, and in another way
        monkeypatch.setattr(dispatch, "FEW_PAIRS", few)
        found = outcome([query, key, value], SIMILARITIES[similarity](), **options)
        assert found[0].shape == (2, rows, value.shape[2])
        assert not any(tensor.any() for tensor in found[:4])
    arrays = [torch.nan_to_num(tensor)[0].numpy() for tensor in (query, key, value)]
    with pytest.raises(ValueError, match="is empty"):
        pool(*arrays)


@pytest.mark.parametrize("algorithm", ["auto", "dense", "fused"])
@pytest.mark.parametrize("similarity", ["shared", "dot product"])
def test_without_columns_all_keys_are_alike(algorithm, similarity):
    tensors = [torch.ones(shape, **double) for shape in ((2, 0), (3, 0), (3, 1))]
    found = attention_pool(*tensors, similarity=SIMILARITIES[similarity](), algorithm=algorithm)
    assert_array_equal(found.detach(), np.ones((2, 1)))
    with pytest.raises(ValueError, match="is empty"):
        pool(*(tensor.numpy() for tensor in tensors))


def test_what_users_change_is_what_they_get(generator):
    class Twice(GaussianSimilarity):
        def forward(self, query, key):
            return 2 * super().forward(query, key)

    tensors, similarity = make(generator, rows=300, keys=400), Twice(1.0, **double)
    narrower = attention_pool(*tensors, similarity=GaussianSimilarity(0.5**0.5, **double))
    assert_allclose(attention_pool(*tensors, similarity=similarity).detach(), narrower.detach(), rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="Twice is not one of kernpool"):
        attention_pool(*tensors, similarity=similarity, algorithm="fused")
    plain = GaussianSimilarity(1.0, **double)
    plain.register_forward_hook(lambda _module, _given, logits: 2 * logits)
    assert_allclose(attention_pool(*tensors, similarity=plain).detach(), narrower.detach(), rtol=0, atol=1e-12)


def test_autocast_gives_one_type_at_any_size(generator):
    for rows in (5, 300):
        tensors = [tensor.float() for tensor in make(generator, rows=rows, keys=rows)]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert attention_pool(*tensors, similarity=GaussianSimilarity()).dtype == torch.bfloat16
            query, key = (tensor.bfloat16() for tensor in tensors[:2])  # which then need not be in one precision
            found = attention_pool(query, key, torch.ones(rows, 1), similarity=GaussianSimilarity())
            torch.testing.assert_close(found.float(), torch.ones(rows, 1), rtol=1e-2, atol=0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("similarity", ["shared", "per_feature", "linear", "additive"])
def test_other_devices_go_in_blocks(similarity, generator, monkeypatch):
    monkeypatch.setattr(dispatch, "MOST_PAIRS", 0)
    module, tensors = SIMILARITIES[similarity](), make(generator)
    expected = outcome(tensors, module, algorithm="dense")
    found = outcome([tensor.cuda() for tensor in tensors], module.cuda())
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one.cpu(), other, rtol=1e-9, atol=1e-12)


EXPORTED = {
    "gaussian": (lambda: GaussianSimilarity(dtype=torch.float64), {}),
    "dot product": (DotProductSimilarity, {}),
    "fused": (lambda: GaussianSimilarity(dtype=torch.float64), {"algorithm": "fused"}),
    "planes": (lambda: GaussianSimilarity(dtype=torch.float64), {"degree": 1}),
}
CONDITIONS = {
    "all pairs": (lambda _rows, _keys: {}, {}),
    "causal": (lambda _rows, _keys: {"is_causal": True}, {"is_causal": None}),
    "a mask": (
        lambda rows, keys: {"attn_mask": torch.arange(rows)[:, None] % 3 != torch.arange(keys) % 3},
        {"attn_mask": {0: "n", 1: "m"}},
    ),
    "lengths": (lambda rows, keys: {"valid_lens": torch.arange(rows) % keys}, {"valid_lens": {0: "n"}}),
}


@pytest.mark.parametrize(
    ("similarity", "condition", "example"),
    [
        *((name, "all pairs", (4, 9)) for name in EXPORTED),
        *(("gaussian", condition, (4, 9)) for condition in CONDITIONS if condition != "all pairs"),
        ("dot product", "a mask", (4, 9)),
        ("gaussian", "all pairs", (300, 400)),
    ],
)
def test_an_exported_program_is_for_other_sizes(similarity, condition, example, generator):
    """Larger and smaller ones than that of its example, on the other side of where a layer pools in another way."""
    make_similarity, options = EXPORTED[similarity]
    conditions, sizes = CONDITIONS[condition]
    layer = AttentionPooling(make_similarity(), **options)

    def given(rows, keys):
        shapes = {"query": (rows, 2), "key": (keys, 2), "value": (keys, 3)}
        tensors = {name: torch.tensor(generator.normal(size=shape)) for name, shape in shapes.items()}
        return tensors | conditions(rows, keys)

    dims = {name: torch.export.Dim(name) for name in "nm"}
    dynamic = {"query": {0: "n"}, "key": {0: "m"}, "value": {0: "m"}} | sizes
    dynamic = {name: which and {axis: dims[n] for axis, n in which.items()} for name, which in dynamic.items()}
    program = torch.export.export(layer, (), given(*example), dynamic_shapes=dynamic).module()
    for rows, keys in ((300, 400), (2, 3), (17, 5)):
        asked = given(rows, keys)
        torch.testing.assert_close(program(**asked), layer(**asked), rtol=1e-10, atol=1e-12)
