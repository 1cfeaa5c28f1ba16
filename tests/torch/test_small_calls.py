"""Small problems are pooled as if all numbers were ordinary, and again with care where they are not."""

import pytest

torch = pytest.importorskip("torch", reason="the layers need the extra 'torch'")

from kernpool.torch import GaussianSimilarity, KernelSimilarity, algorithms, attention_pool

INF, NAN = torch.inf, torch.nan
double = {"dtype": torch.float64}


def with_entry(number, which):
    def change(tensors):
        tensors[which][1, 0] = number
        return tensors

    return change


SITUATIONS = {
    "ordinary": (lambda: GaussianSimilarity(0.7, **double), lambda tensors: tensors, {}),
    "causal": (lambda: GaussianSimilarity(0.7, **double), lambda tensors: tensors, {"is_causal": True}),
    "leave-one-out": (lambda: GaussianSimilarity(0.7, **double), lambda tensors: tensors, {"exclude_self": True}),
    "infinite key": (lambda: GaussianSimilarity(0.7, **double), with_entry(INF, 1), {}),
    "infinite query": (lambda: KernelSimilarity("constant", **double), with_entry(INF, 0), {}),
    "NaN": (lambda: GaussianSimilarity(0.7, **double), with_entry(NAN, 2), {}),
    "far query": (lambda: KernelSimilarity("tricube", 2.0, **double), with_entry(1e3, 0), {}),
    "no earlier key": (
        lambda: GaussianSimilarity(0.7, **double), lambda tensors: tensors, {"is_causal": True, "exclude_self": True}
    ),
    "half precision": (
        lambda: GaussianSimilarity(0.7), lambda tensors: [tensor.half() for tensor in tensors], {}
    ),
}  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS)
def test_what_is_not_ordinary_is_pooled_with_care(situation, generator, monkeypatch):
    make_similarity, change, options = SITUATIONS[situation]
    torch.manual_seed(0)
    similarity = make_similarity()

    def outcome():
        leaves = [tensor.clone().requires_grad_() for tensor in tensors]
        similarity.zero_grad()
        pooled = attention_pool(*leaves, similarity=similarity, **options)
        torch.sin(pooled).sum().backward()
        return [pooled.detach(), *(leaf.grad for leaf in (*leaves, *similarity.parameters()))]

    tensors = change([torch.tensor(generator.normal(size=(6, columns))) for columns in (2, 2, 3)])
    found = outcome()
    monkeypatch.setattr(algorithms, "_pool_ordinary", lambda _: None)
    for one, other in zip(found, outcome(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12, equal_nan=True)
    assert bool(torch.isnan(found[0]).any()) is situation.startswith(("infinite key", "infinite q", "NaN"))


@pytest.mark.parametrize("columns", [1, 3])
def test_transforms_of_small_calls(columns, generator):
    similarity = GaussianSimilarity(0.7, **double)
    query, key, value = (torch.tensor(generator.normal(size=(2, 5, wide))) for wide in (columns, columns, 1))

    def total(query, key, value):
        return attention_pool(query, key, value, similarity=similarity).sum()

    leaves = [tensor[0].clone().requires_grad_() for tensor in (query, key, value)]
    slopes = torch.func.vmap(torch.func.grad(total))(query, key, value)
    torch.testing.assert_close(slopes[0], torch.autograd.grad(total(*leaves), leaves[0])[0])


@pytest.mark.parametrize("algorithm", ["dense", "fused"])
@pytest.mark.parametrize("number", [INF, NAN])
def test_infinite_padding_and_a_linear_map(algorithm, number, generator):
    """Zero times infinity must not enter the gradient of the map."""
    similarity = GaussianSimilarity(0.7, form="linear", size=2, **double)
    query, key, value = (torch.tensor(generator.normal(size=(4, wide))) for wide in (2, 2, 1))
    mask = torch.ones(4, 4, dtype=torch.bool)
    mask[:, 2] = False
    key[2], value[2] = number, number
    key.requires_grad_()
    attention_pool(query, key, value, mask, similarity=similarity, algorithm=algorithm).sum().backward()
    assert torch.isfinite(similarity.map.grad).all()
    assert torch.isfinite(key.grad).all()
    expected = key.grad[[0, 1, 3]], similarity.map.grad.clone()
    similarity.zero_grad()
    rest = key.detach()[[0, 1, 3]].requires_grad_()
    attention_pool(query, rest, value[[0, 1, 3]], similarity=similarity, algorithm=algorithm).sum().backward()
    for one, other in zip(expected, (rest.grad, similarity.map.grad), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)
    if algorithm == "fused":
        pooled = attention_pool(query, key, value, similarity=similarity, algorithm=algorithm)
        assert torch.isnan(pooled).all()  # without the mask, the key is included
