"""Smoothing kernels: their profiles and constants, kernels for categories, and conversion of bandwidths.

A kernel is the *profile* only: a symmetric, non-negative function ``K(u)`` of the distance ``u = |q - k| / h`` in
bandwidths. `core/similarity.py` measures distances; `algorithms/` organises the sums.

Profiles are written as the field writes them, so some integrate to one and some do not (the Gaussian peaks at one). A
constant factor cancels in pooling weights; densities divide by `Kernel.integral`.

Two different functions circulate as "Epanechnikov". The kernel of that name is ``3/4 (1 - u^2)``; course material
that plots ``max(1 - |u|, 0)`` under it shows the *triangular* kernel. Both are here under their true names.

Read `registry.py` first: the kernel record, how kernels are registered, and those of the package. `squares.py` expands
their squares and products, `categorical.py` has the kernels of categorical columns, and `bandwidth_conventions.py`
converts bandwidths from other packages.
"""

from functools import cache

from kernpool.kernels.bandwidth_conventions import CONVENTIONS, convert_bandwidth
from kernpool.kernels.categorical import (
    CategoricalKernel,
    categorical_kernel_names,
    get_categorical_kernel,
    kernel_of_family,
)
from kernpool.kernels.registry import (
    Exponential,
    Flat,
    Gaussian,
    Kernel,
    NearlyExponential,
    Polynomial,
    get_kernel,
    kernel_names,
    make_kernel,
    register_kernel,
    registered_name,
)
from kernpool.kernels.squares import INTERNAL, Term, products, square

BUILT_IN = tuple(kernel_names())
# Kernels that `algorithms/loops/kernel_weights.py` has a branch for, numbered by their index in this list; the powers
# in products come last. Others are summed by NumPy.
COMPILED = (
    "gaussian", "boxcar", "constant", "epanechnikov", "triangular", "biweight", "triweight", "tricube", "cosine",
    "laplace", "logistic", *INTERNAL,
)  # fmt: skip


def is_built_in(kernel: Kernel) -> bool:
    """Return whether a `Kernel` is one of the package's own; False for a user's kernel of the same name."""
    return kernel.name in BUILT_IN and get_kernel(kernel.name) is kernel


@cache
def is_compiled(kernel: Kernel) -> bool:
    """Return whether compiled loops support a `Kernel`: built-in ones, their products over columns, and powers of them.

    These are powers ``(1 - u**r)**p``.
    """
    return kernel.profile_name in COMPILED and get_kernel(kernel.name) is kernel


__all__ = [
    "BUILT_IN",
    "COMPILED",
    "CONVENTIONS",
    "INTERNAL",
    "CategoricalKernel",
    "Exponential",
    "Flat",
    "Gaussian",
    "Kernel",
    "NearlyExponential",
    "Polynomial",
    "Term",
    "categorical_kernel_names",
    "convert_bandwidth",
    "get_categorical_kernel",
    "get_kernel",
    "is_built_in",
    "is_compiled",
    "kernel_names",
    "kernel_of_family",
    "make_kernel",
    "products",
    "register_kernel",
    "registered_name",
    "square",
]
