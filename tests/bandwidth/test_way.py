"""Which way a criterion is evaluated, and that a search says so."""

import numpy as np
import pytest

from kernpool import get_kernel
from kernpool.bandwidth.search.fast_objectives import AllPairsObjective, PairwiseObjective
from kernpool.bandwidth.search.objective import Objective
from kernpool.bandwidth.search.search import fastest_objective
from kernpool.core import NO_CATEGORIES, Categories
from kernpool.kernels import get_categorical_kernel
from tests.support.searches import canonical_rows, objective_of, search_bandwidth


def make_objective(n, d, levels=(), kernel="gaussian", criterion="loo", **options):
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(n, d)), generator.normal(size=(n, 1))
    code = np.column_stack([generator.integers(0, c, n) for c in levels]) if levels else None
    categories = NO_CATEGORIES
    if levels:
        categories = Categories((get_categorical_kernel("li_racine"),) * len(levels), levels)
    rows = canonical_rows(X, y, None, code)
    options |= {"categories": categories, "kernel": get_kernel(kernel)}
    return objective_of(rows, criterion, kind=fastest_objective, **options)


@pytest.mark.parametrize(
    ("n", "d", "options", "make", "reason"),
    [
        (500, 1, {}, PairwiseObjective, "every pair of 500 rows once"),
        (500, 2, {}, PairwiseObjective, "every pair of 500 rows once"),
        (400, 1, {}, Objective, "400 rows take less time than loading"),
        (500, 1, {"kernel": "epanechnikov"}, Objective, "for the Gaussian, not epanechnikov"),
        (500, 2, {"degree": 1}, Objective, "no faster method for planes of few columns"),
        (500, 12, {"criterion": "log_loss"}, Objective, "no faster method for class probabilities without"),
        (500, 1, {"algorithm": "brute"}, Objective, "algorithm='brute' was asked for"),
        (500, 9, {}, PairwiseObjective, "every pair of 500 rows once"),
        (60, 9, {"degree": 1}, AllPairsObjective, "all pairs of 60 rows"),
        (40, 9, {"degree": 1}, Objective, "40 rows take less time than loading"),
        (250, 1, {"levels": (3,)}, Objective, "250 rows take less time than loading"),
        (250, 1, {"levels": (3, 20), "degree": 1}, AllPairsObjective, "all pairs of 250 rows"),
        (350, 1, {"levels": (3, 20), "criterion": "log_loss"}, AllPairsObjective, "all pairs of 350 rows"),
        (350, 1, {"levels": (3, 20), "kernel": "tricube"}, Objective, "for the Gaussian, not tricube"),
        (4097, 9, {}, Objective, "4097 rows are too many"),
    ],
)
def test_which_way_and_why(n, d, options, make, reason):
    objective = make_objective(n, d, **options)
    assert type(objective) is make
    assert reason in objective.way


@pytest.mark.parametrize(("n", "d", "options"), [(410, 1, {}), (40, 2, {}), (180, 2, {"degree": 1})])
def test_a_search_says_which_way(n, d, options):
    objective = make_objective(n, d, **options)
    rows = objective.rows
    searched = search_bandwidth(rows.X, rows.value, kernel=get_kernel("gaussian"), **options)
    assert searched.way == objective.way
