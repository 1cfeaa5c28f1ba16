"""Choices for a layer call: the pooling algorithm, with the reason, and how to compute the gradient by bandwidths.

A `Request` is one checked call of `attention_pool`: tensors that fit together, options, and which keys a query uses
by boolean or additive mask, valid lengths, causality and leave-one-out. `choose_route` returns the algorithm and the
reason in words as a `Route`. All decisions of this kind are in this file.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor, nn

from kernpool.algorithms.algorithm import FEWEST_FOR_PRODUCTS
from kernpool.algorithms.sweep.sweep import applies
from kernpool.core import PoolState, Problem
from kernpool.execution.error_messages import abbreviate, check_choice
from kernpool.torch.masks import (
    broadcast,
    check_inputs,
    check_mask_shape,
    check_tensors,
    valid_lengths,
    with_key_padding,
    with_repeated_heads,
)
from kernpool.torch.similarities import BilinearSimilarity, DotProductSimilarity, KernelSimilarity

Similarity = Callable[[Tensor, Tensor], Tensor]

ALGORITHMS = ("auto", "dense", "fused", "blocks")


class Request(NamedTuple):
    """Validated arguments of one call of `attention_pool`.

    Parameters
    ----------
    query, key, value : Tensor of shape (..., L, Eq), (..., S, Ek), (..., S, Ev)
        As given.
    shape : torch.Size
        Of the logits, (..., L, S).
    attn_mask : Tensor or None
        Boolean, or floating point, where -inf leaves out.
    lengths : Tensor of shape (..., L) or (..., 1), or None
        Numbers of valid keys.
    is_causal, exclude_self
        As given.
    similarity : callable
        From queries and keys to logits.
    dropout_p, degree, algorithm, return_weights
        As given.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    shape: torch.Size
    attn_mask: Tensor | None
    lengths: Tensor | None
    is_causal: bool
    exclude_self: bool
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
        scale: float | None = None,
        enable_gqa: bool = False,
        key_padding_mask: Tensor | None = None,
    ) -> Request:
        """Validate the arguments of `attention_pool` and return them as a `Request`."""
        if enable_gqa:
            check_tensors(query=query, key=key, value=value)
            key, value = with_repeated_heads(query, key, value)
        shape = check_inputs(query, key, value, attn_mask)
        if key_padding_mask is not None:
            attn_mask = with_key_padding(attn_mask, key_padding_mask, shape)
        if scale is not None:
            similarity = _with_scale(similarity, scale)
        check_algorithm(algorithm, degree, similarity, dropout_p, return_weights)
        if attn_mask is not None:
            attn_mask = torch.atleast_2d(attn_mask)
            check_mask_shape(attn_mask, shape)
        if exclude_self and shape[-2] != shape[-1]:
            raise ValueError(
                f"exclude_self=True leaves key i out for query i and needs as many keys as queries, got {shape[-2]} "
                f"queries and {shape[-1]} keys; exclude pairs with a boolean attn_mask instead"
            )
        lengths = None if valid_lens is None else valid_lengths(valid_lens, shape).to(query.device)
        return cls(
            query, key, value, shape, attn_mask, lengths, is_causal, exclude_self, similarity, dropout_p, degree,
            algorithm, return_weights,
        )  # fmt: skip

    @property
    def pairs(self) -> int:
        """Number of pairs of a query and a key, over all sequences."""
        if self.attn_mask is None:
            return self.shape.numel()
        return self.batch.numel() * self.shape[-2] * self.shape[-1]

    @property
    def columns_of_differences(self) -> int:
        """Number of columns of the largest table with a row for each pair: differences for kernels, else logits."""
        return self.query.shape[-1] if isinstance(self.similarity, KernelSimilarity) else 1

    @property
    def adds_to_logits(self) -> bool:
        """Whether the attention mask holds floating-point numbers, which are added to the logits."""
        return self.attn_mask is not None and self.attn_mask.dtype != torch.bool

    @property
    def batch(self) -> torch.Size:
        """Leading (batch) dimensions of the logits, broadcast with those of the attention mask."""
        leading = self.shape[:-2]
        return leading if self.attn_mask is None else broadcast(leading, self.attn_mask.shape[:-2])

    @property
    def includes_every_row(self) -> bool:
        """Whether no query and no key is padding; only a lone row is left without a partner by leave-one-out."""
        by_table = self.attn_mask is not None or self.lengths is not None
        return not by_table and (not self.is_causal or self.shape[-2] == self.shape[-1])

    def among(self, queries: slice) -> Request:
        """Return the request of a slice of the queries, with only the mask rows of these queries."""
        # give `mask` the same slice: it finds the indices of the queries for causality and leave-one-out
        mask, lengths = self.attn_mask, self.lengths  # of one row, or of one length, they are for all queries
        if mask is not None and mask.shape[-2] > 1:
            mask = mask[..., queries, :]
        if lengths is not None and lengths.shape[-1] > 1:
            lengths = lengths[..., queries]
        return self._replace(query=self.query[..., queries, :], attn_mask=mask, lengths=lengths)

    def mask(self, queries: slice = slice(None)) -> Tensor | None:
        """Return a boolean mask, True where a query may use a key; None if nothing is masked."""
        if self.attn_mask is None and self.lengths is None and not (self.is_causal or self.exclude_self):
            return None
        query = torch.arange(self.shape[-2], device=self.query.device)[queries, None]
        key = torch.arange(self.shape[-1], device=self.query.device)
        conditions = []
        if self.attn_mask is not None:
            conditions.append(~torch.isneginf(self.attn_mask) if self.adds_to_logits else self.attn_mask)
        if self.lengths is not None:
            conditions.append(key < self.lengths[..., None])
        if self.is_causal:
            conditions.append(key <= query)
        if self.exclude_self:
            conditions.append(key != query)
        mask = reduce(torch.logical_and, conditions)
        logits = torch.Size([*self.shape[:-2], query.shape[0], self.shape[-1]])  # len() would end its being symbolic
        return mask.expand(torch.broadcast_shapes(mask.shape, logits))

    def counts(self) -> Tensor | None:
        """Return, for each query, how many of the first keys it may use at most; None without lengths and causality."""
        # of shape (..., L); (..., 1) by lengths per sequence without causality; (L,) by causality alone
        counts = self.lengths
        if self.is_causal:
            seen = torch.arange(1, self.shape[-2] + 1, device=self.query.device).clamp(max=self.shape[-1])
            counts = seen if counts is None else torch.minimum(counts, seen)
        return counts


def _with_scale(similarity: Similarity, scale: float) -> Similarity:
    if type(similarity) is DotProductSimilarity:
        return DotProductSimilarity(scale)
    raise ValueError(
        f"scale={abbreviate(scale)} is the factor of dot products, for similarity=DotProductSimilarity(), got "
        f"{type(similarity).__name__}; similarities of distances have a bandwidth=, where h = 1 / sqrt(scale)"
    )


def check_algorithm(
    algorithm: str, degree: int, similarity: Similarity, dropout_p: float, return_weights: bool
) -> None:
    """Raise ValueError if algorithm, degree, similarity, dropout or `return_weights` are invalid or incompatible."""
    if isinstance(similarity, type) or not callable(similarity):
        found = f"the class; use {similarity.__name__}()" if isinstance(similarity, type) else abbreviate(similarity)
        raise TypeError(f"similarity must be a layer such as GaussianSimilarity(bandwidth=1.0), got {found}")
    check_choice("algorithm", algorithm, ALGORITHMS)
    weights = "return_weights=True" if return_weights else f"dropout={dropout_p}" if dropout_p else ""
    why_not = _conflict(algorithm, degree, similarity, dropout_p, weights)
    if why_not:
        raise ValueError(why_not)


def _conflict(algorithm: str, degree: int, similarity: Similarity, dropout_p: float, weights: str) -> str:
    """Return which option is out of range or excludes another, with the remedy; an empty string if none does."""
    if not 0.0 <= dropout_p <= 1.0:
        return f"dropout must be a probability between 0 and 1, got {dropout_p}"
    if degree not in (0, 1):
        return f"degree must be 0, local constant, or 1, local linear, got {abbreviate(degree)}"
    if degree and weights:
        return f"{weights} needs weights of keys, which a local linear fit does not have; use degree=0"
    if degree and algorithm in ("dense", "blocks"):
        return f"degree=1, a local linear fit, has no dense layer; use algorithm='auto', not {algorithm!r}"
    if degree and not isinstance(similarity, KernelSimilarity):
        return (
            f"degree=1 needs a similarity of distances, got {type(similarity).__name__}; use GaussianSimilarity or "
            "KernelSimilarity"
        )
    if algorithm == "fused" and dropout_p:
        return f"dropout={dropout_p} needs the weights, which algorithm='fused' never makes; use 'auto'"
    return ""


# Pairs of a sequence times columns: up to here the dense layer is the fastest way. With gradients, one thread, the
# engine takes over between 500 and 700 rows of one column, 300 and 400 of four, 200 and 300 of sixteen.
FEW_NUMBERS = 10 << 16
MOST_NUMBERS = 1 << 24  # in a table; beyond, 64 MiB in float32, and several tables, queries go in blocks
FEW = f"at most {FEW_NUMBERS} pairs times columns, few enough for a table of all weights"


class Route(NamedTuple):
    """Choice of an algorithm, with the reason in words.

    Parameters
    ----------
    way : {"engine", "attention", "blocks", "dense"}
        The compiled loops of `kernpool.pool`; torch's own ``scaled_dot_product_attention``; blocks of queries, whose
        weights are made again for the gradient; or all weights at once.
    reason : str
        Explanation in words.
    """

    way: str
    reason: str


def choose_route(request: Request) -> Route:
    """Choose the algorithm for a call of `attention_pool`, without pooling.

    Parameters
    ----------
    request : Request
        What is pooled, and how.

    Returns
    -------
    Route
        The way and the reason. While ``torch.export`` traces, sizes do not decide: the program is for others too.

    Raises
    ------
    ValueError
        If there is no such way.

    Examples
    --------
    >>> import torch
    >>> from kernpool.torch import GaussianSimilarity
    >>> x = torch.zeros(1000, 1)
    >>> choose_route(Request.check(x, x, x, similarity=GaussianSimilarity())).way
    'engine'
    >>> choose_route(Request.check(x, x, x, similarity=GaussianSimilarity(), algorithm="dense"))
    Route(way='dense', reason='as asked')
    """
    if request.return_weights:
        return Route("dense", "the weights are asked for")
    if request.algorithm == "blocks":
        return Route("blocks", "as asked")
    if request.dropout_p:
        return Route("dense", "dropout needs the weights")
    if request.algorithm == "dense":
        return Route("dense", "as asked")
    fused, exporting = request.algorithm == "fused", torch.compiler.is_exporting()
    numbers = 0 if exporting else request.pairs * request.columns_of_differences  # exports ask for no sizes
    is_plain = isinstance(request.similarity, KernelSimilarity) and not (fused or exporting or request.degree)
    if is_plain and numbers <= FEW_NUMBERS:
        return Route("dense", FEW)
    why_not = _why_not_by_engine(request)
    if not why_not:
        if request.degree:
            return Route("engine", "nothing else fits local planes")
        if fused:
            return Route("engine", "as asked")
        rows, columns = request.query.shape[-2:]
        if not exporting and rows * request.key.shape[-2] * columns > FEW_NUMBERS:
            return Route("engine", f"more than {FEW_NUMBERS} pairs times columns, for which compiled loops are faster")
        if numbers > MOST_NUMBERS:
            return Route(
                "engine", f"more than {MOST_NUMBERS} pairs times columns of all sequences, too many for a table"
            )
        why_not = FEW
    elif isinstance(request.similarity, DotProductSimilarity | BilinearSimilarity) and _is_unmodified(
        request.similarity
    ):
        why_not = _why_not_by_attention(request)
        if not why_not:
            return Route("attention", "torch streams the keys of dot products")
    if request.degree or fused:
        raise ValueError(
            f"degree={request.degree} with algorithm={request.algorithm!r} is not possible here: {why_not}"
        )
    if exporting:
        return Route("dense", "an exported program is for any number of rows")
    if numbers > MOST_NUMBERS:
        return Route("blocks", f"{why_not}; more than {MOST_NUMBERS} numbers in a table, too many for all at once")
    return Route("dense", f"{why_not}; at most {MOST_NUMBERS} numbers in a table, which fit into memory")


def _why_not_by_engine(request: Request) -> str:
    similarity = request.similarity
    if not isinstance(similarity, KernelSimilarity) or not _is_unmodified(similarity):
        return f"{type(similarity).__name__} is not one of kernpool.torch's kernel similarities"
    if not request.query.is_cpu:
        return f"the engine runs on the processor, and the tensors are on {request.query.device}; use .cpu()"
    return "the mask adds to the logits; use a boolean one" if request.adds_to_logits else ""


def _why_not_by_attention(request: Request) -> str:
    mask = request.attn_mask
    if request.lengths is not None or request.exclude_self:
        return "scores go to torch's own attention, which knows neither valid_lens nor exclude_self; use a mask"
    one_row = mask is not None and mask.shape[-2] == 1
    if one_row and not torch.compiler.is_exporting() and request.pairs > MOST_NUMBERS:
        return "torch's own attention would make a whole table of a mask with one row"
    return ""


def _is_unmodified(similarity: nn.Module) -> bool:
    """Return whether a similarity has kernpool's ``forward`` (kernel, dot product or bilinear) and no forward hooks."""
    if similarity._forward_hooks or similarity._forward_pre_hooks:
        return False
    return type(similarity).forward in (
        KernelSimilarity.forward,
        DotProductSimilarity.forward,
        BilinearSimilarity.forward,
    )


def follows_from_places(problem: Problem, state: PoolState, wanted: frozenset[str], *, masked: bool) -> bool:
    """Return whether the gradient by bandwidths is best computed from those by queries and keys, not over pairs."""
    if "log_bandwidth" not in wanted:
        return False
    columns = problem.query.shape[1]
    by_products = columns >= FEWEST_FOR_PRODUCTS and problem.similarity.kernel.name == "gaussian"
    if by_products and not masked and not problem.degree and {"query", "key"} <= wanted:
        return True  # these are wanted too, and are matrix products
    # In one column they may be sums of series, in linear time. Others would take another pass over pairs.
    return columns == 1 and applies(problem, state, wanted - {"log_bandwidth"} | {"query", "key"})
