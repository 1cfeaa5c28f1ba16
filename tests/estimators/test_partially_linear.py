"""Coefficients next to a curve: the numbers of R's np, sums written out, laws, and what has no coefficient."""

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from kernpool import (
    LocalLinearRegressor,
    LocalPolynomialRegressor,
    PartialDisplay,
    PartiallyLinearRegressor,
    QuantileFanDisplay,
)
from kernpool.inference.coefficients import coefficients_of, covariance_of

RANDOM = np.random.default_rng(0)
N = 40
Z = RANDOM.uniform(size=N)
X = np.column_stack([Z**2 + RANDOM.normal(size=N), RANDOM.normal(size=N)])
Y = X @ [1.5, -0.8] + np.sin(6.0 * Z) + 0.3 * RANDOM.normal(size=N)
TABLE = np.column_stack([X[:, 0], Z, X[:, 1]])
GROUPS = np.arange(N) % 8
PLAIN = PartiallyLinearRegressor("gaussian", 0.2, linear=[0, 2])


def test_numbers_of_np():
    """Coefficients and standard errors that npplreg of np 0.70-6 printed, whose residuals are of fits with the row."""
    i = np.arange(1, 91)
    rate = (0.6180339887498949, 0.41421356237309515, 0.7320508075688772, 0.23606797749978969, 0.6457513110645906)
    u = lambda k, start=0.5: (start + i * rate[k] + 0.1 * k * np.sqrt(i)) % 1.0  # noqa: E731
    e = [norm.ppf(np.clip(u(k, 0.25), 1e-3, 1 - 1e-3)) for k in range(5)]
    z, d = u(0), 1.0 * (u(3) < 0.3 + 0.4 * u(0))
    x = np.column_stack([(z**2 + 0.5 * e[1]).round(4), e[2].round(4), d])
    y = (x @ [1.5, -0.8, 0.5] + np.sin(2 * np.pi * z) + 0.3 * e[4]).round(4)
    z = z.round(4)[:, None]
    of_np = {
        0: ([1.470064941973567, -0.7624965179845864, 0.5293356455527446],
            [0.06675429940561073, 0.03429547026637008, 0.06883575916423898]),
        1: ([1.463049917000492, -0.7642727844172822, 0.5239692252797409],
            [0.06658694479193197, 0.03415747717206154, 0.06853240300659193]),
    }  # fmt: skip
    for degree, (coef, error) in of_np.items():
        curves = [LocalPolynomialRegressor(bandwidth=h, degree=degree) for h in (0.06, 0.08, 0.1, 0.12)]
        r, *columns = (v - curve.fit(z, v).predict(z) for curve, v in zip(curves, [y, *x.T], strict=True))
        R = np.column_stack(columns)
        b = coefficients_of(r, R, np.ones(90))
        np.testing.assert_allclose(b, coef, rtol=1e-11)
        variance = np.linalg.inv(R.T @ R) * np.sum((r - R @ b) ** 2) / (90 - 3 - 1)
        np.testing.assert_allclose(np.sqrt(variance.diagonal()), error, rtol=1e-11)


def written_out(kept):
    """Return residuals of y and columns from fits without the rows that are not kept with each."""
    fits = [[LocalLinearRegressor(bandwidth=0.2).fit(Z[rows], v[rows]) for rows in kept] for v in (Y, *X.T)]
    r, *columns = (
        [v[i] - fit.predict([Z[i]])[0] for i, fit in enumerate(of)] for v, of in zip((Y, *X.T), fits, strict=True)
    )
    return np.array(r), np.column_stack(columns)


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_errors_are_of_fits_made_again(groups):
    """Residuals without each row, or cluster; the covariance from least squares of these without each, HC3."""
    unit = np.arange(N) if groups is None else groups
    model = PLAIN.fit(TABLE, Y, groups=groups)
    r, R = written_out([unit != each for each in unit])
    b = np.linalg.lstsq(R, r)[0]
    np.testing.assert_allclose(model.coef_, b, rtol=1e-9)
    away = [b - np.linalg.lstsq(R[unit != each], r[unit != each])[0] for each in np.unique(unit)]
    trace = np.trace(LocalLinearRegressor(bandwidth=0.2).fit(Z, Y).attention_weights(Z))
    expected = N / (N - 2 - trace) * np.transpose(away) @ away
    np.testing.assert_allclose(model.covariance_, expected, rtol=1e-7)
    assert model.df_ == pytest.approx(N - 2 - trace if groups is None else 7)
    table = model.coefficients(level=0.9)
    np.testing.assert_allclose(0.5 * (table.upper + table.lower), b, rtol=1e-9)
    assert table.to_frame().index.tolist() == ["0", "2"]
    unknown = model.coefficients().of(["a"], np.ones(1), np.full((1, 1), np.nan), 3.0, 0.9)
    assert "nan: a coefficient rests on one row" in str(unknown)


def test_a_gap_counts_products_of_neighbours():
    """Newey and West's sum of products up to twice the gap apart."""
    score, R = RANDOM.normal(size=N), RANDOM.normal(size=(N, 2))
    order = PartiallyLinearRegressor(bandwidth=0.2, linear=[0, 2], gap=2).fit(TABLE, Y, time=np.arange(N)).exclusion_
    found, df = covariance_of(score, R, np.ones(N), N, order)
    assert df == 1.5 * N / 5
    inverse = np.linalg.inv(R.T @ R)
    d = R @ inverse * (score / (1 - np.sum(R @ inverse * R, axis=1)))[:, None]
    taper = np.maximum(1 - np.abs(np.subtract.outer(np.arange(N), np.arange(N))) / 5, 0)
    np.testing.assert_allclose(found, d.T @ taper @ d, rtol=1e-9)


def test_without_a_curve_it_is_least_squares():
    model = PartiallyLinearRegressor("gaussian", 0.2, linear=[0, 2], degree=0)
    model.fit(np.column_stack([X[:, 0], np.ones(N), X[:, 1]]), Y)
    least = LinearRegression().fit(X, Y)
    np.testing.assert_allclose(model.coef_, least.coef_, rtol=1e-10)
    np.testing.assert_allclose(model.predict(np.insert(X[:3], 1, 1.0, axis=1)), least.predict(X[:3]), rtol=1e-9)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=4, max_size=4), st.floats(0.1, 100), st.floats(-1e6, 1e6))
def test_lines_in_y_are_found_and_units_make_no_difference(line, unit, origin):
    first = PLAIN.fit(TABLE, Y)
    added = TABLE @ line[:3] + line[3]
    moved = TABLE * [unit, 1.0, 1.0] + [origin, 0.0, 0.0]
    other = PartiallyLinearRegressor("gaussian", 0.2, linear=[0, 2]).fit(moved, Y + added)
    np.testing.assert_allclose(other.coef_ * [unit, 1.0], first.coef_ + np.array(line)[[0, 2]], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(other.predict(moved), first.predict(TABLE) + added, rtol=1e-6, atol=1e-6)


def test_intervals_add_what_coefficients_do_not_know():
    model = PLAIN.fit(TABLE, Y)
    found, curve = model.confidence_interval(TABLE[:5]), model.curve_.confidence_interval(Z[:5])
    centered = X - X.mean(axis=0)
    away = centered[:5] - np.column_stack(
        [LocalLinearRegressor(bandwidth=0.2).fit(Z, x).predict(Z[:5]) for x in centered.T]
    )
    variance = curve.standard_error**2 + np.einsum("ij,jk,ik->i", away, model.covariance_, away)
    np.testing.assert_allclose(found.standard_error, np.sqrt(variance), rtol=1e-9)
    np.testing.assert_allclose(found.center, curve.center + centered[:5] @ model.coef_, rtol=1e-9)
    np.testing.assert_allclose(found.width / curve.width, found.standard_error / curve.standard_error, rtol=1e-9)


FRAME = pandas.DataFrame({"z": Z, "kind": np.array(["a", "b", "c"])[np.arange(N) % 3], "x": X[:, 0]})


def test_categories_are_columns_of_zero_and_one():
    model = PartiallyLinearRegressor(linear=["kind", "x"], bandwidth=0.3).fit(FRAME, Y)
    assert model.coef_names_ == ["kind[b]", "kind[c]", "x"]
    dummies = np.column_stack([FRAME["kind"] == "b", FRAME["kind"] == "c", FRAME["x"], Z]).astype(float)
    np.testing.assert_allclose(
        model.coef_, PartiallyLinearRegressor(linear=[0, 1, 2], bandwidth=0.3).fit(dummies, Y).coef_
    )
    assert model.summary().r2 == pytest.approx(r2_score(Y, model.predict(FRAME)))
    pairs = FRAME.assign(kind=np.where(X[:, 1] > 0, "yes", "no"))  # numbers next to planes in several columns
    of_pairs = PartiallyLinearRegressor(linear=["kind"]).fit(pairs, Y)
    assert of_pairs.coef_names_ == ["kind[yes]"]
    for each in (model, of_pairs):
        with pytest.raises(ValueError, match=r"kind.*did not have.*leave these rows out"):
            each.set_params(unseen="unlike").predict(FRAME[:1].assign(kind="d"))
    for linear in (["kind"], ["kind", "x"]):
        with pytest.raises(ValueError, match=r"'kind' has no coefficient: it is constant"):
            PartiallyLinearRegressor(linear=linear).fit(FRAME.assign(kind="a"), Y)


def test_what_a_column_adds_to_y_has_no_say_in_the_bandwidths():
    """By one smooth of y the first coefficient was .053 off here, and its standard error twice as large."""
    rng = np.random.default_rng(9)
    z = rng.uniform(size=80)
    x = z**2 + rng.normal(size=80)
    table, y = np.column_stack([x, z]), x + np.sin(6 * z) + 0.3 * rng.normal(size=80)
    one, other = (PartiallyLinearRegressor(linear=[0]).fit(table, v) for v in (y - x, y + 20 * x))
    np.testing.assert_allclose(other.coef_ - one.coef_, 21.0, atol=2e-3)
    np.testing.assert_allclose(other.covariance_, one.covariance_, rtol=0.05)
    assert one.df_ == pytest.approx(80 - 1 - one.curve_.smoother_.training_fit.trace)


def test_a_frame_of_one_column_is_taken_as_outputs():
    frame = pandas.DataFrame({"wage": Y})
    model = PartiallyLinearRegressor("gaussian", 0.2, linear=[0, 2]).fit(TABLE, frame)
    assert model.target_name_ == "wage"
    ends = [model.prediction_interval(TABLE, X_calibration=TABLE, y_calibration=y).lower for y in (Y, frame)]
    np.testing.assert_array_equal(*ends)
    with pytest.raises(ValueError, match="must have shape"):
        model.prediction_interval(TABLE, X_calibration=TABLE, y_calibration=TABLE)


def test_displays_draw_lines_and_the_curve():
    pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")
    model = PartiallyLinearRegressor(linear=["kind", "x"], bandwidth=0.3).fit(FRAME, Y)
    shown = PartialDisplay.from_estimator(model, features=["x"]).panels[0]
    np.testing.assert_allclose(np.diff(shown.prediction[:, 0]) / np.diff(shown.x), model.coef_[2])
    PartialDisplay.from_estimator(model.curve_)
    with pytest.raises(TypeError, match=r"use model\.curve_"):
        QuantileFanDisplay.from_estimator(model, feature="z")


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ([Z**2, Z], {"bandwidth": "loo"}, r"'0' has no coefficient.*function of the columns"),
        ([np.full(N, 3.3), Z], {}, r"'0' .*constant"),
        ([X[:, 0], Z, 2 * X[:, 0] + 1], {"linear": [0, 2]}, "combination of other linear columns"),
        ([X[:, 0], Z, X[:, 0] + Z], {"linear": [0, 2]}, "has no coefficient"),
        ([Z], {}, "none is left for the curve"),
        ([X[:, 0], Z], {"linear": 1.5}, "linear must be the name"),
        ([X[:, 0], Z], {"linear": None}, "linear must be the name"),
        ([X[:, 0], Z], {"linear": ["age"]}, "names column 'age', which is not there"),
        ([X[:, 0], Z], {"periodic": {0: 24}}, "which is in periodic="),
        (RANDOM.normal(size=(7, 6)), {"linear": range(6)}, r"no degrees of freedom.*fit more rows"),
    ],
)
def test_what_has_no_coefficient_is_refused(columns, options, words):
    table = np.column_stack(columns)
    with pytest.raises(ValueError, match=words):
        PartiallyLinearRegressor(**{"linear": [0], "bandwidth": "scott"} | options).fit(table, Y[: len(table)])


def test_a_coefficient_that_rests_on_one_row_or_cluster_has_no_standard_error():
    only = np.column_stack([np.where(np.arange(N) % 8 == 3, 1.0, 0.0), X[:, 0]])
    for column, exclusion in ((np.eye(N)[:, [3]], None), (only, PLAIN.fit(TABLE, Y, groups=GROUPS).exclusion_)):
        assert np.isnan(covariance_of(Y, column, np.ones(N), N, exclusion)[0]).all()
