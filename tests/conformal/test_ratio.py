"""The ratio of two densities: that of two tables of kernels, each row left out of its own, clipped and never 0/0."""

import warnings

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from kernpool import InferenceWarning, density_ratio
from kernpool.bandwidth import rule_of_thumb


def samples(n=80, m=60, d=1, seed=0):
    g = np.random.default_rng(seed)
    return g.normal(size=(n, d)), 0.8 * g.normal(size=(m, d)) + 0.7


def reference(X, training, new, h, weight=(None, None), without=(False, False)):
    """Return the logarithm of the ratio by tables of logarithms of kernels."""
    found = []
    for rows, w, left_out in zip((new, training), weight, without, strict=True):
        w = np.ones(len(rows)) if w is None else np.asarray(w, dtype=float)
        times = np.repeat(w[None, :], len(X), axis=0)
        if left_out:
            np.fill_diagonal(times, np.maximum(w - 1, 0))
        logits = -0.5 * np.sum(((X[:, None, :] - rows[None, :, :]) / h) ** 2, axis=2)
        found.append(logsumexp(logits, axis=1, b=times) - np.log(times.sum(axis=1)))
    return found[0] - found[1]


@pytest.mark.parametrize("d", [1, 2, 4])
def test_every_ratio_is_that_of_two_tables(d):
    training, new = samples(d=d)
    at = np.random.default_rng(1).uniform(-2, 2, size=(50, d))
    ratio = density_ratio(training, new, largest=1e300)
    h = ratio.bandwidth
    np.testing.assert_allclose(ratio(at), np.exp(reference(at, training, new, h)), rtol=1e-11)
    expected = np.exp(reference(training, training, new, h, without=(False, True)))
    np.testing.assert_allclose(ratio.at_training, expected, rtol=1e-11)
    np.testing.assert_array_equal(ratio(training), ratio.at_training)
    expected = np.exp(reference(new, training, new, h, without=(True, False)))
    np.testing.assert_allclose(ratio.at_new, expected, rtol=1e-11)
    np.testing.assert_array_equal(ratio(new), ratio.at_new)


def test_the_bandwidth_is_the_larger_one_of_both_rules():
    training, new = samples(d=3)
    new = new * [0.1, 10.0, 1.0]
    for rule in ("scott", "silverman"):
        both = [rule_of_thumb(rows, rule=rule) for rows in (training, new)]
        np.testing.assert_array_equal(density_ratio(training, new, bandwidth=rule).bandwidth, np.maximum(*both))
    assert density_ratio(training, new, bandwidth=0.5).bandwidth.tolist() == [0.5, 0.5, 0.5]
    assert density_ratio(training, new, bandwidth=[1, 2, 3]).bandwidth.tolist() == [1, 2, 3]


def test_units_do_not_matter():
    training, new = samples(d=2)
    factor, at = np.array([1e-6, 3e4]), np.random.default_rng(1).normal(size=(20, 2))
    found = density_ratio(training * factor, new * factor)(at * factor)
    np.testing.assert_allclose(found, density_ratio(training, new)(at), rtol=1e-9)


def test_weights_are_rows():
    training, new = samples()
    g = np.random.default_rng(2)
    times, of_new = g.integers(0, 4, len(training)), g.integers(1, 3, len(new))
    weighted = density_ratio(training, new, weight_train=times, weight_new=of_new, largest=1e300)
    repeated = density_ratio(np.repeat(training, times, axis=0), np.repeat(new, of_new, axis=0), largest=1e300)
    np.testing.assert_allclose(weighted.bandwidth, repeated.bandwidth, rtol=1e-12)
    np.testing.assert_allclose(weighted([[0.0], [1.0]]), repeated([[0.0], [1.0]]), rtol=1e-11)
    kept = np.repeat(np.arange(len(training)), times)
    np.testing.assert_allclose(weighted.at_training[kept], repeated.at_training, rtol=1e-11)
    np.testing.assert_allclose(weighted.effective_rows, repeated.effective_rows, rtol=1e-10)


def test_the_ratio_of_normal_densities_is_nearly_found():
    """Smoothing by h adds its square to both variances, so that the truth of the estimate is known too."""
    g = np.random.default_rng(0)
    training, new = g.normal(size=20_000), g.normal(1, 1, size=20_000)
    ratio = density_ratio(training, new)
    x, sd = np.linspace(-1, 2, 7), np.sqrt(1 + ratio.bandwidth[0] ** 2)
    np.testing.assert_allclose(ratio(x), norm.pdf(x, 1, sd) / norm.pdf(x, 0, sd), rtol=0.15)
    assert abs(ratio.at_training.mean() - 1) < 0.05
    assert ratio.effective_rows == pytest.approx(20_000 / np.e, rel=0.2)  # squares of the largest count


def test_a_row_that_lies_alone_is_not_among_others():
    """With itself it would have the density of a kernel, and count for a hundredth of what it stands for."""
    g = np.random.default_rng(0)
    training, new = np.append(g.normal(size=100), 6.0), g.normal(6, 1, size=100)
    ratio = density_ratio(training, new, bandwidth=0.5)
    with pytest.warns(InferenceWarning, match=r"at 1 of 101 rows \(the first is row 100\).*above 101"):
        assert ratio.at_training[-1] == 101
    assert ratio([6.0])[0] < 60


def test_ratios_are_clipped_at_the_number_of_rows_or_as_asked():
    training, new = samples()
    weight = np.full(len(training), 2.0)
    with pytest.warns(InferenceWarning, match="clip|becomes that"):
        assert density_ratio(training, new + 30)([[30.0]])[0] == 80
    with pytest.warns(InferenceWarning):
        assert density_ratio(training, new + 30, weight_train=weight)([[30.0]])[0] == 160
    with pytest.warns(InferenceWarning):
        assert density_ratio(training, new + 30, largest=7)([[30.0]])[0] == 7


def test_far_from_both_samples_the_nearest_rows_decide_and_nothing_is_zero_by_zero():
    ratio = density_ratio([0.0, 1.0, 2.0], [1.0, 2.0, 3.0], bandwidth=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ratio([-100.0])[0] == 0.0  # 1e4 logarithms apart
    with pytest.warns(InferenceWarning, match="1 of 1 rows"):
        assert ratio([100.0])[0] == 3.0
    with pytest.warns(InferenceWarning, match="or unknown"):
        assert ratio([1e9])[0] == 3.0  # both logarithms are -5e19, and have no digits for a difference
    with pytest.warns(InferenceWarning, match="or unknown"):
        assert ratio([-1e9])[0] == 3.0


def test_columns_that_do_not_vary():
    training, new = samples(d=2)
    training[:, 1], new[:, 1] = 5.0, 5.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = density_ratio(training, new)(new)
    np.testing.assert_allclose(found, density_ratio(training[:, :1], new[:, :1])(new[:, :1]), rtol=1e-12)
    new[:, 1] = 6.0
    with pytest.raises(ValueError, match="column 1 is 5 in all rows of X_train and 6 in all rows of X_new"):
        density_ratio(training, new)
    new[0, 1] = 5.0
    with pytest.warns(InferenceWarning, match="at 59 of 60 rows"):  # where the column is 6, there is no training row
        assert (density_ratio(training, new)(new)[1:] == 80).all()


def test_frames_are_read_by_name():
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    training, new = samples(d=2)
    names = ["a", "b"]
    ratio = density_ratio(
        pandas.DataFrame(training, columns=names), pandas.DataFrame(new[:, ::-1], columns=names[::-1])
    )
    plain = density_ratio(training, new)
    np.testing.assert_array_equal(ratio.bandwidth, plain.bandwidth)
    np.testing.assert_array_equal(ratio(pandas.DataFrame(new[:, ::-1], columns=names[::-1])), plain(new))
    np.testing.assert_array_equal(ratio(pandas.DataFrame(training, columns=names)), plain.at_training)


def test_the_same_bits_for_any_number_of_threads():
    training, new = samples(n=3000, m=2000, d=2)
    one, two = (density_ratio(training, new, n_jobs=n)(new[:100]) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"X_train": [[0.0]]}, ValueError, "X_train must have at least two rows, got 1"),
        ({"X_new": [0.0]}, ValueError, "X_new must have at least two rows, got 1"),
        ({"X_train": np.ones((5, 2))}, ValueError, r"X_train has 2 column\(s\) and X_new has 1"),
        ({"X_train": [0.0, np.nan]}, ValueError, "X_train"),
        ({"X_new": ["a", "b"]}, TypeError, "X_new"),
        ({"bandwidth": "loo"}, ValueError, "bandwidth must be one of 'scott', 'silverman', or numbers, got 'loo'"),
        ({"bandwidth": -1.0}, ValueError, "bandwidth must be positive"),
        ({"largest": 0.0}, ValueError, "largest must be a positive number"),
        ({"largest": np.inf}, ValueError, "largest must be a positive number"),
        ({"largest": "all"}, ValueError, "largest must be a positive number"),
        ({"weight_train": [1.0]}, ValueError, "weight_train must have one entry per row"),
        ({"weight_new": [-1.0, 1.0, 1.0]}, ValueError, "weight_new must not be negative"),
    ],
)
def test_bad_input(options, error, message):
    with pytest.raises(error, match=message):
        density_ratio(**({"X_train": [0.0, 1.0, 2.0, 3.0], "X_new": [1.0, 2.0, 4.0]} | options))


def test_rows_of_another_width():
    training, new = samples(d=2)
    with pytest.raises(ValueError, match=r"X has 1 column\(s\) and the densities are of 2"):
        density_ratio(training, new)([[1.0]])
