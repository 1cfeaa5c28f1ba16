"""Choice of the pooling algorithm of a layer call, with the reason.

A `Request` is one checked call of `attention_pool`: tensors that fit together, options, and which keys a query uses
by boolean or additive mask, valid lengths, causality and leave-one-out. `choose_route` returns the algorithm and the
reason in words as a `Route`. All decisions of this kind are in this file.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import NamedTuple, TypeGuard, TypeVar

import torch
from torch import Tensor, nn

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
from kernpool.torch.similarities import DotProductSimilarity, KernelSimilarity, Products, is_traced

Similarity = Callable[[Tensor, Tensor], Tensor]
Kind = TypeVar("Kind", bound=nn.Module)

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
    lengths : Tensor of int, shape (..., L, 1) or (..., 1, 1), or None
        How many of the first keys are no padding.
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
        lengths = None if valid_lens is None else valid_lengths(valid_lens, shape).to(query.device)[..., None]
        return cls(
            query, key, value, shape, attn_mask, lengths, is_causal, exclude_self, similarity, dropout_p, degree,
            algorithm, return_weights,
        )  # fmt: skip

    @property
    def pairs(self) -> int:
        """Number of pairs of a query and a key, over all sequences."""
        return self.batch.numel() * self.pairs_of_sequence

    @property
    def pairs_of_sequence(self) -> int:
        """Number of pairs of a query and a key, in one sequence."""
        return self.shape[-2] * self.shape[-1]

    @property
    def bias(self) -> Tensor | None:
        """The attention mask if it holds floating-point numbers, which are added to the logits."""
        return None if self.attn_mask is None or self.attn_mask.dtype == torch.bool else self.attn_mask

    @property
    def batch(self) -> torch.Size:
        """Leading (batch) dimensions of the logits, broadcast with those of the attention mask."""
        leading = self.shape[:-2]
        return leading if self.attn_mask is None else broadcast(leading, self.attn_mask.shape[:-2])

    def without_padding(self, mask: Tensor | None = None) -> tuple[Request, Tensor | None]:
        """Return the request with zeros in padding, which may be anything, and which keys are not padding, (..., S, 1).

        By all conditions together if there is a mask, or is given as one; else by lengths and causality, without a
        table.
        """
        if mask is None and self.attn_mask is not None:
            mask = self.mask()
        counts = self.counts() if self.is_causal and self.shape[-2] != self.shape[-1] else self.lengths
        if mask is None and counts is not None and counts.numel():
            mask = torch.arange(self.shape[-1], device=counts.device) < counts.amax(dim=-2, keepdim=True)
        if mask is None:
            return self, None
        queries, keys = mask.any(dim=-1)[..., None], mask.any(dim=-2)[..., None]
        query, key, value = (
            torch.where(used, rows, 0.0) for used, rows in ((queries, self.query), (keys, self.key), (keys, self.value))
        )
        return self._replace(query=query, key=key, value=value), keys

    def counts(self, queries: slice = slice(None)) -> Tensor | None:
        """Return how many of the first keys queries may use, (..., L, 1); None without lengths and causality."""
        counts = self.lengths
        if self.is_causal:
            seen = torch.arange(1, self.shape[-2] + 1, device=self.query.device)[queries, None]
            counts = seen if counts is None else torch.minimum(counts, seen)
        return counts

    def among(self, queries: slice) -> Request:
        """Return the request of a slice of the queries, with only the mask rows of these queries."""
        # give `mask` the same slice: it finds the indices of the queries for causality and leave-one-out
        mask, lengths = (  # of one row for all queries
            rows if rows is None or rows.shape[-2] == 1 else rows[..., queries, :]
            for rows in (self.attn_mask, self.lengths)
        )
        return self._replace(query=self.query[..., queries, :], attn_mask=mask, lengths=lengths)

    def mask(self, queries: slice = slice(None)) -> Tensor | None:
        """Return a boolean mask that broadcasts, True where a query may use a key; None if nothing is masked."""
        counts, conditions = self.counts(queries), []
        if self.attn_mask is counts is None and not self.exclude_self:
            return None
        key = torch.arange(self.shape[-1], device=self.query.device)
        if self.attn_mask is not None:
            conditions.append(self.attn_mask if self.bias is None else ~torch.isneginf(self.bias))
        if counts is not None:
            conditions.append(key < counts)
        if self.exclude_self:
            conditions.append(key != torch.arange(self.shape[-2], device=key.device)[queries, None])
        return reduce(torch.logical_and, conditions)


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
    why_not = ""
    if not 0.0 <= dropout_p <= 1.0:
        why_not = f"dropout must be a probability between 0 and 1, got {dropout_p}"
    elif degree not in (0, 1):
        why_not = f"degree must be 0, local constant, or 1, local linear, got {abbreviate(degree)}"
    elif degree and weights:
        why_not = f"{weights} needs weights of keys, which a local linear fit does not have; use degree=0"
    elif degree and algorithm in ("dense", "blocks"):
        why_not = f"degree=1, a local linear fit, has no dense layer; use algorithm='auto', not {algorithm!r}"
    elif degree and not isinstance(similarity, KernelSimilarity):
        why_not = (
            f"degree=1 needs a similarity of distances, got {type(similarity).__name__}; use GaussianSimilarity or "
            "KernelSimilarity"
        )
    elif algorithm == "fused" and dropout_p:
        why_not = f"dropout={dropout_p} needs the weights, which algorithm='fused' never makes; use 'auto'"
    if why_not:
        raise ValueError(why_not)


# Of a sequence, with at most two columns, and times as many with more: up to here the dense layer is the fastest way.
# With gradients, one thread, the engine takes over at 350 to 700 rows of one or two columns; of 4 to 64 columns beside
# products at 1500 to 2500, beside distances at 900 to 1900.
FEW_PAIRS, TIMES_AS_MANY = 1 << 18, 16
MOST_PAIRS = 1 << 24  # in a table; beyond, 64 MiB in float32, and several tables, queries go in blocks
TINY = 1 << 13  # pairs times columns: of fewer, products take more operations than differences take time
FEW_VALUES = 3  # columns; for more, products are quicker than the engine for any number of rows
# Of a sequence: torch's streaming takes a quarter more than products at 128 x 128, and a quarter less at 512 x 512; of
# one value, which it pads to the columns of keys, half more.
PAIRS_TO_STREAM = 1 << 17
STREAMS = "torch streams the keys of dot products"
RIGHT = "keys are near enough to each other, in widths, for products, if need be in double precision"


class Route(NamedTuple):
    """Choice of an algorithm, with the reason in words.

    Parameters
    ----------
    way : {"engine", "attention", "products", "blocks", "dense"}
        The compiled loops of `kernpool.pool`; torch's own ``scaled_dot_product_attention``; all weights at once, of a
        Gaussian as dot products; blocks of queries, whose weights are made again for the gradient; or all weights at
        once.
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
    Route(way='products', reason='as asked')
    """
    return plan(request)[0]


def plan(request: Request) -> tuple[Route, Request]:
    """Choose the algorithm; return the request as it takes it, with a Gaussian as dot products where they are right."""
    products = _as_products(request)
    route = _choose(request, products)
    return route, request if route.way == "engine" else products or request


def _choose(request: Request, products: Request | None) -> Route:
    table = "dense" if products is None else "products"
    if request.return_weights:
        return Route(table, "the weights are asked for")
    if request.algorithm == "blocks":
        return Route("blocks", "as asked")
    if request.dropout_p:
        return Route(table, "dropout needs the weights")
    if request.algorithm == "dense":
        return Route(table, "as asked")
    fused, exporting, why_not = request.algorithm == "fused", torch.compiler.is_exporting(), _why_not_by_engine(request)
    few, reason = FEW_PAIRS * (1 if request.query.shape[-1] <= 2 else TIMES_AS_MANY), ""
    if request.degree:
        reason = "nothing else fits local planes"
    elif fused:
        reason = "as asked"
    # Exports ask for no sizes.
    elif (
        not exporting
        and request.pairs_of_sequence > few
        and (products is None or request.value.shape[-1] <= FEW_VALUES)
    ):
        reason = f"more than {few} pairs of a sequence, for which compiled loops are faster"
    if reason and not why_not:
        return Route("engine", reason)
    if products is not None or _is_plain(request.similarity, DotProductSimilarity):
        why_not_streamed = _why_not_by_attention(products or request)
        if not why_not_streamed:
            return Route("attention", STREAMS if products is None else f"{STREAMS}, and {RIGHT}")
        if products is None or not fused:
            why_not = why_not_streamed
    why_not = why_not or f"at most {few} pairs of a sequence, few enough for all weights at once"
    if request.degree or fused:
        raise ValueError(
            f"degree={request.degree} with algorithm={request.algorithm!r} is not possible here: {why_not}"
        )
    if exporting:
        return Route("dense", "an exported program is for any number of rows")
    if request.pairs > MOST_PAIRS:
        return Route("blocks", f"{why_not}; more than {MOST_PAIRS} pairs, too many for all at once")
    return Route(table, f"{why_not}; at most {MOST_PAIRS} pairs, which fit into memory")


def _as_products(request: Request) -> Request | None:
    """Return the request with a Gaussian as dot products; None where another way is quicker, or more precise."""
    similarity = request.similarity
    if not _is_plain(similarity, KernelSimilarity):
        return None
    # Programs that are traced now are for other numbers, too, which cannot be looked at; nor can those in a CUDA graph.
    is_captured = request.query.is_cuda and torch.cuda.is_current_stream_capturing()
    if request.degree or is_traced() or is_captured:
        return None
    if request.pairs * request.query.shape[-1] < TINY:
        return None
    request, used = request.without_padding()
    found = similarity.as_products(request.query, request.key, used)
    if found is None:
        return None
    products, query, key = found
    return request._replace(query=query, key=key, similarity=products)  # type: ignore[arg-type]  # it is callable, which mypy does not see of a tuple


def _why_not_by_engine(request: Request) -> str:
    similarity = request.similarity
    if not _is_plain(similarity, KernelSimilarity):
        return f"{type(similarity).__name__} is not one of kernpool.torch's kernel similarities"
    if not request.query.is_cpu:
        return f"the engine runs on the processor, and the tensors are on {request.query.device}; use .cpu()"
    return "" if request.bias is None else "the mask adds to the logits; use a boolean one"


def _why_not_by_attention(request: Request) -> str:
    mask = request.attn_mask
    if isinstance(request.similarity, Products):
        is_masked = mask is not None or request.lengths is not None or request.exclude_self
        few = request.pairs_of_sequence <= PAIRS_TO_STREAM or request.value.shape[-1] <= FEW_VALUES
        few = few and request.query.is_cpu and request.pairs <= MOST_PAIRS
        # Values are centred, and products in double precision, where weights are made.
        return RIGHT if is_masked or few or request.query.dtype == torch.float64 != request.value.dtype else ""
    if request.exclude_self:
        return "scores go to torch's own attention, which does not know exclude_self; use a mask"
    one_row = request.lengths is not None if mask is None else mask.shape[-2] == 1
    if one_row and not torch.compiler.is_exporting() and request.pairs > MOST_PAIRS:
        return "torch's own attention would make a whole table of a mask with one row"
    return ""


def _is_plain(similarity: Similarity, kind: type[Kind]) -> TypeGuard[Kind]:
    """Return whether a similarity has the ``forward`` of a kind of kernpool's, and no forward hooks."""
    if not isinstance(similarity, kind) or similarity._forward_hooks or similarity._forward_pre_hooks:
        return False
    return type(similarity).forward is kind.forward
