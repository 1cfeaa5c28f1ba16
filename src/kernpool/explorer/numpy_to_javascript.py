"""Tracing of elementwise NumPy functions into JavaScript source.

A function is called with a `Traced` number, which records the operations. Operators and the functions in
`FUNCTIONS` are known. Branches and loops that depend on a number cannot be traced, since an array takes both;
`np.where` can.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

# Ufuncs by their names in NumPy and scipy.special; {0} and {1} are the operands.
FUNCTIONS = {
    "add": "({0} + {1})",
    "subtract": "({0} - {1})",
    "multiply": "({0} * {1})",
    "divide": "({0} / {1})",
    "power": "(({0}) ** {1})",
    "float_power": "(({0}) ** {1})",
    "square": "({0} * {0})",
    "negative": "(- {0})",
    "positive": "{0}",
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
    "maximum": "Math.max({0}, {1})",
    "minimum": "Math.min({0}, {1})",
    "absolute": "Math.abs({0})",
    "fabs": "Math.abs({0})",
    "arcsin": "Math.asin({0})",
    "arccos": "Math.acos({0})",
    "arctan": "Math.atan({0})",
    "arcsinh": "Math.asinh({0})",
    "arccosh": "Math.acosh({0})",
    "arctanh": "Math.atanh({0})",
    "hypot": "Math.hypot({0}, {1})",
    "exp": "exponential({0})",
    "exp2": "(2 ** {0})",
    "expit": "(1 / (1 + exponential(- {0})))",
    **{name: f"Math.{name}({{0}})" for name in ("expm1", "log", "log1p", "log2", "log10", "sqrt", "cbrt", "sign")},
    **{name: f"Math.{name}({{0}})" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "floor", "ceil", "trunc")},
}
LARGEST_POWER = 8  # whole powers up to here become products, which are faster and as exact


class UntraceableKernelError(ValueError):
    """Error for a kernel with an operation that cannot be translated to JavaScript."""


class Tape:
    """Record of the operations in a traced function, each distinct operation once."""

    def __init__(self) -> None:
        self._steps: dict[str, str] = {}  # expression to the name of its result

    def add(self, expression: str) -> str:
        """Record a JavaScript expression, unless it is recorded already, and return the name of its result."""
        return self._steps.setdefault(expression, f"t{len(self._steps)}_")

    def render(self, result: str) -> tuple[list[str], str]:
        """Return JavaScript for intermediate results that are used more than once, and for the final result."""
        uses = " ".join([*self._steps, result])
        lines: list[str] = []
        known: dict[str, str] = {}
        for expression, name in self._steps.items():
            text = _replaced(expression, known)
            is_short = uses.count(name) < 2 or not any(letter in text for letter in "( ")
            if not is_short:
                lines.append(f"const {name[:-1]} = {_bare(text)};")
            known[name] = text if is_short else name[:-1]
        return lines, _replaced(result, known)


def _replaced(text: str, known: dict[str, str]) -> str:
    for name, expression in known.items():
        text = text.replace(name, expression)
    return text


def _bare(text: str) -> str:
    """Remove the brackets around a JavaScript expression if they enclose all of it."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return text[1:-1] if place == len(text) - 1 and text[0] == "(" else text
    return text


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """Stand-in for a number that records the NumPy operations applied to it as JavaScript expressions."""

    def __init__(self, name: str, tape: Tape) -> None:
        self.name, self.tape = name, tape

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Traced:
        name = ufunc.__name__
        if method != "__call__" or options or name not in FUNCTIONS:
            raise _refusal(name if method == "__call__" and not options else f"{name} with more than its operands")
        return self._call(name, *inputs)

    def __array_function__(self, function: Callable[..., Any], _types: Any, args: Any, options: Any) -> Traced:
        name = getattr(function, "__name__", repr(function))
        if set(options) > {"dtype"}:
            raise _refusal(f"{name} with {', '.join(options)}")
        match name, len(args):
            case "zeros_like" | "ones_like", 1:
                return Traced("0" if name == "zeros_like" else "1", self.tape)
            case "full_like", 2:
                return Traced(as_javascript(args[1]), self.tape)
            case "where", 3:
                return self._write("({0} ? {1} : {2})", *args)
            case "clip", 3:
                return self._write("Math.min(Math.max({0}, {1}), {2})", *args)
        raise _refusal(name)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray[Any, Any]:
        # What np.asarray makes of it; operators and functions of that array lead back here.
        wrapped = np.empty((), dtype=object)
        wrapped[()] = self
        return wrapped

    def __float__(self) -> float:
        raise _refusal("float(), or a function of `math`: use NumPy's")

    def __bool__(self) -> bool:
        raise _refusal("if, and, or: use np.where")

    def __len__(self) -> int:
        raise _refusal("len()")

    def __getitem__(self, _: Any) -> Traced:
        raise _refusal("an index: use np.where")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in FUNCTIONS:  # a function of NumPy that met it in an array
            return lambda *others: self._call(name, self, *others)
        raise _refusal(f"the attribute {name!r}: use a function of NumPy")

    def _call(self, name: str, *operands: Any) -> Traced:
        if name.endswith("power"):
            base, exponent = operands
            if isinstance(exponent, int | float) and exponent == int(exponent) and 1 <= exponent <= LARGEST_POWER:
                product = base
                for _ in range(int(exponent) - 1):
                    product = self._write("({0} * {1})", product, base)
                return Traced(as_javascript(product), self.tape)
        return self._write(FUNCTIONS[name], *operands)

    def _write(self, template: str, *operands: Any) -> Traced:
        return Traced(self.tape.add(template.format(*map(as_javascript, operands))), self.tape)


def trace(function: Callable[..., Any], *arguments: str) -> tuple[list[str], str]:
    """Translate an elementwise NumPy function to JavaScript.

    Parameters
    ----------
    function : callable
        Of arrays, made of NumPy functions.
    *arguments : str
        Names of its arguments in JavaScript.

    Returns
    -------
    lines : list of str
        Constants that come first.
    result : str
        The expression of the result.

    Raises
    ------
    UntraceableKernelError
        If it does something that has no JavaScript; the message is the operation.

    Examples
    --------
    >>> trace(lambda u: np.exp(-0.5 * u**2), "u")
    ([], 'exponential((-0.5 * (u * u)))')
    >>> trace(lambda u: np.maximum(1 - u, 0) ** 2, "u")
    (['const t1 = Math.max((1 - u), 0);'], '(t1 * t1)')
    """
    tape = Tape()
    result = function(*(Traced(name, tape) for name in arguments))
    return tape.render(as_javascript(result))


def as_javascript(value: Any) -> str:
    """Return a number as a JavaScript literal with all its digits, or a traced number as its expression.

    Parameters
    ----------
    value : number or Traced
        What to write.

    Returns
    -------
    str
        A literal, or the name of a traced number.

    Raises
    ------
    UntraceableKernelError
        If it is something else, for instance an array.

    Examples
    --------
    >>> as_javascript(0.1), as_javascript(2.0), as_javascript(np.inf)
    ('0.1', '2', 'Infinity')
    """
    if isinstance(value, Traced):
        return value.name
    array = np.asarray(value)
    if not array.ndim and isinstance(array[()], Traced):
        return str(array[()].name)
    if array.ndim or array.dtype.kind not in "fiub":
        raise _refusal(f"an operand {value!r}, which is not a number")
    if array.dtype.kind == "b":
        return "true" if array else "false"
    number = float(array)
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    return repr(int(number)) if number == int(number) and abs(number) < 2**53 else repr(number)


def _refusal(operation: str) -> UntraceableKernelError:
    return UntraceableKernelError(operation)
