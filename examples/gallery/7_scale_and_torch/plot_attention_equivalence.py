"""
Kernel regression is attention
==============================

A Gaussian kernel is a softmax of negative squared distances. With one column more it is torch's own scaled
dot-product attention, and masks mean the same in both.
"""

# %%
# ``-|q - k|^2 / 2h^2`` is ``q . k / h^2 - |k|^2 / 2h^2``, up to a number that is the same for all keys. Append a 1 to
# the query and the second term to the key, and the dot product has both.

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_iris

from kernpool import AttentionDisplay
from kernpool.torch import AttentionPooling, DotProductSimilarity, GaussianSimilarity, masked_softmax

torch.manual_seed(0)
flowers = torch.tensor(load_iris().data)
key = flowers - flowers.mean(dim=0)  # centered: otherwise digits are lost
value = torch.nn.functional.one_hot(torch.tensor(load_iris().target)).double()
h = 0.5

pooled = AttentionPooling(GaussianSimilarity(h, dtype=key.dtype))(key, key, value)
one = torch.ones_like(key[:, :1])
attended = torch.nn.functional.scaled_dot_product_attention(
    torch.cat([key / h, one], dim=1)[None],
    torch.cat([key / h, -(key**2).sum(dim=1, keepdim=True) / (2 * h**2)], dim=1)[None],
    value[None],
    scale=1.0,
)[0]
print(f"largest difference: {(pooled - attended).abs().max().item():.1e}")

# %%
# Other scores go in the same place. What 150 irises attend to, by distance and by dot product; the three blocks are the
# species.

weights = []
for similarity in (GaussianSimilarity(h, dtype=key.dtype), DotProductSimilarity()):
    _, alpha = AttentionPooling(similarity)(key, key, value, return_weights=True)
    weights.append(alpha.detach())
AttentionDisplay.from_weights(
    torch.stack(weights)[None], title=["Gaussian", "dot product"], x_label="irises as keys", y_label="irises as queries"
)
plt.show()

# %%
# A dot product grows with the size of both, so that flowers far from the center are attended to by everybody on their
# side. A distance asks who is alike.
#
# Masks leave keys out. A row without any key is zero here, and neither NaN nor a mean over padding.

print(masked_softmax(torch.zeros(1, 3, 4), torch.tensor([[1, 2, 0]])))
