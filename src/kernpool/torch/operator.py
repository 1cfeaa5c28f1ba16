"""Pooling on the processor by the compiled engine, as an operator of torch with a gradient: memory n + m, no weights.

The forward pass keeps one state per query; the backward pass goes over the pairs a second time. torch sees two opaque
operators with known shapes, so that `torch.compile` and autograd work through them. Operators take tensors and plain
numbers alone, so their arguments are the fields of `Sequences`, one by one.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kernpool.algorithms import Gradients
from kernpool.core.local_fit import solve
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState
from kernpool.pooling.choice import choose
from kernpool.torch.route import choose_width_gradient
from kernpool.torch.sequences import Part, Sequences, as_array

Array = NDArray[np.float64]

FIELDS = len(Sequences._fields)
ONCE = (
    "the fused operator has no second derivatives; use AttentionPooling(..., algorithm='dense') where they are needed"
)


class Totals(NamedTuple):
    """Gradients by the tensors of `Sequences` that have one, summed over its parts; None where they are not wanted."""

    query: Array | None
    key: Array | None
    value: Array | None
    inverse_bandwidth: Array | None

    @classmethod
    def zeros(cls, tensors: Sequences, wanted: list[bool]) -> Totals:
        """Make tables of zeros for the tensors whose gradient is wanted."""
        return cls(
            *(np.zeros(tensor.shape) if want else None for tensor, want in zip(tensors[:4], wanted, strict=True))
        )

    @property
    def wanted(self) -> frozenset[str]:
        """What the engine calls the gradients that are wanted."""
        names = {name for name in ("query", "key", "value") if getattr(self, name) is not None}
        return frozenset(names if self.inverse_bandwidth is None else names | {"log_bandwidth"})

    def add(self, part: Part, found: Gradients, inverse_bandwidth: Tensor) -> None:
        """Add the gradients of some queries and the keys that they see."""
        if self.query is not None:
            self.query[part.sequence, part.queries] += np.asarray(found.query)
        if self.key is not None:
            self.key[part.sequence, part.keys] += np.asarray(found.key)
        if self.value is not None:
            self.value[part.sequence, part.keys] += np.asarray(found.value)
        if self.inverse_bandwidth is not None:
            inverse = as_array(inverse_bandwidth).astype(np.float64)
            by_log = np.asarray(found.log_bandwidth).sum(axis=0)
            # Where 1/h is zero, nothing by symmetry: weights depend on its square.
            self.inverse_bandwidth[...] -= np.divide(by_log, inverse, where=inverse != 0, out=np.zeros_like(inverse))


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
    """Pool sequences, and return the states that the gradient needs.

    Parameters
    ----------
    query, key, value, inverse_bandwidth, counts, mask, which, kernel, exclude_self, degree
        The fields of `Sequences`.

    Returns
    -------
    pooled : Tensor of shape (B, L, C)
        In the precision of the values; zero where no key counts.
    shift, denominator : Tensor of float64, shape (B, L)
    numerator : Tensor of float64, shape (B, L, width)
        The states.
    """
    given = Sequences(query, key, value, inverse_bandwidth, counts, mask, which, kernel, exclude_self, degree)
    batch, rows, _ = query.shape
    pooled = np.zeros((batch, rows, value.shape[-1]))
    shift, denominator = np.full((batch, rows), -np.inf), np.zeros((batch, rows))
    numerator = np.zeros((batch, rows, given.layout.width))
    for part in given.parts():
        at, problem = (part.sequence, part.queries), part.problem
        if problem is None:
            pooled[at] = np.nan
            continue
        centered = problem.without_center()
        state = choose(centered, often=True).reduce(centered, n_jobs=torch.get_num_threads())
        fit = solve(state, problem.layout)
        pooled[at] = np.where(fit.occupied[:, None], fit.intercept + problem.value_center, 0.0)
        shift[at], denominator[at], numerator[at] = state.shift, state.denominator, state.numerator
    states = torch.from_numpy(shift), torch.from_numpy(denominator), torch.from_numpy(numerator)
    return torch.from_numpy(pooled).to(value.dtype), *states


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
    given = Sequences(query, key, value, inverse_bandwidth, counts, mask, which, kernel, exclude_self, degree)
    totals, slopes = Totals.zeros(given, wanted), as_array(cotangent).astype(np.float64)
    states = [tensor.numpy() for tensor in (shift, denominator, numerator)]
    for part in given.parts():
        at, problem = (part.sequence, part.queries), part.problem
        if problem is None:
            for total in totals:
                if total is not None:
                    total[...] = np.nan
            break
        found = _differentiate(problem, PoolState(*(table[at] for table in states)), slopes[at], totals.wanted, mask)
        totals.add(part, found, inverse_bandwidth)
    arrays = [np.zeros(0) if total is None else total for total in totals]
    return [torch.from_numpy(array).to(tensor.dtype) for array, tensor in zip(arrays, given[:4], strict=True)]


def _differentiate(
    problem: Problem, state: PoolState, cotangent: Array, wanted: frozenset[str], mask: Tensor | None
) -> Gradients:
    """Return the wanted gradients, and maybe others; rows of that by log bandwidths are to be summed."""
    centered = problem.without_center()
    plan, n_jobs = choose(centered, often=True), torch.get_num_threads()
    if choose_width_gradient(centered, state, wanted, masked=mask is not None).way == "pairs":
        return plan.pullback(centered, state, cotangent, wanted, n_jobs=n_jobs)
    places = wanted - {"log_bandwidth"} | {"query", "key"}
    found = plan.pullback(centered, state, cotangent, places, n_jobs=n_jobs)
    # Minus the sums of places times their gradients, about the center of the keys.
    center = problem.key.mean(axis=0, dtype=np.float64)
    by_query, by_key = cast(Array, found.query), cast(Array, found.key)
    by_log = np.concatenate([(center - problem.query) * by_query, (center - problem.key) * by_key])
    return found._replace(log_bandwidth=by_log)


@pool_pairs.register_fake
def _(*fields: Any) -> tuple[Tensor, ...]:
    given = Sequences(*fields)
    batch, rows, _ = given.query.shape
    table = given.query.new_empty(batch, rows, dtype=torch.float64)
    pooled = given.value.new_empty(batch, rows, given.value.shape[-1])
    return pooled, table, torch.empty_like(table), table.new_empty(batch, rows, given.layout.width)


@pull_back.register_fake
def _(cotangent: Tensor, *inputs: Any) -> list[Tensor]:  # noqa: ARG001  # as torch calls it
    tensors, wanted = inputs[:4], inputs[-1]
    return [tensor.new_empty(tensor.shape if want else 0) for tensor, want in zip(tensors, wanted, strict=True)]


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs[:7], *output[1:])  # all but the tensors are plain
    ctx.options = inputs[7:]
    ctx.mark_non_differentiable(*output[1:])


def _backward(ctx: Any, cotangent: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    *tensors, shift, denominator, numerator = ctx.saved_tensors
    wanted = list(ctx.needs_input_grad[:4])
    found = pull_back(cotangent, *tensors, *ctx.options, shift, denominator, numerator, wanted)
    gradients = [gradient if want else None for gradient, want in zip(found, wanted, strict=True)]
    return (*gradients, *[None] * (FIELDS - len(gradients)))


def _refuse(ctx: Any, *_: Any) -> None:
    raise NotImplementedError(ONCE)


pool_pairs.register_autograd(_backward, setup_context=_keep)
pull_back.register_autograd(_refuse)
