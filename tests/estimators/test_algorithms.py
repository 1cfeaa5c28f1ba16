"""A named algorithm is refused by every method alike, or by none: the rule of `kernpool.choose`."""

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor, Problem, choose
from kernpool.algorithms import ALGORITHMS

CALLS = {
    "predict": lambda m, X: m.predict(X),
    "derivative": lambda m, X: m.get_prediction(X).slope,
    "attention_weights": lambda m, X: m.attention_weights(X),
    "effective_sample_size": lambda m, X: m.get_prediction(X).effective_sample_size,
    "support_mask": lambda m, X: m.get_prediction(X).has_support,
    "leave_one_out": lambda m, _: m.leave_one_out(),
    "standard_error": lambda m, X: m.get_prediction(X).standard_error,
    "confidence_interval": lambda m, X: m.confidence_interval(X),
    "prediction_interval": lambda m, X: m.prediction_interval(X),
    "prediction_interval, full": lambda m, X: m.prediction_interval(X, method="full"),
    "quantile": lambda m, X: m.quantile(X),
    "quantile_interval": lambda m, X: m.conditional_distribution(X).quantile_interval(),
    "sample": lambda m, X: m.conditional_distribution(X).sample(),
    "cdf": lambda m, X: m.conditional_distribution(X).cdf(0.0),
    "density": lambda m, X: m.conditional_distribution(X, y_bandwidth=0.3).pdf(0.0),
    "pit": lambda m, X: m.conditional_distribution(X).pit(np.zeros(len(X))),
    "crps": lambda m, X: m.conditional_distribution(X).crps(np.zeros(len(X))),
    "bootstrap": lambda m, X: m.bootstrap(X, n_resamples=9),
    "summary": lambda m, _: m.summary(),
}
CLASSES = {
    "predict_proba": lambda m, X: m.predict_proba(X, return_std=True),
    "predict_set": lambda m, X: m.predict_set(X),
    "predict_set, full": lambda m, X: m.predict_set(X, method="full"),
    "probability_interval": lambda m, X: m.probability_interval(X),
}
KINDS = [
    (NadarayaWatsonRegressor, "gaussian"),
    (LocalLinearRegressor, "gaussian"),
    (NadarayaWatsonRegressor, "logistic"),
    (NadarayaWatsonClassifier, "gaussian"),
]


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize(("make", "kernel"), KINDS)
@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_an_algorithm_serves_all_methods_or_is_refused_by_all(algorithm, make, kernel, columns, generator):
    X, noise = generator.uniform(size=(60, columns)), generator.normal(size=60)
    row, degree = np.zeros((1, columns)), 1 if make is LocalLinearRegressor else 0
    problem = Problem.from_arrays(row, row, [0.0], kernel=kernel, degree=degree)
    try:
        choose(problem, algorithm)
    except ValueError as error:
        refusal = str(error)
    else:
        refusal = None
    classes = make is NadarayaWatsonClassifier
    y = X[:, 0] + 0.1 * noise > 0.5 if classes else X.sum(axis=1) + 0.1 * noise
    calls, model = CLASSES if classes else CALLS, make(kernel, bandwidth=0.6).fit(X, y)
    if refusal is not None:
        with pytest.raises(ValueError, match="algorithm=") as refused:
            make(kernel, bandwidth=0.6, algorithm=algorithm).fit(X, y)
        assert str(refused.value) == refusal
        return
    model.set_params(algorithm=algorithm).fit(X, y)
    for call in calls.values():
        call(model, X[:4])
