"""Multi-head pooling with dot products is torch's MultiheadAttention; arguments of torch's attention mean the same."""

import copy

import pytest

torch = pytest.importorskip("torch", reason="the layers need the extra 'torch'")
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from kernpool.torch import DotProductSimilarity, GaussianSimilarity, MultiheadPooling, attention_pool

B, L, S, E, H = 3, 5, 7, 12, 4
PADDING = torch.arange(S) >= torch.tensor([[7], [4], [2]])
BANNED = torch.tensor([[(i + j) % 3 == 1 for j in range(S)] for i in range(L)])
PER_HEAD = torch.stack([BANNED.roll(shift, 1) for shift in range(B * H)])
MASKS = {
    "none": {},
    "padding": {"key_padding_mask": PADDING},
    "float padding": {"key_padding_mask": torch.zeros(B, S).masked_fill(PADDING, -torch.inf)},
    "mask": {"attn_mask": BANNED},
    "float mask": {"attn_mask": torch.linspace(-1, 1, L * S).reshape(L, S)},
    "mask per head": {"attn_mask": PER_HEAD},
    "float mask per head, padding": {
        "attn_mask": torch.where(PER_HEAD, -torch.inf, 0.3), "key_padding_mask": torch.zeros(B, S) - 0.1 * PADDING
    },
}  # fmt: skip


def make(**options):
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(E, H, **options)
    torch.manual_seed(0)
    ours = MultiheadPooling(E, H, **options)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)  # the same initial values
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def inputs(kdim=E, vdim=E, batch_first=True):
    generator = torch.Generator().manual_seed(1)
    tensors = [torch.randn(B, n, c, generator=generator) for n, c in ((L, E), (S, kdim), (S, vdim))]
    return [tensor if batch_first else tensor.transpose(0, 1) for tensor in tensors]


def outcome(layer, tensors, **options):
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    layer.zero_grad()
    pooled, weights = layer(*leaves, **options)
    torch.sin(pooled).sum().backward()
    found = [pooled.detach(), *(leaf.grad for leaf in leaves), *(p.grad.clone() for p in layer.parameters())]
    return found, weights


@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("need_weights", [True, False])
def test_dot_products_are_the_attention_of_torch(masks, need_weights):
    ours, theirs = make(batch_first=True)
    for average in (True, False):
        options = MASKS[masks] | {"need_weights": need_weights, "average_attn_weights": average}
        (found, weights), (expected, right) = (outcome(layer, inputs(), **options) for layer in (ours, theirs))
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6 * other.abs().max().clamp(1).item())
        assert (weights is None) is (not need_weights)
        if need_weights:
            torch.testing.assert_close(weights, right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "options", [{"bias": False}, {"kdim": 5, "vdim": 3, "batch_first": True}, {"kdim": 5, "bias": False}], ids=str
)
def test_sizes_and_layouts(options):
    ours, theirs = make(**options)
    sizes = {name: options[name] for name in ("kdim", "vdim", "batch_first") if name in options}
    tensors = inputs(**{"batch_first": False} | sizes)
    for one, other in zip(outcome(ours, tensors)[0], outcome(theirs, tensors)[0], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=2e-6)
    row = 0 if options.get("batch_first") else (slice(None), 0)
    alone = [tensor[row] for tensor in tensors]  # without a batch
    for one, other in zip(ours(*alone), theirs(*alone), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_causality_needs_no_mask_and_ignored_keys_give_the_bias():
    ours, theirs = make(batch_first=True)
    x = inputs()[0]
    later = torch.ones(L, L, dtype=torch.bool).triu(1)
    expected = theirs(x, x, x, attn_mask=later)[0]
    torch.testing.assert_close(ours(x, x, x, is_causal=True)[0], expected, rtol=1e-5, atol=1e-6)
    nothing = ours(x, x, x, key_padding_mask=torch.ones(B, L, dtype=torch.bool))[0]
    torch.testing.assert_close(nothing, ours.out_proj.bias.expand(B, L, E))
    ours._reset_parameters()
    alone = ours(x, x, x, exclude_self=True)[0]
    torch.testing.assert_close(alone, ours(x, x, x, attn_mask=torch.eye(L, dtype=torch.bool))[0])


def test_a_transformer_takes_it_in_training_and_evaluation():
    """Evaluation has a shortcut around the module, which would be dot products whatever the similarity is."""
    torch.manual_seed(0)
    block = nn.TransformerEncoderLayer(E, H, 8, dropout=0.0, batch_first=True)
    block.self_attn = MultiheadPooling(E, H, batch_first=True, similarity=GaussianSimilarity(0.3))
    x = inputs()[0]
    options = {"src_key_padding_mask": PADDING[:, :L]}
    trained = block(x, **options)
    with torch.no_grad():
        torch.testing.assert_close(block.eval()(x, **options), trained)
        torch.testing.assert_close(nn.TransformerEncoder(block, 1, enable_nested_tensor=False)(x, **options), trained)
    assert copy.deepcopy(block)(x, **options).equal(block(x, **options))


@pytest.mark.slow
def test_compiled_and_exported_with_sizes_that_change():
    layer = MultiheadPooling(E, H, batch_first=True, similarity=GaussianSimilarity(2.0))
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*inputs())[0], layer(*inputs())[0])
    n, m = torch.export.Dim("n"), torch.export.Dim("m")
    dynamic = {"query": {1: n}, "key": {1: m}, "value": {1: m}}
    named = dict(zip(dynamic, inputs(), strict=True))
    program = torch.export.export(layer, (), named, dynamic_shapes=dynamic).module()
    for rows, keys in ((4, 9), (600, 700)):
        given = {name: torch.randn(B, size, E) for name, size in zip(named, (rows, keys, keys), strict=True)}
        torch.testing.assert_close(program(**given)[0], layer(**given)[0], rtol=1e-4, atol=1e-5)


def test_lengths_are_padding():
    layer = MultiheadPooling(E, H, batch_first=True, similarity=GaussianSimilarity(2.0))
    assert list(layer.state_dict())[-1] == "similarity.log_bandwidth"
    assert nn.DataParallel(layer)(*inputs())[0].equal(layer(*inputs())[0])  # without devices it calls the module
    lengths = torch.tensor([7, 4, 2])
    found = layer(*inputs(), valid_lens=lengths)[0]
    torch.testing.assert_close(found, layer(*inputs(), key_padding_mask=PADDING)[0])
    torch.testing.assert_close(found, layer(*inputs(), valid_lens=lengths[:, None].expand(B, L))[0])


def test_scale_and_grouped_heads_are_those_of_torch():
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(2, heads, 5, 4, generator=generator) for heads in (6, 2, 2))
    found = attention_pool(query, key, value, similarity=DotProductSimilarity(), scale=0.7, enable_gqa=True)
    torch.testing.assert_close(found, scaled_dot_product_attention(query, key, value, scale=0.7, enable_gqa=True))
    gaussian = GaussianSimilarity(0.9)
    many = [tensor.repeat_interleave(3, 1) for tensor in (key, value)]
    grouped = attention_pool(query, key, value, similarity=gaussian, enable_gqa=True)
    torch.testing.assert_close(grouped, attention_pool(query, *many, similarity=gaussian))
    with pytest.raises(ValueError, match=r"scale=0\.7 is the factor of dot products, .* got GaussianSimilarity"):
        attention_pool(query, *many, similarity=gaussian, scale=0.7)
    with pytest.raises(ValueError, match="scale must be a finite number"):
        DotProductSimilarity(float("nan"))
    with pytest.raises(ValueError, match="algorithm must be one of"):
        MultiheadPooling(E, H, algorithm="quick")
    with pytest.raises(ValueError, match="multiple of num_heads, got 12 and 5"):
        MultiheadPooling(E, 5)
    with pytest.raises(ValueError, match="multiple of the others', got"):
        attention_pool(query[:, :5], key, value, similarity=gaussian, enable_gqa=True)
    with pytest.raises(ValueError, match="needs shapes"):
        attention_pool(query[0, 0], key[0, 0], value[0, 0], similarity=gaussian, enable_gqa=True)


@pytest.mark.parametrize("similarity", [GaussianSimilarity(0.9), DotProductSimilarity()])
def test_key_padding_is_the_opposite_of_an_attention_mask(similarity):
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(B, 2, n, 4, generator=generator) for n in (L, S, S))
    included = ~PADDING[:, None, None, :]
    expected = attention_pool(query, key, value, included, similarity=similarity)
    key, value = (tensor.masked_fill(~included.mT, torch.nan) for tensor in (key, value))  # padding may hold anything
    found = attention_pool(query, key, value, similarity=similarity, key_padding_mask=PADDING)
    torch.testing.assert_close(found, expected)
    both = attention_pool(query, key, value, ~BANNED, similarity=similarity, key_padding_mask=PADDING)
    added = torch.zeros(L, S).masked_fill(BANNED, -torch.inf)
    float_mask = attention_pool(query, key, value, added, similarity=similarity, key_padding_mask=PADDING)
    torch.testing.assert_close(both, float_mask)
    for mask, error, message in (
        (PADDING[:, :4], ValueError, r"must have shape \(3, 7\), one row per sequence, got \(3, 4\)"),
        (PADDING.int(), TypeError, r"boolean \(True is ignored\)"),
    ):
        with pytest.raises(error, match=message):
            attention_pool(query, key, value, similarity=similarity, key_padding_mask=mask)
