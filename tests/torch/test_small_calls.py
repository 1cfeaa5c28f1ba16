"""Small problems: transforms of torch, and padding that is infinite."""

import pytest

torch = pytest.importorskip("torch", reason="the layers need the extra 'torch'")

from kernpool.torch import GaussianSimilarity, attention_pool, dispatch

INF, NAN = torch.inf, torch.nan
double = {"dtype": torch.float64}


@pytest.mark.parametrize("columns", [1, 3])
def test_transforms_of_small_calls(columns, generator):
    similarity = GaussianSimilarity(0.7, **double)
    query, key, value = (torch.tensor(generator.normal(size=(2, 5, wide))) for wide in (columns, columns, 1))

    def total(query, key, value):
        return attention_pool(query, key, value, similarity=similarity).sum()

    leaves = [tensor[0].clone().requires_grad_() for tensor in (query, key, value)]
    slopes = torch.func.vmap(torch.func.grad(total))(query, key, value)
    torch.testing.assert_close(slopes[0], torch.autograd.grad(total(*leaves), leaves[0])[0])


@pytest.mark.parametrize("condition", ["is_causal", "exclude_self"])
@pytest.mark.parametrize("algorithm", ["auto", "blocks", "dense", "fused"])
@pytest.mark.parametrize("number", [INF, NAN])
def test_infinite_padding_and_a_linear_map(algorithm, number, condition, generator, monkeypatch):
    """Of a key that conditions leave out together; zero times infinity must not enter the gradient of the map."""
    monkeypatch.setattr(dispatch, "TINY", 0)
    similarity = GaussianSimilarity(0.7, form="linear", size=2, **double)
    query, key, value = (torch.tensor(generator.normal(size=(4, wide))) for wide in (2, 2, 1))
    mask = torch.ones(4, 4, dtype=torch.bool)
    allowed = mask.tril() if condition == "is_causal" else mask.tril(-1) | mask.triu(1)
    mask[:, 2] = ~allowed[:, 2]
    key[2], value[2] = number, number
    key.requires_grad_()
    attention_pool(
        query, key, value, mask, similarity=similarity, algorithm=algorithm, **{condition: True}
    ).sum().backward()
    assert torch.isfinite(similarity.map.grad).all()
    assert torch.isfinite(key.grad).all()
    expected = key.grad[[0, 1, 3]], similarity.map.grad.clone()
    similarity.zero_grad()
    kept = [0, 1, 3]
    rest = key.detach()[kept].requires_grad_()
    attention_pool(
        query, rest, value[kept], allowed[:, kept], similarity=similarity, algorithm=algorithm
    ).sum().backward()
    for one, other in zip(expected, (rest.grad, similarity.map.grad), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)
    if algorithm == "fused":
        pooled = attention_pool(query, key, value, similarity=similarity, algorithm=algorithm)
        assert torch.isnan(pooled).all()  # without the mask, the key is included
