"""How sure predictions are: columns beside them, and the summary of a fit."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.cli.terminal import UsageError
from kernpool.estimators.regression import KernelRegressor
from kernpool.inference.intervals import check_level

Array = NDArray[np.float64]
Columns = dict[str, Array]
Predict = Callable[[Array], Array]


@dataclass(frozen=True)
class Uncertainty:
    """What is written beside predictions.

    Parameters
    ----------
    error : bool
        Their standard errors.
    level : float or None
        Of intervals for the curve.
    simultaneous : bool
        Whether intervals cover all of the curve at once.
    variance : str
        Where the noise is taken from.
    """

    error: bool
    level: float | None
    simultaneous: bool
    variance: str

    @classmethod
    def of(cls, options: argparse.Namespace) -> Uncertainty:
        """Read options of ``kernpool predict``; what cannot be meant is a usage error."""
        if options.groups is not None:
            raise UsageError(
                "--groups is of kernpool fit: what a model fitted with it says of --se and --interval is of clusters; "
                "fit again with --groups, and leave it out here"
            )
        asked = [name for name, given in (("--se", options.se), ("--interval", options.interval is not None)) if given]
        if options.simultaneous and options.interval is None:
            raise UsageError("--simultaneous is for intervals: say --interval 0.95 too")
        if options.variance is not None and not asked:
            raise UsageError("--variance is of standard errors and intervals: say --se or --interval 0.95 too")
        if options.interval is not None:
            try:
                check_level(options.interval)
            except ValueError as error:
                text = str(error).replace("level=", "--interval ").replace("level ", "--interval ")
                raise UsageError(text) from None
        if options.simultaneous and options.memory is not None:
            raise UsageError(
                "--simultaneous is of the whole curve, and --memory shows a part of DATA at a time; leave --memory out"
            )
        if asked and options.cluster is not None:
            raise UsageError(f"{' and '.join(asked)} cannot be had from a cluster; predict here, without --cluster")
        return cls(options.se, options.interval, options.simultaneous, options.variance or "local")

    @property
    def wanted(self) -> bool:
        """Whether there is anything beside the predictions."""
        return self.error or self.level is not None

    def beside(self, model: Any, query: Array) -> dict[str, Array]:
        """Return columns for the ends of names: of queries of a model that holds its rows."""
        columns: dict[str, Array] = {}
        if self.error:
            columns["se"] = model.standard_error(query, variance=self.variance)
        if self.level is not None:
            found = model.confidence_interval(
                query, level=self.level, variance=self.variance, simultaneous=self.simultaneous
            )
            columns |= {"center": found.center, "lower": found.lower, "upper": found.upper}
        return columns


def columns_of(model: Any, query: Array, target: str, asked: Uncertainty, predict: Predict) -> Columns:
    """Return predictions and what is asked for beside them: y, y_se, y_center and so on; y_0, y_0_se of several.

    Parameters
    ----------
    model : KernelSmoother
        Fitted.
    query : ndarray of shape (m, d)
        Where.
    target : str
        Name of the output.
    asked : Uncertainty
        What is asked for.
    predict : callable
        Predicts; the model, or a cluster.
    """
    predicted = predict(query)
    beside = asked.beside(model, query) if asked.wanted else {}
    if predicted.ndim == 1:
        return {target: predicted} | {f"{target}_{end}": column for end, column in beside.items()}
    columns: Columns = {}
    for i, output in enumerate(predicted.T):
        columns[f"{target}_{i}"] = output
        columns |= {f"{target}_{i}_{end}": column[:, i] for end, column in beside.items()}
    return columns


def need_rows(model: Any, folder: str, what: str) -> None:
    """Refuse a model without rows of its own, from which uncertainty is told.

    Parameters
    ----------
    model : object
        From `load_model`.
    folder : str
        From where.
    what : str
        What the user asked for.

    Raises
    ------
    TypeError
        If it is no regressor, or was fitted in chunks.
    """
    if not isinstance(model, KernelRegressor):
        raise TypeError(f"{what} is for regressors, and {folder} holds a {type(model).__name__}")
    if "chunks_" in vars(model):
        bandwidth = ",".join(f"{h:.6g}" for h in model.bandwidth_)
        raise TypeError(
            f"{folder} was fitted in chunks and holds no rows, which {what} needs; fit a sample of the rows without "
            f"--memory, with --bandwidth {bandwidth}"
        )


def summary_of(model: KernelRegressor, features: Sequence[str]) -> str:
    """Return the summary of a fit, with the names of its columns."""
    summary = model.summary()
    named = [replace(column, name=name) for column, name in zip(summary.columns, features, strict=True)]
    return str(replace(summary, columns=tuple(named)))
