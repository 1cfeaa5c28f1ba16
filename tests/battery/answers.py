"""Answers of models: how each is asked, and what its numbers are: their unit in y or x, and what they go by.

Units are ``"y"`` (a value of y, which moves with its origin), ``"dy"`` (a difference of y), ``"dy2"``, ``"1/dy"``,
``"dy/dx"`` and ``"1"``. Axes say what the first dimension is: ``"points"``, ``"rows"``, ``"points rows"`` (then the
second), ``"top"`` (the rows that weigh most at each), ``"band"`` (points that an answer needs together), or ``""``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool import distribution_bandwidth, row_diagnostics, specification_test
from tests.battery.options import Study

Array = NDArray[Any]


@dataclass(frozen=True)
class Field:
    """Numbers of an answer."""

    value: Array
    unit: str = "1"
    axes: str = "points"


Fields = Mapping[str, Field]


@dataclass(frozen=True)
class Answer:
    """How a fitted model is asked.

    Where `drawn`, random numbers are dealt to rows or points in their order, so that another order has other ones.
    `rtol` is the tolerance of a search inside it.
    """

    ask: Callable[[Any, Study], Fields]
    drawn: bool = False
    rtol: float = 0.0


def one(value: Any, unit: str = "1", axes: str = "points") -> Fields:
    """Return the only field of an answer."""
    return {"value": Field(np.asarray(value), unit, axes)}


def read(result: Any, axes: str = "points", **units: str) -> Fields:
    """Return attributes of a result, those that it has, with their units."""
    values = {name: getattr(result, name) for name in units}
    return {name: Field(np.asarray(value), units[name], axes) for name, value in values.items() if value is not None}


def limits(frame: Any, name: str) -> Fields:
    """Return the column of a frame of pandas or polars that has a name, or those of all outputs, side by side."""
    found = [np.asarray(frame[each]) for each in frame.columns if each.startswith(name)]
    if not found:
        raise AttributeError(f"no column {name}")
    return one(found[0] if len(found) == 1 else np.column_stack(found), "y")


interval = partial(read, center="y", lower="y", upper="y", standard_error="dy", df="1", effective_rows="1")
ANSWERS: dict[str, Answer] = {}


def register(name: str, ask: Callable[[Any, Study], Fields], **kind: float) -> None:
    """Register an answer."""
    ANSWERS[name] = Answer(ask, **kind)


# ------------------------------------------------------------------------------------------------ at points

register("predict", lambda m, s: one(m.predict(s.query), "y"))
register("return_std", lambda m, s: one(m.predict(s.query, return_std=True)[1], "dy"))
register("predict_proba", lambda m, s: one(m.predict_proba(s.query)))
register("decision_function", lambda m, s: one(m.decision_function(s.query)))
register("predict_log_proba", lambda m, s: one(m.predict_log_proba(s.query)))
register("probability std", lambda m, s: one(m.predict_proba(s.query, return_std=True)[1]))
register("probability_interval", lambda m, s: interval(m.probability_interval(s.query)))
for method in ("lac", "aps"):
    register(f"predict_set {method}", lambda m, s, method=method: read(
        m.predict_set(s.query, method=method, random_state=0), member="1"), drawn=method == "aps")  # fmt: skip
register("weights", lambda m, s: one(m.attention_weights(s.query), axes="points rows"))
register("get_prediction", lambda m, s: read(m.get_prediction(s.query), mean="y", standard_error="dy",
         observation_std="dy", effective_sample_size="1", has_support="1", widening="1"))  # fmt: skip
register("class prediction", lambda m, s: read(m.get_prediction(s.query), probability="1", standard_error="1",
         effective_sample_size="1", has_support="1", widening="1"))  # fmt: skip
register("class weights", lambda m, s: one(m.get_prediction(s.query).weights(), axes="points rows"))
register("class interval", lambda m, s: interval(m.get_prediction(s.query).confidence_interval()))
for variance in ("sandwich", "nn", "hc3"):
    register(f"variance {variance}", lambda m, s, variance=variance: read(
        m.get_prediction(s.query, variance=variance), standard_error="dy"))  # fmt: skip
register("slope", lambda m, s: one(m.get_prediction(s.query).slope, "dy/dx"))
register("slope_standard_error", lambda m, s: one(m.get_prediction(s.query).slope_standard_error, "dy/dx"))
register("additive_terms", lambda m, s: read(m.get_prediction(s.query).additive_terms(), prediction="y",
         local_mean="y", term="dy", slope="dy/dx"))  # fmt: skip
register(
    "explain",
    lambda m, s: {
        **read(m.get_prediction(s.query).explain(k=3), prediction="y", effective_rows="1"),
        **read(m.get_prediction(s.query).explain(k=3), "top", weight="1", output="y", influence="dy"),
    },
)
register("to_frame", lambda m, s: limits(m.get_prediction(s.query).to_frame(), "upper"))

# ------------------------------------------------------------------------------------------------ intervals

for method in ("auto", "naive", "robust", "undersmoothed"):
    register(f"confidence_interval {method}", lambda m, s, method=method: interval(
        m.confidence_interval(s.query, method=method)))  # fmt: skip
register("slope interval", lambda m, s: read(m.confidence_interval(s.query, quantity="derivative"), lower="dy/dx"))
register("band tube", lambda m, s: interval(m.confidence_interval(s.query, simultaneous="tube"), "band"))
register("band multiplier", lambda m, s: interval(
    m.confidence_interval(s.query, simultaneous="multiplier", n_resamples=39), "band"), drawn=True)  # fmt: skip
for method in ("adaptive", "jackknife+", "cv+", "cqr"):
    register(f"prediction_interval {method}", lambda m, s, method=method: interval(
        m.prediction_interval(s.query, level=0.8, method=method)), drawn=method in ("cv+", "cqr"))  # fmt: skip
register("prediction_interval split", lambda m, s: interval(
    m.prediction_interval(s.query, level=0.6, X_calibration=s.query, y_calibration=s.seen), "band"))  # fmt: skip
register("interval to_frame", lambda m, s: limits(
    m.prediction_interval(s.query, level=0.8).to_frame(), "lower"), drawn=True)  # fmt: skip

# ------------------------------------------------------------------------------------------------ distributions

register("quantile", lambda m, s: one(m.quantile(s.query, 0.6), "y"))
register("quantiles left out", lambda m, s: one(m.quantile(None, 0.6), "y", "rows"))
register("cdf", lambda m, s: one(m.conditional_distribution(s.query).cdf(s.seen[..., None])[..., 0]))
register(
    "pdf",
    lambda m, s: one(
        m.conditional_distribution(s.query, y_bandwidth=0.3 * s.unit).pdf(s.seen[..., None])[..., 0], "1/dy"
    ),
)
register("interval", lambda m, s: one(m.conditional_distribution(s.query).interval(0.7)[0], "y"))
register("quantile_interval", lambda m, s: read(m.conditional_distribution(s.query).quantile_interval(0.4),
         center="y", lower="y", upper="y"))  # fmt: skip
register("crps", lambda m, s: one(m.conditional_distribution(s.query).crps(s.seen), "dy"))
register("pit", lambda m, s: one(m.conditional_distribution(s.query).pit(s.seen, random_state=0)), drawn=True)
register("sample", lambda m, s: one(m.conditional_distribution(s.query).sample(3, random_state=0), "y", "band"),
         drawn=True)  # fmt: skip
register("distribution_bandwidth", lambda m, s: one(distribution_bandwidth(m, thresholds=3).error, axes=""), rtol=1e-3)

# ------------------------------------------------------------------------------------------------ of rows, of the model

register("leave_one_out", lambda m, s: one(m.leave_one_out().prediction.squeeze(), "y", "rows"))
register("loo error", lambda m, s: one(m.leave_one_out().error, "dy2", ""))
register("residuals", lambda m, s: read(m.residuals(), "rows", fitted="y", residual="dy", leverage="1", noise="dy",
         standardized="1"))  # fmt: skip
register("row_diagnostics", lambda m, s: read(row_diagnostics(m), "rows", residual="dy", standardized="1"))
register("attention of rows", lambda m, s: one(row_diagnostics(m).attention, axes="rows"))


def coefficients(m: Any, s: Study) -> Fields:
    """Return statistics of coefficients: those that vary with a place at the points, but for the intercept."""
    if not hasattr(m, "places_"):
        return read(m.coefficients(), "", statistic="1", p_value="1", df="1")
    found = m.coefficients(s.query)
    return read(found, df="1", local_r2="1") | {"statistic": Field(found.statistic[:, 1:])}


register("coefficients", coefficients)
register("variation", lambda m, s: one(m.variation(n_resamples=9).p_value[1:], axes=""), drawn=True)
register("summary", lambda m, s: read(m.summary(), "", trace="1", r2="1", loo_r2="1"))
register("class summary", lambda m, s: read(m.summary(), "", log_loss="1", accuracy="1"))
register("expected_error", lambda m, s: one(m.expected_error(), "dy2", ""), drawn=True, rtol=1e-3)
register("score", lambda m, s: one(m.score(s.query, s.seen), axes=""))
register("bootstrap", lambda m, s: one(np.moveaxis(m.bootstrap(s.query, n_resamples=5), 1, 0), "y"), drawn=True)
register(
    "bootstrap pairs",
    lambda m, s: one(np.moveaxis(m.bootstrap(s.query, n_resamples=5, kind="pairs"), 1, 0), "y"),
    drawn=True,
)
register("significance_test", lambda m, s: read(
    m.significance_test(0, n_resamples=9), "", statistic="1"), rtol=1e-4)  # fmt: skip
register("gradient test", lambda m, s: read(m.significance_test(0, method="gradient", n_resamples=9), "",
         p_value="1"), drawn=True, rtol=1e-4)  # fmt: skip
register("specification_test", lambda m, s: read(
    specification_test(s.x, s.y, m, sample_weight=s.by_row.get("sample_weight"), n_resamples=5), "",
    statistic="1"), drawn=True, rtol=1e-4)  # fmt: skip
