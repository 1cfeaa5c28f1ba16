"""What regressions with coefficients have in common: a table of columns with coefficients, and of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from kernpool._arrays import AnyArray, Array, Codes
from kernpool.data import Encoding, unshared
from kernpool.data.columns import is_column, position_of
from kernpool.estimators.methods.row_order import exclusion_of
from kernpool.estimators.model import FittedModel, NamedCalls, check_parameters, with_parameters
from kernpool.estimators.training_rows import Scoring, frequencies, read_rows, refuse_stored_rows, single_output
from kernpool.execution import abbreviate, weighted_sum
from kernpool.inference.model_summary import ColumnSummary


def linear_names(encoding: Encoding, linear: Sequence[int]) -> list[str]:
    """Return the names of the coefficients: one of each number, and of each level of a category but the first."""
    names, binary = [], [i for i, kind in enumerate(encoding.kinds) if kind == "binary"]
    positions, found = (*encoding.categorical, *binary), (*encoding.levels, *encoding.pairs)
    levels = dict(zip(positions, found, strict=True))
    for i in linear:
        label = encoding.column_labels[i]
        names += [f"{label}[{level}]" for level in levels.get(i, ())[1:]] or [f"{label}"]
    return names


def linear_columns(encoding: Encoding, linear: Sequence[int], key: AnyArray, code: Codes) -> Array:
    """Return the linear columns of rows as numbers, of shape (n, p): those of categories are zero or one."""
    columns = []
    for i in linear:
        if i in encoding.numeric:
            column = key[:, [encoding.numeric.index(i)]].astype(np.float64)
            unseen = (encoding.kinds[i] == "binary") & (column == 0.5)  # between the two levels
        else:
            a = encoding.categorical.index(i)
            unseen = code[:, a] < 0
            # zeros where there is one level, which has no coefficient
            column = (code[:, [a]] == np.arange(1, max(len(encoding.levels[a]), 2))).astype(np.float64)
        if np.any(unseen):
            raise ValueError(
                f"X has a level in linear column {encoding.column_labels[i]!r} that the fit "
                "did not have, so that there is no coefficient for it; leave these rows out"
            )
        columns.append(column)
    return np.concatenate(columns, axis=1)


def curve_columns(encoding: Encoding, linear: Sequence[int], key: AnyArray, code: Codes) -> tuple[AnyArray, Codes]:
    """Return the other columns of rows: numbers, of one column at least, and category codes."""
    kept = [a for a, i in enumerate(encoding.numeric) if i not in linear]
    z = key[:, kept] if kept else np.zeros((len(key), 1))
    return z, code[:, [a for a, i in enumerate(encoding.categorical) if i not in linear]]


def centered(column: Array, weight: Array) -> tuple[Array, Array]:
    """Return the weighted means of columns of shape (n, ...), and the columns less these; constants become zeros."""
    away = column - column[0]
    mean = weighted_sum(weight, away) / weight.sum()
    return column[0] + mean, away - mean


@with_parameters
class CoefficientRegressor(NamedCalls, Scoring, RegressorMixin, FittedModel, BaseEstimator):  # type: ignore[misc]
    """Base class of regressions with coefficients of some columns, next to a model of the others.

    A subclass has the parameter that names either of both.
    """

    # The parameter that names columns, what is left for the others, and a remedy if there are none.
    _named: ClassVar[tuple[str, str, str]]
    _kind: ClassVar[type[FittedModel]]  # of the model of the other columns
    _: KW_ONLY
    gap: int = 0

    def _of_others(self) -> Any:
        """Return the estimator of the other columns, not fitted."""
        given = self.get_params(deep=False)
        del given[self._named[0]]
        return self._kind(**given)

    def _read(self, X: Any, y: Any, **by_row: Any) -> tuple[Any, Codes | None]:
        """Read the rows of a fit; return the estimator of the other columns, and the places of rows in an order."""
        refuse_stored_rows(self, X, y, by_row["sample_weight"])
        check_parameters(self)
        key, code, value = read_rows(self, X, y, numbers=True, **by_row)
        output = single_output(value, y)
        if value.ndim == 2 and self.output_labels_ is not None:
            self.target_name_ = f"{self.output_labels_[0]}"
        encoding, weight = self.encoding_, by_row["sample_weight"]
        self.linear_ = self._linear_positions(encoding)
        self.coef_names_ = linear_names(encoding, self.linear_)
        others = self._of_others()
        others.encoding_ = encoding.without(self.linear_)
        for name in ("index_", "target_name_", "output_labels_"):
            setattr(others, name, getattr(self, name))
        weight = None if weight is None else frequencies(weight, len(key))
        z = curve_columns(encoding, self.linear_, key, code)[0]
        exclusion, place = exclusion_of(others, X, z, by_row["groups"], by_row["time"])
        self.__dict__ |= {
            "key_": unshared(key), "key_code_": code, "key_weight_": weight,
            "value_": output,
            "exclusion_": exclusion if exclusion is None or weight is None else exclusion.among(weight),
        }  # fmt: skip
        return others, place

    def _linear_positions(self, encoding: Encoding) -> tuple[int, ...]:
        """Return the positions of the columns with coefficients; raise unless there are some, and others."""
        (parameter, left, remedy), columns = self._named, len(encoding.kinds)
        given = getattr(self, parameter)
        named = [given] if is_column(given) else tuple(given) if np.iterable(given) else ()
        if not named or not all(map(is_column, named)):
            raise ValueError(
                f"{parameter} must be the name or position of a column, or a collection of these, got "
                f"{abbreviate(given)}"
            )
        found = {position_of(parameter, column, columns, encoding.names) for column in named}
        if len(found) == columns:
            raise ValueError(
                f"X has {columns} feature(s), {parameter} names them all, and none is left for {left}; name fewer, or "
                f"use {remedy}"
            )
        found = found if parameter == "linear" else set(range(columns)) - found
        for i in found & {encoding.numeric[a] for one in encoding.options for a in one.columns}:
            raise ValueError(
                f"column {encoding.column_labels[i]!r}, which is in {encoding.options_in_words}, can have "
                f"no coefficient, as {parameter}={abbreviate(given)} says; name it in one of them"
            )
        return tuple(sorted(found))

    @property
    def _x(self) -> Array:
        """Columns with coefficients of the training rows."""
        return linear_columns(self.encoding_, self.linear_, self.key_, self.key_code_)

    def _encoded(self, X: Any) -> tuple[AnyArray, Codes]:
        """Return numbers and category codes of queries."""
        check_is_fitted(self)
        key, code = self.encoding_.encode(X, "unlike")
        linear_columns(self.encoding_, self.linear_, key, code)
        return self.encoding_.encode(X) if self.unseen == "raise" and np.any(code < 0) else (key, code)

    @property
    def _names_of_others(self) -> list[str]:
        """Names of the columns without coefficients."""
        return [f"{label}" for i, label in enumerate(self.encoding_.column_labels) if i not in self.linear_]

    def _with_names(self, columns: Sequence[ColumnSummary]) -> tuple[ColumnSummary, ...]:
        """Return columns of a summary with their names in the table of all columns."""
        return tuple(replace(one, name=name) for one, name in zip(columns, self._names_of_others, strict=True))
