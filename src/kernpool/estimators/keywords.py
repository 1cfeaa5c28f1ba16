"""Calls with arguments that a method does not have: errors that name the class of the user, and the remedy.

Python names the class that defines a method, which is often one that users have never seen. `NamedCalls` is the base of
all estimators: methods that a class inherits from it, or from its other base classes, report such calls in one way.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from inspect import signature
from types import FunctionType
from typing import Any

import numpy as np

# What other libraries call an argument, and the names that it may have here: the first one that the method has.
SYNONYMS: dict[str, tuple[str, ...]] = {
    "gamma": ("bandwidth",),
    "sigma": ("bandwidth",),
    "length_scale": ("bandwidth",),
    "h": ("bandwidth",),
    "bw": ("bandwidth",),
    "width": ("bandwidth",),
    "alpha": ("level", "ridge"),
    "conf_level": ("level",),
    "confidence": ("level",),
    "confidence_level": ("level",),
    "coverage": ("level",),
    "q": ("levels",),
    "quantiles": ("levels",),
    "probs": ("levels",),
    "tau": ("levels",),
    "n_boot": ("n_resamples",),
    "n_bootstrap": ("n_resamples",),
    "nboot": ("n_resamples",),
    "seed": ("random_state",),
    "random_seed": ("random_state",),
    "weights": ("sample_weight",),
    "weight": ("sample_weight",),
    "newdata": ("X",),
    "cluster": ("groups",),
    "clusters": ("groups",),
    "categorical_features": ("unordered",),
    "cat_features": ("unordered",),
    "threads": ("n_jobs",),
    "n_threads": ("n_jobs",),
    "l2": ("ridge",),
    "cv": ("bandwidth",),
    "bandwidth_method": ("bandwidth",),
    "return_se": ("return_std",),
}
DEGREES = (
    "NadarayaWatsonRegressor has degree 0; use LocalLinearRegressor for degree 1, and kernpool.pool(..., degree=2) for "
    "local quadratic fits"
)


class NamedCalls:
    """Base class whose methods, inherited ones included, name the class of the object where a call does not fit.

    They take weights that underflow for zeros, whatever `np.errstate` says.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for base in cls.__mro__:
            ours = base.__module__.startswith("kernpool.")
            for name, found in list(vars(base).items()):
                function = found.__func__ if isinstance(found, classmethod) else found
                if not isinstance(function, FunctionType) or (name.startswith("_") and name != "__init__"):
                    continue
                # Classes of other libraries stay as they are.
                if not hasattr(function, "__wrapped__") and (ours or getattr(cls, name) is function):
                    named = _named(function)
                    setattr(base if ours else cls, name, named if found is function else classmethod(named))


def _named(function: FunctionType) -> Callable[..., Any]:
    """Return a method that raises a TypeError of our own if it is called with other arguments than it has."""

    @functools.wraps(function)
    def method(self: Any, *arguments: Any, **keywords: Any) -> Any:
        try:
            with np.errstate(under="ignore"):  # as `kernpool.execution.warnings.underflow_is_zero`
                return function(self, *arguments, **keywords)
        except TypeError as error:
            trace = error.__traceback__
            if trace is not None and trace.tb_next is not None:  # not of this call, but of something inside of it
                raise
            owner = self if isinstance(self, type) else type(self)
            raise TypeError(describe_call(owner.__name__, function, keywords, str(error))) from None

    return method


def describe_call(owner: str, function: Callable[..., Any], keywords: dict[str, Any], error: str) -> str:
    """Return what is wrong with a call that Python has refused, and the remedy.

    Parameters
    ----------
    owner : str
        The class of the user.
    function : callable
        What was called.
    keywords : dict
        The arguments that were passed by name.
    error : str
        What Python says.

    Returns
    -------
    str
        The message.

    Examples
    --------
    >>> def interval(self, X, *, level=0.95): ...
    >>> describe_call("LocalLinearRegressor", interval, {"alpha": 0.1}, "")
    "LocalLinearRegressor.interval() has no argument 'alpha'; use level=0.9"
    """
    called = owner if function.__name__ == "__init__" else f"{owner}.{function.__name__}"
    known = [name for name in signature(function).parameters if name not in ("self", "cls")]
    unknown = [name for name in keywords if name not in known]
    if not unknown:
        return re.sub(r"^[\w.<>]+\(\)", f"{called}()", error)
    name = unknown[0]
    return f"{called}() has no argument {name!r}; {_remedy(name, keywords[name], known)}"


def _remedy(name: str, value: Any, known: Sequence[str]) -> str:
    if name == "degree":
        return DEGREES
    able = [other for other in SYNONYMS.get(name.lower(), ()) if other in known]
    number = value if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None
    if not able:
        able = get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    if not able:
        return f"it has {', '.join(known)}" if known else "it has none"
    use = f"use {able[0]}="
    if able[0] == "level" and name == "alpha" and number is not None and number < 1:
        return f"{use}{1 - number:.12g}"
    if name == "gamma" and able[0] == "bandwidth":
        same = "" if number is None else f", which is {(2 * number) ** -0.5:.4g} for gamma={number:g}"
        return f"{use}1 / sqrt(2 gamma){same}"
    if name == "cv":
        return f"{use}'loo'"
    return use
