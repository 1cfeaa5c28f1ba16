"""Searches over levels find what a dense evaluation of the criterion has as its least value.

A pair counts a factor for each column whose levels differ, so that every sum is a polynomial of the two factors: four
tables for each bandwidth, of the pairs that differ in neither column, one, the other, or both. A place on a fine net of
factors costs a pass over rows, and the least value is found without the search and without the engine.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize, minimize_scalar

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor


def six_by_twelve(n=1200):
    """One number and 72 cells of levels."""
    generator = np.random.default_rng(1)
    x, six, twelve = generator.uniform(size=n), generator.integers(0, 6, n), generator.integers(0, 12, n)
    y = np.sin(6 * x) + 0.3 * six + 0.1 * twelve + 0.4 * generator.normal(size=n)
    return x, np.stack([six, twelve]), y


class Dense:
    """A criterion from tables of all pairs, for a number and two factors."""

    def __init__(self, x, levels, y, criterion, degree):
        self.y, self.criterion, self.degree = y, criterion, degree
        self.difference = x[None, :] - x[:, None]
        apart = levels[:, :, None] != levels[:, None, :]
        self.classes = [~apart[0] & ~apart[1], apart[0] & ~apart[1], ~apart[0] & apart[1], apart[0] & apart[1]]

    def at_bandwidth(self, h):
        """Return the criterion of factors at a bandwidth, a function of both."""
        t = self.difference / h
        kernel = np.exp(-0.5 * t**2)
        if self.criterion == "loo":
            np.fill_diagonal(kernel, 0.0)
        sums = []
        for members in self.classes:
            weight = kernel * members
            moments = [weight.sum(1), weight @ self.y]
            if self.degree:
                tilted = weight * t
                moments += [tilted.sum(1), tilted @ self.y, (tilted * t).sum(1)]
            sums.append(moments)
        sums = np.array(sums)
        return lambda factors: self.judge(sums, *factors)

    def judge(self, sums, a, b):
        """Return the criterion from the sums of the four classes of pairs."""
        sums = np.einsum("k,kmi->mi", [1.0, a, b, a * b], sums)
        if self.degree:
            # About the mean of the offsets: no determinant of large moments.
            mean, spread = sums[2] / sums[0], sums[4] / sums[0] - (sums[2] / sums[0]) ** 2
            slope = (sums[3] / sums[0] - mean * sums[1] / sums[0]) / spread
            fit, own = sums[1] / sums[0] - slope * mean, (1 + mean**2 / spread) / sums[0]
        else:
            fit, own = sums[1] / sums[0], 1 / sums[0]
        residual, n = self.y - fit, len(self.y)
        if self.criterion == "loo":
            return np.mean(residual**2)
        share = np.clip(2 * own - 1, 0, 1) if self.degree else np.zeros(n)
        step, bound = 3 * share**2 - 2 * share**3, 2 * np.std(self.y) * n / (n - 1)
        counted = residual * np.maximum(1 - own, 1e-11) ** -step
        counted = (1 - step) * counted + step * counted / np.sqrt(1 + (counted / bound) ** 2)
        free = n - own.sum() - 2
        return np.log(np.mean(counted**2)) + (n + own.sum()) / free if free > 0 else np.inf

    def least_at(self, h, start):
        """Return the least value over factors at a bandwidth."""
        of = self.at_bandwidth(h)
        options = {"xatol": 1e-9, "fatol": 1e-15, "maxiter": 400}
        return minimize(of, start, method="Nelder-Mead", bounds=[(0, 1)] * 2, options=options).fun

    def least(self):
        """Return the least value over bandwidths and factors."""
        net = [(a, b) for a in np.linspace(0, 1, 15) ** 2 for b in np.linspace(0, 1, 15) ** 2]
        on_net = []
        for h in np.geomspace(0.01, 30.0, 33):
            of = self.at_bandwidth(h)
            with np.errstate(divide="ignore", invalid="ignore"):  # a cell of one row alone, without the others
                heights = np.nan_to_num([of(factors) for factors in net], nan=np.inf)
            on_net.append((heights.min(), h, net[int(heights.argmin())]))
        found = []
        for _, h, near in sorted(on_net)[:3]:
            # The valley of factors is followed from the net's place; bandwidths by Brent.
            alone = minimize_scalar(
                lambda log_h, near=near: self.least_at(np.exp(log_h), near),
                bounds=(np.log(h) - 0.3, np.log(h) + 0.3),
                method="bounded",
                options={"xatol": 1e-7},
            )
            found.append(alone.fun)
        return min(found)


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["loo", "aicc"])
@pytest.mark.parametrize("degree", [0, 1])
def test_a_search_over_72_cells_ends_at_the_least_value_of_a_dense_criterion(criterion, degree):
    x, levels, y = six_by_twelve()
    X = pd.DataFrame({"x": x, "six": pd.Categorical(levels[0]), "twelve": pd.Categorical(levels[1])})
    model = (NadarayaWatsonRegressor, LocalLinearRegressor)[degree](bandwidth=criterion).fit(X, y)
    found, dense = model.bandwidth_search_, Dense(x, levels, y, criterion, degree)
    # Aitchison and Aitken: 1 - s for equal levels, s / (c - 1) for each of the c - 1 others.
    factor = found.smoothing / (1 - found.smoothing) / (np.array([6, 12]) - 1)
    np.testing.assert_allclose(found.value, dense.at_bandwidth(found.bandwidth[0])(factor), rtol=1e-10)
    least = dense.least()
    assert found.value <= least + 1e-9 * abs(least)
