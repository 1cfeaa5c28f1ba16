"""Similarities that can learn: by distance (`distance.py`) and by score (`scores.py`)."""

from kernpool.torch.similarities.distance import GaussianSimilarity, KernelSimilarity
from kernpool.torch.similarities.scores import AdditiveSimilarity, BilinearSimilarity, DotProductSimilarity

__all__ = [
    "AdditiveSimilarity",
    "BilinearSimilarity",
    "DotProductSimilarity",
    "GaussianSimilarity",
    "KernelSimilarity",
]
