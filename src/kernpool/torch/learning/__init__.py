"""Training of a learned similarity: encoders of columns and the optimisation loop.

Read `training.py` first: the loop, and the functions that the estimators of `kernpool.estimators.learned` call.
`encoders.py` has the maps that are learned.
"""

from kernpool.torch.learning.encoders import MappedGaussianSimilarity, map_shapes
from kernpool.torch.learning.training import (
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
