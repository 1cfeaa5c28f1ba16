"""All that `kernpool predict` writes beside predictions, and the names of its columns."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.cli.expectation import Expectation
from kernpool.cli.terminal import UsageError
from kernpool.cli.uncertainty import Uncertainty, need_rows

Array = NDArray[np.float64]
Columns = dict[str, Array]
Predict = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Beside:
    """What is asked for beside predictions.

    Parameters
    ----------
    uncertainty : Uncertainty
        How sure the curve is.
    expectation : Expectation
        What to expect of the next value.
    probabilities : bool
        Of classes.
    notes : list of str
        What is guaranteed of what was written so far, each once.
    """

    uncertainty: Uncertainty
    expectation: Expectation
    probabilities: bool = False
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, options: argparse.Namespace) -> Beside:
        """Read options of ``kernpool predict``; what cannot be meant is a usage error."""
        found = cls(Uncertainty.of(options), Expectation.of(options), options.proba)
        asked = found.uncertainty.asked + found.expectation.asked
        if asked and options.cluster is not None:
            raise UsageError(f"{' and '.join(asked)} cannot be had from a cluster; predict here, without --cluster")
        return found

    def ready(self, model: Any, options: argparse.Namespace, header: dict[str, Any]) -> Beside:
        """Refuse a model that cannot say what is asked, and read what else is needed; parameters as of its parts."""
        folder = options.model
        if self.uncertainty.asked:
            need_rows(model, folder, " or ".join(self.uncertainty.asked))
        if self.probabilities and not hasattr(model, "predict_proba"):
            raise TypeError(f"--proba is for classifiers, and {folder} holds a {type(model).__name__}")
        return replace(self, expectation=self.expectation.ready(model, options, header))

    def columns(self, model: Any, query: Array, target: str, predict: Predict) -> Columns:
        """Return predictions and what is asked for beside them: y, y_se, y_q0.5 and so on; y_0, y_0_se of several.

        Parameters
        ----------
        model : KernelSmoother
            Fitted.
        query : ndarray of shape (m, d)
            Where.
        target : str
            Name of the output.
        predict : callable
            Predicts; the model, or a cluster.
        """
        predicted = predict(query)
        beside = self.uncertainty.beside(model, query)
        expected, notes = self.expectation.beside(model, query)
        beside |= expected
        self.notes.extend(note for note in notes if note not in self.notes)
        if self.probabilities:
            shares = model.predict_proba(query).T
            beside = {f"p_{label}": share for label, share in zip(model.classes_, shares, strict=True)} | beside
        if predicted.ndim == 1:
            return {target: predicted} | {f"{target}_{end}": column for end, column in beside.items()}
        columns: Columns = {}
        for i, output in enumerate(predicted.T):
            columns[f"{target}_{i}"] = output
            columns |= {f"{target}_{i}_{end}": column[:, i] for end, column in beside.items()}
        return columns
