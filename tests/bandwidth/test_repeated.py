"""Rows that are copies of others: which tables have them, what is said, and that rounded tables have none."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris

from kernpool import (
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    RepeatedRowsWarning,
    open_chunks,
)
from kernpool.bandwidth import TrainingRows, repeated_rows
from kernpool.bandwidth.repeated_rows import count_copies
from kernpool.core import Exclusion
from tests.support.commands import kernpool


def curve(n=120, columns=1, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, columns))
    return X, np.cos(2.0 * X[:, 0]) + 0.3 * random.normal(size=n)


def again(table, share):
    return np.concatenate([table, table[: int(share * len(table))]])


def copies(X, value, weight=None, group=None):
    return count_copies(
        TrainingRows.from_arrays(X, value, exclusion=None if group is None else Exclusion(group)), weight
    )


@pytest.mark.parametrize("share", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("columns", [1, 4])
def test_copies_are_counted_whatever_the_order(columns, share, generator):
    X, y = (again(part, share) for part in curve(columns=columns))
    order = generator.permutation(len(y))
    assert copies(X[order], y[order]) == int(share * 120)
    assert copies(X[order], np.column_stack([y, -y])[order]) == int(share * 120)
    assert copies(X[order], y[order] + 0.1 * np.arange(len(y))) == 0  # other outputs at the same inputs


@pytest.mark.parametrize("load", [load_iris, load_digits])
def test_tables_of_classes_exported_twice(load):
    X, label = load(return_X_y=True)
    value = np.eye(10)[label]
    assert copies(X, value) == 0  # a row of iris is there twice
    if load is load_iris:  # its columns are rounded to a tenth
        assert max(copies(X[:, [i, j]], value) for i in range(4) for j in range(i)) == 0
    distinct = len(np.unique(np.column_stack([X, label]), axis=0))
    assert copies(again(X, 1.0), again(value, 1.0)) == 2 * len(X) - distinct


def test_levels_make_rows_different(generator):
    X, y = (again(part, 1.0) for part in curve(60))
    code = np.repeat([[0], [1]], 60, axis=0)
    assert count_copies(TrainingRows.from_arrays(X, y, code=code)) == 0
    assert count_copies(TrainingRows.from_arrays(X, y, code=code * 0)) == 60


def test_rounded_tables_have_equal_rows_by_chance(generator):
    n = 600
    age, score = generator.integers(20, 60, n).astype(float)[:, None], generator.integers(0, 10, n).astype(float)
    assert len(np.unique(np.column_stack([age, score]), axis=0)) < 0.7 * n
    assert copies(age, score) == 0
    levels = generator.integers(0, 4, (n, 3)).astype(float)
    assert copies(levels, np.eye(2)[generator.integers(0, 2, n)]) == 0
    dose = np.repeat(generator.normal(size=60), 10)[:, None]  # a design: ten answers at each dose
    assert copies(dose, np.eye(2)[(generator.random(n) < 0.4).astype(int)]) == 0
    exact = generator.integers(0, 12, n).astype(float)  # a function of few values
    assert copies(exact[:, None], exact**2) == 0


def test_weights_are_copies():
    X, y = curve(80)
    times = np.arange(80) % 3 + 1
    expected = copies(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert expected == copies(X, y, weight=times.astype(float)) == np.sum(times - 1)
    assert copies(X, y, weight=np.full(80, 0.4)) == 0


def test_groups_that_keep_copies_together_have_none():
    X, y = (again(part, 1.0) for part in curve(80))
    together = np.tile(np.arange(80), 2)
    assert copies(X, y, group=together) == 0
    assert copies(X, y, group=np.arange(160)) == 80
    assert copies(X, y, group=np.repeat([0, 1], 80)) == 80


def test_many_rows_are_counted_as_few_are(monkeypatch, generator):
    X, y = (again(part, 0.6) for part in curve(5000))
    monkeypatch.setattr(repeated_rows, "SEEN", 500)
    assert copies(X, y) == 3000
    assert copies(X[:5000], y[:5000]) == 0
    assert copies(X, np.eye(2)[(y > 0).astype(int)]) == 3000


def as_frame(X, y):
    return pd.DataFrame({f"x{i}": column for i, column in enumerate(X.T)} | {"kind": list("ab") * (len(y) // 2)}), y


def as_arrays(X, y):
    return X, y


@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, LocalLinearRegressor])
@pytest.mark.parametrize("form", [as_arrays, as_frame])
def test_regressors_warn_at_fit(make, form):
    X, y = curve(40)
    options = {"bandwidth": 0.3} | ({"smoothing": 0.1} if form is as_frame else {})
    with pytest.warns(RepeatedRowsWarning, match=r"40 of 80 rows repeat another row.*drop duplicates.*groups=") as said:
        make(**options).fit(*form(again(X, 1.0), again(y, 1.0)))
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(**options).fit(*form(X, y))
        make(**options).fit(*form(again(X, 1.0), again(y, 1.0)), groups=np.tile(np.arange(40), 2))
        make(**options).fit(*form(X, y), sample_weight=np.full(40, 2.0))  # no search that they mislead


@pytest.mark.parametrize(
    ("make", "between"),
    [
        (NadarayaWatsonRegressor, (3.0, 3.0)),
        (NadarayaWatsonRegressor, (0.9, 1.1)),
        (LocalLinearRegressor, (3.0, 3.0)),
        (NadarayaWatsonClassifier, (3.0, 3.0)),  # parts of rows do not deceive the log loss
    ],
)
def test_weights_that_leave_rows_to_predict_themselves_warn_and_their_remedies_help(make, between, generator):
    X, y = curve(60)
    y = y > np.median(y) if make is NadarayaWatsonClassifier else y + 0.3 * generator.normal(size=60)
    w = generator.uniform(*between, 60)
    above = int((w > 1).sum())
    with pytest.warns(RepeatedRowsWarning, match=rf"{above} of 60 rows have a sample_weight above 1.*groups=") as said:
        wrong = make().fit(X, y, sample_weight=w).bandwidth_
    assert len(said) == 1
    plain = make().fit(X, y).bandwidth_
    np.testing.assert_allclose(make().fit(X, y, sample_weight=w / w.max()).bandwidth_, plain, rtol=0.5)
    make().fit(X, y, sample_weight=w, groups=np.arange(60))
    if make is not NadarayaWatsonClassifier and between[0] > 1.0:
        assert (wrong < 0.5 * plain).all()


def test_few_weights_above_one_and_tables_of_counts_do_not_warn(generator):
    X, y = curve(60)
    NadarayaWatsonRegressor().fit(X, y, sample_weight=np.where(np.arange(60) < 5, 2.0, 1.0))
    dose, outcome = np.repeat(np.arange(12.0), 2), np.tile([0.0, 1.0], 12)
    NadarayaWatsonRegressor().fit(dose[:, None], outcome, sample_weight=generator.integers(1, 9, 24) * 1.0)


def test_rows_in_chunks_warn_of_their_sample():
    X, y = (again(part, 1.0) for part in curve(40))
    with pytest.warns(RepeatedRowsWarning, match=r"40 of 80 rows repeat another row.*drop duplicates") as said:
        NadarayaWatsonRegressor().fit(open_chunks([(X[:50], y[:50]), (X[50:], y[50:])]))
    assert "groups=" not in str(said[0].message)


def test_rows_of_weight_zero_are_no_copies():
    X, y = (again(part, 1.0) for part in curve(40))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NadarayaWatsonRegressor(bandwidth=0.3).fit(X, y, sample_weight=np.repeat([1.0, 0.0], 40))


def test_the_command_line_says_so(tmp_path):
    X, y = curve(40)
    table = pd.DataFrame({"x": X[:, 0], "y": y})
    pd.concat([table, table, table]).to_csv(tmp_path / "thrice.csv", index=False)
    done = kernpool("fit", tmp_path / "thrice.csv", "--target", "y")
    assert done.returncode == 0
    assert b"80 of 120 rows repeat another row" in done.stderr
    assert b"--groups" in done.stderr
