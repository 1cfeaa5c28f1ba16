"""Model summary (effective parameters, residual sd, R2, AICc, GCV), residuals, and roles of training rows.

================================ ====================================================================================
effective parameters             tr H and tr H'H, of the hat matrix H
residual sd                      root of RSS / (W - 2 tr H + tr H'H), as locfit's ``rv``
R2                               1 - RSS / TSS
leave-one-out R2                 the same with leave-one-out predictions: an estimate for new rows
squared correlation              of outputs and fit, about the mean of y: R-squared of R's np
leave-cluster-out R2             the same with the row's whole cluster left out: an estimate for rows of new clusters
AICc, GCV                        as in `kernpool.bandwidth.criteria`
================================ ====================================================================================

The residual standard error that np prints divides by the number of rows, and is smaller.

The attention that a unit of row j receives from all other rows, with frequencies w, kernel weights K and the
leave-one-out sums of weights D_i::

    A_j = sum_{i != j} w_i K_ij / D_i

is a kernel sum again: with rows as queries, and w_i / D_i as weights of the keys. So it costs one more pass, and no
table of pairs. Where D_i underflows, because row i is far from all others, its weights are computed one by one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.criteria import CRITERIA
from kernpool.core.robust_weights import weighted_median
from kernpool.execution.text_table import ROWS, PrintedResult, frame_of, lines_of, listed, printed_table
from kernpool.execution.threads import cut, weighted_sum
from kernpool.inference.explanation import as_count
from kernpool.inference.variance.cluster_robust import Clusters
from kernpool.inference.variance.residuals import ROWS_AT_ONCE, Training, local_noise, squared_residuals
from kernpool.kernels import square
from kernpool.pooling import queries_by_width, weight_rows
from kernpool.smoother import Smoother, log_mass, value_shares
from kernpool.smoother.quadratic_forms import LinearWeights, combined, product_problem

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

FEW = 10.0  # effective rows
MOST_CLASSES = 10  # printed
AS_IF_INDEPENDENT = (
    "Leave-cluster-out is of fits without all rows of a cluster: what rows of new clusters would have. Leave-one-out\n"
    "keeps the rest of the cluster; it, residual sd, AICc and GCV take rows as independent."
)


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """Summary of one input column of a fit: bandwidth, or categorical smoothing parameter, and relevance.

    Parameters
    ----------
    name : str
        Its name, or its number.
    width : float
        Bandwidth, or smoothing of its categories.
    has_levels : bool
        Whether `width` is a smoothing.
    relevance : float or None
        Spread over bandwidth, or 1 minus smoothing over its largest value; None if no bandwidth was searched for.
    unit : str, default=""
        Unit of the bandwidth: ``"days"`` for dates and durations, otherwise empty for the unit of the column.
    """

    name: str
    width: float
    has_levels: bool
    relevance: float | None
    unit: str = ""


@dataclass(frozen=True, eq=False)
class LeftOutClusters:
    """Leave-cluster-out R2 and mean squared error of a fit, with cluster sizes.

    Parameters
    ----------
    count : int
        Number of clusters of positive weight.
    sizes : (float, float, float)
        Sum of the weights of the smallest, the median and the largest of them.
    r2 : ndarray of shape (c,)
        Leave-cluster-out R2; negative where the mean of all rows predicts better.
    error : float
        Mean squared error, summed over outputs.
    """

    count: int
    sizes: tuple[float, float, float]
    r2: Array
    error: float


@dataclass(frozen=True, eq=False)
class Summary(PrintedResult):
    r"""Summary of a fitted regressor: effective parameters, residual standard deviation, R2, AICc and GCV.

    Parameters
    ----------
    title, kernel, chosen : str
        Names of the model and its kernel, and how its bandwidths were found.
    columns : tuple of ColumnSummary
        Columns of the table.
    rows : float
        Sum of the weights.
    trace, trace_squared : float
        Traces of the hat matrix H, and of H'H.
    rss, residual_sd, r2, correlation_r2, loo_r2 : ndarray of shape (c,)
        See the table above; one per output. NaN where the fit takes all degrees of freedom, and where y is constant.
    loo_error : float
        Mean squared error of leave-one-out, summed over outputs.
    aicc, gcv : ndarray of shape (c,)
        Criteria; infinite where the fit takes all degrees of freedom.
    effective_rows : (float, float, float)
        Least, median and largest effective sample size of predictions of training rows.
    few : float
        Fraction of the rows with an effective sample size below ten.
    alone : int
        Number of rows with no other row in their window.
    clusters : LeftOutClusters or None
        Given if the fit had groups. All other numbers treat rows as independent.

    Examples
    --------
    >>> from kernpool import LocalLinearRegressor
    >>> x, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0.0, 1.1, 1.9, 3.0, 4.2, 4.8]
    >>> summary = LocalLinearRegressor(kernel="constant", bandwidth=1.0).fit(x, y).summary()
    >>> round(summary.trace, 9), summary.r2.round(4)
    (2.0, array([0.9944]))
    """

    title: str
    kernel: str
    chosen: str
    columns: tuple[ColumnSummary, ...]
    rows: float
    trace: float
    trace_squared: float
    rss: Array
    residual_sd: Array
    r2: Array
    correlation_r2: Array
    loo_r2: Array
    loo_error: float
    aicc: Array
    gcv: Array
    effective_rows: tuple[float, float, float]
    few: float
    alone: int
    clusters: LeftOutClusters | None = None

    def __str__(self) -> str:
        c, d = len(self.rss), len(self.columns)
        head = f"{self.title}: {self.rows:g} rows, {d} column{'s' * (d > 1)}, {c} output{'s' * (c > 1)}"
        lines = [head, f"kernel {self.kernel}, {self.chosen}", "", *_lines_of(self.columns)]
        low, middle, high = self.effective_rows
        facts = {
            "effective parameters": f"{self.trace:.2f} (tr H), {self.trace_squared:.2f} (tr H'H)",
            "residual sd": listed(self.residual_sd) + self._without_freedom(),
            "R2": f"{listed(self.r2)}, leave-one-out {listed(self.loo_r2)}{self._without_spread()}",
            "AICc, GCV": f"{listed(self.aicc)}; {listed(self.gcv)}",
            "leave-one-out error": f"{self.loo_error:.4g}",
            "effective rows per fit": f"{low:.3g} to {high:.3g}, median {middle:.3g}; {self.few:.1%} below {FEW:g}",
        }
        if self.alone:
            facts["rows alone in a window"] = f"{self.alone}"
        if self.clusters is not None:
            of, (least, median, most) = self.clusters, self.clusters.sizes
            facts["clusters"] = f"{of.count}, of {least:g} to {most:g} rows, median {median:g}"
            facts["leave-cluster-out"] = f"R2 {listed(of.r2)}, error {of.error:.4g}"
        lines += ["", *_indented(facts)]
        return "\n".join(lines + ([] if self.clusters is None else ["", AS_IF_INDEPENDENT]))

    def _without_freedom(self) -> str:
        taken = self.rows - 2.0 * self.trace + self.trace_squared <= 0
        return "; undefined: the fit takes all degrees of freedom" if taken or np.isnan(self.residual_sd).any() else ""

    def _without_spread(self) -> str:
        return "; undefined where y is constant" if not np.isfinite(self.r2).all() else ""


@dataclass(frozen=True, eq=False)
class ClassSummary(PrintedResult):
    """Summary of a fitted classifier: class priors, and log loss and accuracy of held-out rows.

    Parameters
    ----------
    title, kernel, chosen : str
        Names of the model and its kernel, and how its bandwidths were found.
    columns : tuple of ColumnSummary
        Columns of the table.
    rows : float
        Sum of the weights.
    priors : dict
        Fraction of the rows in each class, by its label.
    prior_share : float
        Mixing weight of the priors in every probability.
    left_out : str
        Unit held out for each prediction: ``"row"`` or ``"cluster"``.
    log_loss, accuracy : float
        Weighted means over leave-one-out, or leave-cluster-out, predictions.
    empty_windows : int
        Number of rows without another row, or without one of another cluster, in their window.

    Examples
    --------
    >>> from kernpool import NadarayaWatsonClassifier
    >>> X, y = [[0.0], [1.0], [1.5], [2.0], [5.0], [6.0]], ["low", "low", "low", "low", "high", "high"]
    >>> summary = NadarayaWatsonClassifier(bandwidth=1.0).fit(X, y).summary()
    >>> summary.accuracy, round(summary.log_loss, 3)
    (1.0, 0.085)
    """

    title: str
    kernel: str
    chosen: str
    columns: tuple[ColumnSummary, ...]
    rows: float
    priors: dict[Any, float]
    prior_share: float
    left_out: str
    log_loss: float
    accuracy: float
    empty_windows: int

    def __str__(self) -> str:
        d, shown = len(self.columns), list(self.priors.items())[:MOST_CLASSES]
        head = f"{self.title}: {self.rows:g} rows, {d} column{'s' * (d > 1)}, {len(self.priors)} classes"
        priors = ", ".join(f"{label} {fraction:.1%}" for label, fraction in shown)
        without = f"leave-{'one' if self.left_out == 'row' else 'cluster'}-out"
        facts = {
            "classes": priors + ", ..." * (len(self.priors) > len(shown)),
            "prior share": f"{self.prior_share:.3g}",
            f"{without} log loss": f"{self.log_loss:.4g}",
            f"{without} accuracy": f"{self.accuracy:.1%}",
        }
        if self.empty_windows:
            facts["rows alone in a window"] = f"{self.empty_windows}"
        lines = [head, f"kernel {self.kernel}, {self.chosen}", "", *_lines_of(self.columns), "", *_indented(facts)]
        return "\n".join(lines)


def _lines_of(columns: tuple[ColumnSummary, ...]) -> list[str]:
    """Return the lines of a printed summary that list the bandwidth and relevance of each column."""
    width = max(6, *(len(column.name) for column in columns))
    sizes = [f"{c.width:.4g}{c.unit and ' '}{c.unit}{' (smoothing)' * c.has_levels}" for c in columns]
    wide = max(9, *(len(size) for size, c in zip(sizes, columns, strict=True) if c.unit), 0)
    lines = [f"  {'column':{width}}  {'bandwidth':{wide}}  relevance"]
    for column, size in zip(columns, sizes, strict=True):
        relevance = "" if column.relevance is None else f"{column.relevance:.3g}"
        lines.append(f"  {column.name:{width}}  {size:{wide}}  {relevance}".rstrip())
    return lines


def _indented(facts: dict[str, str]) -> list[str]:
    return [f"  {line}" for line in lines_of(facts, 22)]


def summarise(
    smoother: Smoother,
    training: Training,
    title: str,
    chosen: str,
    columns: tuple[ColumnSummary, ...],
    clusters: Clusters | None = None,
) -> Summary:
    """Compute the `Summary` of a fitted regressor from its training rows.

    Parameters
    ----------
    smoother : Smoother
        The fit.
    training : Training
        Its rows, of `fit_training`.
    title, chosen, columns
        As of `Summary`.
    clusters : Clusters, optional
        From `fit_clusters`.

    Returns
    -------
    Summary
        Takes a pass over pairs of training rows, or two if `training` has no linear weights.
    """
    weight, rows = training.weight, training.rows
    own, deleted = training.value - training.fitted, training.value - training.deleted
    squared, effective = _norms(smoother, training)
    kept = weight > 0
    trace, trace_squared = training.trace, float(weighted_sum(weight[kept], squared[kept]))
    first = training.value[kept.argmax()]  # subtracted first, so that a constant output has variance zero
    mean = first + weighted_sum(weight, training.value - first) / rows
    rss, away = weighted_sum(weight, own**2), training.value - mean
    total, towards = weighted_sum(weight, away**2), training.fitted - mean
    freedom = rows - 2.0 * trace + trace_squared
    log_penalty = {name: CRITERIA[name].log_penalty for name in ("aicc", "gcv")}
    penalty = {name: 0.0 if of is None else of(trace, rows)[0] for name, of in log_penalty.items()}
    norm = np.sqrt(weighted_sum(weight, towards**2))
    with np.errstate(divide="ignore", invalid="ignore"):
        return Summary(
            title=title,
            kernel=smoother.recipe.kernel.name,
            chosen=chosen,
            columns=columns,
            rows=rows,
            trace=trace,
            trace_squared=trace_squared,
            rss=rss,
            residual_sd=np.sqrt(rss / freedom) if freedom > 0 else np.full_like(rss, math.nan),
            r2=1.0 - rss / total,
            correlation_r2=(weighted_sum(weight, away * towards) / np.sqrt(total) / norm) ** 2,
            loo_r2=1.0 - weighted_sum(weight, deleted**2) / total,
            loo_error=float(np.sum(weighted_sum(weight, deleted**2)) / rows),
            aicc=_penalised(np.log(rss / rows), penalty["aicc"]),
            gcv=np.exp(_penalised(np.log(rss / rows), penalty["gcv"])),
            effective_rows=(
                float(effective[kept].min()),
                weighted_median(effective[kept], weight[kept]),
                float(effective[kept].max()),
            ),
            few=float(weight[kept & (effective < FEW)].sum() / rows),
            alone=training.alone,
            clusters=None if clusters is None else _left_out(clusters, weight, total),
        )


def _left_out(clusters: Clusters, weight: Array, total: Array) -> LeftOutClusters:
    kept = weight > 0
    size = np.sort(np.bincount(np.unique(clusters.code[kept], return_inverse=True)[1], weight[kept]))
    squared = weighted_sum(weight, clusters.residual**2)
    return LeftOutClusters(
        count=len(size),
        sizes=(float(size[0]), float(np.median(size)), float(size[-1])),
        r2=np.asarray(1.0 - squared / total),
        error=float(squared.sum() / weight.sum()),
    )


def _norms(smoother: Smoother, training: Training) -> tuple[Array, Array]:
    """Return, for each training row, the squared norm of its fit's linear weights and the effective sample size."""
    if training.shares is None:
        share = value_shares(smoother.fit(smoother.training))
    else:
        share = LinearWeights(smoother.problem(smoother.training), smoother.factor, *training.shares)
    term = square(share.problem.similarity.kernel)
    multiplied = product_problem(share, share, term, None)
    state, n = smoother.sums(multiplied), len(share.base)
    squared, pooled = np.empty(n), np.empty(n)
    for rows in cut(n, ROWS_AT_ONCE):
        tilt = share.tilt[rows]
        some = LinearWeights(share.problem, share.factor, share.log_mass[rows], share.base[rows], tilt)
        flat = replace(some, base=np.ones_like(some.base), tilt=np.zeros_like(tilt))
        squared[rows], pooled[rows] = (
            combined(state.rows(rows), multiplied, term, each, each)[0] for each in (some, flat)
        )
    with np.errstate(divide="ignore"):
        return squared, 1.0 / pooled


def _penalised(log_mean: Array, penalty: float) -> Array:
    """Return AICc, or the logarithm of GCV; infinity if the fit uses up all degrees of freedom."""
    return log_mean + penalty if math.isfinite(penalty) else np.full_like(log_mean, math.inf)


@dataclass(frozen=True, eq=False)
class Residuals(PrintedResult):
    """Residual diagnostics of n training rows: fitted values, residuals, leverages and local noise.

    Parameters
    ----------
    fitted : ndarray of shape (n,) or (n, c)
        Fitted values. Where windows have a floor of effective rows, the window is that of the leave-one-out fit, and
        `predict` at a training row, which counts itself, may have a narrower one.
    residual : ndarray, as fitted
        Output minus leave-one-out prediction (without one unit of the row); with clusters, leave-cluster-out.
    leverage : ndarray of shape (n,)
        Diagonal of the hat matrix, for one unit of each row. Near 1 the fit passes through the row whatever its output.
    noise : ndarray, as fitted
        Local standard deviation of an observation: root of the mean of squared residuals in a window of twice the
        bandwidth.
    weight : ndarray of shape (n,)
        Frequencies.
    cluster : ndarray of int, shape (n,), or None
        Number of the cluster of each row, if the fit had groups.

    Examples
    --------
    >>> from kernpool import LocalLinearRegressor
    >>> x, y = [[0.0], [1.0], [2.0], [3.0], [9.0]], [0.0, 1.1, 1.9, 3.0, 9.1]
    >>> LocalLinearRegressor(kernel="constant", bandwidth=1.0).fit(x, y).residuals().leverage.round(3)
    array([0.38, 0.28, 0.22, 0.2 , 0.92])
    """

    fitted: Array
    residual: Array
    leverage: Array
    noise: Array
    weight: Array
    cluster: NDArray[np.int64] | None = None

    @property
    def standardized(self) -> Array:
        """Residuals in local standard deviations of an observation; infinite or NaN where there is no noise."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.residual / self.noise)

    def _columns(self) -> dict[str, Array]:
        return {"fitted": self.fitted, "residual": self.residual, "standardized": self.standardized}

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row per training row.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return frame_of(self._columns() | {"leverage": self.leverage, "noise": self.noise, "weight": self.weight})

    def __str__(self) -> str:
        columns = self._columns()
        size = np.nan_to_num(np.abs(columns["standardized"]), posinf=0.0)
        rows = []
        for i in np.argsort(-size, axis=None, kind="stable")[:ROWS]:
            at = np.unravel_index(i, size.shape)
            cells = [f"{column[at]:.4g}" for column in columns.values()]
            rows.append([*map(str, at), *cells, f"{self.leverage[at[0]]:.3g}"])
        names = ["row", "output"][: size.ndim]
        largest = f"{len(size)}, those of the largest standardized residuals below"
        return printed_table({"rows": largest}, [*names, *columns, "leverage"], rows)


def residuals(smoother: Smoother, training: Training, clusters: Clusters | None = None) -> Residuals:
    """Compute fitted values, held-out residuals, leverages and local noise at the training rows of a fit.

    Parameters
    ----------
    smoother : Smoother
        The fit.
    training : Training
        Its rows, of `fit_training`.
    clusters : Clusters, optional
        From `fit_clusters`.

    Returns
    -------
    Residuals
        Arrays of shape (n, c). Takes two passes over pairs of rows.

    Raises
    ------
    ValueError
        If the fit takes all degrees of freedom.
    """
    if clusters is None:
        residual, squared = training.value - training.deleted, squared_residuals(smoother, training)
    else:
        residual, squared = clusters.residual, clusters.residual**2
    noise = local_noise(smoother, smoother.training, squared)
    # Copies: the model keeps these arrays for its standard errors, and callers may modify residuals.
    return Residuals(
        training.fitted.copy(),
        np.array(residual),
        training.leverage.copy(),
        np.sqrt(noise.variance),
        training.weight.copy(),
        None if clusters is None else clusters.code.copy(),
    )


FAR = 300.0  # log of a sum of weights, below that of a row at distance zero, beyond which weights are kept apart
ISOLATED = 0.1  # attention, of that of an average row, below which a row is hardly used


def attention_received(smoother: Smoother, code: Integers | None = None) -> Array:
    """Return the attention that one unit of each row receives in leave-one-out predictions of the other rows.

    Parameters
    ----------
    smoother : Smoother
        Its rows in memory; only kernel weights matter, not the degree.
    code : ndarray of int64, shape (n,), optional
        Clusters: then of predictions of the rows of all other clusters.

    Returns
    -------
    ndarray of shape (n,)
        One is that of an average row. Two passes over pairs of rows.
    """
    smoother = smoother.of_degree(0).with_values(np.zeros((len(smoother.weight), 1)))
    problem, weight = smoother.left_out_problem(code), smoother.weight
    mass = log_mass(smoother.sums(problem))
    peak = problem.similarity.log_peak
    near = (weight > 0) & (mass > peak - FAR)
    attention = np.zeros(len(weight))
    if near.any():
        unit = float(mass[near].min())
        share = np.where(near, weight * np.exp(unit - np.where(near, mass, unit)), 0.0)
        largest = float(share.max())  # so that the largest weight is one unit, and a row is left out as a whole
        received = replace(problem, key_weight=share / largest, weight_unit=1.0, prepared=None)
        for rows, part in queries_by_width(received):  # these are keys now: the window is that of the row that attends
            state = smoother.sums(replace(received, similarity=part.similarity).block(slice(None), rows))
            attention += np.where(state.denominator > 0, largest * np.exp(log_mass(state) - unit), 0.0)
    (far,) = np.nonzero((weight > 0) & ~near & (mass > -np.inf))
    for rows, alpha in weight_rows(problem.block(far)) if far.size else ():
        alpha[np.arange(len(alpha)), far[rows]] = 0.0
        attention += weight[far[rows]] @ np.divide(alpha, weight, where=weight > 0, out=np.zeros_like(alpha))
    return np.where(weight > 0, attention, 0.0)


@dataclass(frozen=True, eq=False)
class RowDiagnostics(PrintedResult):
    """Roles of training rows in a fit: attention received, and leave-one-out residuals in units of the noise.

    Made by `row_diagnostics`.

    Parameters
    ----------
    attention : ndarray of shape (n,)
        Attention that one unit of each row receives from the other rows, in units of an average row: the pooling
        weight in leave-one-out predictions of the others, summed over these.
    residual : ndarray of shape (n,) or (n, c)
        Output minus leave-one-out prediction; of a classifier one minus the leave-one-out probability of the row's own
        class.
    standardized : ndarray of the same shape
        Residual over the local standard deviation of an observation; of a classifier :math:`((1 - p)/p)^{1/2}`, the
        Pearson residual of the own class.
    weight : ndarray of shape (n,)
        Frequencies.
    label : ndarray of shape (n,) or None
        Class of each row, of a classifier.
    names : ndarray of shape (n,) or None
        Names of the rows, if they were given.

    Examples
    --------
    >>> from kernpool import NadarayaWatsonRegressor, row_diagnostics
    >>> x, y = [[0.0], [1.0], [1.2], [1.5], [2.0], [9.0]], [0.0, 1.0, 6.0, 1.3, 2.2, 3.0]
    >>> found = row_diagnostics(NadarayaWatsonRegressor(bandwidth=0.5).fit(x, y))
    >>> found.prototypes(2), found.outliers(1), found.isolated()
    (array([1, 4]), array([2]), array([5]))
    """

    attention: Array
    residual: Array
    standardized: Array
    weight: Array
    label: NDArray[Any] | None = None
    names: NDArray[Any] | None = None

    def prototypes(self, k: int = 5, *, label: Any = None) -> Integers:
        """Return the k rows that receive most attention, the first of them the most.

        Parameters
        ----------
        k : int, default=5
            How many, at least one.
        label : optional
            Of a classifier: only rows of this class.

        Returns
        -------
        ndarray of int64
            Numbers of rows, fewer if there are fewer.

        Raises
        ------
        ValueError
            If `k` is no positive integer, or no row has this label.
        """
        k, allowed = as_count("k", k), self.weight > 0
        if label is not None:
            if self.label is None or not np.any(self.label == label):
                raise ValueError(f"label must be a class of the training rows of a classifier, got {label!r}")
            allowed = allowed & (self.label == label)
        return self._first(-self.attention, allowed, k)

    def outliers(self, k: int = 5) -> Integers:
        """Return the k rows of largest absolute standardized residual, of any output; the first is the farthest off."""
        size = np.fmax.reduce(np.abs(self.standardized).reshape(len(self.weight), -1), axis=1)
        return self._first(-size, (self.weight > 0) & ~np.isnan(size), as_count("k", k))

    def isolated(self, below: float = ISOLATED) -> Integers:
        """Return the rows that receive less attention than `below`, of an average row; the first receives the least."""
        return self._first(self.attention, (self.weight > 0) & (self.attention < below), len(self.weight))

    @staticmethod
    def _first(order: Array, allowed: NDArray[np.bool_], k: int) -> Integers:
        (rows,) = np.nonzero(allowed)
        return rows[np.argsort(order[rows], kind="stable")[:k]].astype(np.int64)

    def to_frame(self) -> Any:
        """Return a pandas data frame with a line per training row.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        frame: dict[str, NDArray[Any]] = {} if self.names is None else {"row": self.names}
        frame |= {} if self.label is None else {"class": self.label}
        numbers = {"attention": self.attention, "residual": self.residual, "standardized": self.standardized}
        return frame_of(frame | numbers | {"weight": self.weight})

    def __str__(self) -> str:
        names = ["row", *["class"] * (self.label is not None), "attention", "residual", "standardized"]
        isolated = self.isolated()
        tables = {
            "prototypes": ("rows of most attention; that of an average row is 1", self.prototypes(ROWS)),
            "outliers": ("rows of largest standardized residual", self.outliers(ROWS)),
            "isolated": (f"{len(isolated)} rows of attention below {ISOLATED:g}", isolated[:ROWS]),
        }
        return "\n\n".join(
            printed_table({title: what}, names, [self._cells(int(row)) for row in rows])
            for title, (what, rows) in tables.items()
        )

    def _cells(self, row: int) -> list[str]:
        name = f"{row if self.names is None else self.names[row]}"
        label = [] if self.label is None else [f"{self.label[row]}"]
        numbers = (
            ", ".join(f"{number:.3g}" for number in np.atleast_1d(of[row]))
            for of in (self.attention, self.residual, self.standardized)
        )
        return [name, *label, *numbers]
