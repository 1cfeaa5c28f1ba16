"""Attention pooling layers for torch, with a learnable similarity. Needs the extra ``torch``.

The same numbers as `kernpool.pool`, as differentiable layers.

- `AttentionPooling` pools values by an exchangeable similarity: `KernelSimilarity` and its case `GaussianSimilarity`
  (Nadaraya-Watson, with one width, one per feature, or a linear map), `DotProductSimilarity`, `AdditiveSimilarity`,
  `BilinearSimilarity`; `attention_pool` is the same as a function.
- `MultiheadPooling` is torch's ``MultiheadAttention`` with any similarity, and the same parameter names.
- `choose_route` returns the algorithm for a `Request`, and the reason, as a `Route`.
- `masked_softmax` is a softmax over the valid keys only.

A first call compiles loops, once for a machine.

>>> import torch
>>> layer = AttentionPooling(GaussianSimilarity(bandwidth=0.5))
>>> query, key, value = torch.zeros(2, 5, 3), torch.zeros(2, 7, 3), torch.ones(2, 7, 1)  # two sequences
>>> layer(query, key, value, valid_lens=torch.tensor([7, 4])).shape
torch.Size([2, 5, 1])

For readers of the source: Read `pooling.py` first. `dispatch.py` chooses the algorithm; `algorithms.py` has the
reference with all weights in memory, and the algorithms that avoid them; `cpu_operator.py` is the compiled engine as a
torch operator. `similarities.py` has the similarities, `masks.py` input checks and masks.
"""

try:
    import torch as _torch  # noqa: F401  # to say at once what is missing
except ImportError as error:
    raise ImportError(
        'kernpool.torch needs torch, which is not installed; install it with: pip install "kernpool[torch]"'
    ) from error

from kernpool.torch.dispatch import Request, Route, choose_route
from kernpool.torch.masks import masked_softmax
from kernpool.torch.multihead import MultiheadPooling
from kernpool.torch.pooling import AttentionPooling, attention_pool
from kernpool.torch.similarities import (
    AdditiveSimilarity,
    BilinearSimilarity,
    DotProductSimilarity,
    GaussianSimilarity,
    KernelSimilarity,
)

__all__ = [
    "AdditiveSimilarity",
    "AttentionPooling",
    "BilinearSimilarity",
    "DotProductSimilarity",
    "GaussianSimilarity",
    "KernelSimilarity",
    "MultiheadPooling",
    "Request",
    "Route",
    "attention_pool",
    "choose_route",
    "masked_softmax",
]
