"""How often sets hold the class of a new row: as often as they say, of all rows and of each class.

A thousand new rows for each sample have the errors of twice as many samples with 200.
"""

import numpy as np
import pytest

from kernpool import NadarayaWatsonClassifier

pytestmark = pytest.mark.slow  # some hundred samples each
NEW = 1000
SLOPES = np.array([-2.0, 0.0, 1.5])


def sample(generator, n):
    """Three classes, of which the first is rare at one end and the last at the other."""
    X = generator.uniform(-1.0, 1.0, size=(n, 1))
    return X, np.argmax(2 * X * SLOPES + generator.gumbel(size=(n, 3)) + [0.0, 0.5, 0.0], axis=1)


def coverage(generator, runs, n, find):
    """Shares of new rows in their sets, of all and by class."""
    inside, count = np.zeros(3), np.zeros(3)
    for _ in range(runs):
        X, y = sample(generator, n)
        X_new, y_new = sample(generator, NEW)
        member = find(X, y, X_new)[np.arange(NEW), y_new]
        inside += np.bincount(y_new, member, minlength=3)
        count += np.bincount(y_new, minlength=3)
    return inside.sum() / count.sum(), inside / count


@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("method", ["lac", "aps", "raps"])
def test_calibration_rows(method, by_class, generator):
    """For any fit: this one is much too wide, and its bandwidth would do as well from a search."""

    def find(X, y, X_new):
        model = NadarayaWatsonClassifier(bandwidth=0.8, prior_share=0.2).fit(X[:100], y[:100])
        options = {"X_calibration": X[100:], "y_calibration": y[100:], "random_state": generator.integers(1 << 30)}
        return model.predict_set(X_new, 0.9, method=method, by_class=by_class, allow_empty=True, **options).member

    of_all, each = coverage(generator, 75, 500, find)
    assert 0.885 < of_all < 0.915
    if by_class:
        assert np.all(each > 0.885)
        assert np.all(each < 0.92)  # of 80 to 150 rows of a class: up to 1/81 more than the level


@pytest.mark.parametrize("by_class", [False, True])
def test_full(by_class, generator):
    def find(X, y, X_new):
        model = NadarayaWatsonClassifier(bandwidth=0.2, prior_share=0.02).fit(X, y)
        return model.predict_set(X_new, 0.9, method="full", by_class=by_class).member

    of_all, each = coverage(generator, 100, 300, find)
    assert 0.885 < of_all < 0.915
    if by_class:
        assert np.all(each > 0.885)
        assert np.all(each < 0.92)


@pytest.mark.parametrize("method", ["lac", "aps", "full"])
def test_training_rows_and_bandwidths_found_on_them(method, generator):
    def find(X, y, X_new):
        model = NadarayaWatsonClassifier().fit(X, y)
        return model.predict_set(X_new, 0.9, method=method, random_state=generator.integers(1 << 30)).member

    of_all, _ = coverage(generator, 40, 200, find)
    assert 0.88 < of_all < 0.92
