"""Which way a layer pools, and why."""

import pytest

torch = pytest.importorskip("torch", reason="the layers need the extra 'torch'")

from kernpool.torch import (
    AdditiveSimilarity,
    BilinearSimilarity,
    DotProductSimilarity,
    GaussianSimilarity,
    KernelSimilarity,
    Request,
    attention_pool,
    choose_route,
    pooling,
)


def make(generator, *batch, rows, keys, values=2):
    shapes = ((rows, 3), (keys, 3), (keys, values))
    return [torch.tensor(generator.normal(size=(*batch, *shape))) for shape in shapes]


class Twice(GaussianSimilarity):
    def forward(self, query, key):
        return 2 * super().forward(query, key)


def laplace():
    return KernelSimilarity("laplace")


def hooked():
    similarity = GaussianSimilarity(0.9)
    similarity.register_forward_hook(lambda _module, _given, logits: logits)
    return similarity


SMALL, LARGE, LONG, HUGE = (20, 20), (500, 600), (2050, 2050), (4100, 4100)  # queries and keys, of three columns
RIGHT = "near enough to each other, in widths, for products"
FEW, MANY = "at most 4194304 pairs of a sequence", "more than 4194304 pairs of a sequence"
NO_DISTANCE, ADDED = "is not one of kernpool.torch's kernel similarities", "the mask adds to the logits"
FITS, TOO_MANY = "at most 16777216 pairs", "more than 16777216 pairs"
# Similarity, sizes, options, the way, and words of the reason.
SITUATIONS = {
    "few pairs": (laplace, SMALL, {}, "dense", [FEW]),
    "many pairs": (laplace, LONG, {}, "engine", [MANY]),
    "batches": (laplace, SMALL, {"batch": (100,)}, "dense", [FEW]),
    "many batches": (laplace, (200, 200), {"batch": (500,)}, "blocks", [FEW, TOO_MANY]),
    "Gaussian": (GaussianSimilarity, SMALL, {"batch": (100,)}, "products", [RIGHT]),
    "many sequences": (
        GaussianSimilarity, (128, 128), {"batch": (1025,), "valid_lens": torch.ones(1025).int()}, "blocks", [TOO_MANY]
    ),
    "tiny": (GaussianSimilarity, SMALL, {}, "dense", [FEW]),
    "narrow": (lambda: GaussianSimilarity(0.1), LARGE, {}, "products", [RIGHT]),
    "narrow, double": (lambda: GaussianSimilarity(0.1), LARGE, {"dtype": torch.float64}, "dense", [FEW]),
    "many rows": (lambda: GaussianSimilarity(2.0), LONG, {}, "engine", [MANY]),
    "long sequences": (lambda: GaussianSimilarity(2.0), LARGE, {"values": 4}, "attention", [RIGHT]),
    "few pairs, fused": (GaussianSimilarity, SMALL, {"algorithm": "fused"}, "engine", ["as asked"]),
    "dropout, blocks": (GaussianSimilarity, SMALL, {"algorithm": "blocks", "dropout_p": 0.5}, "blocks", ["as asked"]),
    "planes": (GaussianSimilarity, SMALL, {"degree": 1}, "engine", ["nothing else fits local planes"]),
    "weights": (GaussianSimilarity, LARGE, {"return_weights": True}, "products", ["the weights are asked for"]),
    "dropout": (laplace, LARGE, {"dropout_p": 0.5}, "dense", ["dropout needs the weights"]),
    "float mask": (laplace, LARGE, {"mask": (600,), "added": True}, "dense", [ADDED, FITS]),
    "Gaussian, float mask": (GaussianSimilarity, LARGE, {"mask": (600,), "added": True}, "products", [RIGHT]),
    "another device, huge": (GaussianSimilarity, HUGE, {"device": "meta"}, "blocks", ["on meta", TOO_MANY]),
    "a subclass": (Twice, LARGE, {}, "dense", ["Twice " + NO_DISTANCE, FITS]),
    "a hook": (hooked, LARGE, {}, "dense", ["GaussianSimilarity " + NO_DISTANCE, FITS]),
    "additive": (lambda: AdditiveSimilarity(3, 3, 4), HUGE, {}, "blocks", ["Additive", NO_DISTANCE, TOO_MANY]),
    "dot product": (DotProductSimilarity, SMALL, {}, "attention", ["torch streams the keys"]),
    "bilinear, float mask": (
        lambda: BilinearSimilarity(3, 3), LARGE, {"mask": (600,), "added": True}, "attention", ["torch streams"]
    ),
    "dot product, lengths": (
        DotProductSimilarity, LARGE, {"valid_lens": torch.tensor(300)}, "attention", ["torch streams the keys"]
    ),
    "dot product, one row": (DotProductSimilarity, HUGE, {"mask": (4100,)}, "blocks", ["a whole table", TOO_MANY]),
}  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_route_and_its_reason(situation, generator, monkeypatch):
    """As a user asks for it; and what pools goes that way."""
    make_similarity, (rows, keys), given, way, words = SITUATIONS[situation]
    device, dtype = given.get("device", "cpu"), given.get("dtype", torch.float32)
    tensors = make(generator, *given.get("batch", ()), rows=rows, keys=keys, values=given.get("values", 2))
    tensors = [tensor.to(device, dtype).requires_grad_() for tensor in tensors]
    names = "valid_lens", "return_weights", "algorithm", "degree", "dropout_p"
    conditions = {name: given[name] for name in names if name in given}
    if "mask" in given:
        conditions["attn_mask"] = torch.ones(given["mask"], dtype=dtype if "added" in given else torch.bool)
    conditions["similarity"] = make_similarity()
    found = choose_route(Request.check(*tensors, **conditions))
    assert found.way == way
    for part in words:
        assert part in found.reason
    ways, gone = ("engine", "attention", "blocks", "dense"), []
    functions = ("pool_by_engine", "pool_by_attention", "pool_in_blocks", "pool_densely")
    for name, which in zip(functions, ways, strict=True):
        result = (None, None) if which == "dense" else None
        monkeypatch.setattr(pooling, name, lambda _, which=which, result=result: gone.append(which) or result)
    attention_pool(*tensors, **conditions)
    assert gone == ["dense" if way == "products" else way]
