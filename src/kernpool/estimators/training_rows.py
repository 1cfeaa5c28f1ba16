"""Training rows: reading X, y and weights, and protection from changes by the caller.

`as_stored` recognises rows that are not in memory, `read_rows` reads X, y and weights, and `one_hot` turns labels into
numbers that can be pooled.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from kernpool._arrays import AnyArray, Array, Index, Integers
from kernpool.data import Chunks, is_arrow_table, is_frame, open_chunks
from kernpool.data.array_validation import as_key_weight, as_real_array, find_inexact, is_missing, refuse_foreign
from kernpool.data.columns import Columns, MixedTable, labels_of, labels_of_rows, order_of_columns, refuse_other_labels
from kernpool.data.encoding import COLUMN_OPTIONS, Encoding
from kernpool.data.suspect_columns import SuspectColumnWarning, suspect_columns
from kernpool.estimators.model import FittedModel
from kernpool.execution.error_messages import abbreviate
from kernpool.execution.warnings import warn_caller
from kernpool.pooling import ChunkPairs, Source

NO_TARGET = "{} requires y to be passed, but the target y is None"


def as_labels(y: Any, owner: str = "a classifier") -> AnyArray:
    """Convert class labels of any type to an array; raise if labels are missing, of mixed types or would be rounded.

    Parameters
    ----------
    y : array_like of shape (n,)
        Labels: text, booleans or numbers, also of pandas' nullable types, of Arrow and of polars.
    owner : str
        Class of the model, for messages.

    Returns
    -------
    ndarray of shape (n,)
        Integers stay integers of 64 bits, booleans booleans.

    Raises
    ------
    TypeError, ValueError
        If y is None, masked, sparse or a tensor, a label is missing or infinite, text and numbers are mixed, or an
        integer would be rounded.

    Examples
    --------
    >>> as_labels([2**60 + 1, 2**60 + 2])
    array([1152921504606846977, 1152921504606846978])
    >>> as_labels(["yes", None])
    Traceback (most recent call last):
    ...
    ValueError: y is None in row 1 (counted from 0), and 1 of 2 labels are missing or infinite; drop such rows from X
    and y, or give missing labels a class of their own, such as 'unknown'
    """
    if y is None:
        raise ValueError(NO_TARGET.format(owner))
    refuse_foreign("y", y)
    read = _as_array(y)
    if read.dtype.kind == "f":
        missing = ~np.isfinite(read)
    elif read.dtype.kind in "mM":
        missing = np.isnat(read)
    else:
        items = read.ravel().tolist() if read.dtype.kind == "O" else ()
        missing = np.array([is_missing(item) or item in (np.inf, -np.inf) for item in items], dtype=bool)
    if missing.any():
        index, count = int(missing.argmax()), np.count_nonzero(missing)
        raise ValueError(
            f"y is {read.ravel()[index]} in row {index // (missing.size // len(read))} (counted from 0), and "
            f"{count} of {missing.size} labels are missing or infinite; drop such rows from X and y, or give missing "
            "labels a class of their own, such as 'unknown'"
        )
    label: AnyArray = column_or_1d(read, warn=True)
    return _of_one_type(label, as_text=isinstance(y, list | tuple)) if label.dtype.kind == "O" else label


def _as_array(y: Any) -> AnyArray:
    """Convert labels to an array, of dtype object for lists and pandas extension types, so that no label changes."""
    if hasattr(y, "iloc"):  # of pandas, whose nullable types become floats
        columns = [y.iloc[:, i] for i in range(y.shape[1])] if y.ndim == 2 else [y]
        if not all(isinstance(column.dtype, np.dtype) for column in columns):
            read = np.empty(y.shape, dtype=object)
            for i, column in enumerate(columns):
                read.reshape(len(y), -1)[:, i] = column.tolist()
            return read
    return np.asarray(y, dtype=object if isinstance(y, list | tuple) else None)  # NumPy makes text of None beside text


def _of_one_type(label: AnyArray, as_text: bool) -> AnyArray:
    """Convert labels of dtype object to booleans, integers or floats if all are numbers; text stays text."""
    items = label.tolist()
    text = [item for item in items if isinstance(item, str)]
    others = [item for item in items if not isinstance(item, str)]
    if text and others:
        raise ValueError(
            f"y must hold labels of one type, got text such as {text[0]!r} and {type(others[0]).__name__} such as "
            f"{others[0]!r}; convert them, as in [str(label) for label in y]"
        )
    if text:
        return np.array(items) if as_text else label
    if not all(isinstance(item, bool | int | float | np.bool_ | np.number) for item in items):
        other = next(item for item in items if not isinstance(item, bool | int | float | np.bool_ | np.number))
        raise TypeError(
            f"y must hold text, numbers or booleans, got {type(other).__name__} such as {abbreviate(other)}; "
            "convert them to text, as in [str(label) for label in y]"
        )
    read = np.array(items)
    inexact = find_inexact(items, read)
    if read.dtype.kind == "O" or (read.dtype.kind == "f" and inexact is not None):
        integer = next(item for item in items if isinstance(item, int)) if inexact is None else inexact[1]
        raise ValueError(
            f"y holds the integer {integer} among floats, or integers of more than 64 bits, and would be rounded; "
            "convert the labels to text, as in [str(label) for label in y]"
        )
    return read


def one_hot(y: ArrayLike, dtype: Any) -> tuple[AnyArray, Index, AnyArray]:
    """Return the classes, the class index of each label, and the one-hot labels.

    Parameters
    ----------
    y : array_like of shape (n,)
        Labels: numbers or strings.
    dtype : dtype
        Of the result.

    Returns
    -------
    classes : ndarray of shape (k,)
        In increasing order.
    number : ndarray of int, shape (n,)
        Which one each row has.
    shares : ndarray of shape (n, k)
        One in the column of the class of a row, else zero.

    Raises
    ------
    ValueError
        If y is continuous.

    Examples
    --------
    >>> one_hot(["b", "a"], np.float64)[2]
    array([[0., 1.],
           [1., 0.]])
    """
    try:
        check_classification_targets(y)
    except ValueError:
        raise ValueError(
            f"Unknown label type: continuous; y holds numbers such as {np.ravel(y)[0]!s:.20}, which are no "
            "classes; use NadarayaWatsonRegressor for numbers, or pass integers, booleans or text"
        ) from None
    classes, number = np.unique(y, return_inverse=True)
    return classes, number, (number[:, None] == np.arange(len(classes))).astype(dtype)


UNUSUAL_MEAN_WEIGHT = 10.0


def read_rows(
    model: FittedModel, X: Any, y: Any, *, numbers: bool, **by_row: Any
) -> tuple[AnyArray, Integers, AnyArray]:
    """Convert X and y to numeric columns, category codes, and outputs or labels; set what else the table says.

    Where no column is numeric, there is one numeric column of zeros.

    Parameters
    ----------
    model : KernelSmoother
        With the options of columns.
    X, y : array_like or frame
        Inputs and outputs.
    numbers : bool
        Whether outputs are numbers, of one column or several, and not labels.
    **by_row
        Further arguments of ``fit`` that have an entry for each row, or None.
    """
    refuse_formula(X, y)
    name = y[0] if numbers and isinstance(y, list | tuple) and len(y) == 1 else y
    if isinstance(name, str):
        raise TypeError(
            f"y must hold a value per row, got {abbreviate(y)}; pass the column: fit(frame.drop(columns={name!r}), "
            f"frame[{name!r}])"
        )
    refuse_other_labels(X=X, y=y, **by_row)
    labels = map(labels_of_rows, (X, y, *by_row.values()))
    model.index_ = next((index for index in labels if index is not None), None)
    table = Columns.of(X)
    options = {name: getattr(model, name) for name in COLUMN_OPTIONS}
    model.encoding_ = Encoding.fit(table, binary=model._reads_pairs_as_numbers, **options)
    key, code = model.encoding_.encode(table)
    key = as_real_array("X", key)
    output = as_outputs(y, type(model).__name__) if numbers else as_labels(y, type(model).__name__)
    if len(key) != len(output):
        raise ValueError(f"X has {len(key)} rows and y {len(output)}; pass one value of y for each row of X")
    if not isinstance(table.table, np.ndarray | MixedTable):  # columns of files are looked at where they are read
        named = [name for some in (model.unordered, model.ordered) if some is not None for name in some]
        for sentence in suspect_columns(table, named):
            warn_caller(sentence, SuspectColumnWarning)
    model.output_labels_ = None if isinstance(y, np.ndarray) else labels_of(y)
    target = getattr(y, "name", None)
    model.target_name_ = target if isinstance(target, str) else None
    return key, code, output


def single_output(value: NDArray[Any], y: Any) -> Array:
    """Return outputs that `read_rows` has read as floats of shape (n,); raise ValueError if there are several."""
    if value.ndim == 2 and value.shape[1] > 1:
        raise ValueError(f"y must have one output, got {value.shape[1]}; fit a model for each")
    return np.asarray(column_or_1d(value, warn=isinstance(y, np.ndarray)).astype(np.float64))


def refuse_stored_rows(model: FittedModel, X: Any, y: Any, sample_weight: Any) -> None:
    """Raise TypeError if the rows given to ``fit`` are not in memory, for estimators that need them there."""
    if as_stored(X, y, sample_weight) is not None:
        raise TypeError(
            f"{type(model).__name__} takes rows in memory, got {type(X).__name__}; fit a sample of the rows"
        )


def as_stored(X: Any, y: Any, sample_weight: Any) -> Source | None:
    """Return the rows given to ``fit`` as `Source` if they are not in memory; None for other rows.

    These are chunks, a file or folder of files, an Arrow stream with y as the name of its target column, Dask
    collections, and what `kernpool.dask.open_partitions` returns.

    Raises
    ------
    TypeError
        If the target is not named, or weights are not a column.
    ValueError
        If the rows can be gone through only once.
    """
    named = isinstance(y, str) or (isinstance(y, list | tuple) and all(isinstance(name, str) for name in y))
    if isinstance(X, Source | Chunks):
        if y is not None or sample_weight is not None:
            raise TypeError("chunks and partitions bring their values and weights: leave y and sample_weight out")
        if isinstance(X, Source):
            return X
        chunks = X
    elif is_on_dask(X):
        from kernpool.dask import open_partitions  # needs the extra

        refuse_formula(X, y)
        return open_partitions(X, None if named else y, sample_weight, target=y if named else None)
    elif isinstance(X, str | Path) or (isinstance(y, str) and (is_arrow_table(X) or not is_frame(X))):
        refuse_formula(X, y)
        if not named:
            raise TypeError(f"y must name the column of {X} that is the target, got {type(y).__name__}")
        if sample_weight is not None and not isinstance(sample_weight, str):
            raise TypeError(f"sample_weight must name a column of weights, got {type(sample_weight).__name__}")
        if not isinstance(X, str | Path) and not hasattr(X, "__arrow_c_stream__"):
            raise TypeError(
                f"y={y!r} names a column, so X must be a file, a folder or a stream of Arrow, got {type(X).__name__}"
            )
        chunks = open_chunks(X, target=y, weight=sample_weight)
    else:
        return None
    if not chunks.again:
        raise ValueError(
            "X must be rows that predict can read again, which an iterator does not allow; give a list, a file or "
            "arrays"
        )
    return ChunkPairs(chunks, chunks.reference())


def refuse_formula(X: Any, y: Any) -> None:
    """Raise TypeError if X or y is a formula such as "y ~ a + b", and explain how to select columns.

    Paths with a tilde, such as ``~/a.parquet``, are no formulas.
    """
    for given in (X, y):
        if isinstance(given, str) and re.match(r"\s*\w[\w. ]*~", given) and not Path(given).exists():
            target, _, terms = given.partition("~")
            names = [term.strip() for term in terms.split("+")]
            plain = target.strip().isidentifier() and all(name.isidentifier() for name in names)
            how = f"frame[{names}], frame[{target.strip()!r}]" if plain else "frame[['a', 'b']], frame['y']"
            raise TypeError(f"formulas are not supported, got {abbreviate(given)}; select the columns: fit({how})")


def as_outputs(y: Any, owner: str = "a regressor", labels: Sequence[Any] | None = None) -> NDArray[np.floating[Any]]:
    """Convert the outputs of a regressor to an array of finite numbers, of shape (n,) or (n, c).

    Parameters
    ----------
    y : array_like
        What the caller passed.
    owner : str
        Class of the model, for messages.
    labels : sequence, optional
        Names of the outputs of a fit: columns of a frame are brought into their order.
    """
    if y is None:
        raise ValueError(NO_TARGET.format(owner))
    try:
        read = as_real_array("y", y)
    except (TypeError, ValueError):
        refuse_foreign("y", y)
        _refuse_no_outputs(np.asarray(y), owner)
        raise
    if read.ndim not in (1, 2):
        raise ValueError(f"y must have shape (rows,) or (rows, outputs), got {read.shape}")
    if labels is None or len(labels) < 2:
        return read
    order = order_of_columns(labels_of(y), labels, ("y", "the outputs of the fit"))
    return read if order is None else read[:, order]


def _refuse_no_outputs(read: AnyArray, owner: str) -> None:
    """Raise ValueError if outputs are text, missing or infinite, naming the first invalid entry."""
    for index, cell in np.ndenumerate(read if read.dtype.kind in "OSUf" else ()):
        if isinstance(cell, str | bytes):
            classifier = f"{'KernelStacking' if 'Stacking' in owner else 'NadarayaWatson'}Classifier"
            raise ValueError(
                f"y must hold numbers, got text such as {str(cell)!r:.60}; {owner} predicts numbers, and "
                f"{classifier} classes"
            )
        missing = is_missing(cell)
        if missing or cell in (np.inf, -np.inf):
            what = "missing (NaN, None or NA)" if missing else str(cell)
            column = f", column {index[1]}" if len(index) > 1 else ""
            raise ValueError(
                f"y is {what} in row {index[0] if index else 0}{column} (counted from 0); drop such rows first"
            )


class Scoring:
    """Mixin with the method `score`, which accepts the same types of y and weights as `fit`."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2 of the predictions for a regressor, accuracy for a classifier.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Inputs.
        y : array_like of shape (m,) or (m, c)
            Outputs or labels.
        sample_weight : array_like of shape (m,), optional
            Weights of the rows.

        Returns
        -------
        float
            As scikit-learn's estimators return it.

        Raises
        ------
        TypeError, ValueError
            If y holds missing cells, or is a masked or sparse array; and as `predict`.
        """
        owner, model = type(self).__name__, cast(Any, super())
        X, y, sample_weight = map(computed, (X, y, sample_weight))
        refuse_other_labels(X=X, y=y, sample_weight=sample_weight)
        outputs = getattr(self, "output_labels_", None)
        target = as_labels(y, owner) if hasattr(self, "classes_") else as_outputs(y, owner, outputs)
        if sample_weight is not None:
            sample_weight = as_real_array("sample_weight", sample_weight)
        return float(model.score(X, target, sample_weight))


def frequencies(sample_weight: ArrayLike, n: int) -> Array:
    """Convert `sample_weight` to n frequency weights, in a new array; warn if the positive ones have an unusual mean.

    Usual is a mean from 0.1 to 10.
    """
    given = as_real_array("sample_weight", sample_weight)
    given = np.broadcast_to(given, (n,)) if given.ndim == 0 else given
    weight = as_key_weight(given, (n,), "sample_weight").copy()
    mean = weight[weight > 0].mean()
    if not 1 / UNUSUAL_MEAN_WEIGHT <= mean <= UNUSUAL_MEAN_WEIGHT:
        warn_caller(
            f"sample_weight has mean {mean:.3g}: weights are read as frequencies, a weight of 3 as three equal rows, "
            "and their sum as the number of rows. For survey or precision weights divide by the largest first",
        )
    return weight


def is_on_dask(X: Any) -> bool:
    """Return whether an object is a Dask collection, without importing Dask.

    Arrays of other libraries, such as those of xarray, may hold a collection, and have no graph where they do not.
    """
    graph = getattr(X, "__dask_graph__", None)
    if graph is None or isinstance(X, type):
        return False
    # to ask a collection of Dask itself may take long
    return type(X).__module__.startswith("dask.") or graph() is not None


def computed(array: Any) -> Any:
    """Return an array in memory, computed if it is a Dask collection."""
    return array.compute() if is_on_dask(array) else array
