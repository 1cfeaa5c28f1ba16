"""Options of a bandwidth search, and its rows and columns in canonical form.

`SearchOptions` is made once and passed as it is. `canonical_rows` has one order of rows and columns, equal rows merged,
and rows of weight zero dropped. `candidates` are factors common to all bandwidths. `begin` prepares a search, and
decides between one common factor and one bandwidth per column.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool._arrays import AnyArray, Array, Index, Integers
from kernpool.bandwidth.criteria import CRITERIA, LOG_LOSS, Criterion
from kernpool.core import CARTESIAN, SINGLE_ROWS, Categories, Exclusion, Geometry, Units
from kernpool.core.input_validation import column_spread
from kernpool.core.moments import layout_of
from kernpool.execution import Progress
from kernpool.kernels import Kernel


@dataclass(frozen=True)
class SearchOptions:
    """Options of a bandwidth search, the same from the estimator's parameters to the sums over pairs.

    Parameters
    ----------
    kernel : Kernel
        As in `pool`.
    criterion : Criterion, default=CRITERIA["loo"]
        Criterion to minimise, one of `kernpool.bandwidth.CRITERIA` or `kernpool.bandwidth.LOG_LOSS`.
    degree : {0, 1, 2}, default=0
        Of the local fit; 2 with one common factor, as it has no gradients.
    standardise : bool, default=True
        Express several outputs in units of their standard deviations.
    ridge : float or None, default=0.0
        Ridge on the slopes of local planes, in keys at the query (`kernpool.core.local_fit`). None finds it, where each
        column has a bandwidth of its own and the kernel a slope; elsewhere it is zero.
    algorithm, n_jobs
        As in `pool`.
    random_state : int, RandomState or None, default=0
        For the rows that starts are found on and the points that are drawn; the default gives the same result each
        time.
    rows : int or "auto", optional
        Draw so many rows, or as many as take seconds; `search_bandwidth` searches on all that it is given.
    progress : callable, optional
        Called as ``progress(done, total)``, in queries over all passes expected.
    objective : callable, optional
        What makes the criterion of some rows, in place of one of squared errors: as `fastest_objective` does.
    """

    kernel: Kernel
    criterion: Criterion = CRITERIA["loo"]
    degree: int = 0
    standardise: bool = True
    ridge: float | None = 0.0
    algorithm: str = "auto"
    n_jobs: int | None = None
    random_state: Any = 0
    rows: int | str | None = None
    progress: Progress | None = None
    objective: Any = None


DIGITS = 9  # of a correlation: those that the order of rows does not change


@dataclass(frozen=True)
class TrainingRows:
    """Inputs, outputs and frequency weights of the training rows, and which of them are left out together.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Numeric columns.
    code : ndarray of int, shape (n, k)
        Category codes of the categorical columns.
    value : ndarray of shape (n, c)
        Outputs.
    weight : ndarray of shape (n,)
        Frequencies, positive.
    exclusion : Exclusion, optional
        Which rows are held out together; by default each is alone.
    geometry : Geometry, optional
        Which numeric columns are one point together; by default each has its own bandwidth.

    Attributes
    ----------
    total : float
        Number of rows, as the sum of frequency weights.
    number : float
        Number of rows: the sum of weights, but at least the number of distinct rows, as weights may be normalised.
    unit : float
        Weight that counts as one row: the mean weight, but at most one. It is below one if weights were normalised.
    bandwidths : int
        Number of bandwidths, at most one per column.
    bandwidth_of : ndarray of int, shape (d,)
        Which of them each column has.
    """

    X: Array
    code: Integers
    value: Array
    weight: Array
    exclusion: Exclusion | None = None
    geometry: Geometry = CARTESIAN
    total: float = field(init=False)
    number: float = field(init=False)
    unit: float = field(init=False)
    bandwidths: int = field(init=False)
    bandwidth_of: Index = field(init=False)

    def __post_init__(self) -> None:
        total = float(self.weight.sum())
        number = max(total, float(len(self.X)))
        bandwidths = len(self.geometry) or self.X.shape[1]
        bandwidth_of = self.geometry.per_column(np.arange(bandwidths))
        unit = total / max(number, 1.0)
        # Frozen afterwards.
        vars(self).update(total=total, number=number, unit=unit, bandwidths=bandwidths, bandwidth_of=bandwidth_of)

    @classmethod
    def from_arrays(
        cls,
        X: AnyArray,
        value: AnyArray,
        weight: Array | None = None,
        code: Integers | None = None,
        exclusion: Exclusion | None = None,
        geometry: Geometry = CARTESIAN,
    ) -> TrainingRows:
        """Return the rows of arrays; by default each has weight one, and there are no categorical columns."""
        code = np.zeros((len(X), 0), dtype=np.int64) if code is None else code
        weight = np.ones(len(X)) if weight is None else weight
        return cls(X, code, value.reshape(len(X), -1), weight, exclusion, geometry)

    def take(self, rows: Index) -> TrainingRows:
        """Return the training rows with these indices."""
        return replace(
            self,
            X=self.X[rows],
            code=self.code[rows],
            value=self.value[rows],
            weight=self.weight[rows],
            exclusion=None if self.exclusion is None else self.exclusion.take(rows),
        )

    @property
    def extent(self) -> Array:
        """Length of the range of each bandwidth's column; of several columns the diameter of a ball around all rows."""
        extent = np.asarray(np.ptp(self.X, axis=0))
        if not self.geometry:
            return extent
        diameter = 2.0 * np.abs(self.away).max(axis=0)
        varies, alone = self.geometry.lengths(extent) > 0, np.array(self.geometry) == 1
        return np.where(varies, np.where(alone, extent[self.geometry.starts], diameter), 0.0)

    @property
    def away(self) -> Array:
        """Difference of each row from the mean, of shape (n, bandwidths); of several columns the distance.

        It does not depend on where a circle or a globe begins.
        """
        return self.geometry.lengths(np.asarray(self.X - self.weight @ self.X / self.total))

    def draw(self, size: int, generator: Any) -> TrainingRows:
        """Draw a random sample of distinct rows, as `drawn` says."""
        return self.take(self.drawn(size, generator))

    def drawn(self, size: int, generator: Any) -> Index:
        """Draw indices of so many rows, in increasing order, and of at least two units."""
        order, unit = generator.permutation(len(self.X)), self.units.code
        if unit is not None and size > 1:
            (others,) = np.nonzero(unit[order] != unit[order[0]])
            order = np.concatenate([order[[0]], order[others[:1]], np.delete(order, [0, *others[:1]])])
        return np.sort(order[:size])

    def sums_per_pair(self, degree: int) -> int:
        """Return how many sums over the pairs of rows a fit takes: moments of inputs, and products with outputs."""
        (d, k, c) = self.X.shape[1], self.code.shape[1], self.value.shape[1]
        return int(k + (1 + layout_of(c, d, degree).width if degree else d + c))

    @property
    def units(self) -> Units:
        """Units by which rows are counted, drawn and held out."""
        return SINGLE_ROWS if self.exclusion is None else self.exclusion.units


def column_order(rows: TrainingRows) -> tuple[Index, Index]:
    """Order columns by the fraction of output variance that each explains, the largest first.

    Ties keep their order.

    A criterion with kinks or several minima ends in one that depends on which column is tried first. This order is a
    property of each column alone: of the squared correlation of the outputs with its dense ranks, or with all
    coordinates of a point, and of their variance between its categories. So it stays the same if columns are swapped,
    shifted, scaled or renamed, circles turned, or rows repeated.

    Parameters
    ----------
    rows : TrainingRows
        In any order.

    Returns
    -------
    numeric, categorical : ndarray of int
        Positions of the numeric and of the categorical columns; in their order if each kind has one column at most.

    Notes
    -----
    O(n (d log n + (d + k) c)) time.

    Examples
    --------
    >>> X = np.array([[0.0, 3.0], [1.0, 1.0], [0.0, 2.0], [1.0, 0.0]])
    >>> column_order(TrainingRows(X, np.zeros((4, 0), dtype=np.int64), -X[:, 1:] ** 2, np.ones(4)))[0]
    array([1, 0])
    """
    (d, k), share = (rows.X.shape[1], rows.code.shape[1]), rows.weight / rows.total
    if max(d, k) < 2 or not len(rows.X):
        return np.arange(d), np.arange(k)
    extent = np.ptp(rows.value, axis=0)
    value = (rows.value - rows.value.min(axis=0)) / np.where(extent > 0, extent, 1.0)
    value -= share @ value
    variance = share @ value**2
    value /= np.sqrt(np.where(variance > 0, variance, 1.0))
    explained, root = np.zeros(d + k), np.sqrt(share)[:, None]
    for a in range(rows.bandwidths if d > 1 else 0):
        (point,) = np.nonzero(rows.bandwidth_of == a)
        axes = rows.X[:, point]
        if len(point) == 1:
            axes = np.unique(axes, return_inverse=True)[1].reshape(-1, 1).astype(np.float64)
        axes = root * (axes - share @ axes)
        explained[point] = np.sum((axes @ np.linalg.lstsq(axes, root * value)[0]) ** 2)
    for a, level in enumerate(rows.code.T if k > 1 else ()):
        of_level = np.array([np.bincount(level, share * column) for column in value.T])
        weight = np.bincount(level, share)
        explained[d + a] = np.sum(of_level**2 / np.where(weight > 0, weight, 1.0))
    size = np.round(explained, DIGITS)
    return np.argsort(-size[:d], kind="stable"), np.argsort(-size[d:], kind="stable")


def distinct_rows(rows: TrainingRows) -> tuple[TrainingRows, Index]:
    """Return rows in canonical form, and for each row the index of the one that it is equal to.

    Rows of weight zero are dropped; their index is -1. Equal rows are merged, and stay two if they are not left out
    together. Rows are sorted by the columns in the order of `column_order`, outputs and exclusions last, so that
    weighted and repeated rows are equivalent; points on circles and globes by their distances from the mean first,
    which do not depend on where these begin.

    Examples
    --------
    >>> rows = TrainingRows.from_arrays(np.array([[2.0], [1.0], [2.0]]), np.array([5.0, 6.0, 5.0]))
    >>> rows, which = distinct_rows(rows)
    >>> rows.X.ravel(), rows.value.ravel(), rows.weight, which
    (array([1., 2.]), array([6., 5.]), array([1., 2.]), array([1, 0, 1]))
    """
    which = np.full(len(rows.X), -1)
    (kept,) = np.nonzero(rows.weight > 0)
    rows = replace(rows, X=rows.X + 0.0, value=rows.value + 0.0)  # -0.0 becomes 0.0
    if len(kept) < len(which):
        rows = rows.take(kept)
    numeric, categorical = column_order(rows)
    together = [] if rows.exclusion is None else [rows.exclusion.code]
    columns = [*rows.X[:, numeric].T, *rows.code[:, categorical].T, *rows.value.T, *together]
    keys = columns
    if rows.geometry:
        unit = np.where(rows.extent > 0, rows.extent, 1.0)
        keys = [*np.round(rows.away / unit, DIGITS).T[list(dict.fromkeys(rows.bandwidth_of[numeric]))], *columns]
    order = np.lexsort(keys[::-1])
    new = np.any([column[order[1:]] != column[order[:-1]] for column in columns], axis=0)
    first = np.flatnonzero(np.append(True, new))
    which[kept[order]] = np.cumsum(np.append(0, new))
    return replace(rows.take(order[first]), weight=np.add.reduceat(rows.weight[order], first)), which


def canonical_rows(rows: TrainingRows) -> TrainingRows:
    """Return rows in canonical form, as `distinct_rows` says."""
    return distinct_rows(rows)[0]


# Sums over pairs in one evaluation of a search: about five seconds for all of its evaluations on two cores, from 2 to
# 10 columns. Below twice the rows that it allows all rows are searched on.
AFFORDABLE_SUMS, FEWEST_ROWS = 6e8, 2048
# Of an evaluation that takes a third of a second on one core, so that a search ends within a minute: sums over pairs,
# and numbers that are eliminated from the equations of planes. Means of few columns leave out pairs that are far apart.
LARGEST_COST_OF_PLANES, LARGEST_COST, CROWDED = 1.6e9, 2.4e9, 50
FEWEST_OF_MANY = 100
# Of a criterion that fits each row in steps, from all pairs: with one column, and with several.
ROWS_OF_STEPS, ROWS_OF_STEPS_IN_SEVERAL = 4096, 2048


def affordable_rows(rows: TrainingRows, options: SearchOptions) -> int:
    """Return how many rows a search takes so that it ends within seconds; all rows of a single column.

    Parameters
    ----------
    rows : TrainingRows
        All rows.
    options : SearchOptions
        Degree of the fit.

    Returns
    -------
    int
        At least 2048 of up to a hundred columns, of up to 25 for planes, and fewer of more: 145 for planes in 200; for
        planes without a ridge twice the coefficients. All rows if they are less than twice as many, where that takes
        less than a minute, and if there is one column: sorted rows are summed in n log n.

    Examples
    --------
    >>> from kernpool import get_kernel
    >>> rows = TrainingRows.from_arrays(np.random.default_rng(0).random((100_000, 2)), np.zeros(100_000))
    >>> [affordable_rows(rows, SearchOptions(get_kernel("gaussian"), degree=degree)) for degree in (0, 1)]
    [14142, 8164]
    """
    n, sums = len(rows.X), rows.sums_per_pair(options.degree)
    single = np.count_nonzero(rows.extent) < 2 and not rows.code.shape[1]
    if options.objective is not None:
        most = ROWS_OF_STEPS if single else ROWS_OF_STEPS_IN_SEVERAL
        return n if n < 2 * most else most
    if single:
        return n
    most = max(FEWEST_ROWS, int(np.sqrt(AFFORDABLE_SUMS / sums)))
    d = rows.X.shape[1]
    largest = LARGEST_COST_OF_PLANES if options.degree else LARGEST_COST / (4.0 if d > CROWDED else 1.0)
    solves = options.degree * d**3  # sums n^2 + solves n is the cost of n rows
    slowest = int((np.sqrt(solves**2 + 4.0 * sums * largest) - solves) / (2 * sums))
    # With a ridge rows may be fewer than columns: from 145 and from 250 rows in 200 columns errors are 1.64 and 1.63.
    fewest = FEWEST_OF_MANY if options.criterion.regular or not options.degree else 2 * (d + 2)
    return min(n if n < 2 * most else most, max(slowest, fewest))


GRID_SIZE = 64
FINE_GRID_SIZE, FINE_GRID_ROWS = 256, 1000  # for compact kernels, whose error has kinks
STEP_ROWS = 64  # for the boxcar: up to 2016 distances, each tried
# Of the Gaussian, between equally spaced rows: with .45 and .6 the error of means of x**2 between 50 rows is 10 and 2
# times that of lines from row to row; the best bandwidths of curves without noise are .4 to .7.
STEPS, STEPS_OF_SEVERAL = 0.6, 0.45  # the second in each of several columns


def candidates(rows: TrainingRows, spread: Array, options: SearchOptions, least: Array) -> Array:
    """Return a grid of common bandwidth factors, from below the distances between rows to well above them.

    From the narrowest window of one column, or .6 of a small nearest-neighbour distance of several, to ten diameters of
    the data. Below, a window holds one row and nothing changes; above, all rows weigh the same.

    Parameters
    ----------
    rows : TrainingRows
        Of the search.
    spread : ndarray of shape (bandwidths,)
        Bandwidths at the factor one.
    options : SearchOptions
        Kernel.
    least : ndarray of shape (bandwidths,)
        The narrowest windows of each column.

    Returns
    -------
    ndarray of shape (k,)
        Equally spaced in logarithm; for the boxcar on few rows one for every step of its error; a single one if no
        column varies.
    """
    from scipy.spatial import KDTree
    from scipy.spatial.distance import pdist

    scaled = replace(rows, X=rows.X / rows.geometry.per_column(spread))
    points, diameter = np.unique(scaled.X, axis=0), float(np.linalg.norm(scaled.extent))
    if diameter == 0:  # all rows at one point: every bandwidth gives the mean
        return np.ones(1)
    kernel = options.kernel
    if kernel.profile_name == "boxcar" and len(points) <= STEP_ROWS:
        # The error is a step function of h, which changes where h passes a distance: one candidate per step.
        steps = np.unique(pdist(points, "chebyshev" if kernel.composition == "product" else "euclidean"))
        return np.concatenate([[0.5 * steps[0]], np.sqrt(steps[:-1] * steps[1:]), [2.0 * steps[-1]]])
    size = FINE_GRID_SIZE if kernel.is_compact and len(points) <= FINE_GRID_ROWS else GRID_SIZE
    if len(spread) == 1:
        low = float(least[0] / spread[0])
    else:
        low = STEPS * float(np.quantile(KDTree(points).query(points, k=2)[0][:, 1], 0.1))
    return np.asarray(np.exp(np.linspace(np.log(low), np.log(10.0 * diameter), size)))


class SearchStart(NamedTuple):
    """Training rows and columns in canonical form, ready for a bandwidth search.

    Parameters
    ----------
    rows : TrainingRows
        All rows of the search, in canonical form: with the numeric columns that vary, in canonical order, or one of
        zeros if there are none. Outputs are in units of ``scale * 2**exponent``.
    categories : Categories
        Categories of their codes.
    spread : ndarray of shape (d,)
        Spreads of their numeric columns.
    one_factor : bool
        Whether one factor on the spreads is searched for, instead of one bandwidth per column.
    numeric, categorical : ndarray of int
        Positions of the columns of `rows` among the caller's, of numeric ones by their bandwidths.
    columns : int
        Number of bandwidths of the caller's numeric columns.
    scale : ndarray of shape (c,)
        Standard deviations of the outputs, or ones.
    exponent : ndarray of int, shape (c,)
        Powers of two, with which no square leaves the range of float64, and the bits of a search do not depend on the
        unit of the outputs.
    power : int
        Of two, for the criterion in squared units of the caller's outputs; zero where outputs have units of their own.
    """

    rows: TrainingRows
    categories: Categories
    spread: Array
    one_factor: bool
    numeric: Index
    categorical: Index
    columns: int
    scale: Array
    exponent: NDArray[np.int32]
    power: int

    def restore(self, found: Array, of_constant: float) -> Array:
        """Map numbers per searched column, of shape (..., p), to the caller's columns, constant ones included.

        Parameters
        ----------
        found : ndarray of shape (..., p)
            Numbers of numeric columns, followed by those of categorical ones, if any.
        of_constant : float
            Number for numeric columns that do not vary.
        """
        searched = self.rows.bandwidths
        restored = np.full((*found.shape[:-1], self.columns + found.shape[-1] - searched), of_constant)
        restored[..., self.numeric] = found[..., : len(self.numeric)]
        if restored.shape[-1] > self.columns:
            restored[..., self.columns + self.categorical] = found[..., searched:]
        return restored


def begin(rows: TrainingRows, options: SearchOptions, categories: Categories) -> SearchStart:
    """Prepare the rows and columns of a search, and decide between a common factor and one bandwidth per column.

    Parameters
    ----------
    rows, options, categories
        As in `kernpool.bandwidth.search.search_bandwidth`.

    Raises
    ------
    ValueError
        If there are categorical columns, and only a common factor can be searched for.
    """
    factor_alone = options.degree == 2 or options.kernel.is_flat
    if categories.kernels and factor_alone:
        raise ValueError(
            "categorical columns have smoothings of their own, which cannot be searched for with "
            f"kernel={options.kernel.name!r}; use a kernel that is not flat, such as 'gaussian' or 'epanechnikov'"
        )
    rows, _ = distinct_rows(rows)
    # A table with only categorical columns has one column of zeros, which is no reason to warn.
    is_categorical = categories.kernels and not rows.X.any()
    spread = np.ones(1) if is_categorical else column_spread(rows.X, rows.weight, rows.geometry)
    (by_column, categorical), varies = column_order(rows), rows.extent > 0
    # Bandwidths by the first of their columns, and all columns of one together.
    bandwidth_of = rows.bandwidth_of[by_column]
    numeric = np.array([a for a in dict.fromkeys(bandwidth_of.tolist()) if varies[a]], dtype=np.intp)
    together = [by_column[bandwidth_of == a] for a in numeric]
    # Outputs in units of ``scale * 2**exponent``, with ranges between one half and one in units of the powers of two;
    # labels as they are.
    outputs = rows.value.shape[1] if options.objective is None else 1
    value, scale, exponent = rows.value, np.ones(outputs), np.zeros(outputs, dtype=np.int32)
    several = options.standardise and outputs > 1
    if options.criterion is not LOG_LOSS and options.objective is None:
        extent = np.ptp(value, axis=0)
        exponent = np.frexp(extent if several else np.full_like(extent, extent.max()))[1]
        value = np.ldexp(value, -exponent)
        if several:
            center = rows.weight @ value / rows.total
            scale = np.sqrt(rows.weight @ (value - center) ** 2 / rows.total)
            scale = np.where(scale > 0, scale, 1.0)
            value = value / scale
    searched = replace(rows, code=np.ascontiguousarray(rows.code[:, categorical]), value=value)
    if len(numeric):
        geometry = Geometry(map(len, together) if rows.geometry else ())
        searched = replace(searched, X=np.ascontiguousarray(rows.X[:, np.concatenate(together)]), geometry=geometry)
    else:
        searched = replace(searched, X=np.zeros((len(rows.X), 1)), geometry=CARTESIAN)
    return SearchStart(
        searched,
        categories.take(categorical) if len(categorical) > 1 else categories,
        spread[numeric] if len(numeric) else np.ones(1),
        factor_alone or (len(numeric) <= 1 and not categories.kernels),
        numeric,
        categorical,
        rows.bandwidths,
        scale,
        exponent,
        0 if several else 2 * int(exponent[0]),
    )
