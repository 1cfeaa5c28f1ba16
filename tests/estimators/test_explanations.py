"""Explanations of predictions by training rows: compared with tables of all weights, and with fits without a row."""

import dataclasses
import tracemalloc

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor, make_kernel, open_chunks
from kernpool.core import EmptyWindowWarning

REGRESSORS = [NadarayaWatsonRegressor, LocalLinearRegressor]
N = 60


def rows(columns=2, *, outputs=0, seed=0):
    random = np.random.default_rng(seed)
    X = random.uniform(0.0, 2.0, (N, columns))
    y = np.sin(3.0 * X[:, 0]) + random.normal(0.0, 0.2, N)
    return X, np.column_stack([y, 5.0 + y**2])[:, :outputs] if outputs else y


def cases():
    X, y = rows()
    weight = np.random.default_rng(1).integers(0, 4, N).astype(float)
    zone = np.array(list("abc"), dtype=object)[np.arange(N) % 3]
    mixed = np.column_stack([X.astype(object), zone])
    smoothing = {"smoothing": [0.2], "unordered": [2]}
    return {
        "one column": (X[:, :1], y, None, {}),
        "two columns": (X, y, None, {}),
        "outputs": (X, rows(outputs=2)[1], None, {}),
        "weights": (X, y, weight, {}),
        "categories": (mixed, y, weight, smoothing),
        "compact": (X, y, None, {"kernel": "epanechnikov", "bandwidth": 0.9}),
        "product": (X, y, weight, {"kernel": "product laplace"}),
        "own kernel": (X, y, weight, {"kernel": make_kernel("of-tests", lambda u: np.exp(-(u**2)))}),
    }


CASES = cases()


def fitted(Regressor, case):
    X, y, weight, options = CASES[case]
    ridge = {"ridge": 0.3} if Regressor is LocalLinearRegressor and case != "two columns" else {}
    return Regressor(**{"bandwidth": 0.4, **ridge, **options}).fit(X, y, sample_weight=weight)


def queries(case):
    return CASES[case][0][[3, 17, 30, 44]]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("Regressor", REGRESSORS)
def test_rows_are_those_of_largest_weight(Regressor, case):
    prediction = fitted(Regressor, case).get_prediction(queries(case))
    found, weight = prediction.explain(k=6), prediction.weights()
    size = np.sort(np.abs(weight), axis=1)[:, :-7:-1]
    np.testing.assert_allclose(np.abs(found.weight), size, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(found.weight, np.take_along_axis(weight, found.row, axis=1), rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(found.effective_rows, prediction.effective_sample_size, rtol=1e-12)
    np.testing.assert_allclose(found.prediction, prediction.mean, rtol=1e-9)
    assert len(found) == len(prediction)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("Regressor", REGRESSORS)
def test_weights_sum_to_one_and_contributions_to_the_prediction(Regressor, case):
    model = fitted(Regressor, case)
    found, (_, y, weight, _) = model.get_prediction(queries(case)).explain(k=N), CASES[case]
    np.testing.assert_allclose(found.average, np.average(y, axis=0, weights=weight), rtol=1e-12)
    np.testing.assert_allclose(found.weight.sum(axis=1), 1.0, rtol=1e-9)
    np.testing.assert_allclose(found.contribution.sum(axis=1), found.prediction - found.average, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.other_weight, 0.0, atol=1e-9)
    np.testing.assert_allclose(found.other_contribution, 0.0, atol=1e-9)
    few = model.get_prediction(queries(case)).explain(k=3)
    np.testing.assert_allclose(few.other_weight, 1.0 - few.weight.sum(axis=1), rtol=1e-12)
    total = few.contribution.sum(axis=1) + few.other_contribution
    np.testing.assert_allclose(total, few.prediction - few.average, rtol=1e-9)
    np.testing.assert_array_equal(few.row, found.row[:, :3])
    seen = np.isfinite(few.output)
    np.testing.assert_array_equal(few.output[seen], y[few.row][seen])


@pytest.mark.parametrize("Regressor", REGRESSORS)
def test_a_row_with_all_the_weight_is_deleted_by_another_fit(Regressor):
    """Far from the rows the formula of deletion divides by zero."""
    X, y = rows(1)
    options = {"bandwidth": 0.01} | ({"ridge": 0.2} if Regressor is LocalLinearRegressor else {})
    model, far = Regressor(**options).fit(X, y), [[2.6]]
    found = model.get_prediction([[2.1]]).explain(k=1)
    assert found.weight[0, 0] == pytest.approx(1.0)
    kept = np.arange(N) != found.row[0, 0]
    without = Regressor(**options).fit(X[kept], y[kept])
    np.testing.assert_allclose(found.influence[0, 0], without.predict([[2.1]])[0] - found.prediction[0], rtol=1e-6)
    with pytest.warns(match="beyond"):
        assert np.isfinite(model.get_prediction(far).explain(k=1).influence).all()


def test_rows_without_others_and_empty_windows():
    X, y = np.array([[0.0], [0.1], [0.2], [0.3], [5.0]]), np.array([0.0, 1.0, 2.0, 3.0, 9.0])
    model = NadarayaWatsonRegressor("boxcar", bandwidth=0.5, empty="nan").fit(X, y)
    alone = model.get_prediction([[5.0]]).explain(k=3)
    assert alone.row.tolist() == [[4, -1, -1]]
    assert alone.weight.tolist() == [[1.0, 0.0, 0.0]]
    assert alone.effective_rows.tolist() == [1.0]
    assert np.isnan(alone.influence[0, 0])
    assert alone.influence[0, 1:].tolist() == [0.0, 0.0]
    assert np.isnan(alone.output[0, 1:]).all()
    with pytest.warns(EmptyWindowWarning):
        empty = model.get_prediction([[2.5]]).explain()
    assert empty.row.tolist() == [[-1] * 5]
    assert empty.effective_rows.tolist() == [0.0]
    for part in (empty.weight, empty.contribution, empty.influence, empty.prediction):
        assert np.isnan(part).all()
    refused = NadarayaWatsonRegressor("boxcar", bandwidth=0.5, empty="raise").fit(X, y)
    with pytest.raises(ValueError, match="no key with positive weight"):
        refused.get_prediction([[2.5]]).explain()


def test_planes_that_rows_do_not_determine_have_the_influence_of_a_fit_without_the_row():
    X, y = np.repeat([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]], 4, axis=0), np.arange(12.0) ** 1.5
    model = LocalLinearRegressor(bandwidth=0.8, ridge=0.0).fit(X, y)
    with pytest.warns(match="linearly dependent"):
        found = model.get_prediction([[0.9, 0.9]]).explain(k=2)
    kept = np.arange(12) != found.row[0, 0]
    without = LocalLinearRegressor(bandwidth=0.8, ridge=0.0).fit(X[kept], y[kept])
    with pytest.warns(match="linearly dependent"):
        change = without.predict([[0.9, 0.9]])[0] - found.prediction[0]
    np.testing.assert_allclose(found.influence[0, 0], change, rtol=1e-9)


def test_classes_are_explained_by_their_labels():
    X, y = rows(2)
    label = np.where(y > 0.3, "warm", "cold")
    model = NadarayaWatsonClassifier(bandwidth=0.4).fit(X, label)
    found = model.get_prediction(X[:5]).explain(k=4)
    assert found.contribution.shape == found.influence.shape == found.output.shape == (5, 4, 2)
    pooled = NadarayaWatsonClassifier(bandwidth=0.4, prior_share=0.0).fit(X, label).predict_proba(X[:5])
    np.testing.assert_allclose(found.prediction, pooled, rtol=1e-12)
    np.testing.assert_allclose(found.average, model.class_prior_, rtol=1e-12)
    np.testing.assert_array_equal(found.classes[found.output.argmax(axis=2)], label[found.row])
    np.testing.assert_allclose(found.contribution.sum(axis=2), 0.0, atol=1e-14)
    kept = np.arange(N) != found.row[0, 0]
    without = NadarayaWatsonClassifier(bandwidth=0.4, prior_share=0.0).fit(X[kept], label[kept])
    change = without.predict_proba(X[:1])[0] - found.prediction[0]
    np.testing.assert_allclose(found.influence[0, 0], change, rtol=1e-9)
    assert found.predicted.tolist() == model.predict(X[:5]).tolist()


def priors_decide():
    """Return a classifier whose priors change the predicted class, and a query where they do."""
    x = np.array([[0.0], [0.1], [3.0], [3.1], [3.2], [3.3], [0.2]])
    model = NadarayaWatsonClassifier("boxcar", bandwidth=1.0, prior_share=0.6).fit(x, list("aabbbbb"))
    return model, np.array([[0.1]])


def test_the_predicted_class_is_explained_where_priors_decide():
    model, at = priors_decide()
    found = model.get_prediction(at).explain(k=3)
    assert found.prediction[0].argmax() == 0
    assert found.predicted.tolist() == model.predict(at).tolist() == ["b"]


def test_an_explanation_becomes_a_frame():
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    X, y = rows(1)
    names = np.array([f"house {i}" for i in range(N)])
    table = pandas.DataFrame(X, index=names)
    found = LocalLinearRegressor(bandwidth=0.3).fit(table, y).get_prediction(X[:5]).explain(k=2)
    frame = found.to_frame()
    assert frame.columns.tolist() == [
        "query", "row", "weight", "output", "contribution", "influence", "prediction", "effective_rows",
    ]  # fmt: skip
    assert frame["query"].tolist() == np.repeat(np.arange(5), 2).tolist()
    assert frame["row"].tolist() == names[found.row].ravel().tolist()
    np.testing.assert_array_equal(frame["influence"], found.influence.ravel())
    few = LocalLinearRegressor(bandwidth=0.3).fit(X, np.column_stack([y, -y])).get_prediction(X[:1]).explain(k=1)
    assert {"output_1", "contribution_0", "influence_1", "prediction_1"} <= {*few.to_frame().columns}
    label = NadarayaWatsonClassifier(bandwidth=0.3).fit(X, y > 0).get_prediction(X[:2]).explain(k=1).to_frame()
    assert label["output"].tolist() == (y > 0)[label["row"]].tolist()
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.row = found.row


@pytest.mark.parametrize("k", [0, -1, 2.5, True, "all"])
def test_a_number_of_rows_that_is_none_is_refused(k):
    X, y = rows(1)
    with pytest.raises(ValueError, match="k must be an integer from 1 on"):
        NadarayaWatsonRegressor(bandwidth=0.3).fit(X, y).get_prediction(X[:1]).explain(k)


def test_explained_rows_are_in_memory():
    X, y = rows(1)
    model = NadarayaWatsonRegressor(bandwidth=0.3).fit(X, y)
    stored = NadarayaWatsonRegressor(bandwidth=0.3).fit(open_chunks(X, y))
    with pytest.raises(TypeError, match="explain needs"):
        stored.get_prediction(X[:1]).explain()
    assert model.get_prediction(X[:1]).explain(k=1000).row.shape == (1, N)


def test_no_table_of_all_weights_is_made():
    """Two thousand queries among twenty thousand rows have 320 MB of weights."""
    random = np.random.default_rng(0)
    X = random.uniform(size=(20_000, 2))
    model = LocalLinearRegressor(bandwidth=0.1, ridge=0.1).fit(X, X[:, 0])
    prediction = model.get_prediction(random.uniform(size=(2000, 2)))
    prediction.explain()  # what is compiled or kept
    tracemalloc.start()
    try:
        dataclasses.replace(prediction).explain()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50e6
