"""What a fitted kernel estimator holds: its parameters, and what `fit` left, with their types.

`FittedModel` is the interface between the classes that users see and the functions that answer for them: a function
that takes a model says so by this type, and the estimators and their mixins inherit from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from kernpool.bandwidth import LeaveOneOut
from kernpool.core import NO_CATEGORIES, Categories, RowOrder
from kernpool.core.dependent_columns import RankNotes
from kernpool.data.circular import Coordinates
from kernpool.data.encoding import Encoding
from kernpool.kernels import Kernel, kernel_of_family
from kernpool.pooling import StoredPairs
from kernpool.pooling.widths import Nearest, Window
from kernpool.smoother import Smoother, StoredModel

Array = NDArray[np.float64]
Codes = NDArray[np.int64]


Fitted = TypeVar("Fitted", bound="FittedModel")


class RowAttribute:
    """Descriptor for stored training rows: raises AttributeError, with advice, if they are not in memory.

    Instances keep the attribute itself in their ``__dict__``, which goes before a descriptor that only reads.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, model: FittedModel, owner: type) -> Any:
        if model is None:
            return self
        if "source_" not in vars(model):
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self._name!r}")
        raise AttributeError(
            f"this {owner.__name__} was fitted to rows that are not in memory, so there is no {self._name}; fit it to "
            "arrays, such as a sample of the rows, with bandwidth=model.bandwidth_"
        )


class FittedModel:
    """Base class of what a fitted kernel estimator holds: parameters as given, and attributes as `fit` left them.

    Parameters have the name of the argument, and fitted attributes end in an underscore. Training rows that are not in
    memory are in `source_`; there are no groups of them, and keys, values, weights and codes raise AttributeError, with
    advice.
    """

    # Parameters. Those of type Any accept numbers, names and tables; `parameter_validation.py` checks them.
    kernel: str | Kernel
    bandwidth: Any
    composition: str
    unordered: Any
    ordered: Any
    categorical_kernel: str
    smoothing: Any
    unseen: str
    window: Window
    search: Mapping[str, Any] | None
    algorithm: str
    empty: str
    periodic: Any
    geographic: Any
    n_jobs: int | None
    robust: bool | int | str  # of regressors
    gap: int  # likewise; `gap_of` is zero for others

    # Training rows: keys (n, d), outputs (n,) or (n, c), weights (n,) or None, categories (n, k), groups (n,) or None,
    # and places in their order, (n,) or None.
    key_ = RowAttribute()
    value_ = RowAttribute()
    key_weight_ = RowAttribute()
    key_code_ = RowAttribute()
    key_group_ = RowAttribute()
    key_place_ = RowAttribute()
    source_: StoredPairs

    # Found by the fit: bandwidths (d,), smoothings of categorical columns (k,), and how columns become numbers.
    bandwidth_: Array
    smoothing_: Array
    loo_error_: float  # after a search that leaves rows out
    min_effective_rows_: float | None
    encoding_: Encoding | None
    coordinates_: Coordinates
    smoother_: Smoother | StoredModel
    target_name_: str | None
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    column_labels_: list[Any]
    leave_one_out: Callable[[], LeaveOneOut]
    _replace_fit: Callable[[dict[str, Any]], None]
    _rank_notes: RankNotes
    _extent: Any  # where the training rows are, an `Extent`
    _given: dict[str, Any]  # parameters of the fit, but `unseen` and `n_jobs`

    _standardise = True  # so that several outputs count alike
    _degree = 0  # of the local fit
    _floor = 0.0  # least effective rows of windows by default; zero for no floor

    @property
    def _reads_pairs_as_numbers(self) -> bool:
        """Whether columns of two categories are coded 0 and 1, so that planes have a slope in them."""
        return False

    def _categories(self) -> Categories:
        return NO_CATEGORIES if self.encoding_ is None else self._categories_of(self.encoding_)

    def _categories_of(self, encoding: Encoding) -> Categories:
        kinds = [encoding.kinds[i] for i in encoding.categorical]
        kernels = [kernel_of_family(self.categorical_kernel, ordered=kind == "ordered") for kind in kinds]
        return Categories(tuple(kernels), encoding.table_levels)

    def _report_rank(self, rank: NDArray[np.intp], occupied: NDArray[np.bool_], columns: int) -> None:
        """Ignore reports of rank-deficient local fits (a callback): local constant fits have no slopes."""


def as_fitted(model: Fitted) -> Fitted:
    """Return a fitted model with the parameters of its fit, which later fits and parameters do not change.

    `unseen`, by which new rows are read, and `n_jobs` are as they are now.
    """
    check_is_fitted(model)
    taken = object.__new__(type(model))
    taken.__dict__ = model.__dict__ | model._given
    return taken


def names_of(model: FittedModel) -> Sequence[Any] | None:
    """Return the names of all columns that a model was fitted with; None if they had none."""
    if model.encoding_ is not None:
        return model.encoding_.names
    names: Sequence[Any] | None = getattr(model, "feature_names_in_", None)
    return names


def source_of(model: FittedModel) -> StoredPairs | None:
    """Return the rows that a model was fitted to if they are not in memory, otherwise None."""
    source: StoredPairs | None = getattr(model, "source_", None)
    return source


def follows_rows(model: FittedModel) -> bool:
    """Return whether the windows of a model reach to a number of rows."""
    return isinstance(getattr(model, "window", None), Nearest)


def order_of(model: FittedModel) -> RowOrder | None:
    """Return the places of the training rows in their order, with the gap of the model; None without a gap."""
    gap = gap_of(model)
    return RowOrder(model.key_place_, gap) if gap and model.key_place_ is not None else None


def gap_of(model: FittedModel) -> int:
    """Return the gap of a model; zero for kinds of models that have none."""
    gap: int = getattr(model, "gap", 0)
    return gap


def robust_weight_of(model: FittedModel) -> Array | None:
    """Return the robustness weights of the training rows; None unless the fit is robust."""
    weight: Array | None = getattr(model, "robust_weight_", None)
    return weight


def neighbors_of(model: FittedModel) -> int | None:
    """Return the number of neighbors in the windows of a fitted model; None for windows of fixed width."""
    return model.smoother_.n_neighbors
