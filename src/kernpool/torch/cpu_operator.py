"""Compiled pooling as a differentiable torch operator on the CPU, in memory linear in queries plus keys.

The forward pass keeps one state per query; the backward pass goes over the pairs a second time. torch sees two
opaque operators with known shapes, so that `torch.compile` and autograd work through them. Operators take only
tensors and plain numbers, so their arguments are the fields of `Sequences`, one by one.

A sequence becomes one problem of the engine, or several where its mask would be large.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kernpool.core import Layout, PoolState, Problem, column_range, solve
from kernpool.data.array_validation import LARGEST
from kernpool.pooling.recipe import choose

Places = tuple[int, slice]  # of queries: the index of the sequence, and their rows
Keys = slice | NDArray[np.intp]  # that they may use

MASK_BYTES = 1 << 24  # of the mask of a block of queries, where queries see different numbers of keys


class Sequences(NamedTuple):
    """Arguments of the compiled operator: B independent sequences of queries, keys and values."""

    query: Tensor  # shape (B, L, E), in widths
    key: Tensor  # shape (B, S, E)
    value: Tensor  # shape (B, S, C)
    counts: Tensor | None  # shape (B, L): how many of the first keys each query sees
    mask: Tensor | None  # shape (T, L, S) or (T, 1, S): tables of included pairs
    which: Tensor | None  # shape (B,): index of each sequence's table
    kernel: str
    exclude_self: bool
    degree: int

    @property
    def layout(self) -> Layout:
        """Columns of the weighted sums over keys that the fit at each query needs, as a `Layout`."""
        return Layout(values=self.value.shape[-1], columns=self.query.shape[-1], degree=self.degree)

    def parts(self) -> Iterator[tuple[Places, Keys, Problem | None]]:
        """Yield the places of a sequence's queries, or of a block of them, their keys, and their pooling problem."""
        # The problem is None if an entry is NaN or infinite. What sees no key is left out: where `counts`, or a mask of
        # one row for all queries, exclude every key.
        rows, all_keys = self.query.shape[1], self.key.shape[1]
        query, key, value = map(as_array, self[:3])
        for b in range(len(query)):
            table = None if self.mask is None or self.which is None else self.mask[int(self.which[b])].numpy()
            seen = np.full(rows, all_keys) if self.counts is None else self.counts[b].numpy()
            size = rows if np.ptp(seen) == 0 else max(1, MASK_BYTES // all_keys)
            for start in range(0, rows, size):
                queries = slice(start, min(start + size, rows))
                keys, number, allowed = _seen(table, seen[queries], queries, all_keys)
                if not number.size:
                    continue
                self_index = _places(number, np.arange(queries.start, queries.stop)) if self.exclude_self else None
                arrays = query[b, queries], key[b, keys], value[b, keys]
                yield (b, queries), keys, self._problem(*arrays, allowed, self_index)

    def _problem(
        self,
        query: NDArray[Any],
        key: NDArray[Any],
        value: NDArray[Any],
        mask: NDArray[np.bool_] | None,
        self_index: NDArray[np.intp] | None,
    ) -> Problem | None:
        if mask is not None:
            # Keys that no query uses are padding and may hold anything.
            others = mask if self_index is None else mask & (np.arange(len(key)) != self_index[:, None])
            used = np.any(others, axis=0, keepdims=True).T
            query = np.where(np.any(others, axis=1, keepdims=True), query, 0)
            key, value = np.where(used, key, 0), np.where(used, value, 0)
        if not all(np.isfinite(array).all() for array in (query, key, value)):
            return None
        low, high = (np.array(ends) for ends in zip(column_range(query), column_range(key), strict=True))
        extent = high.max(axis=0).astype(np.float64) - low.min(axis=0)
        problem = Problem.from_arrays(
            query,
            key,
            value,
            kernel=self.kernel,
            bandwidth=np.maximum(2.0 * extent / LARGEST, 1.0),  # points so far that nothing changes any more
            attn_mask=mask,
            exclude_self=self.exclude_self,
            self_index=self_index,
            degree=self.degree,
        )
        return replace(problem, dtype=value.dtype)  # as precise as the data need, whose points are precise in any case


def as_array(tensor: Tensor) -> NDArray[Any]:
    """Convert a CPU tensor to a NumPy array of its dtype; half precision becomes float32."""
    # NumPy has no bfloat16, and its float16 is slow
    if tensor.dtype in (torch.float16, torch.bfloat16):
        tensor = tensor.float()
    return tensor.detach().contiguous().numpy()


def _seen(
    table: NDArray[np.bool_] | None, seen: NDArray[np.int64], queries: slice, all_keys: int
) -> tuple[Keys, NDArray[np.intp], NDArray[np.bool_] | None]:
    """Return the keys that a block of queries may use, their indices, and a mask of pairs; None if all are used."""
    keys: Keys = slice(0, int(seen.max()))
    number, allowed = np.arange(all_keys)[keys], None
    if table is not None and len(table) == 1:  # one row for all queries is a choice of keys, and needs no table
        keys = number = np.flatnonzero(table[0, keys])
    elif table is not None:
        allowed = table[queries, keys]
    if np.ptp(seen) or len(number) == 1:  # of one key, leave-one-out may leave nothing
        within = number < seen[:, None]
        allowed = within if allowed is None else allowed & within
    return keys, number, allowed


def _places(number: NDArray[np.intp], wanted: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the positions of wanted numbers in an increasing array; -1 for numbers that it lacks."""
    place = np.minimum(np.searchsorted(number, wanted), len(number) - 1)
    return np.where(number[place] == wanted, place, -1)


Array = NDArray[np.float64]

FIELDS = len(Sequences._fields)
GRADIENTS = ("query", "key", "value")  # by the first fields, as the engine calls them
ONCE = (
    "the fused operator has no second derivatives; use AttentionPooling(..., algorithm='dense') where they are needed"
)


# As torch writes signatures.
SEQUENCES = (
    "Tensor query, Tensor key, Tensor value, Tensor? counts, Tensor? mask, Tensor? which, "
    "str kernel, bool exclude_self, int degree"
)
STATES = "Tensor shift, Tensor denominator, Tensor numerator"


@torch.library.custom_op("kernpool::pool", mutates_args=(), schema=f"({SEQUENCES}) -> (Tensor, Tensor, Tensor, Tensor)")
def pool_pairs(*fields: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Pool a batch of sequences, the fields of `Sequences`; return values and the sums for the backward pass."""
    given = Sequences(*fields)
    query, value = given.query, given.value
    batch, rows, _ = query.shape
    pooled = np.zeros((batch, rows, value.shape[-1]))
    shift, denominator = np.full((batch, rows), -np.inf), np.zeros((batch, rows))
    numerator = np.zeros((batch, rows, given.layout.width))
    for at, _, problem in given.parts():
        if problem is None:
            pooled[at] = np.nan
            continue
        centered = problem.without_center()
        state = choose(centered, reuse=True).reduce(centered, n_jobs=torch.get_num_threads())
        fit = solve(state, problem.layout)
        pooled[at] = np.where(fit.occupied[:, None], fit.intercept + problem.value_center, 0.0)
        shift[at], denominator[at], numerator[at] = state.shift, state.denominator, state.numerator
    states = torch.from_numpy(shift), torch.from_numpy(denominator), torch.from_numpy(numerator)
    return torch.from_numpy(pooled).to(value.dtype), *states


@torch.library.custom_op(
    "kernpool::pool_backward",
    mutates_args=(),
    schema=f"(Tensor cotangent, {SEQUENCES}, {STATES}, bool[] wanted) -> Tensor[]",
)
def pull_back(cotangent: Tensor, *inputs: Any) -> list[Tensor]:
    """Return the gradients of `pool_pairs` by queries, keys and values; empty if not requested."""
    given, (*states, wanted) = Sequences(*inputs[:FIELDS]), inputs[FIELDS:]
    tensors = inputs[:3]
    asked = frozenset(name for name, want in zip(GRADIENTS, wanted, strict=True) if want)
    totals = [np.zeros(tensor.shape if want else 0) for tensor, want in zip(tensors, wanted, strict=True)]
    slopes = as_array(cotangent).astype(np.float64)
    for at, keys, problem in given.parts():
        if problem is None:
            for total in totals:
                total[...] = np.nan
            break
        centered = problem.without_center()
        state = PoolState(*(table[at].numpy() for table in states))
        plan, n_jobs = choose(centered, reuse=True), torch.get_num_threads()
        found = plan.pullback(centered, state, slopes[at], asked, n_jobs=n_jobs)
        sequence, queries = at
        for name, total, rows in zip(GRADIENTS, totals, (queries, keys, keys), strict=True):
            if name in asked:
                total[sequence, rows] += np.asarray(getattr(found, name))
    return [torch.from_numpy(total).to(tensor.dtype) for total, tensor in zip(totals, tensors, strict=True)]


@pool_pairs.register_fake
def _(*fields: Any) -> tuple[Tensor, ...]:
    given = Sequences(*fields)
    batch, rows, _ = given.query.shape
    table = given.query.new_empty(batch, rows, dtype=torch.float64)
    pooled = given.value.new_empty(batch, rows, given.value.shape[-1])
    return pooled, table, torch.empty_like(table), table.new_empty(batch, rows, given.layout.width)


@pull_back.register_fake
def _(cotangent: Tensor, *inputs: Any) -> list[Tensor]:  # noqa: ARG001  # as torch calls it
    tensors, wanted = inputs[:3], inputs[-1]
    return [tensor.new_empty(tensor.shape if want else 0) for tensor, want in zip(tensors, wanted, strict=True)]


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs[:6], *output[1:])  # all but the tensors are plain
    ctx.options = inputs[6:]
    ctx.mark_non_differentiable(*output[1:])


def _backward(ctx: Any, cotangent: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    saved, wanted = ctx.saved_tensors, list(ctx.needs_input_grad[:3])
    found = pull_back(cotangent, *saved[:6], *ctx.options, *saved[6:], wanted)
    gradients = [gradient if want else None for gradient, want in zip(found, wanted, strict=True)]
    return (*gradients, *[None] * (FIELDS - len(gradients)))


def refuse(*_: Any) -> None:
    """Say where there are second derivatives."""
    raise NotImplementedError(ONCE)


pool_pairs.register_autograd(_backward, setup_context=_keep)
pull_back.register_autograd(refuse)
