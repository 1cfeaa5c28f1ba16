"""Pooling on the processor by the compiled engine, as an operator of torch with a gradient: memory n + m, no weights.

The forward pass keeps one state per query; the backward pass goes over the pairs a second time. torch sees two opaque
operators with known shapes, so that `torch.compile` and autograd work through them. All arrays are (batch, rows,
columns) here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kernpool.algorithms.algorithm import FEWEST_FOR_PRODUCTS, Gradients
from kernpool.algorithms.far.gradients import find_far
from kernpool.algorithms.sweep.gradients import applies
from kernpool.core.local_fit import solve
from kernpool.core.moments import Layout
from kernpool.core.problem import Problem
from kernpool.core.reading import column_range
from kernpool.core.state import PoolState
from kernpool.data.checks import LARGEST
from kernpool.pooling.choice import choose

MASK_BYTES = 1 << 24  # of the mask of a block of queries, where queries see different numbers of keys
WANTED = ("query", "key", "value", "log_bandwidth")
ONCE = (
    "the fused operator has no second derivatives; use AttentionPooling(..., algorithm='dense') where they are needed"
)


@torch.library.custom_op("kernpool::pool", mutates_args=())
def pool_pairs(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    inverse_bandwidth: Tensor,
    counts: Tensor | None,
    mask: Tensor | None,
    which: Tensor | None,
    kernel: str,
    exclude_self: bool,
    degree: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Pool (B, S, C) values for (B, L, E) queries, and return the states that the gradient needs.

    Parameters
    ----------
    query, key, value : Tensor of shape (B, L, E), (B, S, E), (B, S, C)
        On the processor.
    inverse_bandwidth : Tensor of shape (E,)
        Factors of the columns; only their absolute values matter.
    counts : Tensor of int64, shape (B, L), optional
        How many of the first keys each query sees.
    mask : Tensor of bool, shape (T, L, S) or (T, 1, S), optional
        Tables of which pairs count.
    which : Tensor of int64, shape (B,), optional
        The number of each sequence's table.
    kernel : str
        Name of a kernel.
    exclude_self : bool
        Leave key i out for query i.
    degree : {0, 1}
        Local constant or local linear.

    Returns
    -------
    pooled : Tensor of shape (B, L, C)
        In the precision of the values; zero where no key counts.
    shift, denominator : Tensor of float64, shape (B, L)
    numerator : Tensor of float64, shape (B, L, width)
        The states.
    """
    (batch, rows, _), columns, width = query.shape, value.shape[-1], _width(query, value, degree)
    pooled = np.zeros((batch, rows, columns))
    shift, denominator = np.full((batch, rows), -np.inf), np.zeros((batch, rows))
    numerator = np.zeros((batch, rows, width))
    arrays = [_array(tensor) for tensor in (query, key, value, inverse_bandwidth)]
    for b, own, _, problem in _parts(arrays, counts, mask, which, kernel, exclude_self, degree):
        if problem is None:
            pooled[b, own] = np.nan
            continue
        centred = problem.without_center()
        state = choose(centred).reduce(centred, n_jobs=torch.get_num_threads())
        fit = solve(state, problem.layout)
        pooled[b, own] = np.where(fit.occupied[:, None], fit.intercept + problem.value_center, 0.0)
        shift[b, own], denominator[b, own], numerator[b, own] = state.shift, state.denominator, state.numerator
    as_tensors = [torch.from_numpy(array) for array in (pooled, shift, denominator, numerator)]
    return as_tensors[0].to(value.dtype), as_tensors[1], as_tensors[2], as_tensors[3]


@torch.library.custom_op("kernpool::pool_backward", mutates_args=())
def pull_back(
    cotangent: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    inverse_bandwidth: Tensor,
    counts: Tensor | None,
    mask: Tensor | None,
    which: Tensor | None,
    kernel: str,
    exclude_self: bool,
    degree: int,
    shift: Tensor,
    denominator: Tensor,
    numerator: Tensor,
    wanted: list[bool],
) -> list[Tensor]:
    """Return the gradients by queries, keys, values and inverse bandwidths; empty ones where not wanted."""
    tensors = (query, key, value, inverse_bandwidth)
    arrays = [_array(tensor) for tensor in tensors]
    names = frozenset(name for name, want in zip(WANTED, wanted, strict=True) if want)
    sums = [np.zeros(tensor.shape if want else 0) for tensor, want in zip(tensors, wanted, strict=True)]
    states = [tensor.numpy() for tensor in (shift, denominator, numerator)]
    slopes = _array(cotangent).astype(np.float64)
    inverse = arrays[3].astype(np.float64)
    # Pooling sees places in bandwidths alone, so the gradient by widths follows from those by places. With many columns
    # a pass of its own takes longer than matrix products do for both; on a line series give those by places in no time.
    by_places = names - {"log_bandwidth"} | {"query", "key"}
    by_products = query.shape[-1] >= FEWEST_FOR_PRODUCTS and kernel == "gaussian" and mask is None and not degree
    for b, own, keys, problem in _parts(arrays, counts, mask, which, kernel, exclude_self, degree):
        if problem is None:
            for total in sums:
                total[...] = np.nan
            break
        centred = problem.without_center()
        state = PoolState(*(table[b, own] for table in states))
        from_places = (
            "log_bandwidth" in names
            and (
                (by_products and {"query", "key"} <= names)
                or (query.shape[-1] == 1 and applies(centred, state, by_places))
            )
            and not find_far(state).size  # for which sums of places times gradients would cancel
        )
        summed = by_places if from_places else names
        found = choose(centred).pullback(centred, state, slopes[b, own], summed, n_jobs=torch.get_num_threads())
        by_log = _by_log_bandwidth(problem, found) if from_places else found.log_bandwidth
        # By 1/h, and where that is zero by symmetry nothing: weights depend on its square.
        by_inverse = (
            0.0
            if by_log is None
            else -np.divide(by_log.sum(axis=0), inverse, where=inverse != 0, out=np.zeros_like(inverse))
        )
        parts = (((b, own), found.query), ((b, keys), found.key), ((b, keys), found.value), ((), by_inverse))
        for total, want, (place, part) in zip(sums, wanted, parts, strict=True):
            if want:
                total[place] += np.asarray(part)
    return [torch.from_numpy(total).to(tensor.dtype) for total, tensor in zip(sums, tensors, strict=True)]


@pool_pairs.register_fake
def _(query: Tensor, _: Tensor, value: Tensor, *options: Any) -> tuple[Tensor, ...]:
    (batch, rows), degree = query.shape[:2], options[-1]
    table = query.new_empty(batch, rows, dtype=torch.float64)
    pooled = value.new_empty(batch, rows, value.shape[-1])
    return pooled, table, torch.empty_like(table), table.new_empty(batch, rows, _width(query, value, degree))


@pull_back.register_fake
def _(cotangent: Tensor, *inputs: Any) -> list[Tensor]:  # noqa: ARG001  # as torch calls it
    tensors, wanted = inputs[:4], inputs[-1]
    return [tensor.new_empty(tensor.shape if want else 0) for tensor, want in zip(tensors, wanted, strict=True)]


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    query, key, value, inverse_bandwidth, counts, mask, which, kernel, exclude_self, degree = inputs
    _, shift, denominator, numerator = output
    ctx.save_for_backward(query, key, value, inverse_bandwidth, counts, mask, which, shift, denominator, numerator)
    ctx.options = (kernel, exclude_self, degree)
    ctx.mark_non_differentiable(shift, denominator, numerator)


def _backward(ctx: Any, cotangent: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    query, key, value, inverse_bandwidth, counts, mask, which, *state = ctx.saved_tensors
    wanted = list(ctx.needs_input_grad[:4])
    found = pull_back(
        cotangent, query, key, value, inverse_bandwidth, counts, mask, which, *ctx.options, *state, wanted
    )
    gradients = [gradient if want else None for gradient, want in zip(found, wanted, strict=True)]
    return (*gradients, None, None, None, None, None, None)


def _refuse(ctx: Any, *_: Any) -> None:
    raise NotImplementedError(ONCE)


pool_pairs.register_autograd(_backward, setup_context=_keep)
pull_back.register_autograd(_refuse)


def _by_log_bandwidth(problem: Problem, found: Gradients) -> NDArray[np.float64]:
    """Return minus the sums of places times their gradients, about the centre of the keys."""
    center = problem.key.mean(axis=0, dtype=np.float64)
    by_query, by_key = cast(NDArray[np.float64], found.query), cast(NDArray[np.float64], found.key)
    return np.concatenate([(center - problem.query) * by_query, (center - problem.key) * by_key])


def _width(query: Tensor, value: Tensor, degree: int) -> int:
    return Layout(values=value.shape[-1], columns=query.shape[-1], degree=degree).width


def _array(tensor: Tensor) -> NDArray[Any]:
    if tensor.dtype in (torch.float16, torch.bfloat16):
        tensor = tensor.float()
    return tensor.detach().contiguous().numpy()


def _parts(
    arrays: list[NDArray[Any]],
    counts: Tensor | None,
    mask: Tensor | None,
    which: Tensor | None,
    kernel: str,
    exclude_self: bool,
    degree: int,
) -> Iterator[tuple[int, slice, slice | NDArray[np.intp], Problem | None]]:
    """Yield sequences, or blocks of their queries, and the keys they see; without a problem if that holds a NaN."""
    (query, key, value, inverse), (rows, all_keys) = arrays, (arrays[0].shape[1], arrays[1].shape[1])
    for b in range(len(query)):
        table = None if mask is None or which is None else mask[int(which[b])].numpy()
        seen = np.full(rows, all_keys) if counts is None else np.minimum(counts[b].numpy(), all_keys)
        size = rows if np.ptp(seen) == 0 else max(1, MASK_BYTES // all_keys)
        for start in range(0, rows, size):
            own = slice(start, min(start + size, rows))
            keys: slice | NDArray[np.intp] = slice(0, int(seen[own].max()))
            number, allowed = np.arange(all_keys)[keys], None
            if table is not None and len(table) == 1:  # one row for all queries is a choice of keys, and needs no table
                keys = number = np.flatnonzero(table[0, keys])
            elif table is not None:
                allowed = table[own, keys]
            if np.ptp(seen[own]):
                within = number < seen[own, None]
                allowed = within if allowed is None else allowed & within
            if number.size:
                left_out = _places(number, np.arange(own.start, own.stop)) if exclude_self else None
                yield (
                    b,
                    own,
                    keys,
                    _problem(query[b, own], key[b, keys], value[b, keys], inverse, allowed, kernel, left_out, degree),
                )


def _places(number: NDArray[np.intp], wanted: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return where numbers are in an increasing list; -1 for those that are not."""
    place = np.minimum(np.searchsorted(number, wanted), len(number) - 1)
    return np.where(number[place] == wanted, place, -1)


def _problem(
    query: NDArray[Any],
    key: NDArray[Any],
    value: NDArray[Any],
    inverse: NDArray[Any],
    mask: NDArray[np.bool_] | None,
    kernel: str,
    own: NDArray[np.intp] | None,
    degree: int,
) -> Problem | None:
    if mask is not None:
        # What takes part for no query is padding and may hold anything.
        used = np.any(mask, axis=0, keepdims=True).T
        query = np.where(np.any(mask, axis=1, keepdims=True), query, 0)
        key, value = np.where(used, key, 0), np.where(used, value, 0)
    if not all(np.isfinite(array).all() for array in (query, key, value, inverse)):
        return None
    low, high = (np.array(ends) for ends in zip(column_range(query), column_range(key), strict=True))
    extent = high.max(axis=0).astype(np.float64) - low.min(axis=0)
    # Widths that training has driven away: to where nothing changes any more.
    with np.errstate(divide="ignore"):
        bandwidth = np.clip(1.0 / np.abs(inverse.astype(np.float64)), np.maximum(2.0 * extent / LARGEST, 1e-150), 1e150)
    return Problem.from_arrays(
        query,
        key,
        value,
        kernel=kernel,
        bandwidth=bandwidth,
        attn_mask=mask,
        exclude_self=own is not None,
        self_index=own,
        degree=degree,
    )
