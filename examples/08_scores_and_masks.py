"""Scores one can exchange, and a softmax over the valid keys only."""

import torch

from kernpool import AttentionDisplay
from kernpool.torch import (
    AdditiveSimilarity,
    AttentionPooling,
    DotProductSimilarity,
    GaussianSimilarity,
    masked_softmax,
)

torch.manual_seed(0)
print(masked_softmax(torch.zeros(2, 2, 4), torch.tensor([2, 3])))

queries, keys, values = (
    torch.randn(2, 1, 20),
    torch.ones(2, 10, 2),
    torch.arange(40.0).reshape(1, 10, 4).repeat(2, 1, 1),
)
additive = AttentionPooling(AdditiveSimilarity(query_size=20, key_size=2, hidden_size=8))
print(additive(queries, keys, values, valid_lens=torch.tensor([2, 6])))

queries, memory, heads = torch.randn(2, 6, 4), torch.randn(2, 10, 4), []
for similarity in (GaussianSimilarity(), DotProductSimilarity(), AdditiveSimilarity(4, 4, 8)):
    _, weights = AttentionPooling(similarity)(
        queries, memory, memory, valid_lens=torch.tensor([4, 7]), return_weights=True
    )
    heads.append(weights.detach())
grid = torch.stack(heads, dim=1)
AttentionDisplay.from_weights(grid, title=["Gaussian", "dot product", "additive"]).figure_.savefig("heads.png")
