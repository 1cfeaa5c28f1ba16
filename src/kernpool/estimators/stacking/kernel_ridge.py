r"""Kernel ridge regression with an intercept: solve, leave-one-out errors, choice of kernel and ridge.

.. math:: \hat f = \arg\min_{b,\, f} \sum_i w_i (y_i - b - f(x_i))^2 + \lambda \lVert f \rVert_K^2, \qquad
          \hat f(x) = \bar y + (k(x) - \bar k)' c

with frequency weights w, a kernel k, and bars for weighted means over rows. The
intercept is not penalised, so rows of linear weights sum to one. Let S be the diagonal matrix of the roots of the
weights, and :math:`S \tilde K S = U G U'` the eigendecomposition of the centred kernel matrix. Then

.. math:: c = S U (G + \lambda)^{-1} U' S (y - \bar y), \qquad
          S \hat y = S \bar y + U \frac{G}{G + \lambda} U' S (y - \bar y)

so one decomposition per kernel serves every ridge. The hat matrix H of the second formula gives leave-one-out
residuals without refits [1]_: with the residual e of a row and the leverage h of one unit of it, e / (1 - h), and for a
unit of rows :math:`(I - H_{gg})^{-1} e_g`. Both are exact, the intercept included.

f combines the kernels of drawn rows, the landmarks, at most `MOST_LANDMARKS` of a kernel (Nystroem [2]_): the same
formulas with features :math:`\phi(x) = R^{-T} k(x)`, where :math:`R' R` is the kernel at the landmarks. Leave-one-out
keeps the landmarks, which is exact too where all rows are.

The kernel adapts to the fit (`kernpool.estimators.stacking.ridge_kernels`), which is solved again with it, and of a few
rounds that of the least leave-one-out error is kept. Rounds are cheap: they combine the kernels of a few landmarks.

The adapted kernel has seen the outputs that leave-one-out predicts, so its errors are too small, the more so in many
columns and few rows. Leave-one-out residuals are therefore multiplied by the optimism of each output, the root of
held-out over leave-one-out squared error of fits that adapt without each fold (nested cross-validation [3]_).

References
----------
.. [1] G. Wahba, "Spline Models for Observational Data", SIAM (1990), section 4.2.
.. [2] C. Williams and M. Seeger, "Using the Nystroem method to speed up kernel machines", NIPS 13 (2001), 682-688.
.. [3] S. Varma and R. Simon, "Bias in error estimation when using cross-validation for model selection", BMC
   Bioinformatics 7 (2006), 91.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh, solve_triangular
from scipy.linalg.lapack import dpstrf

from kernpool._arrays import Array, Codes
from kernpool.bandwidth import TrainingRows, canonical_rows
from kernpool.estimators.expected_error import FEWEST, folds_of
from kernpool.estimators.stacking.ridge_kernels import RidgeKernel, Setting
from kernpool.estimators.stacking.standard_columns import centered, mean_of, spread_of

RIDGES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # in mean eigenvalues of the kernel matrix
LANDMARKS_OF_ROUNDS = 200
ROUNDS = 2  # of an adapted kernel
BLOCK_CELLS = 40_000  # of a kernel matrix at once: with the megabytes of five times as many it takes twice the time
SEARCH_ROWS = 1000  # on which the kernel is chosen
RANK = 1e-13  # of the largest eigenvalue: smaller ones are rounding


@dataclass(frozen=True, eq=False)
class Spectrum:
    r"""Eigendecomposition of the centred, weighted kernel matrix of training rows: ridge regression for every ridge.

    Parameters
    ----------
    weight : ndarray of shape (n,)
        Frequencies, positive.
    vectors, values : ndarray of shape (n, r) and (r,)
        U and G of the module docstring.
    lift : ndarray of shape (p, r)
        Coefficients of the p landmarks are the lift times :math:`(G + \lambda)^{-1} U' S (y - \bar y)`.
    mean_kernel : ndarray of shape (p,)
        Weighted mean over rows of the kernel with each landmark.
    landmarks : ndarray of shape (p, d)
        Rows whose kernels are combined.
    """

    weight: Array
    vectors: Array
    values: Array
    lift: Array
    mean_kernel: Array
    landmarks: Array

    @classmethod
    def of(cls, kernel: RidgeKernel, rows: Array, weight: Array, landmarks: Array) -> Spectrum:
        """Decompose the kernel matrix that landmarks approximate (Nystroem), without those that others imply."""
        # A tenth of the time of eigenvectors; it ends at pivots that are rounding.
        factor, order, rank, _ = dpstrf(kernel_matrix(kernel, landmarks, landmarks))
        factor, landmarks = factor[:rank, :rank], landmarks[order[:rank] - 1]
        features = kernel_matrix(kernel, rows, landmarks)
        mean = weight @ features / weight.sum()
        features = solve_triangular(factor, features.T, trans=1, overwrite_b=True, check_finite=False).T
        features -= weight @ features / weight.sum()
        features *= np.sqrt(weight)[:, None]
        values, rotation = eigh(features.T @ features, driver="evd", overwrite_a=True, check_finite=False)
        kept = values > RANK * np.max(values, initial=0.0)
        values, rotation = values[kept], rotation[:, kept]
        size = np.sqrt(values)
        lift = solve_triangular(factor, rotation * size, check_finite=False)
        return cls(weight, features @ (rotation / size), values, lift, mean, landmarks)

    def left_out_residuals(self, value: Array, ridges: Array, group: Codes | None = None) -> Array:
        """Return residuals of rows that are left out, each alone or with its unit, of shape (ridges, n, c)."""
        root, factors = np.sqrt(self.weight)[:, None], self.values / (self.values + ridges[:, None])
        away = centered(value, self.weight)
        residual = away - self.vectors @ (factors[:, :, None] * (self.vectors.T @ (root * away))) / root
        if group is None:
            return residual / (1.0 - self.leverages(ridges))[:, :, None]
        left_out = np.empty_like(residual)
        order = np.argsort(group, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
            some = self.vectors[rows]
            for number, factor in enumerate(factors):
                hat = (some * factor) @ some.T + root[rows] * root[rows].T / self.weight.sum()
                own = np.linalg.solve(np.eye(len(rows)) - hat, root[rows] * residual[number, rows])
                left_out[number, rows] = own / root[rows]
        return left_out

    def leverages(self, ridges: Array) -> Array:
        """Return the derivative of each fitted value by the output of one unit of its row, of shape (ridges, n)."""
        factors = self.values / (self.values + ridges[:, None])
        blocks = [factors @ (self.vectors[rows] ** 2).T for rows in blocks_of(len(self.weight))]
        of_row = np.hstack(blocks) + self.weight / self.weight.sum()
        return np.asarray(of_row / np.maximum(self.weight, 1.0))

    def coefficients(self, value: Array, ridge: float) -> Array:
        """Return the coefficients of the landmarks for outputs of shape (n, c)."""
        away = np.sqrt(self.weight)[:, None] * centered(value, self.weight)
        return self.lift @ ((self.vectors.T @ away) / (self.values + ridge)[:, None])

    def linear_weights(self, kernel: Array, ridge: float) -> Array:
        """Return the matrix that maps outputs to centred kernels (m, p) times `coefficients`, of shape (m, n)."""
        # From the left: coefficients of every row, (p, n), cost p/m times as much.
        found = kernel @ (self.lift / (self.values + ridge)) @ self.vectors.T
        found *= np.sqrt(self.weight)
        found -= found.sum(axis=1, keepdims=True) * (self.weight / self.weight.sum())
        return np.asarray(found)


def blocks_of(rows: int, columns: int = 200) -> Iterator[slice]:
    """Yield blocks of rows of a matrix that are small enough for the cache."""
    step = BLOCK_CELLS // (columns + 1) + 1
    return (slice(start, start + step) for start in range(0, rows, step))


def kernel_matrix(kernel: RidgeKernel, points: Array, others: Array) -> Array:
    """Return the kernel between two sets of rows, of shape (m, n), computed in blocks."""
    found = np.empty((len(points), len(others)))
    for rows in blocks_of(*found.shape):
        found[rows] = kernel.at(points[rows], others)
    return found


@dataclass(frozen=True, eq=False)
class KernelRidge:
    r"""Kernel ridge regression of several outputs, fitted to weighted rows.

    Parameters
    ----------
    kernel : RidgeKernel
        The kernel.
    ridge : float
        Penalty :math:`\lambda`, in the unit of the weights.
    spectrum : Spectrum
        Of the kernel matrix of the rows.
    center, unit : ndarray of shape (c,)
        Weighted mean and standard deviation of the outputs; the unit is one where an output is constant.
    coefficients : ndarray of shape (p, c)
        Of the landmarks.
    left_out : ndarray of shape (n, c)
        Predictions of the rows, each left out with its unit, their residuals multiplied by the optimism.
    error : float
        Weighted mean of squared leave-one-out residuals, each output in its standard deviations, summed over outputs:
        kernel and ridge are those of the least. Without the optimism.
    optimism : ndarray of shape (c,)
        Held-out over leave-one-out root mean squared error of fits with an adapted kernel, at least one.
    """

    kernel: RidgeKernel
    ridge: float
    spectrum: Spectrum
    center: Array
    unit: Array
    coefficients: Array
    left_out: Array
    error: float
    optimism: Array

    def with_optimism(self, value: Array, optimism: Array) -> KernelRidge:
        """Return the fit to outputs (n, c) with leave-one-out residuals multiplied by the optimism of each output."""
        return replace(self, left_out=value - optimism * (value - self.left_out), optimism=optimism)

    def _centered_kernel(self, columns: Array) -> Array:
        return self.kernel.at(columns, self.spectrum.landmarks) - self.spectrum.mean_kernel

    def predict(self, columns: Array) -> Array:
        """Predict at rows of standardised columns, of shape (m, d)."""
        found = np.empty((len(columns), len(self.center)))
        for rows in blocks_of(len(columns)):
            found[rows] = self.center + self._centered_kernel(columns[rows]) @ self.coefficients
        return found

    def weights(self, columns: Array) -> Array:
        """Return the linear weight of the output of every training row in each prediction, of shape (m, n)."""
        weight = self.spectrum.weight
        own = self.spectrum.linear_weights(self._centered_kernel(columns), self.ridge)
        return np.asarray(own + weight / weight.sum())


def fit_kernel_ridge(kernels: Sequence[RidgeKernel], rows: TrainingRows, landmarks: Array | None = None) -> KernelRidge:
    """Fit kernel ridge regressions for every kernel and ridge, and return that of the least leave-one-out error.

    Parameters
    ----------
    kernels : sequence of RidgeKernel
        Which ones are tried.
    rows : TrainingRows
        Of standardised columns and positive weight; units are left out as a whole.
    landmarks : ndarray of shape (p, d), optional
        Rows whose kernels are combined; by default all.

    Returns
    -------
    KernelRidge
        Takes an eigendecomposition for each kernel.
    """
    columns, value, weight, unit = rows.X, rows.value, rows.weight, spread_of(rows.value, rows.weight)

    def fit(kernel: RidgeKernel) -> KernelRidge:
        spectrum = Spectrum.of(kernel, columns, weight, columns if landmarks is None else landmarks)
        mean = float(spectrum.values.sum() / rows.number) or 1.0
        ridges = mean * np.array(RIDGES)
        left_out = spectrum.left_out_residuals(value, ridges, rows.units.code)
        errors = mean_of(np.sum((left_out / unit) ** 2, axis=2).T, weight)
        least = np.argmin(errors)
        return KernelRidge(
            kernel, float(ridges[least]), spectrum, mean_of(value, weight), unit,
            spectrum.coefficients(value, ridges[least]), value - left_out[least], float(errors[least]),
            np.ones(value.shape[1]),
        )  # fmt: skip

    return min(map(fit, kernels), key=lambda found: found.error)


def adapt_kernel(start: RidgeKernel, rows: TrainingRows, settings: Sequence[Setting]) -> KernelRidge:
    """Fit kernel ridge regressions, each with the kernel adapted to the last one, and return the best.

    Parameters
    ----------
    start : RidgeKernel
        That of the first fit.
    rows : TrainingRows
        In canonical order, so that the landmarks do not depend on the order of the rows.
    settings : sequence of tuple
        Those of the kernel that are tried.
    """
    landmarks = rows.X[np.random.default_rng(0).permutation(len(rows.X))[:LANDMARKS_OF_ROUNDS]]

    def fit(kernel: RidgeKernel) -> KernelRidge:
        return fit_kernel_ridge([replace(kernel, setting=setting) for setting in settings], rows, landmarks)

    best = found = fit(start)
    for _ in range(ROUNDS):
        coefficients = found.coefficients / found.unit
        kernel = found.kernel.adapted(found.spectrum.landmarks, coefficients, rows.X, rows.weight)
        if kernel is None:
            break
        found = fit(kernel)
        best = found if found.error < best.error else best
    return best


def optimism_of(start: RidgeKernel, found: KernelRidge, rows: TrainingRows) -> Array:
    """Return held-out over leave-one-out root mean squared error of each output, at least one, of shape (c,).

    Parameters
    ----------
    start : RidgeKernel
        From which fits without each fold adapt, with the setting of the one that was found.
    found : KernelRidge
        Of `adapt_kernel`.
    rows : TrainingRows
        Its rows. Fewer than four units of rows have no folds, and optimism one.
    """
    met = promised = np.zeros(rows.value.shape[1])
    if rows.units.number(rows.number) < FEWEST:
        return np.ones_like(met)
    scaled = replace(rows, value=rows.value / found.unit)
    for held in folds_of(scaled):
        some, there = np.flatnonzero(rows.weight > held), np.flatnonzero(held)
        fold = replace(scaled, weight=rows.weight - held).take(some)
        fit = adapt_kernel(start, fold, [found.kernel.setting])
        met = met + held[there] @ (scaled.value[there] - fit.predict(rows.X[there])) ** 2
        promised = promised + held.sum() * mean_of((fold.value - fit.left_out) ** 2, fold.weight)
    ratio = np.divide(met, promised, out=np.ones_like(met), where=promised > 0)
    return np.sqrt(np.maximum(ratio, 1.0))


def fit_table(
    start: RidgeKernel, rows: TrainingRows, generator: np.random.Generator | np.random.RandomState
) -> KernelRidge:
    """Fit a kernel ridge regression to any number of rows, with the kernel that adapts best.

    Beyond `SEARCH_ROWS` rows the kernel is chosen on so many drawn rows, and the ridge on all; beyond `MOST_LANDMARKS`
    rows drawn ones are landmarks.

    Parameters
    ----------
    start : RidgeKernel
        The kernel of the first fit.
    rows : TrainingRows
        Of standardised columns and positive weight.
    generator : numpy.random.Generator or RandomState
        Draws the rows.
    """
    searched = distinct = canonical_rows(rows)
    n = len(distinct.X)
    order = generator.permutation(n)
    if n > SEARCH_ROWS:
        searched = distinct.take(order[:SEARCH_ROWS])
    if searched.units.number(searched.number) < 2:  # nothing would be left
        searched = replace(searched, exclusion=None)
    best = adapt_kernel(start, searched, start.SETTINGS)
    found = fit_kernel_ridge([best.kernel], rows, distinct.X[order[: start.MOST_LANDMARKS]])
    squared = optimism_of(start, best, searched) ** 2
    share = len(searched.X) / n  # the other rows are new to the kernel
    return found.with_optimism(rows.value, np.sqrt(1.0 + share * (squared - 1.0)))
