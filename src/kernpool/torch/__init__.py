"""kernpool for torch: attention pooling with a similarity that learns.

The same numbers as `kernpool.pool`, as differentiable layers. Needs the extra ``torch``.

- `AttentionPooling` pools values by an exchangeable similarity: `KernelSimilarity` and its case `GaussianSimilarity`
  (Nadaraya-Watson, with one width, one per feature, or a linear map), `DotProductSimilarity`, `AdditiveSimilarity`,
  `BilinearSimilarity`; `attention_pool` is the same as a function.
- `choose_route` says which way a `Request` is pooled, and why, as a `Route`.
- `KeyValueMemory` holds the keys and values to pool over, while it grows and forgets.
- `masked_softmax` is a softmax over the valid keys only.

Read `pooling.py` first, then `route.py`: which way, and why; `dense.py` is the way that all others are held to.
"""

try:
    import torch as _torch  # noqa: F401  # to say at once what is missing
except ImportError as error:
    raise ImportError(
        'kernpool.torch needs torch, which is not installed; install it with: pip install "kernpool[torch]"'
    ) from error

from kernpool.torch.masks import masked_softmax
from kernpool.torch.memory import KeyValueMemory
from kernpool.torch.pooling import AttentionPooling, attention_pool
from kernpool.torch.request import Request
from kernpool.torch.route import Route, choose_route
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
    "KeyValueMemory",
    "Request",
    "Route",
    "attention_pool",
    "choose_route",
    "masked_softmax",
]
