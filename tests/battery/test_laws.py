"""Laws of answers, for every option: what the documentation calls exact equals sums written out, or fits made again."""

from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np
import pytest

from kernpool.inference.resampling.bootstrap import resampled_counts
from tests.battery.answers import ANSWERS
from tests.battery.options import LEVELS, OPTIONS, Study
from tests.battery.situations import KNOWN, check, expected, fitted, outcome, searches
from tests.support.dense_conformal import order_statistic, ranks
from tests.support.dense_inference import Dense

pytestmark = pytest.mark.slow
OF_STORED = (
    "predict", "return_std", "get_prediction", "slope", "confidence_interval auto", "confidence_interval naive",
    "confidence_interval robust", "confidence_interval undersmoothed", "slope interval",
    "prediction_interval adaptive", "prediction_interval split", "score",
)  # fmt: skip
OF_STORED_COUNTS = ("predict", "confidence_interval auto", "confidence_interval naive", "score")
OF_STORED_MEANS = ("quantile", "cdf", "pdf", "interval", "pit")
MEANS = [name for name, study in OPTIONS.items() if "Watson" in type(study.estimator).__name__]
CHOSEN = [name for name, study in OPTIONS.items() if not searches(study)]  # at bandwidths that a refit takes as well


def options(answer, names=CHOSEN):
    """Return a mark of cases; those of `KNOWN` are expected to fail."""
    cases = []
    for name in names:
        reason = [why for pattern, why in KNOWN.items() if fnmatchcase(f"{name} | {answer} | law", pattern)]
        cases.append(pytest.param(name, marks=pytest.mark.xfail(reason=reason[0]) if reason else ()))
    return pytest.mark.parametrize("option", cases)


def answered(option, ask):
    """Return an answer of the fitted option, or skip with the words that refuse it."""
    found = outcome(lambda: ask(fitted(option, "again"), OPTIONS[option]))
    if isinstance(found, Exception):
        pytest.skip(f"refused: {found}")
    return found


def without(study: Study, row: int) -> Study:
    """Return the study of the rows that are left when one is left out: one unit, its group, or its place in the gap."""
    rows, by_row = np.arange(len(study.x)), study.by_row
    if "groups" in by_row:
        return study.take(rows[by_row["groups"] != by_row["groups"][row]])
    gap = getattr(study.estimator, "gap", 0)
    if gap:
        place = np.argsort(np.argsort(by_row["time"]))
        return study.take(rows[np.abs(place - place[row]) > gap]).with_options(gap=0)
    if by_row.get("sample_weight", np.ones(len(rows)))[row] > 1.0:
        weight = by_row["sample_weight"].copy()
        weight[row] -= 1.0
        return replace(study, by_row={"sample_weight": weight})
    return study.take(rows[rows != row])


def predicted(study: Study, query):
    """Return predictions of a fit, or the probabilities of its classes."""
    model = study.fit()
    return outcome(lambda: model.predict_proba(query) if study.classifies else model.predict(query))


@options("leave_one_out")
def test_leave_one_out_is_a_fit_without_the_row(option):
    found = answered(option, lambda model, _: model.leave_one_out())
    study, model = OPTIONS[option], fitted(option, "again")
    values = getattr(found, "probability", found.prediction)
    rtol = 1e-9
    if hasattr(model, "prior_share_"):
        study = study.with_options(prior_share=model.prior_share_)
    elif study.classifies:  # the penalty on slopes counts in standard deviations of all rows
        rtol = 0.05
    for row in (0, 17, 43):
        refit = predicted(without(study, row), study.x.iloc[[row]])
        np.testing.assert_allclose(values[row], np.ravel(refit), rtol=rtol, atol=1e-12)


@options("explain")
def test_influence_is_what_a_fit_without_the_row_changes(option):
    found = answered(option, lambda model, study: model.get_prediction(study.query[:2]).explain(k=2))
    study = OPTIONS[option]
    if study.classifies:
        study = study.with_options(prior_share=0.0)
    rows, before = np.arange(len(study.x)), predicted(study, study.query[:2])
    for point in range(2):
        for place, row in enumerate(found.row[point]):
            after = predicted(study.take(rows[rows != row]), study.query[:2])[point]
            np.testing.assert_allclose(found.influence[point, place], after - before[point], rtol=1e-7, atol=1e-9)


@options("prediction_interval jackknife+")
def test_jackknife_plus_is_of_fits_without_each_row(option):
    """Barber, Candes, Ramdas and Tibshirani 2021, equation (5); of groups, a row of each."""
    level = 0.8
    found = answered(
        option, lambda model, study: model.prediction_interval(study.query, level=level, method="jackknife+")
    )
    study = OPTIONS[option].with_options(empty="nan")
    if study.by_row or study.y.ndim > 1:
        pytest.skip("rows count once, of one output, in this law")
    lower, upper = [], []
    for row in range(len(study.x)):
        other = without(study, row)
        refit = outcome(lambda other=other, row=row: other.fit().predict(study.x.iloc[[row]]))
        fits, reach = outcome(lambda other=other: other.fit().predict(study.query)), np.abs(study.y[row] - refit)
        fits, reach = np.asarray(fits), np.where(np.isnan(refit), np.inf, reach)
        lower.append(np.where(np.isnan(fits), -np.inf, fits - reach))
        upper.append(np.where(np.isnan(fits), np.inf, fits + reach))
    low, high = ranks(level, len(study.x))
    for point in range(len(study.query)):
        expected = order_statistic(np.array(lower)[:, point], low), order_statistic(np.array(upper)[:, point], high)
        np.testing.assert_allclose([found.lower[point], found.upper[point]], expected, rtol=1e-9)


@options("expected_error")
def test_the_expected_error_at_a_bandwidth_that_is_given_is_that_of_leave_one_out(option):
    error = answered(option, lambda model, _: model.expected_error())
    if "sample_weight" in OPTIONS[option].by_row:
        pytest.skip("rows that are copies are held out together")
    assert error == pytest.approx(fitted(option, "again").leave_one_out().error, rel=1e-9)


@options("slope", MEANS)
def test_slopes_of_means_are_derivatives_of_the_predictions(option):
    study = OPTIONS[option]
    slope = answered(option, lambda model, study: model.get_prediction(study.query[:3]).slope)
    model, step = fitted(option, "again"), 1e-5
    levels = {*LEVELS, *(study.estimator.unordered or ()), *(study.estimator.ordered or ())}
    for place, name in enumerate(name for name in study.x if name not in levels):
        ends = [study.query[:3].assign(**{name: study.query[name][:3] + sign * step}) for sign in (1, -1)]
        difference = np.subtract(*map(model.predict, ends)) / (2 * step)
        np.testing.assert_allclose(slope[:, place], difference, rtol=1e-4, atol=1e-5)


@options("weights", OPTIONS)
def test_weights_sum_to_one_and_make_the_predictions(option):
    weights = answered(option, lambda model, study: model.attention_weights(study.query[:3]))
    study, model = OPTIONS[option], fitted(option, "again")
    if study.classifies:
        pytest.skip("priors are beyond weights")
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-9)
    np.testing.assert_allclose(weights @ study.y, model.predict(study.query[:3]), rtol=1e-8)


@options("additive_terms", OPTIONS)
def test_terms_sum_to_the_prediction(option):
    found = answered(option, lambda model, study: model.get_prediction(study.query).additive_terms())
    np.testing.assert_allclose(found.local_mean + found.term.sum(axis=1), found.prediction, rtol=1e-9)


@options("bootstrap pairs")
def test_resampled_rows_are_fits_to_them(option):
    found = answered(
        option, lambda model, study: model.bootstrap(study.query, n_resamples=2, kind="pairs", random_state=5)
    )
    study, times = OPTIONS[option], OPTIONS[option].by_row.get("sample_weight")
    for number in range(2):
        units = fitted(option, "again").smoother_.units
        counts = resampled_counts(5, number, len(study.x), None if times is None else times.astype(int), units)
        refit = replace(study, by_row={**study.by_row, "sample_weight": counts})
        np.testing.assert_allclose(found[number], predicted(refit, study.query), rtol=1e-9)


@options("cdf", MEANS)
def test_distribution_functions_of_means_are_sums_of_weights(option):
    found = answered(
        option,
        lambda model, study: model.conditional_distribution(study.query[:3]).cdf(study.seen[:3, ..., None])[..., 0],
    )
    study, weights = OPTIONS[option], fitted(option, "again").attention_weights(OPTIONS[option].query[:3])
    below = study.y <= study.seen[:3, None]
    np.testing.assert_allclose(found, np.einsum("qn,qn...->q...", weights, below), rtol=1e-9, atol=1e-12)


@options("quantiles left out", [name for name in MEANS if name in CHOSEN])
def test_quantiles_left_out_are_those_of_a_fit_without_the_row(option):
    found, study = answered(option, lambda model, _: model.quantile(None, 0.6)), OPTIONS[option]
    for row in (0, 17, 43):
        other = without(study, row)
        refit = outcome(lambda other=other, row=row: other.fit().quantile(study.x.iloc[[row]], 0.6))
        np.testing.assert_allclose(found[row], refit[0], rtol=1e-9)


@pytest.mark.parametrize("where", ["chunks", "parquet", "dask"])
@pytest.mark.parametrize(
    "option", ["means", "planes", "outputs", "weights", "empty: mean", "empty: nearest", "empty: zero", "counts"]
)
def test_what_chunks_and_partitions_answer(option, where):
    """A refusal holds in these situations as an answer does, so answers could be lost."""
    names = [*OF_STORED, *(OF_STORED_MEANS if option in MEANS and option != "weights" else ())]
    names = [*OF_STORED_COUNTS] if option == "counts" else names
    assert {name: check(option, name, where) for name in names} == dict.fromkeys(names, "holds")


@options("quantile", OPTIONS)
def test_quantiles_are_the_inverse_of_the_distribution_function(option):
    found = answered(option, lambda model, study: model.conditional_distribution(study.query[:3]))
    at, step = found.quantile(0.6), 1e-6 * np.ptp(OPTIONS[option].y)
    above, below = (found.cdf((at + shift)[..., None])[..., 0] for shift in (step, -step))
    assert np.all(above >= 0.6 - 1e-12)
    assert np.all(below < 0.6)


@pytest.mark.parametrize("option", ["means", "planes", "quadratics", "ridge", "gaussian", "curve", "product kernel",
                                    "outputs", "weights"])  # fmt: skip
def test_the_plain_models_are_the_sums_of_their_docstrings(option):
    """Weighted means and weighted least squares around each point; options equal these models (`Plain`)."""
    study, model = OPTIONS[option], fitted(option, "again")
    options = study.estimator
    dense = Dense(
        study.x.to_numpy(), study.y.reshape(len(study.y), -1), model.bandwidth_,
        study.by_row.get("sample_weight", np.ones(len(study.y))), options.kernel, options._degree,
        getattr(options, "ridge", None) or 0.0,
    )  # fmt: skip
    share = dense.coefficients(study.query.to_numpy())
    expected = (share @ dense.y)[:, 0]
    np.testing.assert_allclose(model.predict(study.query).reshape(expected.shape), expected, rtol=1e-10)
    if options._degree:
        slope = model.get_prediction(study.query).slope.reshape(len(expected), -1)
        np.testing.assert_allclose(slope, (share @ dense.y)[:, 1:, 0], rtol=1e-8, atol=1e-10)


NAMED = {  # words of a remedy, and the answer that they name
    "use predict,": "predict", "use predict, get_prediction": "get_prediction", "use slope": "slope",
    "get_prediction(X).slope": "slope", "explain()": "explain", "weights": "weights", "summary": "summary",
    "expected_error()": "expected_error", "'sandwich'": "variance sandwich", "model.conf": "confidence_interval auto",
    'method="naive"': "confidence_interval naive", 'method="robust"': "confidence_interval robust",
    "simultaneous='multiplier'": "band multiplier", "method='auto'": "interval to_frame",
    "adaptive": "prediction_interval adaptive", "cv+": "prediction_interval cv+",
}  # fmt: skip


@pytest.mark.parametrize("option", sorted(OPTIONS.keys() - {"empty: raise"}))  # whose last window is empty
def test_what_the_remedy_of_a_refusal_names_is_answered(option):
    for answer in ANSWERS:
        refusal = expected(option, answer, "again")
        if isinstance(refusal, TypeError | ValueError):
            remedy = str(refusal).partition("; ")[2]
            answers = {each for words, each in NAMED.items() if words in remedy}
            assert {each: check(option, each, "again") for each in answers} == dict.fromkeys(answers, "holds"), remedy
