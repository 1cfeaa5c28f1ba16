"""Local linear fits far from the keys, where weights differ by any factor: the plane of the nearest keys, exactly."""

import warnings

import numpy as np
import pytest
from mpmath import exp, lu_solve, matrix, mp, mpf, sqrt

from kernpool import (
    ExtrapolationWarning,
    LocalLinearRegressor,
    Problem,
    RankDeficiencyWarning,
    choose,
    open_chunks,
    pool,
)
from kernpool.algorithms.underflow.refit import SCANNED, fit_lost
from kernpool.core import solve
from kernpool.pooling import in_memory as fits_module
from kernpool.pooling import local_fit
from tests.support.capabilities import algorithms
from tests.support.log_kernels import LOG
from tests.support.thinning import slow

H = 0.05


def truth(query, key, value, bandwidth, kernel="gaussian", composition="radial", weight=None, factor=None):
    """Value and slopes of weighted least squares, in as many digits as weights that differ by any factor need."""
    key, query = np.atleast_2d(key.T).T, np.atleast_1d(query)
    n, d = key.shape
    h = np.broadcast_to(bandwidth, d)
    with mp.workdps(60):
        u = [[(mpf(x) - mpf(q)) / mpf(b) for x, q, b in zip(row, query, h, strict=True)] for row in key.tolist()]
        log = LOG[kernel]
        product = composition == "product"
        logit = [sum(log(abs(x)) for x in row) if product else log(sqrt(sum(x * x for x in row))) for row in u]
        for extra in (weight, factor):
            if extra is not None:
                logit = [x + mp.log(mpf(float(w))) if w > 0 else mpf("-inf") for x, w in zip(logit, extra, strict=True)]
        best = max(range(n), key=lambda j: logit[j])
        logit = [x - logit[best] for x in logit]
    with mp.workdps(600):
        weight = [exp(x) for x in logit]
        row = [
            [mpf(1)] + [mpf(x) - mpf(y) for x, y in zip(key[j].tolist(), key[best].tolist(), strict=True)]
            for j in range(n)
        ]
        value = [mpf(v) for v in value.tolist()]
        left, right = matrix(d + 1, d + 1), matrix(d + 1, 1)
        for w, t, v in zip(weight, row, value, strict=True):
            if w > mpf(10) ** -280:
                for a in range(d + 1):
                    right[a] += w * t[a] * (v - value[best])
                    for b in range(d + 1):
                        left[a, b] += w * t[a] * t[b]
        beta = lu_solve(left, right)
        at = [mpf(1)] + [mpf(q) - mpf(y) for q, y in zip(query.tolist(), key[best].tolist(), strict=True)]
        fit = value[best] + sum(b * x for b, x in zip(beta, at, strict=True))
        return float(fit), np.array([float(b) for b in beta[1:]])


def curve(n, seed=0):
    generator = np.random.default_rng(seed)
    key = np.sort(generator.random(n))
    return key, np.sin(6 * key) + 0.1 * generator.normal(size=n)


def silent(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return pool(*arguments, degree=1, **options)


@algorithms(columns=1, degree=1)
@pytest.mark.parametrize("n", [20, *slow(50, 200)])
def test_far_queries_continue_the_line_of_the_nearest_keys(algorithm, n):
    key, value = curve(n)
    query = np.array([-4.0, -1.0, -0.3, 1.0, 1.3, 1.6, 2.0, 3.0, 6.0])
    found = silent(query, key, value, bandwidth=H, algorithm=algorithm)
    expected = [truth(q, key, value, H)[0] for q in query]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("query", [-1e4, -300.0, 300.0, 1e4, 1e8, 1e15, 1e25])
def test_very_far_it_is_the_line_through_the_two_nearest_keys(query):
    key, value = curve(20)
    order = np.argsort(np.abs(key - np.sign(query)))[:2]
    (a, b), (v, w) = key[order], value[order]
    found = silent([query], key, value, bandwidth=H)
    assert found[0] == pytest.approx(v + (w - v) / (b - a) * (query - a), rel=1e-12)
    slope = local_fit(Problem.from_arrays([query], key, value, bandwidth=H, degree=1)).slope[0, 0, 0] / H
    assert slope == pytest.approx((w - v) / (b - a), rel=1e-12)


@pytest.mark.covering
@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "logistic"])
@pytest.mark.parametrize("composition", ["radial", "product"])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_planes_against_mpmath(kernel, composition, columns, generator):
    key = generator.random((40, columns))
    value = np.sin(3 * key).sum(axis=1) + generator.normal(size=40)
    bandwidth = np.linspace(0.01, 0.02, columns) if kernel != "gaussian" else np.linspace(0.05, 0.08, columns)
    weight = generator.integers(0, 4, 40)
    query = np.vstack(
        [generator.random((2, columns)), 1 + generator.random((2, columns)), generator.normal(0, 4, (3, columns))]
    )
    options = {"kernel": kernel, "composition": composition, "bandwidth": bandwidth}
    problem = Problem.from_arrays(query, key, value, key_weight=weight, degree=1, **options)
    plain = solve(choose(problem, "reference").reduce(problem.without_center()), problem.layout)
    assert plain.lost[4:].any() or kernel != "gaussian"
    fit = local_fit(problem)
    for i, q in enumerate(query):
        expected, slope = truth(q, key, value, weight=weight, **options)
        size = max(1.0, np.abs(slope).max() * np.abs(q - key).max())
        assert fit.intercept[i, 0] == pytest.approx(expected, abs=3e-9 * size)
        np.testing.assert_allclose(fit.slope[i, :, 0] / bandwidth, slope, rtol=1e-7, atol=3e-9 * np.abs(slope).max())


def test_a_window_with_a_key_at_its_very_edge():
    """Two keys, of which one weighs 1e-9 and less: the line through both, as for any other weight."""
    for gap in (1e-3, 1e-9, 1e-12, 2.0**-52):
        found = silent([0.0], [-0.5, 1.0 - gap, 3.0], [1.0, 7.0, 100.0], kernel="epanechnikov")
        assert found[0] == pytest.approx(1.0 + 6.0 * 0.5 / (1.5 - gap), rel=1e-12)
    with pytest.warns(RankDeficiencyWarning):
        assert pool([0.0], [-0.5, 1.0, 3.0], [1.0, 7.0, 100.0], kernel="epanechnikov", degree=1)[0] == 1.0


@algorithms(columns=2, degree=1)
@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "logistic"])
def test_affine_functions_are_continued_at_any_distance(algorithm, kernel, generator):
    key = generator.random((60, 2))
    slope = np.array([[2.0, 1.0], [-3.0, 0.5]])
    away = np.array([[3.0, -5.0], [0.4, 30.0], [-1e3, 2e2], [1e5, 1e5], [1e9, -1e7], [0.5, 1e12]])
    found = silent(away, key, 5.0 + key @ slope, kernel=kernel, bandwidth=0.05, algorithm=algorithm)
    np.testing.assert_allclose(found, 5.0 + away @ slope, rtol=1e-9)


@pytest.mark.parametrize("angle", [0.0, 0.3, np.pi / 4])
def test_a_lattice_in_any_direction(angle, generator):
    """Whole rows of keys weigh the same, and the next row fixes what the first leaves open, e^-1000 of it and less."""
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    grid = np.stack(np.meshgrid(np.arange(6.0), np.arange(40.0) * 0.1), axis=-1).reshape(-1, 2)
    slope = np.array([0.7, -0.3])
    for distance in (1.0, 5.0, 100.0, 1e4):
        query = np.array([[5.0 + distance, 2.03]])
        found = silent(query @ turn, grid @ turn, 2.0 + grid @ slope, bandwidth=0.3)
        np.testing.assert_allclose(found, 2.0 + query @ slope, rtol=1e-8)


@algorithms(columns=2, degree=1)
def test_what_no_key_determines_is_constant(algorithm):
    options = {"degree": 1, "bandwidth": 0.05, "algorithm": algorithm}
    key = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0], [0.4, 0.4]])
    with pytest.warns(RankDeficiencyWarning, match="around 2 of 2"):
        found = pool([[9.0, 9.0], [30.0, 30.0]], key, 3.0 + key[:, 0], **options)
    np.testing.assert_allclose(found, [12.0, 33.0], rtol=1e-12)
    with pytest.warns(RankDeficiencyWarning):
        np.testing.assert_allclose(pool([[9.0, 8.0]], key[1:3], [4.0, 6.0], **options), [5.0], rtol=1e-15)


def test_windows_with_one_key_and_duplicates_of_one():
    with pytest.warns(RankDeficiencyWarning):
        found = pool([0.3, 7.4], [0.0, 7.0, 7.0], [2.0, 3.0, 8.0], kernel="biweight", degree=1)
    np.testing.assert_array_equal(found, [2.0, 5.5])
    far = silent([50.0], [0.0, 7.0, 7.0], [2.0, 3.0, 8.0])
    assert far[0] == pytest.approx(5.5 + 0.5 * 43.0, rel=1e-14)


def test_keys_that_differ_by_rounding_alone_are_one_place():
    key = np.array([0.3, 0.1 + 0.2, 0.0])
    assert key[0] != key[1]
    assert silent([20.0], key, [1.0, 3.0, 0.0], bandwidth=0.01)[0] == pytest.approx(2.0 * 20.0 / 0.3, rel=1e-10)


@pytest.mark.parametrize("leave", [False, True])
def test_leave_one_out_and_masks_choose_the_keys(leave, generator):
    key, value = curve(40)
    key = np.append(key, 3.0)
    value = np.append(value, 50.0)
    own = np.array([40])
    others = np.arange(41) != 40
    extra = {"exclude_self": True, "self_index": own} if leave else {"attn_mask": others[None]}
    found = silent(key[own], key, value, bandwidth=H, **extra)
    assert found[0] == pytest.approx(truth(3.0, key[:40], value[:40], H)[0], rel=1e-10)
    bias = np.where(others, np.log(np.linspace(1, 5, 41)), -np.inf)
    found = silent(key[own], key, value, bandwidth=H, attn_mask=bias[None])
    assert found[0] == pytest.approx(
        truth(3.0, key[:40], value[:40], H, factor=np.linspace(1, 5, 41)[:40])[0], rel=1e-10
    )


def test_own_keys_of_weight_two_stay_with_one(generator):
    key, value = curve(30)
    key, value = np.append(key, 2.0), np.append(value, 4.0)
    weight = np.append(np.ones(30), 2.0)
    found = silent(key[-1:], key, value, bandwidth=H, key_weight=weight, exclude_self=True, self_index=[30])
    assert found[0] == pytest.approx(4.0, rel=1e-12)


@pytest.mark.covering
@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "triweight"])
@pytest.mark.parametrize("composition", ["radial", "product"])
def test_many_keys_are_searched_by_a_tree_and_few_one_by_one(kernel, composition, generator, monkeypatch):
    key = generator.random((2 * SCANNED, 2))
    value = np.sin(5 * key).sum(axis=1)
    query = np.vstack([generator.normal(0.5, 0.6, (150, 2)), generator.normal(0.5, 1e6, (5, 2))])
    weight = generator.integers(0, 3, len(key))
    problem = Problem.from_arrays(
        query, key, value, kernel=kernel, composition=composition, bandwidth=0.006, key_weight=weight, degree=1
    )
    found = local_fit(problem)
    assert found.lost.sum() >= {"gaussian": 60, "laplace": 5, "triweight": 20}[kernel]
    monkeypatch.setattr("kernpool.algorithms.underflow.refit.SCANNED", len(key))
    for count in (32, len(key)):
        monkeypatch.setattr("kernpool.algorithms.underflow.refit.FEW", count)
        expected = local_fit(problem)
        np.testing.assert_array_equal(found.rank, expected.rank)
        np.testing.assert_array_equal(found.lost, expected.lost)
        size = np.abs(expected.slope).max() * np.linalg.norm(query, axis=1)[:, None]
        assert np.all(np.abs(found.intercept - expected.intercept) <= 1e-10 * (1 + size))


def test_estimators_keep_the_rule_of_their_search(generator):
    """Isolated rows: planes through the nearest two lead anywhere, and the search never saw them."""
    key = generator.standard_t(2, size=(150, 2))
    value = np.sin(key[:, 0]) + 0.1 * generator.normal(size=150)
    model = LocalLinearRegressor(bandwidth="loo").fit(key, value)
    assert model.leave_one_out().error == pytest.approx(model.loo_error_, rel=1e-9)
    with (
        pytest.warns(ExtrapolationWarning, match="150 of 150"),
        pytest.warns(RankDeficiencyWarning, match="constant"),
    ):
        far = model.predict(key + 1e4)
    assert value.min() <= far.min() <= far.max() <= value.max()
    planes = silent(key + 1e4, key, value, bandwidth=model.bandwidth_)
    assert np.abs(planes).max() > 100 * np.abs(value).max()


def test_estimators_are_the_function_where_no_plane_is_lost(generator):
    key = generator.random((300, 2))
    value, query = np.sin(6 * key).sum(axis=1), generator.random((50, 2))
    model = LocalLinearRegressor(bandwidth=0.2).fit(key, value)
    np.testing.assert_allclose(model.predict(query), silent(query, key, value, bandwidth=0.2), rtol=1e-13)
    shares = model.attention_weights(query)
    np.testing.assert_allclose(shares @ value, model.predict(query), rtol=1e-11)


def counted(monkeypatch):
    calls = []

    def listen(problem, fit, *rest):
        calls.append(int(np.count_nonzero(fit.lost)))
        return fit_lost(problem, fit, *rest)

    monkeypatch.setattr(fits_module, "fit_lost", listen)
    return calls


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_ordinary_queries_are_left_alone(columns, generator, monkeypatch):
    """Those between the keys, and a few bandwidths away: not one is done again, and the bits are those of the sums."""
    calls = counted(monkeypatch)
    key = generator.random((2000, columns))
    query = generator.random((500, columns))
    value = generator.normal(size=2000)
    for kernel in ("gaussian", "laplace", "epanechnikov"):
        problem = Problem.from_arrays(query, key, value, kernel=kernel, bandwidth=0.3, degree=1)
        plain = solve(choose(problem, reuse=True).reduce(problem.without_center()), problem.layout).intercept
        np.testing.assert_array_equal(local_fit(problem).intercept, plain + problem.value_center)
    outside = np.where(generator.random((200, columns)) < 0.5, 1.6, -0.6)
    silent(outside, key, value, bandwidth=0.3)
    assert calls == [0, 0, 0]  # and `pool` does not even ask


def test_collinear_columns_are_left_as_they_were(generator, monkeypatch):
    """Where the query is on the line of the keys, and where it is not; keys are asked for their rank alone."""
    x = generator.random(300)
    key = np.column_stack([x, 3 * x, np.full(300, 7.0)])
    query = np.vstack([key[:20], key[:20] + np.array([0.0, 0.5, 1.0])])
    problem = Problem.from_arrays(query, key, x, bandwidth=0.4, degree=1)
    plain = solve(choose(problem, reuse=True).reduce(problem.without_center()), problem.layout)
    assert plain.lost[20:].any()
    monkeypatch.setattr("kernpool.algorithms.underflow.refit._Keys.fit", None)
    found = local_fit(problem)
    np.testing.assert_array_equal(found.intercept, plain.intercept + problem.value_center)
    assert not found.lost.any()


@pytest.mark.slow
def test_the_bits_do_not_depend_on_the_number_of_threads(generator):
    key = generator.random((6000, 2))
    query = generator.normal(0.5, 2.0, (3000, 2))
    bits = {silent(query, key, key, bandwidth=0.02, n_jobs=n_jobs).tobytes() for n_jobs in (1, 2, 8)}
    assert len(bits) == 1


def test_the_fit_moves_continuously_into_the_distance():
    """Where sums hand over to keys no step is seen: second differences stay as small as they are on either side."""
    key, value = curve(200)
    query = np.linspace(1.0, 3.0, 4001)
    fit = local_fit(Problem.from_arrays(query, key, value, bandwidth=H, degree=1))
    assert (fit.lost > 0).any()
    assert (fit.lost == 0).any()
    handed = np.flatnonzero(np.diff((fit.lost > 0).astype(int)))
    y = fit.intercept[:, 0]
    for i in handed:
        assert abs(y[i + 1] - 2 * y[i] + y[i - 1]) < 1e-3 * abs(y[i])
        assert truth(query[i], key, value, H)[0] == pytest.approx(y[i], rel=1e-9)
        assert truth(query[i + 1], key, value, H)[0] == pytest.approx(y[i + 1], rel=1e-9)


def test_states_without_keys_are_constant_there_and_say_so():
    """Chunks have no keys at hand any more when they are solved."""
    key, value = curve(20)
    with pytest.warns(RankDeficiencyWarning):
        found = pool([3.0], open_chunks([(key[:12], value[:12]), (key[12:], value[12:])]), bandwidth=H, degree=1)
    nearest = value[np.argmax(key)]
    assert abs(found[0] - nearest) < 0.2 < abs(silent([3.0], key, value, bandwidth=H)[0] - nearest)


def test_a_slope_beyond_all_numbers_leaves_the_fit_as_it_was():
    with pytest.warns(RankDeficiencyWarning):
        found = pool([1e100], [0.0, 1e-200], [0.0, 1e150], degree=1)
    assert np.isfinite(found).all()
