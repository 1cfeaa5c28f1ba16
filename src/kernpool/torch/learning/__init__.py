"""Training: encoders of columns, the loop, and what `fit` of the learned estimators calls. Read `fitting.py` first."""

from kernpool.torch.learning.encoders import MappedGaussianSimilarity, map_shapes
from kernpool.torch.learning.fitting import (
    Start,
    as_device,
    encode,
    learn_similarity,
    load_similarity,
    similarity_state,
)

__all__ = [
    "MappedGaussianSimilarity",
    "Start",
    "as_device",
    "encode",
    "learn_similarity",
    "load_similarity",
    "map_shapes",
    "similarity_state",
]
