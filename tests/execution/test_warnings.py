"""Warnings point at the line that called the package, however deep in it they arise."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import kernpool
from kernpool import (
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    RepeatedRowsWarning,
    open_chunks,
    pool,
    pool_state,
    pooling_weights,
)
from kernpool.bandwidth import rule_of_thumb

X, Y = np.linspace(0.0, 3.0, 31)[:, None], np.sin(np.linspace(0.0, 3.0, 31))
LEVELS = np.column_stack([X[:, 0], np.arange(31) % 2])
FAR = np.array([[50.0]])
NARROW = {"kernel": "boxcar", "bandwidth": 0.02}  # a single key in a window, of which many are empty
MIXED = NARROW | {"unordered": [1], "smoothing": [0.5]}

FUNCTIONS = {
    "pool": lambda: pool([50.0], [0.0], [1.0], **NARROW),
    "pool, no key takes part": lambda: pool([0.0], [0.0], [1.0], attn_mask=[[False]], empty="mean"),
    "pool of a plane": lambda: pool(X, X, Y, degree=1, **NARROW),
    "pool on chunks": lambda: pool([50.0], [([0.0], [1.0])], **NARROW),
    "pool of a plane on chunks": lambda: pool(X, open_chunks(X, Y), degree=1, **NARROW),
    "pool on chunks, in one pass": lambda: pool([50.0, 0.1], open_chunks(X[:, 0].repeat(9), Y.repeat(9)), **NARROW),
    "pooling_weights": lambda: pooling_weights([50.0], [0.0], **NARROW),
    "finalize": lambda: pool_state([50.0], [0.0], [1.0], **NARROW).finalize(),
    "rule_of_thumb": lambda: rule_of_thumb(np.ones((5, 1))),
}


@pytest.mark.parametrize("call", list(FUNCTIONS.values()), ids=list(FUNCTIONS))
def test_warnings_of_functions(call):
    check(call)


def check(call):
    with pytest.warns(Warning) as caught:  # noqa: PT030  # which one is not the question
        call()
    lines = {line for _, _, line in call.__code__.co_lines()}
    assert {Path(warning.filename).name for warning in caught} == {Path(__file__).name}
    assert {warning.lineno for warning in caught} <= lines


MAKERS = [NadarayaWatsonRegressor, LocalLinearRegressor, NadarayaWatsonClassifier]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("mixed", [False, True])
def test_warnings_of_fitted_estimators(make, mixed):
    y = Y if make is not NadarayaWatsonClassifier else Y > 0.5
    options, rows = (MIXED, LEVELS) if mixed else (NARROW, X)
    model = make(empty="nan", **options).fit(rows, y)
    far = rows[:1] + np.array([50.0, 0.0])[: rows.shape[1]]
    check(lambda: model.attention_weights(far))
    check(lambda: model.predict_proba(far) if make is NadarayaWatsonClassifier else model.predict(far))


def test_warnings_of_local_planes():
    check(lambda: LocalLinearRegressor(**NARROW).fit(X, Y).predict(X))
    check(lambda: LocalLinearRegressor(**MIXED).fit(LEVELS, Y).predict(LEVELS))


def test_warnings_of_estimators_on_chunks():
    pairs = [(X, Y)]
    check(lambda: NadarayaWatsonRegressor(**NARROW).fit(open_chunks(pairs)).predict(FAR))
    check(lambda: LocalLinearRegressor(**NARROW).fit(open_chunks(pairs)).predict(X))
    one = [(X[:1], Y[:1])]
    check(lambda: NadarayaWatsonRegressor().fit(open_chunks(one)))


@pytest.mark.parametrize("make", MAKERS)
def test_warnings_of_fit(make):
    y = Y if make is not NadarayaWatsonClassifier else Y > 0.5
    check(lambda: make(bandwidth=1.0).fit(X, y, np.full(31, 1e3)))
    check(lambda: make(**MIXED).fit(LEVELS, y, np.full(31, 1e3)))
    check(lambda: make(bandwidth="scott").fit(np.ones_like(X), y))
    check(lambda: make().fit(np.column_stack([X, np.ones(31)]), y))
    if make is not NadarayaWatsonClassifier:
        check(lambda: make().fit(X[:1], y[:1]))


def test_warnings_that_come_by_way_of_scikit_learn():
    def same(rows):
        return rows

    steps = make_pipeline(FunctionTransformer(same), NadarayaWatsonRegressor(**NARROW)).fit(X, Y)
    check(lambda: steps.predict(FAR))
    check(lambda: steps.fit(X, Y, nadarayawatsonregressor__sample_weight=np.full(31, 1e3)))
    all_at_once = [(np.arange(31), np.arange(31))]
    check(lambda: cross_val_predict(LocalLinearRegressor(**NARROW), X, Y, cv=all_at_once))


def test_a_search_shows_a_kind_of_warning_once():
    twice = np.random.default_rng(0).permutation(np.r_[X, X, X + 0.03, X + 0.06])  # folds differ in numbers of copies
    y, counts = np.sin(twice[:, 0]), []
    for action in ("default", "always"):
        with warnings.catch_warnings(record=True, action=action) as caught:
            GridSearchCV(NadarayaWatsonRegressor(), {"kernel": ["gaussian", "laplace"]}, cv=3).fit(twice, y)
        assert {warning.category for warning in caught} == {RepeatedRowsWarning}
        counts.append(len(caught))
    assert counts[0] == 1
    assert counts[1] > 2


def test_nobody_counts_frames_by_hand():
    sources = Path(kernpool.__file__).parent.rglob("*.py")
    assert [path for path in sources if "warnings.warn" in path.read_text(encoding="utf-8")] == [
        Path(kernpool.__file__).parent / "execution" / "warnings.py"
    ]
