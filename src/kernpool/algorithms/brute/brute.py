"""Brute-force summation: every query-key pair, in blocks on threads, without storing the n x m weights.

Queries are cut into blocks and keys into chunks. A block runs on one thread, goes through the chunks in order and
merges their states, in tiles that stay in the cache. The cuts depend only on the shape of the problem, so the bits of
the result do not depend on the number of threads.

Built-in kernels run in compiled loops. A user-defined kernel, a float mask (logit bias), or a product of so many
compact kernels that it may underflow runs through the reference implementation on one small dense block at a time,
with the same cuts and merges.

The estimated time is the measured cost of a pair on this class of processor, times the number of pairs.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial

import numpy as np

from kernpool._arrays import Array
from kernpool.algorithms import reference
from kernpool.algorithms.algorithm import PER_QUERY, Algorithm, Blocks, Gradients, brute_seconds, may_underflow
from kernpool.core import PoolState, Problem, empty_state, merge
from kernpool.execution import Progress, blas_threads, cut, run_blocks
from kernpool.execution.threads import OrderedSum, Work, cut_evenly, run_passes
from kernpool.kernels import is_compiled


class DenseBlocks:
    """Kernel sums and gradients of blocks by the reference implementation in dense NumPy."""

    pairs_per_call = 1 << 18  # temporaries of 2 MiB stay in the second-level cache
    keys_per_call = 1 << 12
    gradients_use_blas = False  # its products are small

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def sum_block(self, queries: slice, keys: slice) -> PoolState:
        """Return the kernel sums of a slice of queries over a slice of keys."""
        return reference.reduce(self.problem.block(queries, keys))

    def differentiate_block(
        self, queries: slice, keys: slice, state: PoolState, cotangent: Array, wanted: frozenset[str]
    ) -> Gradients:
        """Return the contribution of a slice of queries and a slice of keys to the requested gradients."""
        part = state.rows(queries)
        return reference.pullback(self.problem.block(queries, keys), part, cotangent[queries], wanted)


def _blocks(problem: Problem, staged: bool = False) -> Blocks:
    """Return the loops for a problem: compiled ones, only the staged tiles if `staged`, or dense NumPy."""
    kernel = problem.similarity.kernel
    in_logarithms = kernel.is_compact and may_underflow(problem)
    if not is_compiled(kernel) or problem.logit_bias is not None or in_logarithms:
        return DenseBlocks(problem)
    from kernpool.algorithms.brute.tiles import CompiledBlocks

    return CompiledBlocks(problem, staged)


def reduce(problem: Problem, n_jobs: int = 1, progress: Progress | None = None) -> PoolState:
    """Compute kernel sums over all keys for each query, by brute force in blocks on threads."""
    if not problem.similarity.is_uniform and problem.similarity.kernel.is_compact:
        return _sum_windows(problem, n_jobs, progress)
    return _sum_blocks(problem, _blocks(problem), n_jobs, progress)


QUERIES_OF_WINDOWS = 128  # neighbours whose windows have nearly the same keys
REACH = 1.0 + 1e-9
FEW_PAIRS = 1 << 22  # up to which they are a few milliseconds


def _sum_windows(problem: Problem, n_jobs: int, progress: Progress | None) -> PoolState:
    """Compute kernel sums over the keys of windows that differ between queries, some neighbouring queries at a time."""
    similarity, (m, n) = problem.similarity, problem.shape
    if m * n <= FEW_PAIRS:
        return _sum_blocks(problem, _blocks(problem), n_jobs, progress)
    from scipy.spatial import KDTree

    middle, h, radii = problem.key.mean(axis=0), similarity.bandwidth, similarity.radii
    norm = 2.0 if similarity.kernel.composition == "radial" else np.inf
    tree = problem.prepare("KDTree", (problem.key, h), lambda: KDTree((problem.key - middle) / h))
    query = (problem.query - middle) / h
    order = KDTree(query, leafsize=QUERIES_OF_WINDOWS).indices
    result = empty_state(m, problem.layout.width)

    def work(queries: slice) -> Iterator[None]:
        rows = np.sort(order[queries])
        near = query[rows]
        center = 0.5 * near.min(axis=0) + 0.5 * near.max(axis=0)
        reach = np.linalg.norm(near - center, ord=norm, axis=1) + radii[rows]
        keys = np.sort(tree.query_ball_point(center, REACH * reach.max(), p=norm)).astype(np.intp)
        if keys.size:
            part = problem.block(rows, keys)
            result.put(rows, _sum_blocks(part, _blocks(part)))
        yield

    run_blocks(work, cut(m, QUERIES_OF_WINDOWS), n_jobs, progress)
    return result


def reduce_densely(problem: Problem) -> PoolState:
    """Compute kernel sums by dense NumPy in small blocks: slow, but independent of all compiled loops."""
    return _sum_blocks(problem, DenseBlocks(problem))


def reduce_staged(problem: Problem) -> PoolState:
    """Compute kernel sums by the one compiled loop that supports every built-in kernel."""
    # That loop, the staged tiles, is independent of the faster loops of brute force, and the only one to be compiled.
    # Problems that no compiled loop supports run through the reference implementation.
    return _sum_blocks(problem, _blocks(problem, staged=True))


def _sum_blocks(problem: Problem, blocks: Blocks, n_jobs: int = 1, progress: Progress | None = None) -> PoolState:
    m, n = problem.shape
    chunks = cut(n, blocks.keys_per_call)
    result = PoolState(np.empty(m), np.empty(m), np.empty((m, problem.layout.width)))  # every query is in a block

    def work(queries: slice) -> Iterator[None]:
        state = None
        for keys in chunks:
            part = blocks.sum_block(queries, keys)
            state = part if state is None else merge(state, part)
            yield
        assert state is not None
        result.put(queries, state)

    rows = max(1, blocks.pairs_per_call // min(n, blocks.keys_per_call))
    run_blocks(work, cut_evenly(m, rows), n_jobs, progress)
    return result


def pullback(
    problem: Problem,
    state: PoolState,
    cotangent: Array,
    wanted: frozenset[str],
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Gradients:
    """Compute the gradients of pooling by brute force, over every query-key pair.

    Each block of keys visits all queries, so that no two threads share a sum per key. Sums per query are added up block
    after block, in order. Where keys are too few for that, a pass of its own sums per query, and so does one where
    nothing else is wanted.
    """
    (m, n), blocks = problem.shape, _blocks(problem)
    sums = {
        name: np.zeros((m if name in PER_QUERY else n, (problem.value if name == "value" else problem.key).shape[1]))
        for name in wanted
    }

    def along(others: list[slice], names: frozenset[str], own: slice) -> Iterator[None]:
        # Sums per query of a block of queries over all keys, or per key of a block of keys over all queries.
        for other in others:
            queries, keys = (own, other) if names <= PER_QUERY else (other, own)
            part = blocks.differentiate_block(queries, keys, state, cotangent, names)._asdict()
            for name in names:
                sums[name][own] += part[name]
            yield

    def along_both(some: slice, ordered: dict[str, OrderedSum], keys: slice) -> Iterator[None]:
        terms = {name: np.zeros((some.stop - some.start, sums[name].shape[1])) for name in ordered}
        for piece in cut(some.stop - some.start, blocks.pairs_per_call // _KEY_ROWS):
            queries = slice(some.start + piece.start, some.start + piece.stop)
            part = blocks.differentiate_block(queries, keys, state, cotangent, wanted)._asdict()
            for name in wanted:
                (terms[name][piece] if name in ordered else sums[name][keys])[...] += part[name]
            yield
        for name, term in terms.items():
            ordered[name].add(keys.start // _KEY_ROWS, term)

    rows = max(1, blocks.pairs_per_call // min(n, blocks.keys_per_call))
    per_query, per_key = cut(m if wanted & PER_QUERY else 0, rows), cut(n if wanted - PER_QUERY else 0, _KEY_ROWS)
    passes: list[tuple[Work, list[slice]]] = [
        (partial(along, cut(n, blocks.keys_per_call), wanted & PER_QUERY), per_query),
        (partial(along, cut(m, blocks.pairs_per_call // _KEY_ROWS), wanted - PER_QUERY), per_key),
    ]
    if per_query and len(per_key) >= _FEWEST_KEY_BLOCKS:
        passes = []
        width = sum(sums[name].shape[1] for name in wanted & PER_QUERY)
        for some in cut(m, max(1, _NUMBERS_PER_PASS // width)):
            ordered = {name: OrderedSum(sums[name][some]) for name in wanted & PER_QUERY}
            passes.append((partial(along_both, some, ordered), per_key))
    with blas_threads() if blocks.gradients_use_blas else nullcontext():
        run_passes(passes, n_jobs, progress)
    return Gradients(**sums)


_KEY_ROWS = 1024  # keys per block when sums are per key: two tiles of the loops
_FEWEST_KEY_BLOCKS = 8  # that keep threads busy
_NUMBERS_PER_PASS = 1 << 20  # sums per query that each block of keys keeps until the blocks before it are done

BRUTE = Algorithm(
    name="brute",
    summary="every pair, in compiled tiles",
    reduce=reduce,
    pullback=pullback,
    seconds=brute_seconds,
    degree=2,
    windows=(object,),
)
