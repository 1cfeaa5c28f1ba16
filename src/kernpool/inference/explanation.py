r"""Explanations of predictions: by training rows, and by columns.

**Rows.** A prediction is a weighted sum of outputs, :math:`\hat y(x) = \sum_j l_j(x)\, y_j` with weights that sum to
one. So each row contributes :math:`l_j (y_j - \bar y)` to the difference of the prediction from the mean output. How
the prediction changes without row j has a closed form (`kernpool.smoother.deletion`), which is exact, because weights,
bandwidths and ridge of the other rows stay as they are. Windows that follow the rows do not, so that there the others
are summed again.

**Columns.** A local plane goes through the weighted mean of the rows, :math:`(\bar x, \bar y)` with the pooling weights
of the query. So the prediction is :math:`\bar y(x) + \sum_a \hat\beta_a(x)\, (x_a - \bar x_a(x))`, exactly, with or
without a ridge: where the query differs from the rows around it, and what that is worth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernpool._arrays import AnyArray, Array, Integers
from kernpool.execution.text_table import PrintedResult, columns_of_text, frame_of, lines_of, names_of
from kernpool.execution.threads import cut, resolve_n_jobs, run_blocks, weighted_sum
from kernpool.smoother import Fitted, Smoother, WeightTables
from kernpool.smoother.deletion import Designs

FEW_ROWS = 10.0  # effective rows below which a printed explanation has a warning
QUERIES_SHOWN = 3
BEFORE_PRIORS = "before priors"  # what pooled labels of a classifier are


def _numbers(values: Array) -> str:
    return ", ".join(f"{value:.4g}" for value in np.atleast_1d(values))


@dataclass(frozen=True, eq=False)
class Explanation(PrintedResult):
    r"""Training rows behind predictions: the largest weights, their contributions, and the effect of deleting a row.

    Made by ``model.get_prediction(X).explain()``. Arrays of rows have the shape (m, k), and (m, k, c) where there are
    several outputs or classes.

    Parameters
    ----------
    prediction : ndarray of shape (m,) or (m, c)
        Pooled outputs, or labels: those of a classifier before priors. NaN where the window is empty.
    average : ndarray of shape () or (c,)
        Mean output of all training rows.
    effective_rows : ndarray of shape (m,)
        Effective number of training rows averaged by each prediction (Kish): a mean of few has a large variance.
    row : ndarray of int64, shape (m, k)
        Training rows of largest absolute weight, the largest first, numbered from 0 as in the fit; -1 where fewer have
        a weight.
    weight : ndarray of shape (m, k)
        Linear weights of these rows. Those of all rows sum to one; those of planes may be negative.
    output : ndarray
        Outputs of these rows; of a classifier 1 in the column of their class, else 0. NaN where there is no row.
    contribution : ndarray
        Weight times (output - average). The contributions of all rows sum to prediction - average.
    influence : ndarray
        Change of the prediction if the row were deleted from the training rows at the same bandwidth; NaN if no other
        row is in the window.
    labels : optional
        Labels of the n training rows: the index of the frame of the fit.
    classes : ndarray or None
        Labels of the classes, of a classifier.
    predicted : ndarray of shape (m,) or None
        Predicted classes, of a classifier: with priors, so not always those of the largest pooled
        label.
    index : optional
        Labels of the queries, likewise.

    Examples
    --------
    >>> from kernpool import NadarayaWatsonRegressor
    >>> x, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 1.0, 5.0, 3.0, 4.0]
    >>> print(NadarayaWatsonRegressor(bandwidth=0.7).fit(x, y).get_prediction([[1.2]]).explain(k=2))
    average         2.6
    <BLANKLINE>
    query 0
      prediction      2.102
      effective rows  2.45, averages few rows: large variance
    <BLANKLINE>
      row     weight  output  contribution  influence
      1       0.5494  1       -0.879        1.344
      2       0.2978  5       0.7148        -1.229
      others  0.1528          -0.3336
    """

    prediction: Array
    average: Array
    effective_rows: Array
    row: Integers
    weight: Array
    output: Array
    contribution: Array
    influence: Array
    labels: Any = None
    classes: AnyArray | None = None
    predicted: AnyArray | None = None
    index: Any = None

    def __len__(self) -> int:
        return len(self.row)

    @property
    def other_weight(self) -> Array:
        """Weight of all other rows together, of shape (m,)."""
        return np.asarray(1.0 - self.weight.sum(axis=1))

    @property
    def other_contribution(self) -> Array:
        """Contributions of all other rows together, of the shape of `prediction`."""
        return np.asarray(self.prediction - self.average - self.contribution.sum(axis=1))

    @property
    def label(self) -> AnyArray:
        """Names of the rows, or their numbers where they have none; of shape (m, k), -1 where there is no row."""
        if self.labels is None or isinstance(self.labels, type):
            return self.row
        names = self.labels if self.labels.dtype.kind in "iu" else self.labels.astype(object)
        return np.where(self.row >= 0, np.asarray(names)[self.row], -1)

    def to_frame(self) -> Any:
        """Return a pandas data frame with a line per query and row, in the order of `row`.

        Returns
        -------
        pandas.DataFrame
            With the columns ``query``, ``row``, ``weight``, ``output``, ``contribution``, ``influence``, and
            ``prediction`` and ``effective_rows`` of the query. Of several outputs or classes names end with their
            number, as in ``contribution_0``; of a classifier ``output`` is the class of the row.

        Raises
        ------
        ImportError
            If pandas is not installed.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonRegressor
        >>> x, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 1.0, 5.0, 3.0, 4.0]
        >>> prediction = NadarayaWatsonRegressor(bandwidth=0.7).fit(x, y).get_prediction([[1.2], [3.0]])
        >>> frame = prediction.explain(k=2).to_frame()
        >>> frame["row"].tolist(), frame["query"].tolist()
        ([1, 2, 3, 2], [0, 0, 1, 1])
        """
        at, place = np.nonzero(self.row >= 0)
        output = self.output if self.classes is None else self.classes[self.output.argmax(axis=2)]
        columns = {"weight": self.weight, "output": output}
        columns |= {"contribution": self.contribution, "influence": self.influence}
        columns = {name: of[at, place] for name, of in columns.items()}
        frame = {"query": names_of(self.index, len(self))[at], "row": self.label[at, place]} | columns
        frame |= {"prediction": self.prediction[at], "effective_rows": self.effective_rows[at]}
        return frame_of(frame, self.index if isinstance(self.index, type) else None)

    def __str__(self) -> str:
        shown, names = range(min(len(self), QUERIES_SHOWN)), names_of(self.index, len(self))
        lines = lines_of({"average": self._text(self.average)}, 14)
        for i in shown:
            lines += ["", f"query {names[i]}", *(f"  {line}".rstrip() for line in self._lines(i))]
        return "\n".join([*lines, *["", f"and {len(self) - len(shown)} more queries"] * (len(self) > len(shown))])

    def _explained_class(self, i: int) -> tuple[int, ...]:
        """Return the index of the predicted class of query i along the last axis; empty if there are no classes."""
        if self.classes is None or self.predicted is None:
            return ()
        return (int(np.searchsorted(self.classes, self.predicted[i])),)

    def _text(self, values: Array) -> str:
        """Return numbers of one query or row as text; of a classifier with the class of each."""
        if self.classes is None:
            return _numbers(values)
        return ", ".join(f"{label} {value:.4g}" for label, value in zip(self.classes, values, strict=True))

    def _lines(self, i: int) -> list[str]:
        """Return the printed explanation of a query; contributions to its predicted class, of a classifier."""
        effective, pooled, chosen = self.effective_rows[i], self._text(self.prediction[i]), self._explained_class(i)
        few = ", averages few rows: large variance" if 0.0 < effective < FEW_ROWS else ""
        facts = {"prediction": pooled}
        if self.predicted is not None:
            facts = {"prediction": f"{self.predicted[i]}", "pooled label": f"{pooled}, {BEFORE_PRIORS}"}
        lines = lines_of(facts | {"effective rows": f"{effective:.3g}{few}"}, 14)
        if self.predicted is not None:
            lines += lines_of({"explained": f"pooled label of {self.predicted[i]}"}, 14)
        names, rows = ["row", "weight", "output", "contribution", "influence"], []
        for place in np.flatnonzero(self.row[i] >= 0):
            output = self.output[i, place]
            cell = f"{self.classes[output.argmax()]}" if self.classes is not None else _numbers(output)
            further = (_numbers(of[i, place, *chosen]) for of in (self.contribution, self.influence))
            rows.append([f"{self.label[i, place]}", f"{self.weight[i, place]:.4g}", cell, *further])
        others = _numbers(self.other_contribution[i, *chosen])
        rows.append(["others", f"{self.other_weight[i]:.4g}", "", others, ""])
        return [*lines, "", *(line.removeprefix("  ") for line in columns_of_text(names, rows))] if rows[1:] else lines


@dataclass(frozen=True, eq=False)
class AdditiveTerms(PrintedResult):
    r"""Predictions of local planes as the mean of the rows around each query plus a term of each numeric column.

    Made by ``model.get_prediction(X).additive_terms()``.

    Parameters
    ----------
    columns : tuple of str
        Names of the d numeric columns.
    prediction, local_mean : ndarray of shape (m,) or (m, c)
        Predictions, and means of the outputs around the queries by pooling weights. The difference is the sum of the
        terms. Categories have no term of their own: they change which rows are averaged.
    value, center : ndarray of shape (m, d)
        The query, and the mean of the rows around it by pooling weights.
    slope, term : ndarray of shape (m, d) or (m, d, c)
        Slopes of the planes per unit of the column, and terms: slope times (value - center).
    index : optional
        Labels of the queries, those of a frame of pandas.

    Examples
    --------
    >>> from kernpool import LocalLinearRegressor
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]], [1.0, 2.0, 5.0, 6.0]
    >>> model = LocalLinearRegressor(kernel="constant", bandwidth=1.0).fit(X, y)  # a least-squares plane
    >>> print(model.get_prediction([[3.0, 1.0]]).additive_terms())
    query 0
      prediction  7
      local mean  3.5
    <BLANKLINE>
      column  value  mean of rows  slope  term
      0       3      1.5           2      3
      1       1      0.5           1      0.5
    """

    columns: tuple[str, ...]
    prediction: Array
    local_mean: Array
    value: Array
    center: Array
    slope: Array
    term: Array
    index: Any = None

    def __len__(self) -> int:
        return len(self.value)

    def to_frame(self) -> Any:
        """Return a pandas data frame with a line per query and column.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        m, d = self.value.shape
        numbers = {"value": self.value, "center": self.center, "slope": self.slope, "term": self.term}
        query, columns = names_of(self.index, m), np.array(self.columns, dtype=object)
        frame = {"query": np.repeat(query, d), "column": np.tile(columns, m)}
        frame |= {name: of.reshape(m * d, *of.shape[2:]) for name, of in numbers.items()}
        parts = {"local_mean": self.local_mean, "prediction": self.prediction}
        frame |= {name: np.repeat(of, d, axis=0) for name, of in parts.items()}
        return frame_of(frame, self.index if isinstance(self.index, type) else None)

    def __str__(self) -> str:
        lines: list[str] = []
        names = names_of(self.index, len(self))
        for i in range(min(len(self), QUERIES_SHOWN)):
            facts = {"prediction": _numbers(self.prediction[i]), "local mean": _numbers(self.local_mean[i])}
            parts = (self.value, self.center, self.slope, self.term)
            rows = [[name, *(_numbers(of[i, a]) for of in parts)] for a, name in enumerate(self.columns)]
            table = columns_of_text(["column", "value", "mean of rows", "slope", "term"], rows)
            lines += [*[""] * (i > 0), f"query {names[i]}", *(f"  {line}" for line in lines_of(facts)), "", *table]
        more = len(self) - QUERIES_SHOWN
        return "\n".join([*lines, *["", f"and {more} more queries"] * (more > 0)])


def explain(
    fitted: Fitted,
    value: Array,
    k: int,
    labels: Any = None,
) -> Explanation:
    """Explain predictions by their k training rows of largest weight."""
    # `value` are the outputs as given: those of the smoother are rounded
    smoother, fit = fitted.smoother, fitted.fit
    weight = smoother.weight
    row = largest_weights(smoother, fitted, min(k, int(np.count_nonzero(weight > 0))))
    pooling, offsets = _pooling_weights(smoother, fitted, row)
    designs = Designs.of(fitted)
    linear = pooling * designs.linear_weights(offsets)
    first = smoother.keys.value[int(np.argmax(weight > 0))]  # subtracted first, so that a constant has no contribution
    centered = smoother.keys.value - first
    mean = weighted_sum(weight, centered) / smoother.rows
    known = row >= 0
    output = np.where(known[:, :, None], value[row], np.nan)
    contribution = np.where(known[:, :, None], linear[:, :, None] * (centered[row] - mean), 0.0)
    changes = np.stack([*designs.changes(pooling, offsets, row, value[row])], axis=2)
    influence = np.where(known[:, :, None], changes, 0.0)
    occupied = fit.occupied
    return Explanation(
        np.where(occupied[:, None], fit.intercept, np.nan),
        smoother.keys.center + first + mean,
        smoother.effective_rows(fitted.problem),
        row,
        np.where(occupied[:, None], np.where(known, linear, 0.0), np.nan),
        output,
        np.where(occupied[:, None, None], contribution, np.nan),
        np.where(occupied[:, None, None], influence, np.nan),
        labels,
    )


def largest_weights(smoother: Smoother, fitted: Fitted, k: int) -> Integers:
    """Return the k keys of largest absolute linear weight of each query; -1 where fewer have a weight."""
    tables = WeightTables.of([(1.0, fitted.linear_weights)])
    row = np.full((len(fitted.problem.query), k), -1, dtype=np.int64)

    def work(rows: slice) -> Iterator[None]:
        _keep_largest(np.abs(tables.rows(rows)), row[rows])
        yield

    run_blocks(work, cut(len(row), tables.places), resolve_n_jobs(smoother.recipe.n_jobs), None)
    return np.where(row >= 0, tables.kept[row], -1)


def _keep_largest(size: Array, row: Integers) -> None:
    """Write the columns of the largest numbers of each row of a table to `row`; zeros and NaN are left out."""
    k, tiny = row.shape[1], np.finfo(np.float64).smallest_subnormal
    least = np.maximum(np.partition(size, size.shape[1] - k, axis=1)[:, size.shape[1] - k], tiny)
    at, column = np.nonzero(size >= least[:, None])
    order = np.lexsort((column, -size[at, column], at))
    at, column = at[order], column[order]
    place = np.arange(len(at)) - np.searchsorted(at, at)
    kept = place < k
    row[at[kept], place[kept]] = column[kept]


def _pooling_weights(smoother: Smoother, fitted: Fitted, row: Integers) -> tuple[Array, list[Array]]:
    """Return pooling weights of some rows of each query, (m, k), and for planes their offsets in bandwidths."""
    problem, (m, k) = fitted.problem, row.shape
    away = problem.key[row] - problem.query[:, None]
    if problem.similarity.widening is not None:
        away /= problem.similarity.widening[:, None, None]
    ordinary = replace(problem.similarity, widening=None)
    logits = ordinary.logits(np.zeros((1, away.shape[2])), away.reshape(m * k, -1)).reshape(m, k)
    if problem.factors is not None:
        columns = zip(problem.factors.log_tables, problem.factors.query_code.T, problem.factors.key_code.T, strict=True)
        for table, query, key in columns:
            logits = logits + table[query[:, None], key[row]]
    with np.errstate(invalid="ignore", over="ignore"):
        pooling = smoother.weight[row] * np.exp(logits - fitted.state.log_denominator[:, None])
    offsets = [*np.moveaxis(away / problem.similarity.bandwidth, 2, 0)] if problem.degree else []
    return np.where(row >= 0, pooling, 0.0), offsets
