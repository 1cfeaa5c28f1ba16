"""What a fitted kernel estimator holds: its parameters with their checks, and what `fit` left, with their types.

`FittedModel` is the interface between the classes that users see and the functions that answer for them: a function
that takes a model says so by this type, and the estimators and their mixins inherit from it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from inspect import signature
from types import FunctionType
from typing import Any, NamedTuple, TypeVar, cast, dataclass_transform

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernpool._arrays import AnyArray, Array, Flags, Index
from kernpool.bandwidth import CRITERIA, RULES, LeaveOneOut
from kernpool.core import NO_CATEGORIES, Categories, Exclusion, Reweighting
from kernpool.core.dependent_columns import RankNotes
from kernpool.core.state import EMPTIES
from kernpool.data import Encoding
from kernpool.data.encoding import COLUMN_CHECKS
from kernpool.execution import abbreviate, check_choice, progress, resolve_n_jobs
from kernpool.execution.error_messages import describe_call, did_you_mean
from kernpool.inference import as_random
from kernpool.kernels import Kernel, get_kernel
from kernpool.kernels.categorical import FAMILIES
from kernpool.kernels.registry import is_registered
from kernpool.pooling import Floor, Nearest, Source
from kernpool.pooling.widths import Window
from kernpool.smoother import Smoother, StoredModel

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


def holder_of(estimator: Any) -> Any:
    """Return the estimator that holds the training rows: the local member of a stack, or the estimator itself."""
    return getattr(estimator, "members_", {"local": estimator})["local"]


def _named(function: FunctionType) -> Callable[..., Any]:
    """Wrap a method so that calls with wrong arguments raise a TypeError that names the class of the object.

    `fit` shows a progress bar if it takes long.
    """
    fits = function.__name__ == "fit"

    @functools.wraps(function)
    def method(self: Any, *arguments: Any, **keywords: Any) -> Any:
        try:
            # so that weights which underflow to zero never raise or warn
            with np.errstate(under="ignore"):
                if not fits:
                    return function(self, *arguments, **keywords)
                # On a copy, so that a fit that fails or takes long leaves the fit before it whole; nothing of that
                # is in the copy.
                new = object.__new__(type(self))
                new.__dict__ = {name: value for name, value in vars(self).items() if not name.endswith("_")}
                with progress.progress_bar("fitting", patience=progress.LONG):
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


NAMED_BANDWIDTHS = (*CRITERIA, *RULES)
FOR_CLASSES = "log_loss"
NAMED_FOR_CLASSES = (FOR_CLASSES, *NAMED_BANDWIDTHS)
MULTISCALE = "multiscale"  # of coefficients that vary
LIVE = ("unseen", "n_jobs")  # parameters that say how new rows are read, and on how many threads
BUILT = ("smoother_", "_extent", "_varying", "_own", "_fit")  # attributes that `_freeze` builds, left out of files
LARGEST_RIDGE = 1e100  # keys: any slope is zero long before


def check_parameters(model: FittedModel) -> None:
    """Raise if a parameter of an estimator is invalid, as far as that can be checked without data.

    Every fit checks its parameters here, and so does loading a model from a file.

    Examples
    --------
    >>> from kernpool import NadarayaWatsonRegressor
    >>> check_parameters(NadarayaWatsonRegressor(search={"rows": 1}))
    Traceback (most recent call last):
    ...
    ValueError: search['rows'] must be 'auto', None for all, or a number of rows from 2 on, got 1
    """
    for name, value in model.__dict__.items():  # `get_params` reads signatures again: a tenth of a fit to 1000 rows
        if name in CHOICES:
            check_choice(name, value, CHOICES[name])
        elif name in ACCEPTED:
            ACCEPTED[name].check(name, value)
        elif name in OPTIONAL and value is not None:
            OPTIONAL[name](value)
    kernel, bandwidth = model.kernel, model.bandwidth
    if isinstance(kernel, str) and kernel in NAMED_FOR_CLASSES:
        raise ValueError(f"kernel={kernel!r} is a way to find bandwidths; use bandwidth={kernel!r}")
    get_kernel(kernel)
    named = NAMED_FOR_CLASSES if hasattr(model, "predict_proba") else NAMED_BANDWIDTHS
    named += (MULTISCALE,) * hasattr(model, "by")
    impossible = bandwidth is None or isinstance(bandwidth, bool | dict)
    if not impossible and (not isinstance(bandwidth, str) or bandwidth in named):
        return
    if bandwidth == FOR_CLASSES:
        raise ValueError(f"bandwidth={FOR_CLASSES!r} is for probabilities of classes; use 'loo' for numbers")
    hint = did_you_mean(bandwidth, named) if isinstance(bandwidth, str) else "leave it out to have it found"
    raise (TypeError if impossible else ValueError)(
        f"bandwidth must be a positive number, one per column, or one of {', '.join(map(repr, named))}; "
        f"got {abbreviate(bandwidth)}; {hint}".rstrip("; ")
    )


def _check_search(search: Any) -> None:
    expected = "search must be None or a dict with 'rows' and 'random_state', or one of them"
    if not isinstance(search, Mapping):
        raise TypeError(f"{expected}, got {abbreviate(search)}")
    for name, value in search.items():
        if name in ACCEPTED_OF_SEARCH:
            ACCEPTED_OF_SEARCH[name].check(f"search[{name!r}]", value)
        elif name != "random_state":
            hint = did_you_mean(str(name), (*ACCEPTED_OF_SEARCH, "random_state"))
            raise ValueError(f"{expected}, got the key {abbreviate(name)}; {hint}".rstrip("; "))
        elif type(value) is not int or not 0 <= value < 1 << 32:  # to seed one takes longer than a small fit
            as_random(value, generators=False)


class Accepted(NamedTuple):
    """Values that a parameter accepts: some by name, and numbers that fulfil a condition.

    Parameters
    ----------
    words : str
        The values in words, for the error message.
    names : tuple, optional
        Strings, None, True and False that are accepted.
    numbers : callable, optional
        Condition on numbers; without one no number is accepted.
    whole : bool, default=False
        Whether numbers have to be integers.
    types : tuple of type, default=()
        Classes whose objects are accepted.

    Examples
    --------
    >>> Accepted("a number of rows from 2 on", numbers=lambda n: n >= 2, whole=True).check("rows", 2.5)
    Traceback (most recent call last):
    ...
    ValueError: rows must be a number of rows from 2 on, got 2.5
    """

    words: str
    names: tuple[str | bool | None, ...] = ()
    numbers: Callable[[Any], bool] | None = None
    whole: bool = False
    types: tuple[type, ...] = ()

    def check(self, name: str, value: Any) -> None:
        """Raise ValueError unless the value of the parameter called `name` is accepted."""
        if value is None or isinstance(value, str | bool | np.bool_):
            accepted = value in self.names
        else:
            kinds = (int, np.integer) if self.whole else (int, float, np.integer, np.floating)
            number = self.numbers is not None and isinstance(value, kinds) and bool(self.numbers(value))
            accepted = number or isinstance(value, self.types)
        if not accepted:
            known = [name for name in self.names if isinstance(name, str)]
            hint = did_you_mean(value, known) if isinstance(value, str) else ""
            raise ValueError(f"{name} must be {self.words}, got {abbreviate(value)}; {hint}".rstrip("; "))


CHOICES: dict[str, tuple[str | None, ...]] = {
    "empty": EMPTIES,
    "categorical_kernel": tuple(FAMILIES),
    "unseen": ("raise", "unlike"),
}
ACCEPTED = {
    "degree": Accepted("0, 1 or 2", (), lambda n: 0 <= n <= 2, whole=True),
    "window": Accepted("'auto', 'fixed', Nearest(k) or Floor(rows)", ("auto", "fixed"), types=(Nearest, Floor)),
    "ridge": Accepted(
        f"None, to be found, or a number from 0 to {LARGEST_RIDGE:g}", (None,), lambda x: 0 <= x <= LARGEST_RIDGE
    ),
    "gap": Accepted("a whole number of places, 0 for none", (), lambda n: 0 <= n < 2**62, whole=True),
    "prior_share": Accepted("'loo', or a number from 0 on and below 1", ("loo",), lambda x: 0 <= x < 1),
    "robust": Accepted(
        "False, True, 'tukey', 'huber', or a number of re-weightings from 1 on",
        (False, True, "tukey", "huber"),
        lambda n: n >= 1,
        whole=True,
    ),
}
ACCEPTED_OF_SEARCH = {
    "rows": Accepted(
        "'auto', None for all, or a number of rows from 2 on", ("auto", None), lambda n: n >= 2, whole=True
    ),
}
OPTIONAL: dict[str, Callable[[Any], object]] = {"search": _check_search, "n_jobs": resolve_n_jobs, **COLUMN_CHECKS}


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
    index_: Any = None  # labels of the rows, as `labels_of_rows` returns them
    output_labels_: Sequence[Any] | None = None  # names of several outputs, from a frame
    reweighting_: Reweighting | None = None

    # Found by the fit: bandwidths (d,), smoothings of categorical columns (k,), and how columns become numbers.
    bandwidth_: Array
    smoothing_: Array
    loo_error_: float  # after a search that leaves rows out
    window_: Window
    encoding_: Encoding
    smoother_: Smoother | StoredModel
    target_name_: str | None
    leave_one_out: Callable[[], LeaveOneOut]
    _rank_notes: RankNotes
    _extent: Any  # where the training rows are, an `Extent`
    _given: dict[str, Any]  # parameters of the fit, but `unseen` and `n_jobs`

    _objective: Any = None  # of a search, in place of squared errors; as of `SearchOptions`
    _standardise = True  # so that several outputs count alike
    _degree = 0  # of the local fit
    _floor = 0.0  # least effective rows of windows by default; zero for no floor

    def _freeze(self) -> None:
        """Keep the parameters of the fit, and build what answers; parameters that are set later have no say in it."""
        held = {name: value for name, value in vars(self).items() if name not in LIVE}
        self._given = {name: held[name] for name in held if not name.startswith("_") and not name.endswith("_")}

    def __getstate__(self) -> dict[str, Any]:
        given: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]  # of scikit-learn
        state = {name: value for name, value in given.items() if name not in BUILT}
        kernel = state["kernel"]
        if isinstance(kernel, Kernel) and is_registered(kernel):  # of which copies and files have the name
            state |= {"kernel": kernel.name}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[misc]  # as above
        if "_given" in state:
            taken = as_fitted(self)
            taken._freeze()
            self.__dict__ |= {name: value for name, value in vars(taken).items() if name in BUILT}

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the fit."""
        return len(self.encoding_.kinds)

    @property
    def feature_names_in_(self) -> AnyArray:
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
    def _bandwidth_was_found(self) -> bool:
        """Whether the training rows chose the bandwidths or the windows, rather than the caller."""
        windows = {self.window, self.smoother_.window}
        other_window = len(windows) > 1 and any(isinstance(window, Nearest) for window in windows)
        return isinstance(self.bandwidth, str) or other_window

    @property
    def _reads_pairs_as_numbers(self) -> bool:
        """Whether columns of two categories are coded 0 and 1, so that planes have a slope in them."""
        return False

    def _categories(self) -> Categories:
        if not self.encoding_.levels:
            return NO_CATEGORIES
        return Categories.of(self.encoding_, self.categorical_kernel)

    def _report_rank(self, rank: Index, occupied: Flags, columns: int) -> None:
        """Ignore reports of rank-deficient local fits (a callback): local constant fits have no slopes."""


def as_fitted(model: Fitted, whole: FittedModel | None = None) -> Fitted:
    """Return a fitted model with the parameters of its fit, which later fits and parameters do not change.

    `unseen`, by which new rows are read, and `n_jobs` are as they are now, or those of the model that it is a part of.
    """
    if "_given" not in model.__dict__:
        check_is_fitted(model)  # which raises; asked each time, it takes a tenth of a prediction of one row
    taken = object.__new__(type(model))
    taken.__dict__ = model.__dict__ | model._given
    if whole is not None:
        taken.__dict__ |= {name: getattr(whole, name) for name in LIVE}
    return taken
