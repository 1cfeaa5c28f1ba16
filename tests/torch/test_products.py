"""Gaussian similarities as dot products of centred points: right to the rounding of differences, and differentiable."""

import pytest

torch = pytest.importorskip("torch", reason="the layers need the extra 'torch'")

from kernpool.torch import AttentionPooling, GaussianSimilarity, Request, attention_pool, choose_route, dispatch

FORMS = {
    "shared": {},
    "per_feature": {"form": "per_feature", "size": 2},
    "linear": {"form": "linear", "size": 2},
}


def differences(query, key, value, similarity):
    return torch.softmax(similarity(query, key), dim=-1).to(value.dtype) @ value


@pytest.mark.parametrize("columns", [1, 2, 8, 64])
@pytest.mark.parametrize("spread", [1, 1.25, 3, 10, 100, 1000])
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("rows", [100, 400])
def test_errors_are_at_most_twice_those_of_differences(rows, half, spread, columns):
    """A thousand widths from the origin, with padding that is farther off, over seeds."""
    squares, ways = torch.zeros(2), set()
    for seed in range(4):
        generator = torch.Generator().manual_seed(seed)
        query, key, value = (torch.randn(rows, wide, generator=generator) for wide in (columns, columns, 4))
        query, key = (points * spread / columns**0.5 + 1000.0 for points in (query, key))
        similarity, padded = GaussianSimilarity(1.0), [torch.cat([rows, 1e6 + rows[:3]]) for rows in (key, value)]
        right = differences(*(tensor.double() for tensor in (query, key, value)), similarity)
        with torch.autocast("cpu", enabled=half):
            found = attention_pool(query, *padded, similarity=similarity, valid_lens=torch.tensor(rows))
            alone = attention_pool(query, key, value, similarity=similarity)
            others = differences(query, key, value, similarity)
        ways.add(choose_route(Request.check(query, key, value, similarity=similarity)).way)
        errors = [(pooled.double() - right).abs().max() for pooled in (found, alone, others)]
        squares += torch.stack([max(errors[:2]), errors[2]]).float() ** 2
    assert ways <= {"products", "attention"}
    assert squares[0] <= 4 * squares[1] + 4 * (2 * torch.finfo(found.dtype).eps) ** 2  # where one key takes all


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


def test_a_program_is_right_for_other_spreads_than_that_of_its_example(generator):
    layer, near = AttentionPooling(GaussianSimilarity(1.0)), torch.tensor(generator.normal(size=(3, 99, 2))).float()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for spread in (1.0, 1e3):
        rows = near * spread + 1e3
        torch.testing.assert_close(compiled(*rows), layer(*rows), rtol=1e-6, atol=1e-6)
