"""What a layer is asked for: tensors that fit together, which pairs take part, and how to pool; checked once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from kernpool.execution.messages import abbreviate, check_choice
from kernpool.torch.masks import Participants, check_dropout, check_inputs, without_infinity
from kernpool.torch.similarities import KernelSimilarity

Similarity = Callable[[Tensor, Tensor], Tensor]

ALGORITHMS = ("auto", "dense", "fused")


@dataclass(frozen=True)
class Request:
    """One call of `attention_pool`, whose parameters these are.

    Parameters
    ----------
    query, key, value : Tensor of shape (..., L, Eq), (..., S, Ek), (..., S, Ev)
        With NaN for infinity among queries and keys.
    participants : Participants
        Which keys take part for which queries.
    similarity : callable
        From queries and keys to logits.
    dropout_p, degree, algorithm, return_weights
        As given.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    participants: Participants
    similarity: Similarity
    dropout_p: float
    degree: int
    algorithm: str
    return_weights: bool

    @classmethod
    def check(
        cls,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        *,
        similarity: Similarity,
        valid_lens: Tensor | None = None,
        is_causal: bool = False,
        exclude_self: bool = False,
        dropout_p: float = 0.0,
        degree: int = 0,
        algorithm: str = "auto",
        return_weights: bool = False,
    ) -> Request:
        """Make one of the arguments of `attention_pool`, or say what is wrong."""
        shape = check_inputs(query, key, value, attn_mask)
        check_dropout(dropout_p)
        check_algorithm(algorithm, degree, similarity, dropout_p, return_weights)
        query, key = without_infinity(query), without_infinity(key)
        participants = Participants.check(shape, query.device, attn_mask, valid_lens, is_causal, exclude_self)
        return cls(query, key, value, participants, similarity, dropout_p, degree, algorithm, return_weights)

    @property
    def pairs(self) -> int:
        """Number of pairs of a query and a key."""
        return self.participants.batch.numel() * self.query.shape[-2] * self.key.shape[-2]


def check_algorithm(
    algorithm: str, degree: int, similarity: Similarity, dropout_p: float, return_weights: bool
) -> None:
    """Refuse options that do not go together.

    Parameters
    ----------
    algorithm, degree, similarity, dropout_p, return_weights
        As in `attention_pool`.

    Raises
    ------
    ValueError
        If something is unknown, or needs weights where there are none.
    """
    check_choice("algorithm", algorithm, ALGORITHMS)
    if degree not in (0, 1):
        raise ValueError(f"degree must be 0, local constant, or 1, local linear, got {abbreviate(degree)}")
    weights = "return_weights=True" if return_weights else f"dropout={dropout_p}" if dropout_p else ""
    if degree and weights:
        raise ValueError(f"{weights} needs weights of keys, which a local linear fit does not have; use degree=0")
    if degree and algorithm == "dense":
        raise ValueError("a local linear fit has no dense layer; use algorithm='auto'")
    if degree and not isinstance(similarity, KernelSimilarity):
        raise ValueError(
            f"degree=1 needs a similarity of distances, got {type(similarity).__name__}; use GaussianSimilarity or "
            "KernelSimilarity"
        )
    if algorithm == "fused" and dropout_p:
        raise ValueError(f"dropout={dropout_p} needs the weights, which algorithm='fused' never makes; use 'auto'")
