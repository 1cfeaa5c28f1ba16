"""What a fitted kernel estimator holds: its parameters, and what `fit` left, with their types.

`FittedModel` is the interface between the classes that users see and the functions that answer for them: a function
that takes a model says so by this type, and the estimators and their mixins inherit from it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass
from inspect import signature
from types import FunctionType
from typing import Any, TypeVar, cast, dataclass_transform

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from kernpool.bandwidth import LeaveOneOut
from kernpool.core import Categories, Exclusion
from kernpool.core.dependent_columns import RankNotes
from kernpool.data.circular import Coordinates
from kernpool.data.encoding import Encoding
from kernpool.execution.error_messages import describe_call
from kernpool.execution.progress import bar_of_long_fits
from kernpool.kernels import Kernel, kernel_of_family
from kernpool.pooling import Source
from kernpool.pooling.widths import Nearest, Window
from kernpool.smoother import Smoother, StoredModel

Array = NDArray[np.float64]
Codes = NDArray[np.int64]


Fitted = TypeVar("Fitted", bound="FittedModel")
Kind = TypeVar("Kind")


NAMED = "_names_its_class"  # attribute of methods that `NamedCalls` has wrapped


class NamedCalls:
    """Base class of estimators and answers: errors about wrong arguments name the object's class, not a base class.

    Python names the class that defines a method, often one that users have never seen. Methods take weights that
    underflow for zeros, whatever `np.errstate` says.
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
                if NAMED not in vars(function) and (ours or getattr(cls, name) is function):
                    named = _named(function)
                    setattr(base if ours else cls, name, named if found is function else classmethod(named))


def _named(function: FunctionType) -> Callable[..., Any]:
    """Wrap a method so that calls with wrong arguments raise a TypeError that names the class of the object.

    `fit` shows a progress bar if it takes long.
    """
    fits = function.__name__ == "fit"
    waiting = bar_of_long_fits if fits else nullcontext

    @functools.wraps(function)
    def method(self: Any, *arguments: Any, **keywords: Any) -> Any:
        try:
            # so that weights which underflow to zero never raise or warn
            with waiting(), np.errstate(under="ignore"):
                if not fits:
                    return function(self, *arguments, **keywords)
                # On a copy, so that a fit that fails or takes long leaves the fit before it whole.
                new = object.__new__(type(self))
                new.__dict__ = self.__dict__.copy()
                function(new, *arguments, **keywords)
                self.__dict__ = new.__dict__
                return self
        except TypeError as error:
            try:
                signature(function).bind(self, *arguments, **keywords)
            except TypeError:
                owner = self if isinstance(self, type) else type(self)
                raise TypeError(describe_call(owner.__name__, function, keywords, str(error))) from None
            raise  # not of this call, but of something inside of it

    vars(method)[NAMED] = True  # of wrappers that are put around it, too
    return method


@dataclass_transform()
def with_parameters(kind: type[Kind]) -> type[Kind]:
    """Give a class the constructor of its base class, with the annotated parameters of its own (a class decorator)."""
    made = dataclass(eq=False, repr=False, match_args=False)(kind)
    # the base classes' methods are wrapped before there is this one
    made.__init__ = _named(cast(FunctionType, made.__init__))  # type: ignore[method-assign]
    for name in vars(made).keys() & vars(made)["__annotations__"].keys():  # defaults are the constructor's
        delattr(made, name)
    return made


@with_parameters
class Parameters:
    """Parameters that all kernel estimators have; those of type Any accept numbers, names and tables."""

    kernel: str | Kernel = "gaussian"
    bandwidth: Any = "regularised"
    _: KW_ONLY
    unordered: Any = None
    ordered: Any = None
    categorical_kernel: str = "aitchison_aitken"
    smoothing: Any = None
    unseen: str = "raise"
    window: Window = "auto"
    search: Mapping[str, Any] | None = None
    empty: str = "nearest"
    periodic: Any = None
    geographic: Any = None
    n_jobs: int | None = None


class RowAttribute:
    """Descriptor for stored training rows: raises AttributeError, with advice, if they are not in memory.

    Instances keep the attribute itself in their ``__dict__``, which goes before a descriptor that only reads.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, model: FittedModel, owner: type) -> Any:
        if model is None:
            return self
        if model.source_ is None:
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self._name!r}")
        raise AttributeError(
            f"this {owner.__name__} was fitted to rows that are not in memory, so there is no {self._name}; fit it to "
            "arrays, such as a sample of the rows, with bandwidth=model.bandwidth_"
        )


class FittedModel(Parameters):
    """Base class of what a fitted kernel estimator holds: parameters as given, and attributes as `fit` left them.

    Parameters have the name of the argument, and fitted attributes end in an underscore. Training rows that are not in
    memory are in `source_`; keys, values, weights and codes raise AttributeError, with
    advice.
    """

    robust: bool | int | str = False  # parameters of regressors alone
    gap: int = 0

    # Training rows: keys (n, d), outputs (n,) or (n, c), weights (n,) or None, categories (n, k), and which
    # of them are left out together.
    key_ = RowAttribute()
    value_ = RowAttribute()
    key_weight_ = RowAttribute()
    key_code_ = RowAttribute()
    exclusion_: Exclusion | None
    source_: Source | None = None
    robust_weight_: Array | None = None

    # Found by the fit: bandwidths (d,), smoothings of categorical columns (k,), and how columns become numbers.
    bandwidth_: Array
    smoothing_: Array
    loo_error_: float  # after a search that leaves rows out
    min_effective_rows_: float | None
    encoding_: Encoding
    smoother_: Smoother | StoredModel
    target_name_: str | None
    leave_one_out: Callable[[], LeaveOneOut]
    _replace_fit: Callable[[dict[str, Any]], None]
    _rank_notes: RankNotes
    _extent: Any  # where the training rows are, an `Extent`
    _given: dict[str, Any]  # parameters of the fit, but `unseen` and `n_jobs`

    _standardise = True  # so that several outputs count alike
    _degree = 0  # of the local fit
    _floor = 0.0  # least effective rows of windows by default; zero for no floor

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the fit."""
        return len(self.encoding_.kinds)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the columns of the fit, if they are strings; AttributeError otherwise."""
        if self.encoding_.names is None:
            raise AttributeError(f"this {type(self).__name__} was fitted to columns without names")
        return np.array(self.encoding_.names, dtype=object)

    @property
    def column_labels_(self) -> list[Any]:
        """Labels of the columns of the fit, if they are no strings; AttributeError otherwise."""
        if self.encoding_.labels is None or self.encoding_.names is not None:
            raise AttributeError(f"this {type(self).__name__} was fitted to columns without labels other than names")
        return list(self.encoding_.labels)

    @property
    def coordinates_(self) -> Coordinates:
        """Circles and globes among the columns of the fit."""
        return self.encoding_.coordinates

    @property
    def _bandwidth_was_found(self) -> bool:
        """Whether the training rows chose the bandwidths or the windows, rather than the caller."""
        asked = self.window.k if isinstance(self.window, Nearest) else None
        return isinstance(self.bandwidth, str) or self.smoother_.n_neighbors != asked

    @property
    def _reads_pairs_as_numbers(self) -> bool:
        """Whether columns of two categories are coded 0 and 1, so that planes have a slope in them."""
        return False

    def _categories(self, encoding: Encoding | None = None) -> Categories:
        encoding = self.encoding_ if encoding is None else encoding
        kinds = [encoding.kinds[i] for i in encoding.categorical]
        kernels = [kernel_of_family(self.categorical_kernel, ordered=kind == "ordered") for kind in kinds]
        return Categories(tuple(kernels), encoding.table_levels)

    def _report_rank(self, rank: NDArray[np.intp], occupied: NDArray[np.bool_], columns: int) -> None:
        """Ignore reports of rank-deficient local fits (a callback): local constant fits have no slopes."""


def as_fitted(model: Fitted) -> Fitted:
    """Return a fitted model with the parameters of its fit, which later fits and parameters do not change.

    `unseen`, by which new rows are read, and `n_jobs` are as they are now.
    """
    if "_given" not in model.__dict__:
        check_is_fitted(model)  # which raises; asked each time, it takes a tenth of a prediction of one row
    taken = object.__new__(type(model))
    taken.__dict__ = model.__dict__ | model._given
    return taken
