"""Methods of estimators that report calls with unknown arguments in the name of the user's class.

Python names the class that defines a method, which is often one that users have never seen. `NamedCalls` is the base of
all estimators: methods that a class inherits from it, or from its other base classes, report such calls in one way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from kernpool.execution.messages import describe_call


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
