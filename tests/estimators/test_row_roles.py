"""Roles of training rows, and terms of planes: compared with dense formulas."""

import numpy as np
import pytest

from kernpool import (
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    Nearest,
    make_kernel,
    open_chunks,
    pooling_weights,
    row_diagnostics,
)

N = 50
RANDOM = np.random.default_rng(7)
X = RANDOM.uniform(0.0, 2.0, (N, 2))
Y = np.sin(3.0 * X[:, 0]) + X[:, 1] + RANDOM.normal(0.0, 0.2, N)
WEIGHT = RANDOM.integers(0, 3, N).astype(float)
ZONE = np.array(list("abc"), dtype=object)[np.arange(N) % 3]
MIXED = np.column_stack([X.astype(object), ZONE])
GROUP = np.arange(N) % 10


def dense_attention(kernel, weight=None, group=None):
    """The definition, of a table of kernel weights with a row per predicted row."""
    weight = np.ones(N) if weight is None else weight
    times = np.tile(weight, (N, 1))
    np.fill_diagonal(times, np.maximum(weight - 1.0, 0.0))
    if group is not None:
        times = weight * (group[:, None] != group)
    total = (kernel * times).sum(axis=1)
    share = np.divide(kernel, total[:, None], where=total[:, None] > 0, out=np.zeros((N, N)))
    from_units = times.T if group is None else weight[:, None] * (group[:, None] != group)
    return np.where(weight > 0, np.sum(from_units * share, axis=0), 0.0)


GAUSSIAN = np.exp(-0.5 * np.sum(((X[:, None] - X) / 0.4) ** 2, axis=2))
SMOOTHING = 0.2
CATEGORIES = np.where(ZONE[:, None] == ZONE, 1.0 - SMOOTHING, SMOOTHING / 2.0)


@pytest.mark.parametrize("Regressor", [NadarayaWatsonRegressor, LocalLinearRegressor])
@pytest.mark.parametrize(
    ("rows", "options", "fit", "kernel"),
    [
        (X, {}, {}, GAUSSIAN),
        (X, {}, {"sample_weight": WEIGHT}, GAUSSIAN),
        (X, {}, {"groups": GROUP}, GAUSSIAN),
        (X, {}, {"groups": GROUP, "sample_weight": WEIGHT}, GAUSSIAN),
        (MIXED, {"unordered": [2], "smoothing": [SMOOTHING]}, {"sample_weight": WEIGHT}, GAUSSIAN * CATEGORIES),
        (X, {"kernel": make_kernel("squared", lambda u: np.exp(-0.5 * u**2))}, {}, GAUSSIAN),
    ],
    ids=["plain", "weights", "groups", "groups and weights", "categories", "own kernel"],
)
def test_attention_is_its_definition(Regressor, rows, options, fit, kernel):
    found = row_diagnostics(Regressor(bandwidth=0.4, **options).fit(rows, Y, **fit))
    expected = dense_attention(kernel, fit.get("sample_weight"), fit.get("groups"))
    np.testing.assert_allclose(found.attention, expected, rtol=1e-9, atol=1e-14)
    weight = fit.get("sample_weight", np.ones(N))
    if "groups" not in fit:
        assert np.average(found.attention, weights=weight) == pytest.approx(1.0)


def test_attention_of_rows_that_are_far_from_all_others():
    """Their sums of weights underflow: each gives all of its attention to its nearest row."""
    x = np.array([[0.0], [0.1], [0.2], [60.0], [200.0]])
    found = row_diagnostics(NadarayaWatsonRegressor(bandwidth=0.5).fit(x, x[:, 0]))
    share = pooling_weights(x, x, bandwidth=0.5, exclude_self=True)
    np.testing.assert_allclose(found.attention, share.sum(axis=0), rtol=1e-12, atol=1e-300)
    assert found.attention[3] == pytest.approx(1.0)
    assert found.isolated().tolist() == [4]


@pytest.mark.parametrize(
    ("rows", "options", "fit"),
    [(X, {}, {"groups": GROUP}), (MIXED, {"unordered": [2], "smoothing": [SMOOTHING]}, {})],
)
def test_rows_of_weight_zero_have_no_say_in_nearest_windows(rows, options, fit):
    weight = np.where(np.arange(N) % 7 == 3, 0.0, 1.0)
    kept = weight > 0
    model = NadarayaWatsonRegressor(bandwidth=0.2, window=Nearest(5), **options)
    found = row_diagnostics(model.fit(rows, Y, sample_weight=weight, **fit))
    model.fit(rows[kept], Y[kept], **{name: labels[kept] for name, labels in fit.items()})
    np.testing.assert_allclose(found.attention[kept], row_diagnostics(model).attention, rtol=1e-9, atol=1e-12)
    assert not found.attention[~kept].any()


def test_diagnostics_of_a_regressor_are_those_of_its_residuals():
    y = Y.copy()
    y[17] += 4.0
    model = LocalLinearRegressor(bandwidth=0.4).fit(X, y, sample_weight=np.where(np.arange(N) == 3, 0.0, 1.0))
    found, residuals = row_diagnostics(model), model.residuals()
    np.testing.assert_array_equal(found.residual, residuals.residual)
    np.testing.assert_array_equal(found.standardized, residuals.standardized)
    assert found.outliers(1).tolist() == [17]
    order = np.argsort(-found.attention, kind="stable")
    np.testing.assert_array_equal(found.prototypes(8), order[order != 3][:8])
    assert 3 not in found.isolated()
    several = row_diagnostics(LocalLinearRegressor(bandwidth=0.4).fit(X, np.column_stack([Y, y])))
    assert several.outliers(1).tolist() == [17]
    assert several.residual.shape == (N, 2)


def test_diagnostics_of_a_classifier_are_left_out_probabilities():
    label = np.where(Y > 1.0, "warm", "cold")
    label[5] = "warm" if label[5] == "cold" else "cold"
    model = NadarayaWatsonClassifier(bandwidth=0.3).fit(X, label)
    found = row_diagnostics(model)
    own = model.leave_one_out().probability[np.arange(N), (label == "warm").astype(int)]
    np.testing.assert_allclose(found.residual, 1.0 - own, rtol=1e-12)
    np.testing.assert_allclose(found.standardized, np.sqrt((1.0 - own) / own), rtol=1e-12)
    assert (label[found.prototypes(3, label="warm")] == "warm").all()
    with pytest.raises(ValueError, match="label must be a class"):
        found.prototypes(label="hot")


def test_a_row_whose_class_has_probability_zero_is_the_first_outlier():
    x, label = np.array([[0.0], [0.1], [0.2], [0.3], [0.4]]), np.array(["a", "a", "b", "a", "a"])
    model = NadarayaWatsonClassifier("boxcar", bandwidth=1.0, prior_share=0.0).fit(x, label)
    found = row_diagnostics(model)
    assert np.isinf(found.standardized[2])
    assert found.outliers(9).tolist() == [2, 0, 1, 3, 4]


@pytest.mark.parametrize("k", [0, -1, 2.5, True])
def test_an_invalid_number_of_rows_is_refused(k):
    found = row_diagnostics(NadarayaWatsonRegressor(bandwidth=0.3).fit(X, Y))
    for rows in (found.prototypes, found.outliers):
        with pytest.raises(ValueError, match="k must be an integer from 1 on"):
            rows(k)


def test_diagnostics_become_a_frame():
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    names = np.array([f"house {i}" for i in range(N)])
    found = row_diagnostics(NadarayaWatsonRegressor(bandwidth=0.3).fit(pandas.DataFrame(X, index=names), Y))
    frame = found.to_frame()
    assert frame.columns.tolist() == ["attention", "residual", "standardized", "weight"]
    assert frame.index.tolist() == names.tolist()
    np.testing.assert_array_equal(frame["attention"], found.attention)
    classes = row_diagnostics(NadarayaWatsonClassifier(bandwidth=0.3).fit(X, Y > 1)).to_frame()
    assert classes.columns[0] == "class"


def test_diagnostics_refuse_what_they_cannot_answer():
    with pytest.raises(TypeError, match="got list"):
        row_diagnostics([1.0])
    with pytest.raises(TypeError, match="row_diagnostics needs"):
        row_diagnostics(NadarayaWatsonRegressor(bandwidth=0.3).fit(open_chunks(X, Y)))


AT = X[:6] + 0.05


@pytest.mark.parametrize("options", [{}, {"ridge": 0.0}, {"kernel": "epanechnikov", "bandwidth": 0.9}])
@pytest.mark.parametrize("outputs", [1, 2])
def test_terms_sum_to_the_prediction(outputs, options):
    y = np.column_stack([Y, 100.0 + Y**2]) if outputs == 2 else Y
    model = LocalLinearRegressor(**{"bandwidth": 0.4, **options}).fit(X, y, sample_weight=WEIGHT)
    prediction = model.get_prediction(AT)
    found = prediction.additive_terms()
    np.testing.assert_allclose(found.local_mean + found.term.sum(axis=1), prediction.mean, rtol=1e-12)
    np.testing.assert_array_equal(found.slope, prediction.slope)
    share = pooling_weights(
        AT, X, kernel=model.kernel, bandwidth=model.bandwidth_, key_weight=WEIGHT
    )  # of the support convention, as the fit has it
    np.testing.assert_allclose(found.local_mean, share @ y, rtol=1e-10)
    np.testing.assert_allclose(found.center, share @ X, rtol=1e-10)
    away = (AT - found.center).reshape(6, 2, *[1] * (outputs - 1))
    np.testing.assert_allclose(found.term, found.slope * away, rtol=1e-8, atol=1e-12)
    assert len(found) == 6


def test_terms_of_categories():
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    frame = pandas.DataFrame({"size": X[:, 0], "zone": ZONE, "age": X[:, 1]})
    model = LocalLinearRegressor(bandwidth=0.4, smoothing=[0.2]).fit(frame, Y)
    prediction = model.get_prediction(frame[:4])
    found = prediction.additive_terms()
    assert found.columns == ("size", "age")
    np.testing.assert_allclose(found.local_mean + found.term.sum(axis=1), prediction.mean, rtol=1e-12)
    table = found.to_frame()
    assert table["column"].tolist() == ["size", "age"] * 4
    assert table.columns.tolist() == ["query", "column", "value", "center", "slope", "term", "local_mean", "prediction"]


def test_terms_need_planes():
    with pytest.raises(TypeError, match="NadarayaWatsonRegressor predicts weighted means"):
        NadarayaWatsonRegressor(bandwidth=0.4).fit(X, Y).get_prediction(AT).additive_terms()
    alone = LocalLinearRegressor(bandwidth=1.0, smoothing=[0.2], unordered=[0]).fit(ZONE[:, None], Y)
    with pytest.raises(TypeError, match="no numeric columns"):
        alone.get_prediction(ZONE[:2, None]).additive_terms()
    assert alone.get_prediction(ZONE[:2, None]).explain(k=2).row.tolist() == [[0, 3], [1, 4]]
