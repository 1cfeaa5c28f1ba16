"""The names in the tables of `torch.md`."""

import numpy as np
import torch
import torch.nn.functional as F

from kernpool import pool
from kernpool.datasets import make_sine_power
from kernpool.torch import (
    AdditiveSimilarity,
    AttentionPooling,
    DotProductSimilarity,
    GaussianSimilarity,
    masked_softmax,
)

torch.manual_seed(0)
double = {"dtype": torch.float64}
q, k, v = torch.randn(2, 5, 4, **double), torch.randn(2, 7, 4, **double), torch.randn(2, 7, 3, **double)
mask = torch.rand(2, 5, 7) < 0.6
mask[..., 0] = True  # every query has a key
mask_empty = mask.clone()
mask_empty[:, 0] = False  # the first query has none
lens = torch.tensor([3, 7])
square = torch.randn(2, 5, 5, **double)
padding = torch.arange(7) >= lens[:, None]  # True is left out, as in MultiheadAttention
heads = torch.nn.MultiheadAttention(4, 1, batch_first=True, kdim=4, vdim=3, bias=False, **double)
additive = AdditiveSimilarity(4, 4, 8, **double)


def projected():
    """One head of MultiheadAttention, by its own projections."""
    return [value @ weight.T for value, weight in zip((q, k, v), weights_of(heads), strict=True)]


def weights_of(layer):
    return layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight


def d2l_masked_softmax(X, valid_lens):
    """What d2l does, without its writing into X."""
    X = X.clone().reshape(-1, X.shape[-1])
    lens = torch.repeat_interleave(valid_lens, len(X) // len(valid_lens))
    X[torch.arange(X.shape[1]) >= lens[:, None]] = -1e6
    return F.softmax(X.reshape(len(valid_lens), -1, X.shape[1]), dim=-1)


def d2l_additive(q, k, v, valid_lens):
    scores = additive.score(torch.tanh(additive.query_map(q)[:, :, None] + additive.key_map(k)[:, None])).squeeze(-1)
    return d2l_masked_softmax(scores, valid_lens) @ v


sample = make_sine_power(random_state=0)
x, y, at = sample.x_train, sample.y_train, np.linspace(0.5, 4.5, 9)
distance = at[:, None] - x


def d2l_epanechikov(u):
    return np.maximum(1 - np.abs(u), 0)


def d2l_nadaraya_watson(kernel):
    weight = kernel(distance)
    return weight @ y / weight.sum(axis=1)


def d2l_parametric(w):
    """The older chapter: w multiplies the distance."""
    return F.softmax(-((torch.tensor(distance) * w) ** 2) / 2, dim=1) @ torch.tensor(y)


def columns(*arrays):
    return [torch.tensor(array)[:, None] for array in arrays]
