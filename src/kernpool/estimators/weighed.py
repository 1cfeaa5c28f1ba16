"""What the weights of a fitted regressor are of, at some places: outputs, or residuals around the fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from kernpool.core.keys import Prepared
from kernpool.core.problem import Problem
from kernpool.data.checks import as_real_array
from kernpool.distribution import settled, with_limits
from kernpool.distribution import without_axes as drop_axes
from kernpool.distribution.y_bandwidth import check_y_bandwidth, find_y_bandwidth
from kernpool.estimators.fitted import read_query, scale_of
from kernpool.estimators.smoothing_rows import fit_of_rows, need_rows, smoother_of
from kernpool.execution.messages import abbreviate
from kernpool.inference import Places, Smoother
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]
Index = NDArray[np.intp]
# Of a problem, the number of an output, its values, what is added to them at each query (None is nothing) and which
# queries these are: an array of shape (m, t), and which windows are not empty.
Answer = Callable[[Problem, int, Array, Array | None, Index], tuple[Array, NDArray[np.bool_]]]


@dataclass(frozen=True, eq=False)
class Weighed:
    """What weights at some places are of.

    Parameters
    ----------
    smoother : Smoother
        The rows of the model, local constant.
    recipe : Recipe
        How weights are summed, and what empty windows get.
    whole, problem : Problem
        Of the weights; in the second one rows without a residual have none.
    output, value : ndarray of shape (n, c)
        Outputs of the rows, and what is weighed: these, or residuals.
    fit : ndarray of shape (m, c), or None
        What is added to what is weighed; None for outputs.
    dtype : dtype
        Of predictions.
    """

    smoother: Smoother
    recipe: Recipe
    whole: Problem
    problem: Problem
    output: Array
    value: Array
    fit: Array | None
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, model: Any, X: ArrayLike | None, what: str) -> Weighed:
        """Read places, and what is weighed there; None is for the training rows, each without itself or its group."""
        need_rows(model, what)
        smoother = smoother_of(model)
        constant, output = smoother.of_degree(0), np.asarray(model.value_, dtype=np.float64)
        output = output.reshape(len(output), -1)
        if X is None:
            places, dtype = smoother.training, np.result_type(model.key_, model.value_)
            whole = _left_out(model, constant)
        else:
            numeric, code = read_query(model, X)
            places = Places(np.asarray(scale_of(model).apply(numeric), dtype=np.float64), code)
            whole, dtype = constant.problem(places), np.result_type(numeric, model.key_, model.value_)
        if smoother.recipe.degree == 0:
            return cls(constant, smoother.recipe, whole, whole, output, output, None, dtype)
        left_out, problem = model.leave_one_out(), whole
        prediction, known = left_out.prediction.reshape(output.shape), left_out.occupied
        if not known.all():
            weight = np.ones(len(output)) if whole.key_weight is None else whole.key_weight
            problem = replace(whole, key_weight=np.where(known, weight, 0.0), prepared=None)
        fit = prediction if X is None else smoother.fit(places).fit.intercept
        return cls(constant, smoother.recipe, whole, problem, output, output - prediction, fit, dtype)

    @property
    def center(self) -> Array:
        """What is added to what is weighed, of shape (m, c)."""
        return np.zeros((len(self.problem.query), self.output.shape[1])) if self.fit is None else self.fit

    def added(self, found: Array) -> Array:
        """Add the fit to what is weighed, of shape (m, c, l)."""
        return found if self.fit is None else found + self.fit[:, :, None]

    def filled(self, found: Array, occupied: NDArray[np.bool_], level: Array) -> Array:
        """Give empty windows quantiles of the outputs, or what else is asked for; of shape (m, c, l)."""
        return with_limits(self.recipe, self.whole, self.output, level, found, occupied).astype(self.dtype, copy=False)

    def answered(self, answer: Answer, at_zero: Any) -> Array:
        """Answer for each output, empty windows by the distribution of outputs, or of what else is asked for.

        Parameters
        ----------
        answer : callable
            Says what is known of one output.
        at_zero : array_like
            What is true of a value that is always zero, for ``empty="zero"``; to be broadcast to the result.

        Returns
        -------
        ndarray of shape (m, c, t)
            The answers.
        """

        def known(_: Problem, rows: Index) -> tuple[Array, NDArray[np.bool_]]:
            return ask(self.problem, self.value, self.fit, rows)

        def limit(part: Problem, rows: Index) -> tuple[Array, NDArray[np.bool_]]:
            return ask(part, self.output, None, rows)

        def ask(problem: Problem, value: Array, fit: Array | None, rows: Index) -> tuple[Array, NDArray[np.bool_]]:
            found = [
                answer(problem, number, column, None if fit is None else fit[rows, number], rows)
                for number, column in enumerate(value.T)
            ]
            return np.stack([array for array, _ in found], axis=1), found[0][1]

        return settled(self.recipe, self.whole, known, at_zero, limit)


def _left_out(model: Any, constant: Smoother) -> Problem:
    """Return the problem of the training rows, each without itself, or without its group if the fit had groups."""
    group = vars(model).get("key_group_")
    problem = constant.problem(constant.training, exclude_self=group is None)
    return problem if group is None else problem.with_groups(group, group)


def y_bandwidths(model: Any, y_bandwidth: Any) -> Array:
    """Return one bandwidth in y for each output; those with a name are found once per fit."""
    outputs = 1 if model.value_.ndim == 1 else model.value_.shape[1]
    method = check_y_bandwidth(y_bandwidth, outputs)
    if not isinstance(method, str):
        return method

    def make() -> Array:
        weighed = Weighed.of(model, None, "a bandwidth in y needs")
        fitted = model.leave_one_out().prediction.reshape(weighed.output.shape)
        return np.array(
            [
                find_y_bandwidth(weighed.problem, *columns, method)
                for columns in zip(weighed.value.T, weighed.output.T, fitted.T, weighed.center.T, strict=True)
            ]
        )

    prepared: Prepared = vars(model).setdefault("_prepared", Prepared())
    of = (method, *fit_of_rows(model, smoother_of(model)))
    found: Array = prepared.get("y bandwidth", of, make)
    return found


def rows_in_chunks(model: Any, X: Any, what: str) -> bool:
    """Say whether a model reads its rows from chunks; refuse what it cannot do without holding them."""
    check_is_fitted(model)
    if "chunks_" not in vars(model):
        return False
    if model._degree:
        need_rows(model, f"residuals of planes, which {what},")
    if X is None:
        need_rows(model, "places of its training rows, each left out of its own window, need")
    return True


def number_of(y_bandwidth: Any, outputs: int) -> Array:
    """Read bandwidths in y for a model that does not hold its rows, and finds none."""
    width = check_y_bandwidth(y_bandwidth, outputs)
    if isinstance(width, str):
        raise TypeError(
            f"y_bandwidth must be a number where rows are not in memory, "
            f"got {abbreviate(y_bandwidth)}; y_bandwidth() of "
            "NadarayaWatsonRegressor(bandwidth=model.bandwidth_), fitted to a sample of the rows in arrays, finds one"
        )
    return width


def one_per_row(y: Any, shape: tuple[int, int]) -> Array:
    """Read one value of y for each row and output, of shape (m, c)."""
    read = np.asarray(as_real_array("y", y), dtype=np.float64)
    if read.shape != shape and not (shape[1] == 1 and read.shape == shape[:1]):
        wanted = f"({shape[0]},)" if shape[1] == 1 else f"{shape}"
        raise ValueError(f"y must have one value for each row of X, shape {wanted}, got shape {read.shape}")
    return read.reshape(shape)


def without_axes(model: Any, found: Array, thresholds: bool = False) -> Array:
    """Drop the axis of outputs of (m, c, t) if y had one dimension, and that of thresholds if there is a single one."""
    return drop_axes(found, model.value_.ndim == 1, thresholds)
