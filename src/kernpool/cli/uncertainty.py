"""How sure the curve is: columns beside predictions, and the summary of a fit."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.cli.terminal import UsageError
from kernpool.estimators.regression import KernelRegressor
from kernpool.inference import ClassSummary, Summary
from kernpool.inference.intervals import check_level

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Uncertainty:
    """What is written beside predictions of the curve.

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
        interval = options.interval
        if options.simultaneous and interval is None:
            raise UsageError("--simultaneous is for intervals: say --interval 0.95 too")
        for name, given in (("simultaneous", options.simultaneous), ("variance", options.variance is not None)):
            if given and options.method is not None:
                raise UsageError(
                    f"--{name} is of intervals for the curve, and --method of those for the next value; leave one of "
                    "them out"
                )
        if options.variance is not None and interval is None and not options.se:
            raise UsageError("--variance is of standard errors and intervals: say --se or --interval 0.95 too")
        if interval is not None:
            checked_level("--interval", interval)
        if options.simultaneous and options.memory is not None:
            raise UsageError(
                "--simultaneous is of the whole curve, and --memory shows a part of DATA at a time; leave --memory out"
            )
        of_curve = interval if options.method is None else None
        return cls(options.se, of_curve, options.simultaneous, options.variance or "local")

    @property
    def asked(self) -> list[str]:
        """The options that ask for something."""
        return ["--se"] * self.error + ["--interval"] * (self.level is not None)

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


def checked_level(option: str, level: float) -> None:
    """Refuse a level that is none, in the words of an option."""
    try:
        check_level(level)
    except ValueError as error:
        text = str(error).replace("level=", f"{option} ").replace("level ", f"{option} ")
        raise UsageError(text) from None


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


def named_summary(model: Any, features: Sequence[str]) -> Summary | ClassSummary:
    """Return the summary of a fit, in which columns have their names."""
    summary: Summary | ClassSummary = model.summary()
    if model.encoding_ is not None:  # which knows them
        return summary
    named = [replace(column, name=name) for column, name in zip(summary.columns, features, strict=True)]
    return replace(summary, columns=tuple(named))
