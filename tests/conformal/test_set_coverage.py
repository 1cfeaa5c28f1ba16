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


WIDE = {"bandwidth": 0.8, "prior_share": 0.2}  # much too wide, and as good as any with calibration rows
CASES = [(method, by_class, WIDE, 100, 75) for method in ("lac", "aps") for by_class in (False, True)]
CASES += [("lac", False, {}, 0, 40)]  # found on the rows that calibrate


@pytest.mark.parametrize(("method", "by_class", "parameters", "fitted", "runs"), CASES)
def test_sets_hold_the_class_as_often_as_they_say(method, by_class, parameters, fitted, runs, generator):
    """Of all rows, or of those that are not calibration rows, models are fitted."""

    def find(X, y, X_new):
        options = {"X_calibration": X[fitted:], "y_calibration": y[fitted:], "allow_empty": True} if fitted else {}
        model = NadarayaWatsonClassifier(**parameters).fit(X[: fitted or None], y[: fitted or None])
        seed = generator.integers(1 << 30)
        return model.predict_set(X_new, 0.9, method=method, by_class=by_class, random_state=seed, **options).member

    of_all, each = coverage(generator, runs, 500 if fitted else 300 if parameters else 200, find)
    assert abs(of_all - 0.9) < (0.015 if parameters else 0.02)
    # Of 80 to 150 rows of a class: up to 1/81 more than the level.
    assert not by_class or np.all((each > 0.885) & (each < 0.92))
