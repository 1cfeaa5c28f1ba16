"""Which way a criterion is evaluated, and that a search says so."""

from unittest import mock

import numpy as np
import pytest

from kernpool import get_kernel
from kernpool.bandwidth.search import search
from kernpool.bandwidth.search.fast_objectives import AllPairsObjective, PairwiseObjective, choose_way
from kernpool.bandwidth.search.objective import Objective
from kernpool.core import NO_CATEGORIES, Categories
from kernpool.kernels import get_categorical_kernel
from tests.support.searches import canonical_rows, objective_of, search_bandwidth, search_log_loss


def make_objective(n, d, levels=(), kernel="gaussian", **options):
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(n, d)), generator.normal(size=(n, 1))
    code = np.column_stack([generator.integers(0, c, n) for c in levels]) if levels else None
    categories = NO_CATEGORIES
    if levels:
        categories = Categories((get_categorical_kernel("li_racine"),) * len(levels), levels)
    rows = canonical_rows(X, y, None, code)
    return objective_of(rows, "loo", categories=categories, kernel=get_kernel(kernel), **options)


@pytest.mark.parametrize(
    ("n", "d", "options", "one_factor", "make", "reason"),
    [
        (500, 1, {}, True, PairwiseObjective, "every pair of 500 rows once"),
        (500, 2, {}, False, PairwiseObjective, "every pair of 500 rows once"),
        (500, 2, {}, True, None, "a common factor of several columns"),
        (400, 1, {}, True, None, "400 rows take less time than loading"),
        (500, 1, {"kernel": "epanechnikov"}, True, None, "only for plain Gaussian means"),
        (500, 2, {"degree": 1}, False, None, "only for plain Gaussian means"),
        (500, 1, {"algorithm": "brute"}, True, None, "algorithm='brute' was asked for"),
        (200, 9, {}, False, AllPairsObjective, "all pairs of 200 rows"),
        (60, 9, {"degree": 1}, False, AllPairsObjective, "all pairs of 60 rows"),
        (40, 9, {"degree": 1}, False, None, "40 rows take less time than loading"),
        (250, 1, {"levels": (3,)}, False, None, "250 rows take less time than loading"),
        (250, 1, {"levels": (3, 20), "degree": 1}, False, AllPairsObjective, "all pairs of 250 rows"),
        (350, 1, {"levels": (3, 20), "kernel": "tricube"}, False, AllPairsObjective, "all pairs of 350 rows"),
        (600, 1, {"levels": (3,), "kernel": "tricube"}, False, None, "cells of levels, whose kernel is tricube"),
        (4097, 9, {}, False, None, "4097 rows are too many"),
    ],
)
def test_which_way_and_why(n, d, options, one_factor, make, reason):
    found = choose_way(make_objective(n, d, **options), one_factor=one_factor)
    assert found.make is make
    assert found.quick == (make is not None)
    assert reason in found.reason


@pytest.mark.parametrize(
    ("n", "d", "levels", "h", "make", "reason"),
    [
        (4200, 4, (3,), 1.0, AllPairsObjective, "all pairs of 4200 rows"),
        (4200, 4, (3,), 0.01, None, "4200 rows are too many"),  # few rows within reach
        (4200, 4, (), 1.0, None, "few numeric columns"),
        (33_000, 2, (3,), 1.0, None, "33000 rows are too many"),
    ],
)
def test_many_rows_take_a_quick_way_near_bandwidths_that_reach_most_of_them(n, d, levels, h, make, reason):
    objective = make_objective(n, d, levels, degree=1)
    near = np.concatenate([np.full(d, np.log(h)), np.full(len(levels), 0.3)])
    found = choose_way(objective, one_factor=False, near=near)
    assert found.make is make
    assert reason in found.reason


@pytest.mark.parametrize(("n", "d", "options"), [(410, 1, {}), (40, 2, {}), (180, 2, {"degree": 1})])
def test_a_search_says_which_way(n, d, options):
    objective = make_objective(n, d, **options)
    rows = objective.rows
    searched = search_bandwidth(rows.X, rows.value, kernel=get_kernel("gaussian"), **options)
    assert searched.way == choose_way(objective, one_factor=d == 1).reason
    assert searched.way in str(searched)


@pytest.mark.parametrize(
    ("n", "first", "way"),
    [
        (450, 2048, "all pairs of 450 rows in blocks, by compiled loops"),
        (450, 410, "all pairs of 410 rows in blocks, by compiled loops"),
        (60, 2048, "by the engine: 60 rows take less time than loading compiled loops"),
    ],
)
def test_a_search_for_probabilities_says_which_way(monkeypatch, n, first, way):
    monkeypatch.setattr(search, "MOST_ROWS_FOR_GRID", first)
    X, label = np.random.default_rng(0).normal(size=(n, 1)), np.eye(2)[np.arange(n) % 2]
    with count_evaluations(AllPairsObjective) as of_all_pairs, count_evaluations(Objective) as by_engine:
        found = search_log_loss(X, label, common_factor=True, kernel=get_kernel("gaussian"))
    assert found.way == way
    assert of_all_pairs.called == way.startswith("all pairs")
    assert by_engine.called == way.startswith("by the engine")


def count_evaluations(of):
    return mock.patch.object(of, "evaluate", autospec=True, side_effect=of.evaluate)
