"""Every public method of the estimators under every policy for empty windows, with categorical columns and without.

A smoothing at its largest makes all levels count alike. Then a table with a categorical column is the same problem as
the table without it, and everything that is returned, warned of and raised has to be the same.
"""

import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import EmptyWindowWarning, LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor

POLICIES = ["nan", "nearest", "mean", "zero", "raise"]
MAKERS = [NadarayaWatsonRegressor, LocalLinearRegressor, NadarayaWatsonClassifier]
METHODS = ["predict", "score", "attention_weights", "leave_one_out"]
PARTS = ["effective_sample_size", "has_support"]  # of predictions
CASES = [(make, method) for make in MAKERS for method in METHODS + PARTS]
CASES += [(make, part) for make in MAKERS[:2] for part in ("mean", "slope")]
CASES += [(NadarayaWatsonClassifier, "predict_proba")]
QUERIES = np.array([0.3, 7.0, 1.1, -5.0, 2.4])
EMPTY = np.array([False, True, False, True, False])


def fitted(make, empty, *, mixed, weights=False):
    """Fit to an even line of places, two levels in turn, and numbers or labels."""
    x = np.linspace(0.0, 3.0, 31)
    y = np.sin(2 * x) + 0.1 * np.arange(31) % 0.3
    y = np.where(y > 0, "up", "down") if make is NadarayaWatsonClassifier else y
    sample_weight = 1.0 + np.arange(31) % 3 if weights else None
    options = {"kernel": "epanechnikov", "bandwidth": 0.45, "empty": empty}
    if not mixed:
        return make(**options).fit(x[:, None], y, sample_weight)
    model = make(unordered=[1], smoothing=[0.5], **options)
    return model.fit(np.column_stack([x, np.arange(31) % 2]), y, sample_weight)


def rows_of(places, *, mixed):
    return np.column_stack([places, np.arange(len(places)) % 2]) if mixed else places[:, None]


def outcome(model, method, *, mixed):
    """Return what a method returns or raises, and what it warns of."""
    queries = rows_of(QUERIES, mixed=mixed)
    targets = ["up", "down", "up", "up", "down"] if hasattr(model, "classes_") else np.arange(5.0)
    arguments = {"score": (queries, targets), "leave_one_out": ()}.get(method, (queries,))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = getattr(model, method, None)
            found = getattr(model.get_prediction(queries), method) if found is None else found(*arguments)
        except ValueError as error:
            return None, str(error), [(w.category, str(w.message)) for w in caught]
    found = found.prediction if method == "leave_one_out" else found
    return found, None, [(w.category, str(w.message)) for w in caught]


@pytest.mark.covering
@pytest.mark.parametrize("empty", POLICIES)
@pytest.mark.parametrize(("make", "method"), CASES)
def test_a_column_that_makes_no_difference_makes_none(make, method, empty):
    plain, mixed = (outcome(fitted(make, empty, mixed=mixed), method, mixed=mixed) for mixed in (False, True))
    assert mixed[1:] == plain[1:]
    if plain[0] is None or np.asarray(plain[0]).dtype.kind in "OUS":
        assert_array_equal(mixed[0], plain[0])
    else:
        assert_allclose(mixed[0], plain[0], rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # of priors far away
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("make", MAKERS)
def test_weights_of_empty_windows_are_what_the_policy_says(make, mixed):
    queries = rows_of(QUERIES, mixed=mixed)
    with pytest.raises(ValueError, match=r"2 of 5 queries \(the first is query 1\) have no key"):
        fitted(make, "raise", mixed=mixed).attention_weights(queries)
    with pytest.warns(EmptyWindowWarning, match="2 of 5 queries") as caught:
        found = fitted(make, "nan", mixed=mixed).attention_weights(queries)
    assert len(caught) == 1
    assert_array_equal(np.isnan(found).all(axis=1), EMPTY)
    assert_array_equal(np.isnan(found).any(axis=1), EMPTY)
    assert_array_equal(fitted(make, "zero", mixed=mixed).attention_weights(queries)[EMPTY], 0.0)
    with pytest.warns(EmptyWindowWarning, match="2 of 5 queries .* nearest") as caught:
        nearest = fitted(make, "nearest", mixed=mixed).attention_weights(queries)[EMPTY]
    assert len(caught) == 1
    assert_array_equal(nearest, np.eye(31)[[30, 0]])
    mean = fitted(make, "mean", mixed=mixed, weights=True).attention_weights(queries)[EMPTY]
    share = 1.0 + np.arange(31) % 3
    assert_allclose(mean, np.tile(share / share.sum(), (2, 1)), rtol=1e-14)


@pytest.mark.covering
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("empty", ["nearest", "mean", "zero"])
@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, LocalLinearRegressor])
def test_weights_times_outputs_are_the_predictions(make, empty, mixed, weights):
    model = fitted(make, empty, mixed=mixed, weights=weights)
    queries = rows_of(QUERIES, mixed=mixed)
    with pytest.warns(EmptyWindowWarning) if empty == "nearest" else nullcontext():
        shares, prediction = model.attention_weights(queries), model.predict(queries)
    assert_allclose(shares @ model.value_, prediction, rtol=1e-10, atol=1e-13)
    rows = ~EMPTY if empty == "zero" else slice(None)
    assert_allclose(shares[rows].sum(axis=1), 1.0, rtol=1e-12)
