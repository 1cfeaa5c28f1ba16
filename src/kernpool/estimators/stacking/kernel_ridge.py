r"""Kernel ridge regression with an intercept: solve, leave-one-out errors, choice of length, ridge and metric.

.. math:: \hat f = \arg\min_{b,\, f} \sum_i w_i (y_i - b - f(x_i))^2 + \lambda \lVert f \rVert_K^2, \qquad
          \hat f(x) = \bar y + (k(x) - \bar k)' c

with frequency weights w, the kernel :math:`e^{-r / L}` of a length L, and bars for weighted means over rows. The
intercept is not penalised, so rows of linear weights sum to one. Let S be the diagonal matrix of the roots of the
weights, and :math:`S \tilde K S = U G U'` the eigendecomposition of the centred kernel matrix. Then

.. math:: c = S U (G + \lambda)^{-1} U' S (y - \bar y), \qquad
          S \hat y = S \bar y + U \frac{G}{G + \lambda} U' S (y - \bar y)

so one decomposition per length serves every ridge. The hat matrix H of the second formula gives leave-one-out
residuals without refits [1]_: with the residual e of a row and the leverage h of one unit of it, e / (1 - h), and for a
unit of rows :math:`(I - H_{gg})^{-1} e_g`. Both are exact, the intercept included.

Beyond `MOST_LANDMARKS` rows f is a combination of the kernels of that many drawn rows (Nystroem [2]_): the same
formulas with features :math:`\phi(x) = V' k(x)`, whose inner product is the kernel at the landmarks. Leave-one-out then
keeps the landmarks.

In many columns a few directions matter. They are those in which the fit changes, so the metric of distances is learned
by average gradient outer products (recursive feature machine [3]_): with the gradients :math:`g_i` at the rows,

.. math:: M = \Big( \sum_i w_i\, g_i g_i' \Big)^{1/2} \Big/ \operatorname{tr}, \qquad
          |x - x'|_M^2 = (x - x')' M (x - x'),

the fit is solved again in the new distances, and of a few rounds that of the least leave-one-out error is kept.

The metric has seen the outputs that leave-one-out predicts, so its errors are too small, the more so in many columns
and few rows. Leave-one-out residuals are therefore multiplied by the optimism of each output, the root of held-out over
leave-one-out squared error of fits whose metric is learned without each fold (nested cross-validation [4]_).

References
----------
.. [1] G. Wahba, "Spline Models for Observational Data", SIAM (1990), section 4.2.
.. [2] C. Williams and M. Seeger, "Using the Nystroem method to speed up kernel machines", NIPS 13 (2001), 682-688.
.. [3] A. Radhakrishnan, D. Beaglehole, P. Pandit and M. Belkin, "Mechanism for feature learning in neural networks and
   backpropagation-free machine learning models", Science 383 (2024), 1461-1467.
.. [4] S. Varma and R. Simon, "Bias in error estimation when using cross-validation for model selection", BMC
   Bioinformatics 7 (2006), 91.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, svd
from scipy.spatial.distance import cdist

from kernpool.bandwidth import TrainingRows, canonical_rows
from kernpool.core import CARTESIAN, Exclusion, Geometry
from kernpool.data.encoding import Encoding
from kernpool.estimators.expected_error import FEWEST, folds_of

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

LENGTHS = (0.5, 1.4, 4.0)  # in root mean squared distances between rows
RIDGES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # in units of k(x, x)
MOST_LANDMARKS = 2000
ROUNDS = 3  # of a new metric
BLOCK_ROWS = 1000  # of a kernel or hat matrix at once
SEARCH_ROWS = 1000  # on which metric and length are chosen: twelve decompositions, of 2000 rows half a minute
RANK = 1e-12  # of the largest eigenvalue: smaller ones of landmarks are rounding
COINCIDENT = 1e-9  # lengths; nearer rows have no direction between them


@dataclass(frozen=True)
class RidgeKernel:
    """Laplace kernel of a length.

    Examples
    --------
    >>> RidgeKernel(2.0).at(np.array([[0.0]]), np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.368]])
    """

    length: float

    def at(self, points: Array, others: Array) -> Array:
        """Return the kernel between two sets of points, of shape (m, n)."""
        return np.asarray(np.exp(-cdist(points, others) / self.length))

    def slope(self, points: Array, others: Array) -> Array:
        """Return the factor of ``x - x'`` in the gradient of k(x, x') by x; zero where the points coincide."""
        distance = cdist(points, others) / self.length
        factor = np.exp(-distance) / -(self.length**2)
        return np.asarray(np.divide(factor, distance, out=np.zeros_like(factor), where=distance > COINCIDENT))


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
    """

    weight: Array
    vectors: Array
    values: Array
    lift: Array
    mean_kernel: Array

    @classmethod
    def of_rows(cls, kernel: RidgeKernel, rows: Array, weight: Array) -> Spectrum:
        """Decompose the kernel matrix of the rows, all of which are landmarks."""
        matrix, root = kernel.at(rows, rows), np.sqrt(weight)
        mean = weight @ matrix / weight.sum()
        matrix -= mean + (mean - weight @ mean / weight.sum())[:, None]
        values, vectors = eigh(root[:, None] * matrix * root, driver="evd", overwrite_a=True, check_finite=False)
        return cls(weight, vectors, np.maximum(values, 0.0), root[:, None] * vectors, mean)

    @classmethod
    def of_landmarks(cls, kernel: RidgeKernel, rows: Array, weight: Array, landmarks: Array) -> Spectrum:
        """Decompose the kernel matrix that landmarks approximate (Nystroem)."""
        values, vectors = _positive_part(kernel.at(landmarks, landmarks))
        to_features = vectors / np.sqrt(values)
        mean, features = np.zeros(len(landmarks)), np.empty((len(rows), len(values)))
        for block in blocks_of(len(rows)):
            similarity = kernel.at(rows[block], landmarks)
            mean += weight[block] @ similarity / weight.sum()
            features[block] = similarity @ to_features
        features -= weight @ features / weight.sum()
        features *= np.sqrt(weight)[:, None]
        values, rotation = _positive_part(features.T @ features)
        size = np.sqrt(values)
        return cls(weight, features @ (rotation / size), values, to_features @ (rotation * size), mean)

    def left_out_residuals(self, value: Array, ridge: float, group: Codes | None = None) -> Array:
        """Return residuals of rows that are left out, each alone or with its unit, of shape (n, c)."""
        root, factor = np.sqrt(self.weight)[:, None], self.values / (self.values + ridge)
        away = centered(value, self.weight)
        residual = away - self.vectors @ (factor[:, None] * (self.vectors.T @ (root * away))) / root
        if group is None:
            return np.asarray(residual / (1.0 - self.leverage(ridge))[:, None])
        left_out = np.empty_like(residual)
        order = np.argsort(group, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
            some = self.vectors[rows]
            hat = (some * factor) @ some.T + root[rows] * root[rows].T / self.weight.sum()
            left_out[rows] = np.linalg.solve(np.eye(len(rows)) - hat, root[rows] * residual[rows]) / root[rows]
        return left_out

    def leverage(self, ridge: float) -> Array:
        """Return the derivative of each fitted value by the output of one unit of its row, of shape (n,)."""
        factor = self.values / (self.values + ridge)
        of_row = np.einsum("ij,ij,j->i", self.vectors, self.vectors, factor) + self.weight / self.weight.sum()
        return np.asarray(of_row / np.maximum(self.weight, 1.0))

    def coefficients(self, value: Array, ridge: float) -> Array:
        """Return the coefficients of the landmarks for outputs of shape (n, c)."""
        away = np.sqrt(self.weight)[:, None] * centered(value, self.weight)
        return np.asarray(self.lift @ ((self.vectors.T @ away) / (self.values + ridge)[:, None]))

    def linear_weights(self, kernel: Array, ridge: float) -> Array:
        """Return the matrix that maps outputs to centred kernels (m, p) times `coefficients`, of shape (m, n)."""
        # From the left: coefficients of every row, (p, n), cost p/m times as much.
        found = kernel @ (self.lift / (self.values + ridge)) @ self.vectors.T
        found *= np.sqrt(self.weight)
        found -= found.sum(axis=1, keepdims=True) * (self.weight / self.weight.sum())
        return np.asarray(found)


def blocks_of(rows: int) -> Iterator[slice]:
    """Yield blocks of rows, so that no kernel of all rows with the landmarks is held."""
    return (slice(start, start + BLOCK_ROWS) for start in range(0, rows, BLOCK_ROWS))


def _positive_part(matrix: Array) -> tuple[Array, Array]:
    """Return the eigenvalues of a matrix that are positive beyond rounding, and their eigenvectors."""
    values, vectors = eigh(matrix, driver="evd", overwrite_a=True, check_finite=False)
    kept = values > RANK * values[-1]
    return values[kept], vectors[:, kept]


def mean_of(value: Array, weight: Array) -> Array:
    """Return the weighted mean of rows, summed from the first one, so that the mean of equal rows is exact."""
    return np.asarray(value[0] + weight @ (value - value[0]) / weight.sum())


def spread_of(value: Array, weight: Array) -> Array:
    """Return the weighted standard deviation of each column; one for columns that are constant."""
    away = centered(value, weight)
    largest = np.max(np.abs(away), axis=0, initial=0.0)
    largest = np.where(largest > 0, largest, 1.0)  # whose squares neither overflow nor underflow
    spread = np.sqrt(weight @ (away / largest) ** 2 / weight.sum())
    return np.asarray(np.where(spread > 0, spread, 1.0) * largest)


def centered(value: Array, weight: Array) -> Array:
    """Return rows minus their weighted mean."""
    return np.asarray(value - mean_of(value, weight))


@dataclass(frozen=True, eq=False)
class StandardColumns:
    """Columns of a table as a matrix: numbers in standard deviations from their mean, categories as 0 and 1.

    Parameters
    ----------
    encoding : Encoding
        Of the table: which columns are pooled, and the categories.
    center, spread : ndarray of shape (d,)
        Weighted means and standard deviations of the pooled columns.

    Examples
    --------
    >>> encoding = Encoding(None, ("numeric", "unordered"), (("a", "b"),), (None,))
    >>> columns = StandardColumns.of(np.array([[1.0], [3.0]]), np.ones(2), encoding)
    >>> columns.matrix(np.array([[5.0], [2.0]]), np.array([[1], [-1]]))
    array([[3., 0., 1.],
           [0., 0., 0.]])
    """

    encoding: Encoding
    center: Array
    spread: Array

    @classmethod
    def of(cls, key: NDArray[np.floating], weight: Array, encoding: Encoding) -> StandardColumns:
        """Measure the numeric columns of weighted rows."""
        numbers: Array = encoding.pooled(key).astype(np.float64)
        spread = np.where(np.ptp(numbers, axis=0) > 0, spread_of(numbers, weight), 0.0)
        spread = Geometry(encoding.sizes).evened(spread)
        spread = np.where(spread > 0, spread, np.inf)
        return cls(encoding, mean_of(numbers, weight), spread)

    @property
    def geometry(self) -> Geometry:
        """Which columns of `matrix` are one point together."""
        sizes = self.encoding.sizes
        return Geometry((*sizes, *[1] * sum(map(len, self.encoding.levels)))) if sizes else CARTESIAN

    def matrix(self, key: NDArray[np.floating], code: Codes | None) -> Array:
        """Return the columns of given rows; a constant column is zero, and an unseen category is none of the others."""
        parts = [(self.encoding.pooled(key) - self.center) / self.spread]
        for column, levels in zip([] if code is None else code.T, self.encoding.levels, strict=True):
            parts.append((column[:, None] == np.arange(len(levels))).astype(np.float64))
        return np.hstack(parts)


@dataclass(frozen=True, eq=False)
class KernelRidge:
    r"""Kernel ridge regression of several outputs, fitted to weighted rows.

    Parameters
    ----------
    kernel : RidgeKernel
        Kernel and length.
    ridge : float
        Penalty :math:`\lambda`, in the unit of the weights.
    transform : ndarray of shape (d, k)
        Linear map T before distances are taken: the metric is :math:`M = T T'`.
    landmarks : ndarray of shape (p, k)
        Transformed rows whose kernels are combined.
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
        length, ridge and metric are those of the least. Without the optimism.
    optimism : ndarray of shape (c,)
        Held-out over leave-one-out root mean squared error of fits with a learned metric, at least one; one where the
        metric is not learned.
    """

    kernel: RidgeKernel
    ridge: float
    transform: Array
    landmarks: Array
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

    @property
    def metric(self) -> Array:
        """The matrix M of distances :math:`(x - x')' M (x - x')`, of shape (d, d); its trace is one."""
        return np.asarray(self.transform @ self.transform.T)

    def _centered_kernel(self, columns: Array) -> Array:
        return self.kernel.at(columns @ self.transform, self.landmarks) - self.spectrum.mean_kernel

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

    def gradients(self, columns: Array) -> Array:
        """Return the gradients of the predictions by the columns, of shape (m, d, c)."""
        points = columns @ self.transform
        slope, found = self.kernel.slope(points, self.landmarks), np.empty((*columns.shape, len(self.center)))
        for output, coefficient in enumerate(self.coefficients.T):
            pull = slope * coefficient
            own = points * pull.sum(axis=1)[:, None] - pull @ self.landmarks
            found[:, :, output] = own @ self.transform.T
        return found


def distance_of(points: Array, weight: Array) -> float:
    """Return the root mean squared distance between weighted points; one if they are all the same."""
    return float(np.sqrt(2.0 * np.sum(mean_of(centered(points, weight) ** 2, weight)))) or 1.0


def kernels_of(points: Array, weight: Array, lengths: Sequence[float] = LENGTHS) -> list[RidgeKernel]:
    """Return the kernels that are tried, of lengths in units of the distances between weighted points."""
    unit = distance_of(points, weight)
    return [RidgeKernel(length * unit) for length in lengths]


def fit_kernel_ridge(
    kernels: Sequence[RidgeKernel],
    columns: Array,
    value: Array,
    weight: Array,
    group: Codes | None = None,
    *,
    transform: Array,
    landmarks: NDArray[np.intp] | None = None,
) -> KernelRidge:
    """Fit kernel ridge regressions for every kernel and ridge, and return that of the least leave-one-out error.

    Parameters
    ----------
    kernels : sequence of RidgeKernel
        Which ones are tried.
    columns : ndarray of shape (n, d)
        Standardised columns.
    value : ndarray of shape (n, c)
        Outputs.
    weight : ndarray of shape (n,)
        Frequencies, positive.
    group : ndarray of int64, shape (n,), optional
        Number of the unit of each row, which is left out as a whole then.
    transform : ndarray of shape (d, k)
        Linear map before distances are taken.
    landmarks : ndarray of int, optional
        Which rows are landmarks; by default all.

    Returns
    -------
    KernelRidge
        Takes an eigendecomposition for each kernel.
    """
    points, unit = columns @ transform, spread_of(value, weight)
    one = TrainingRows.from_arrays(columns, value, weight).unit  # below one if weights are normalised
    some = points if landmarks is None else points[landmarks]
    best: KernelRidge | None = None
    for kernel in kernels:
        if landmarks is None:
            spectrum = Spectrum.of_rows(kernel, points, weight)
        else:
            spectrum = Spectrum.of_landmarks(kernel, points, weight, some)
        for ridge in (one * ridge for ridge in RIDGES):
            left_out = spectrum.left_out_residuals(value, ridge, group)
            error = float(np.sum(mean_of((left_out / unit) ** 2, weight)))
            if best is None or error < best.error:
                best = KernelRidge(
                    kernel, ridge, transform, some, spectrum, mean_of(value, weight), unit, np.empty(0),
                    value - left_out, error, np.ones(value.shape[1]),
                )  # fmt: skip
    assert best is not None, "there are kernels to choose from"
    return replace(best, coefficients=best.spectrum.coefficients(value, best.ridge))


def metric_of(ridge: KernelRidge, columns: Array, value: Array, weight: Array) -> Array | None:
    """Return a linear map T with the metric :math:`T T'` of the average gradient outer product; None for a flat fit.

    Parameters
    ----------
    ridge : KernelRidge
        The fit.
    columns, value, weight : ndarray
        Rows; outputs count in their standard deviations.

    Returns
    -------
    ndarray of shape (d, k)
        Its columns are the directions in which the fit changes, at most d and at most as many as gradients.
    """
    gradients = ridge.gradients(columns) / spread_of(value, weight) * np.sqrt(weight)[:, None, None]
    stacked = np.moveaxis(gradients, 2, 1).reshape(-1, columns.shape[1])
    _, size, directions = svd(stacked, full_matrices=False, check_finite=False)
    total = size.sum()
    return np.asarray(directions.T * np.sqrt(size / total)) if total > 0 else None


def fit_metric_and_ridge(
    columns: Array,
    value: Array,
    weight: Array,
    group: Codes | None = None,
    *,
    rounds: int = ROUNDS,
    lengths: Sequence[float] = LENGTHS,
) -> KernelRidge:
    """Fit a kernel ridge regression, choosing metric, length and ridge by the leave-one-out error.

    Parameters
    ----------
    columns, value, weight, group
        As of `fit_kernel_ridge`.
    rounds : int, default=3
        How often the metric is learned from the last fit; with zero, or of a single column, it is that of the
        standardised columns.
    lengths : sequence of float
        Lengths that are tried, in root mean squared distances between rows.
    """

    def fit(transform: Array) -> KernelRidge:
        kernels = kernels_of(columns @ transform, weight, lengths)
        return fit_kernel_ridge(kernels, columns, value, weight, group, transform=transform)

    d = columns.shape[1]
    best = found = fit(np.eye(d) / np.sqrt(d))
    for _ in range(rounds if d > 1 else 0):
        transform = metric_of(found, columns, value, weight)
        if transform is None:
            break
        found = fit(transform)
        best = found if found.error < best.error else best
    return best


def metric_optimism(
    found: KernelRidge,
    columns: Array,
    value: Array,
    weight: Array,
    group: Codes | None = None,
    geometry: Geometry = CARTESIAN,
) -> Array:
    """Return held-out over leave-one-out root mean squared error of each output, at least one, of shape (c,).

    Parameters
    ----------
    found : KernelRidge
        Of `fit_metric_and_ridge`. Fits without each fold learn a metric at its length, in units of distances, and
        choose their ridge.
    columns, value, weight, group
        The rows of the fit. Fewer than four units of rows have no folds, and optimism one.
    geometry : Geometry, optional
        Of the columns: folds do not depend on where a circle begins.
    """
    exclusion = None if group is None else Exclusion(group)
    rows = canonical_rows(
        TrainingRows.from_arrays(columns, value / found.unit, weight, exclusion=exclusion, geometry=geometry)
    )
    if rows.units.number(rows.number) < FEWEST:
        return np.ones(value.shape[1])
    length = found.kernel.length / distance_of(columns @ found.transform, weight)
    met = promised = np.zeros(value.shape[1])
    for held in folds_of(rows):
        some, there = np.flatnonzero(rows.weight > held), np.flatnonzero(held)
        fold = replace(rows, weight=rows.weight - held).take(some)
        fit = fit_metric_and_ridge(fold.X, fold.value, fold.weight, fold.units.code, lengths=(length,))
        met = met + held[there] @ (rows.value[there] - fit.predict(rows.X[there])) ** 2
        promised = promised + held.sum() * mean_of((fold.value - fit.left_out) ** 2, fold.weight)
    ratio = np.divide(met, promised, out=np.ones_like(met), where=promised > 0)
    return np.asarray(np.sqrt(np.maximum(ratio, 1.0)))


def fit_table(
    columns: Array,
    value: Array,
    weight: Array,
    group: Codes | None = None,
    geometry: Geometry = CARTESIAN,
    *,
    learn_metric: bool = True,
    generator: np.random.Generator | np.random.RandomState,
) -> KernelRidge:
    """Fit a kernel ridge regression to any number of rows.

    Beyond `SEARCH_ROWS` rows metric and length are chosen on so many drawn rows, and the ridge on all; beyond
    `MOST_LANDMARKS` rows drawn ones are landmarks.

    Parameters
    ----------
    columns, value, weight, group, geometry
        As of `metric_optimism`.
    learn_metric : bool, default=True
        Whether to learn the metric.
    generator : numpy.random.Generator or RandomState
        Draws the rows.
    """
    n, size = len(columns), min(len(columns), SEARCH_ROWS)
    order = generator.permutation(n) if n > size else np.arange(n)
    some, landmarks = order[:size], order[:MOST_LANDMARKS]
    own = None if group is None or np.ptp(group[some]) == 0 else group[some]
    searched = columns[some], value[some], weight[some], own
    best = found = fit_metric_and_ridge(*searched, rounds=ROUNDS if learn_metric else 0)
    if n > size:
        found = fit_kernel_ridge(
            [best.kernel], columns, value, weight, group, transform=best.transform,
            landmarks=None if n <= MOST_LANDMARKS else landmarks,
        )  # fmt: skip
    if not learn_metric or columns.shape[1] == 1:
        return found
    squared = metric_optimism(best, *searched, geometry) ** 2
    return found.with_optimism(value, np.sqrt(1.0 + (squared - 1.0) * size / n))  # the other rows are new to the metric
