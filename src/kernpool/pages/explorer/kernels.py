"""Kernels as JavaScript, traced from the functions of the registry, so that no formula is written twice.

A registered kernel of one's own is traced as the built-in ones are. Loops over an array of ``u`` are written out for
every kernel: a shared loop that calls a function makes every weight an object, and takes three times as long.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

import numpy as np

from kernpool.kernels import Kernel, categorical_kernel_names, get_categorical_kernel, get_kernel, kernel_names
from kernpool.pages.explorer.tracing import Traced, UntraceableKernelError, as_javascript, trace


def kernels_source(kernels: Iterable[str | Kernel] | None = None) -> str:
    r"""Write the module `kernels.js`: every kernel's functions, and the factors of categorical kernels.

    Parameters
    ----------
    kernels : iterable of str or Kernel, optional
        Those that the page offers; by default all registered ones.

    Returns
    -------
    str
        JavaScript that exports ``KERNELS`` and ``FACTORS``. A kernel has ``support``, ``profile``, ``logProfile`` and
        ``logSlope`` of a number, and ``profiles`` and ``logProfiles``, which replace numbers of an array, from one
        place to before another.

    Raises
    ------
    UntraceableKernelError
        If a kernel does something that has no JavaScript; the message names the kernel and the operation.

    Examples
    --------
    >>> print("\n".join(kernels_source(["triangular"]).splitlines()[2:4]))
    "triangular": {support: 1,
    profile: (u) => { return Math.max((1 - u), 0); },
    """
    records = [get_kernel(kernel) for kernel in (kernel_names() if kernels is None else kernels)]
    factors = {name: _with_traced_length(get_categorical_kernel(name).factors) for name in categorical_kernel_names()}
    return "\n".join(
        [
            'import { exponential } from "./exponential.js";',
            "export const KERNELS = {",
            *(_kernel_source(kernel) for kernel in records),
            "};",
            "export const FACTORS = {",
            *(f"{json.dumps(name)}: {_function(name, table, _FACTOR)}," for name, table in factors.items()),
            "};",
            "",
        ]
    )


_NUMBER = "(u) => {{ {lines}return {result}; }}"
_LOOP = "(all, from, to) => {{ for (let i = from; i < to; i++) {{ const u = all[i]; {lines}all[i] = {result}; }} }}"
_FACTOR = "(distance, lambda, count) => {{ {lines}return {result}; }}"


def _kernel_source(kernel: Kernel) -> str:
    slope = "null" if kernel.log_slope is None else _function(kernel.name, kernel.log_slope, _NUMBER)
    return ",\n".join(
        [
            f"{json.dumps(kernel.name)}: {{support: {as_javascript(kernel.support)}",
            f"profile: {_function(kernel.name, kernel.profile, _NUMBER)}",
            f"logProfile: {_function(kernel.name, kernel.log_profile, _NUMBER)}",
            f"logSlope: {slope}",
            f"profiles: {_function(kernel.name, kernel.profile, _LOOP)}",
            f"logProfiles: {_function(kernel.name, kernel.log_profile, _LOOP)}}},",
        ]
    )


def _function(kernel: str, function: Callable[..., Any], template: str) -> str:
    arguments = ("distance", "lambda", "count") if template is _FACTOR else ("u",)
    try:
        with np.errstate(all="ignore"):
            lines, result = trace(function, *arguments)
    except UntraceableKernelError as error:
        raise UntraceableKernelError(
            f"kernel {kernel!r} cannot be written in JavaScript: it uses {error}; explore a model with another kernel, "
            "or write this one by arithmetic and functions of NumPy that can"
        ) from None
    return template.format(lines="".join(f"{line} " for line in lines), result=result)


def _with_traced_length(factors: Callable[..., Any]) -> Callable[..., Any]:
    """Let a table of factors ask for its length: ``len`` is a number in Python, and here it is a traced one."""

    def with_count(distance: Traced, lam: Traced, count: Traced) -> Any:
        assert isinstance(factors, FunctionType)
        known = {**factors.__globals__, "len": lambda _: count}
        return FunctionType(factors.__code__, known, closure=factors.__closure__)(distance, lam)

    return with_count
