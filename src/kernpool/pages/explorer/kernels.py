"""Kernels as JavaScript, traced from the functions of the registry, so that no formula is written twice.

A profile is called with a `Traced` number instead of an array: every NumPy function it applies is written down as
JavaScript. A kernel of one's own is traced as the built-in ones are, as long as it consists of operators and of the
functions in `FUNCTIONS`; branches and loops that look at numbers cannot be traced, and `np.where` can.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, NoReturn

import numpy as np

from kernpool.kernels import Kernel, categorical_kernel_names, get_categorical_kernel, get_kernel, kernel_names

# Ufuncs, by their names in NumPy and scipy.special; {0}, {1} are the operands.
FUNCTIONS = {
    "add": "({0} + {1})",
    "subtract": "({0} - {1})",
    "multiply": "({0} * {1})",
    "divide": "({0} / {1})",
    "negative": "(-{0})",
    "positive": "{0}",
    "maximum": "Math.max({0}, {1})",
    "minimum": "Math.min({0}, {1})",
    "fmax": "Math.max({0}, {1})",
    "fmin": "Math.min({0}, {1})",
    "square": "({0} * {0})",
    "reciprocal": "(1 / {0})",
    "less": "({0} < {1})",
    "less_equal": "({0} <= {1})",
    "greater": "({0} > {1})",
    "greater_equal": "({0} >= {1})",
    "equal": "({0} === {1})",
    "not_equal": "({0} !== {1})",
    "logical_and": "({0} && {1})",
    "logical_or": "({0} || {1})",
    "logical_not": "(!{0})",
    "bitwise_and": "({0} && {1})",
    "bitwise_or": "({0} || {1})",
    "invert": "(!{0})",
    "isfinite": "Number.isFinite({0})",
    "isnan": "Number.isNaN({0})",
    "absolute": "Math.abs({0})",
    "fabs": "Math.abs({0})",
    "floor": "Math.floor({0})",
    "ceil": "Math.ceil({0})",
    "trunc": "Math.trunc({0})",
    "arcsin": "Math.asin({0})",
    "arccos": "Math.acos({0})",
    "arctan": "Math.atan({0})",
    "arctan2": "Math.atan2({0}, {1})",
    "arcsinh": "Math.asinh({0})",
    "arccosh": "Math.acosh({0})",
    "arctanh": "Math.atanh({0})",
    "exp2": "(2 ** {0})",
    "deg2rad": "({0} * (Math.PI / 180))",
    "expit": "(1 / (1 + Math.exp(-{0})))",
    **{
        name: f"Math.{name}({{0}})"
        for name in ("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "cbrt", "sign")
    },
    **{name: f"Math.{name}({{0}})" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "hypot")},
    "hypot": "Math.hypot({0}, {1})",
}
LARGEST_POWER = 8  # whole powers up to here become products, which are faster and as exact


class UntraceableKernelError(ValueError):
    """A kernel does something with its argument that has no JavaScript."""


@dataclass
class Tape:
    """Lines of a function, each a constant that is computed once."""

    lines: list[str]
    names: dict[str, str]

    def add(self, expression: str) -> str:
        """Write an expression down, unless it is there already, and return its name."""
        if expression not in self.names:
            self.names[expression] = f"t{len(self.lines)}"
            self.lines.append(f"const {self.names[expression]} = {expression};")
        return self.names[expression]


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """A number that is known by its name in JavaScript only."""

    def __init__(self, name: str, tape: Tape) -> None:
        self.name, self.tape = name, tape

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Traced:
        known = ufunc.__name__ in FUNCTIONS or ufunc.__name__ in ("power", "float_power")
        if method != "__call__" or options or not known:
            _refuse(f"{ufunc.__name__}" if method == "__call__" else f"{ufunc.__name__}.{method}")
        if ufunc.__name__ in ("power", "float_power"):
            return self._power(*inputs)
        return self._write(FUNCTIONS[ufunc.__name__], *inputs)

    def __array_function__(self, function: Callable[..., Any], _types: Any, args: Any, options: Any) -> Any:
        name = getattr(function, "__name__", repr(function))
        if options and not (name.endswith("_like") and set(options) <= {"dtype"}):
            _refuse(f"{name} with {', '.join(options)}")
        match name:
            case "zeros_like" | "ones_like":
                return self._write("0" if name == "zeros_like" else "1")
            case "full_like":
                return self._write("{0}", args[1])
            case "where" if len(args) == 3:
                return self._write("({0} ? {1} : {2})", *args)
            case "clip" if len(args) == 3:
                return self._write("Math.min(Math.max({0}, {1}), {2})", *args)
        _refuse(name)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray[Any, Any]:
        # What np.asarray makes of it; its operators and functions lead back here.
        wrapped = np.empty((), dtype=object)
        wrapped[()] = self
        return wrapped

    def __float__(self) -> NoReturn:
        _refuse("float(), or a function of `math` instead of NumPy's")

    def __bool__(self) -> NoReturn:
        _refuse("if, and, or: use np.where")

    def __len__(self) -> NoReturn:
        _refuse("len()")

    def __getitem__(self, _: Any) -> NoReturn:
        _refuse("an index: use np.where")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in FUNCTIONS:  # a function of NumPy that met it in an array
            return lambda *others: self._write(FUNCTIONS[name], self, *others)
        _refuse(f"the attribute {name!r}: use a function of NumPy")

    def _power(self, base: Any, exponent: Any) -> Traced:
        if isinstance(exponent, int | float) and exponent == int(exponent) and 1 <= exponent <= LARGEST_POWER:
            result = base
            for _ in range(int(exponent) - 1):
                result = self._write("({0} * {1})", result, base)
            return result
        return self._write("({0} ** {1})", base, exponent)

    def _write(self, template: str, *operands: Any) -> Traced:
        return Traced(self.tape.add(template.format(*map(_literal, operands))), self.tape)


def trace(function: Callable[..., Any], *arguments: str) -> tuple[list[str], str]:
    """Call a NumPy function with traced arguments.

    Parameters
    ----------
    function : callable
        Of arrays, elementwise.
    *arguments : str
        Their names in JavaScript.

    Returns
    -------
    lines : list of str
        Statements.
    result : str
        The expression that holds the result after them.

    Raises
    ------
    UntraceableKernelError
        If it does something that has no JavaScript.

    Examples
    --------
    >>> trace(lambda u: np.exp(-0.5 * u**2), "u")
    (['const t0 = (u * u);', 'const t1 = (-0.5 * t0);', 'const t2 = Math.exp(t1);'], 't2')
    """
    tape = Tape([], {})
    result = function(*(Traced(name, tape) for name in arguments))
    return tape.lines, _literal(result)


def kernels_source(kernels: Iterable[str | Kernel] | None = None) -> str:
    """Write the module `kernels.js`: every kernel's functions, and the factors of categorical kernels.

    Parameters
    ----------
    kernels : iterable of str or Kernel, optional
        Those that the page offers; by default all registered ones.

    Returns
    -------
    str
        JavaScript that exports ``KERNELS`` and ``FACTORS``.

    Raises
    ------
    UntraceableKernelError
        If a kernel does something that has no JavaScript; the message names the kernel and the operation.

    Examples
    --------
    >>> print(kernels_source(["triangular"]).splitlines()[1])
    "triangular": {support: 1,
    """
    records = [get_kernel(kernel) for kernel in (kernel_names() if kernels is None else kernels)]
    parts = [
        "export const KERNELS = {",
        *(_kernel_source(kernel) for kernel in records),
        "};",
        "export const FACTORS = {",
    ]
    for name in categorical_kernel_names():
        parts.append(f"{json.dumps(name)}: {_arrow(name, _with_traced_length(get_categorical_kernel(name).factors))},")
    return "\n".join([*parts, "};", ""])


def _kernel_source(kernel: Kernel) -> str:
    slope = "null" if kernel.log_slope is None else _arrow(kernel.name, kernel.log_slope, "u")
    return (
        f"{json.dumps(kernel.name)}: {{support: {_literal(kernel.support)},\n"
        f"profile: {_arrow(kernel.name, kernel.profile, 'u')},\n"
        f"logProfile: {_arrow(kernel.name, kernel.log_profile, 'u')},\n"
        f"logSlope: {slope}}},"
    )


def _arrow(kernel: str, function: Callable[..., Any], *arguments: str) -> str:
    names = arguments or ("distance", "lambda", "count")
    try:
        with np.errstate(all="ignore"):
            lines, result = trace(function, *names)
    except UntraceableKernelError as error:
        raise UntraceableKernelError(f"kernel {kernel!r} cannot be written in JavaScript: it uses {error}") from None
    return f"({', '.join(names)}) => {{ {' '.join([*lines, f'return {result};'])} }}"


def _with_traced_length(factors: Callable[..., Any]) -> Callable[..., Any]:
    """Let a table of factors ask for its length: ``len`` is a number in Python, and here it is a traced one."""

    def with_count(distance: Traced, lam: Traced, count: Traced) -> Any:
        assert isinstance(factors, FunctionType)
        known = {**factors.__globals__, "len": lambda _: count}
        return FunctionType(factors.__code__, known, closure=factors.__closure__)(distance, lam)

    return with_count


def _literal(value: Any) -> str:
    """Return a number as JavaScript reads it, with all its digits."""
    if isinstance(value, Traced):
        return value.name
    array = np.asarray(value)
    if array.dtype == object and array.ndim == 0 and isinstance(array[()], Traced):
        return array[()].name  # type: ignore[no-any-return]
    if array.ndim or array.dtype.kind not in "fiub":
        _refuse(f"an operand {value!r}, which is not a number")
    if array.dtype.kind == "b":
        return "true" if array else "false"
    number = float(array)
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "(-Infinity)"
    text = repr(int(number)) if number == int(number) and abs(number) < 2**53 else repr(number)
    return f"({text})" if text.startswith("-") else text


def _refuse(operation: str) -> NoReturn:
    raise UntraceableKernelError(operation)
