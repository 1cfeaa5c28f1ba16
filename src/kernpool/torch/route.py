"""Which way a layer pools when nobody asks for the weights: as fast as may be, in memory linear in keys and queries."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from kernpool.torch.dense import Similarity, pool_densely, without_padding
from kernpool.torch.masks.participants import Participants
from kernpool.torch.similarities.distance import KernelSimilarity, centre_of
from kernpool.torch.similarities.scores import BilinearSimilarity, DotProductSimilarity
from kernpool.torch.streams import pool_by_dot_product, pool_by_engine, pool_in_blocks

ALGORITHMS = ("auto", "dense", "fused")
FEW_NUMBERS = 1 << 16  # pairs times columns: up to here the plain dense layer is the fastest way
MOST_LOGITS = 1 << 24  # beyond, 64 MiB in float32, and several tables of them, queries go in blocks


def check_algorithm(
    algorithm: str, degree: int, similarity: Similarity, dropout_p: float, return_weights: bool
) -> None:
    """Refuse ways to pool that do not go together.

    Parameters
    ----------
    algorithm, degree, similarity, dropout_p, return_weights
        As in `attention_pool`.

    Raises
    ------
    ValueError
        If something is unknown, or needs weights where there are none.
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm must be one of {', '.join(map(repr, ALGORITHMS))}, got {algorithm!r}")
    if degree not in (0, 1):
        raise ValueError(f"degree must be 0, local constant, or 1, local linear, got {degree!r}")
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


def pool_without_weights(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    participants: Participants,
    similarity: Similarity,
    degree: int,
    algorithm: str,
) -> Tensor:
    """Pool by the engine, by torch's own attention, in blocks of queries, or densely.

    Parameters
    ----------
    query, key, value, participants, similarity
        As for `pool_densely`.
    degree, algorithm
        As in `attention_pool`.

    Returns
    -------
    Tensor of shape (..., L, Ev)
        The pooled values.

    Raises
    ------
    ValueError
        If there is no such way.
    """
    pairs = participants.batch.numel() * query.shape[-2] * key.shape[-2]
    if algorithm != "dense":
        reason = _why_not_by_engine(query, participants, similarity)
        if (
            isinstance(similarity, KernelSimilarity)
            and not reason
            and (degree or algorithm == "fused" or pairs * query.shape[-1] > FEW_NUMBERS)
        ):
            return _by_engine(query, key, value, participants, similarity, degree)
        if isinstance(similarity, DotProductSimilarity | BilinearSimilarity) and _is_itself(similarity):
            reason = _why_not_by_torch(participants, pairs)
            if not reason:
                return _by_dot_product(query, key, value, participants, similarity)
        if degree or algorithm == "fused":
            raise ValueError(f"degree={degree} with algorithm={algorithm!r} is not possible here: {reason}")
        if pairs > MOST_LOGITS:
            return pool_in_blocks(
                lambda rows: pool_densely(query, key, value, participants, similarity, queries=rows)[0],
                query.shape[-2],
                key.shape[-2],
                participants.batch.numel(),
            )
    return pool_densely(query, key, value, participants, similarity)[0]


def _why_not_by_engine(query: Tensor, participants: Participants, similarity: Similarity) -> str:
    if not isinstance(similarity, KernelSimilarity) or not _is_itself(similarity):
        return f"{type(similarity).__name__} is none of the similarities of distances of kernpool.torch"
    if query.device.type != "cpu":
        return f"the engine runs on the processor, and the tensors are on {query.device}; move them with .cpu()"
    return "the mask adds to the logits; use a boolean one" if participants.adds_to_logits else ""


def _why_not_by_torch(participants: Participants, pairs: int) -> str:
    mask = participants.attn_mask
    if participants.lengths is not None or participants.exclude_self:
        return "scores go to torch's own attention, which knows neither valid_lens nor exclude_self; use a mask"
    if mask is not None and mask.shape[-2] == 1 and pairs > MOST_LOGITS:
        return "torch's own attention would make a whole table of a mask with one row"
    return ""


def _is_itself(similarity: nn.Module) -> bool:
    """Whether nobody has changed what it computes, by a subclass or by a hook."""
    if similarity._forward_hooks or similarity._forward_pre_hooks:
        return False
    return type(similarity).forward in (
        KernelSimilarity.forward,
        DotProductSimilarity.forward,
        BilinearSimilarity.forward,
    )


def _by_engine(
    query: Tensor, key: Tensor, value: Tensor, participants: Participants, similarity: KernelSimilarity, degree: int
) -> Tensor:
    similarity.check_sizes(query, key)
    if similarity.form == "linear":
        centre = centre_of(key)  # mapped points keep their digits near it
        query, key = similarity.mapped(query - centre), similarity.mapped(key - centre)
    pooled = pool_by_engine(
        query,
        key,
        value,
        similarity.inverse_bandwidth,
        participants.attn_mask,
        participants.counts(),
        kernel=similarity.kernel_name,
        exclude_self=participants.exclude_self,
        degree=degree,
    )
    if torch.is_autocast_enabled(query.device.type):  # as the matrix product of the dense layer would be
        return pooled.to(torch.get_autocast_dtype(query.device.type))
    return pooled


def _by_dot_product(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    participants: Participants,
    similarity: DotProductSimilarity | BilinearSimilarity,
) -> Tensor:
    mask, is_causal, scale = participants.attn_mask, participants.is_causal, 1.0
    allowed = None if mask is None else participants.mask()
    if mask is not None and allowed is not None:  # torch wants all conditions in one mask
        query, key, value = without_padding(query, key, value, allowed)
        mask = mask.masked_fill(~allowed, -torch.inf) if participants.adds_to_logits else allowed
        is_causal = False
    similarity.check_sizes(query, key)
    if isinstance(similarity, BilinearSimilarity):
        key = similarity.key_map(key)
    else:
        scale = 1.0 / math.sqrt(max(query.shape[-1], 1))
    return pool_by_dot_product(query, key, value, mask, is_causal, scale)
