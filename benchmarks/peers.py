"""The peers: each pools one value column the best way its library offers, in a function of a case.

A peer says by `cannot` what it does not do, and what would take too much memory. They compute in the dtype they are
given, or say that they cannot, and take the threads they are given.
"""

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from cases import SUPPORT, Case

MEMORY = 4 << 30  # bytes


@dataclass(frozen=True)
class Peer:
    """A way to pool, and where it ends."""

    name: str
    run: Callable[[Case], np.ndarray]
    kernels: tuple[str, ...] = ("gaussian", "epanechnikov", "laplace")
    single: bool = True  # whether it computes in float32
    bytes_per_pair: float = 0.0
    bytes_per_neighbour: float = 0.0
    most_rows: int = 1 << 62

    def cannot(self, case: Case) -> str | None:
        """Say why this case is not for this peer, or None."""
        if case.kernel not in self.kernels:
            return "has no such kernel"
        if case.key.dtype == np.float32 and not self.single:
            return "computes in float64"
        if case.n > self.most_rows:
            return "would take too long"
        needed = self.bytes_per_pair * case.pairs
        if self.bytes_per_neighbour:
            needed += self.bytes_per_neighbour * case.neighbours() * case.n
        return f"would take {needed / 2**30:.0f} GiB" if needed > MEMORY else None


def profile(kernel: str, squared: np.ndarray) -> np.ndarray:
    """Weights from squared distances in bandwidths, in place."""
    if kernel == "epanechnikov":
        return np.maximum(np.subtract(1.0, squared, out=squared), 0.0, out=squared)
    exponent = np.multiply(squared, -0.5, out=squared) if kernel == "gaussian" else -np.sqrt(squared, out=squared)
    return np.exp(exponent, out=exponent)


def dense_numpy(case: Case) -> np.ndarray:
    """The expression everybody writes: all weights at once, in place; by a matrix product for many columns."""
    query, key = case.query / case.bandwidth, case.key / case.bandwidth
    center = key.mean(axis=0)
    query, key = query - center, key - center
    if case.columns <= 3:
        squared = query[:, 0, None] - key[:, 0]
        np.multiply(squared, squared, out=squared)
        difference = np.empty_like(squared) if case.columns > 1 else squared
        for a in range(1, case.columns):
            np.subtract(query[:, a, None], key[:, a], out=difference)
            squared += np.multiply(difference, difference, out=difference)
    else:
        squared = query @ key.T
        squared *= -2.0
        squared += np.sum(query**2, axis=1)[:, None]
        squared += np.sum(key**2, axis=1)
        np.maximum(squared, 0.0, out=squared)
    weight = profile(case.kernel, squared)
    with np.errstate(invalid="ignore"):
        return (weight @ case.value) / weight.sum(axis=1)


def torch_attention(case: Case) -> np.ndarray:
    """Attention with the squared norm of the key as one more column; values padded to the width its fast path wants."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    torch.set_num_threads(case.threads)
    center = case.key.mean(axis=0)
    query, key = ((x - center) / np.asarray(case.bandwidth, dtype=x.dtype) for x in (case.query, case.key))
    query = np.concatenate([query, np.ones_like(query[:, :1])], axis=1)
    key = np.concatenate([key, -0.5 * np.sum(key**2, axis=1, keepdims=True)], axis=1)
    value = np.zeros_like(key)
    value[:, 0] = case.value
    arrays = [torch.from_numpy(x)[None, None] for x in (query, key, value)]
    return scaled_dot_product_attention(*arrays, scale=1.0)[0, 0, :, 0].numpy()


def keops(case: Case) -> np.ndarray:
    """A reduction compiled for this formula; the kernel is a symbol and never a matrix."""
    import pykeops
    import torch
    from pykeops.torch import LazyTensor

    pykeops.set_verbose(False)
    torch.set_num_threads(case.threads)
    query, key = (torch.from_numpy(x / x.dtype.type(case.bandwidth)) for x in (case.query, case.key))
    squared = ((LazyTensor(query[:, None, :]) - LazyTensor(key[None, :, :])) ** 2).sum(-1)
    if case.kernel == "epanechnikov":
        weight = (1.0 - squared).relu()
    else:
        weight = (-(0.5 * squared if case.kernel == "gaussian" else squared.sqrt())).exp()
    both = torch.stack([torch.ones(case.n, dtype=query.dtype), torch.from_numpy(case.value)], dim=1)
    denominator, numerator = (weight @ both).numpy().T
    with np.errstate(invalid="ignore"):
        return numerator / denominator


def statsmodels_kernel_reg(case: Case) -> np.ndarray:
    """The local constant estimator; a Python loop over queries."""
    from statsmodels.nonparametric.kernel_regression import KernelReg

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own calls into other libraries
        model = KernelReg(case.value, case.key, "c" * case.columns, reg_type="lc", bw=[case.bandwidth] * case.columns)
        return model.fit(case.query)[0]


def scikit_learn_radius(case: Case) -> np.ndarray:
    """Neighbours within the support (or where weights end to count), weighted by a function of distances."""
    from sklearn.neighbors import RadiusNeighborsRegressor

    def weights(distances: np.ndarray) -> np.ndarray:
        if distances.dtype != object:
            return profile(case.kernel, (distances / case.bandwidth) ** 2)
        found = np.empty(len(distances), dtype=object)
        for i, row in enumerate(distances):
            found[i] = profile(case.kernel, (row / case.bandwidth) ** 2)
        return found

    model = RadiusNeighborsRegressor(SUPPORT[case.kernel] * case.bandwidth, weights=weights, n_jobs=case.threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # empty windows
        return model.fit(case.key, case.value).predict(case.query)


def scipy_kd_tree(case: Case) -> np.ndarray:
    """Pairs within the support from two trees, some thousand queries at a time, summed by NumPy."""
    from scipy.spatial import cKDTree

    tree, radius = cKDTree(case.key), SUPPORT[case.kernel] * case.bandwidth
    pooled = np.empty(len(case.query))
    rows = int(np.clip(1e7 // max(case.neighbours(), 1.0), 1, max(1, len(case.query) // case.threads)))
    order = cKDTree(case.query).indices  # neighbouring queries together

    def part_of(part: np.ndarray) -> None:
        pairs = cKDTree(case.query[part]).sparse_distance_matrix(tree, radius, output_type="ndarray")
        weight = profile(case.kernel, (pairs["v"] / case.bandwidth) ** 2)
        denominator = np.bincount(pairs["i"], weights=weight, minlength=len(part))
        numerator = np.bincount(pairs["i"], weights=weight * case.value[pairs["j"]], minlength=len(part))
        with np.errstate(invalid="ignore"):
            pooled[part] = numerator / denominator

    with ThreadPoolExecutor(case.threads) as pool:
        list(pool.map(part_of, (order[start : start + rows] for start in range(0, len(order), rows))))
    return pooled


PEERS = (
    Peer("dense NumPy", dense_numpy, bytes_per_pair=24),
    Peer("torch attention", torch_attention, kernels=("gaussian",)),
    Peer("KeOps", keops),
    Peer("statsmodels KernelReg", statsmodels_kernel_reg, kernels=("gaussian",), single=False, most_rows=1000),
    Peer("scikit-learn radius", scikit_learn_radius, single=False, bytes_per_neighbour=40),
    Peer("scipy cKDTree", scipy_kd_tree, single=False),
)
