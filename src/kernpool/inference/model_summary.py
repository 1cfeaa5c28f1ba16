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

The attention that a unit of row j receives from all other units, with frequencies w, kernel weights K and the
leave-one-out sums of weights D_i::

    A_j = sum_{i != j} w_i K_ij / D_i + max(w_j - 1, 0) K_jj / D_j

is a kernel sum again: with rows as queries, and w_i / D_i as weights of the keys. So it costs one more pass, and no
table of pairs. Where D_i underflows, because row i is far from all others, its weights are computed one by one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernpool._arrays import AnyArray, Array, Flags, Integers
from kernpool.bandwidth import CRITERIA
from kernpool.core import weighted_median
from kernpool.execution import (
    ROWS,
    PrintedResult,
    as_count,
    cut,
    frame_of,
    lines_of,
    names_of,
    printed_table,
    weighted_sum,
)
from kernpool.execution.text_table import columns_of_text, listed
from kernpool.inference.variance.residuals import local_noise, squared_residuals
from kernpool.kernels import square
from kernpool.pooling import weight_rows
from kernpool.smoother import LinearWeights, Smoother, Training
from kernpool.smoother.linear_smoother import ROWS_AT_ONCE
from kernpool.smoother.quadratic_forms import combined, product_problem

FEW = 10.0  # effective rows
TRACES = ("trace", "tr H"), ("trace_squared", "tr H'H")
NOISY = 0.5  # of the rows, in whose fits there are few
MOST_CLASSES = 10  # printed
AS_IF_INDEPENDENT = (
    "Leave-cluster-out is of fits without all rows of a cluster: what rows of new clusters would have. Leave-one-out\n"
    "keeps the rest of the cluster; it, residual sd, AICc and GCV take rows as independent."
)


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """Summary of one input column of a fit: bandwidth, or categorical smoothing parameter, and relevance."""

    name: str
    width: float  # bandwidth, or smoothing of the categories
    has_levels: bool  # whether `width` is a smoothing
    relevance: float | None  # spread / bandwidth, or 1 - smoothing / largest; None if none was searched for
    unit: str = ""  # of the bandwidth: "days", or empty for that of the column


@dataclass(frozen=True)
class MemberSummary:
    """Summary of one member of a stack: name, what it is, its weight, and its own leave-one-out R2 or log loss."""

    name: str
    description: str
    weight: float
    loo_score: float


@dataclass(frozen=True, eq=False)
class Summary(PrintedResult):
    r"""Summary of a fitted model, which prints well; its numbers are attributes.

    Parameters
    ----------
    title : str
        Name of the model, and numbers of rows, columns and outputs or classes.
    values : dict
        Numbers by name, each also an attribute. Of every model: `rows`, the sum of the weights, and `left_out`, the
        unit held out, ``"row"`` or ``"cluster"``. Of regressors: `trace` and `trace_squared` of the hat matrix H and
        of H'H, and arrays of one number per output, `residual_sd`, `r2`, `loo_r2`, and `loo_error`, which is summed
        over outputs; R2 of a constant output is NaN. Of classifiers: `priors` by class, `log_loss` and `accuracy` of
        held-out rows. Of smoothers: `kernel`, `chosen`, how bandwidths were found, and `columns`, each with `name`,
        `width` and `relevance`; of regressors among them also `rss`, `correlation_r2`, `aicc`, `gcv`,
        `effective_rows` (least, median and largest), `few`, the fraction of rows with an effective sample size below
        ten, `alone`, the number of rows with no other in their window, and after a fit with groups `n_clusters`,
        `cluster_sizes`, `cluster_r2` and `cluster_error`; with coefficients `coefficients`. Where these vary
        there are `effective_tests`, of the others `aicc` and `gcv` alone, and no `trace_squared`. Of classifiers
        `prior_share` and `alone`. Of stacks: `members`, each with `name`, `weight` and `loo_score`.
    facts : dict
        Lines of the printed summary below its table.
    note : str, default=""
        Sentence below them.

    Examples
    --------
    >>> from kernpool import LocalLinearRegressor
    >>> x, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0.0, 1.1, 1.9, 3.0, 4.2, 4.8]
    >>> summary = LocalLinearRegressor(kernel="constant", bandwidth=1.0).fit(x, y).summary()
    >>> round(summary.trace, 9), summary.r2.round(4)
    (2.0, array([0.9944]))
    """

    title: str
    values: dict[str, Any]
    facts: dict[str, str]
    note: str = ""

    def __getattr__(self, name: str) -> Any:
        if name == "values" or name not in self.values:
            raise AttributeError(f"this summary has no {name!r}; what it has is in its dictionary .values")
        return self.values[name]

    def __str__(self) -> str:
        found, lines = self.values, [self.title]
        if "kernel" in found:
            lines.append(f"kernel {found['kernel']}, {found['chosen']}")
        table = _lines_of(found["columns"]) if "columns" in found else _lines_of_members(found)
        if "coefficients" in found:
            lines += ["", *found["coefficients"].lines()]
        lines += ["", *table, "", *(f"  {line}" for line in lines_of(self.facts, 22))]
        return "\n".join(lines + (["", self.note] if self.note else []))


def summary_of_regression(name: str, columns: int, values: dict[str, Any]) -> Summary:
    """Build the `Summary` of a regressor from its name, number of columns, and values."""
    outputs, without = len(values["r2"]), held_out(values)
    facts = {
        "effective parameters": ", ".join(f"{values[name]:.2f} ({of})" for name, of in TRACES if name in values),
        "residual sd": listed(values["residual_sd"])
        + "; undefined: the fit takes all degrees of freedom" * bool(np.isnan(values["residual_sd"]).any()),
        "R2": f"{listed(values['r2'])}, {without} {listed(values['loo_r2'])}"
        + "; undefined where y is constant" * (not np.isfinite(values["r2"]).all()),
    }
    if "aicc" in values:
        facts["AICc, GCV"] = f"{listed(values['aicc'])}; {listed(values['gcv'])}"
    facts[f"{without} error"] = f"{values['loo_error']:.4g}"
    if "effective_rows" in values:
        low, middle, high = values["effective_rows"]
        of = f"{low:.3g} to {high:.3g}, median {middle:.3g}; {values['few']:.1%} below {FEW:g}"
        noisy = ": few rows per fit, so predictions may be noisy" * (values["few"] > NOISY)
        facts["effective rows per fit"] = of + noisy
    facts |= _rows_alone(values)
    if "n_clusters" in values:
        least, median, most = values["cluster_sizes"]
        facts["clusters"] = f"{values['n_clusters']}, of {least:g} to {most:g} rows, median {median:g}"
        facts["leave-cluster-out"] = f"R2 {listed(values['cluster_r2'])}, error {values['cluster_error']:.4g}"
    note = AS_IF_INDEPENDENT if "n_clusters" in values else ""
    return Summary(title_of(name, columns, values, f"{outputs} output{'s' * (outputs > 1)}"), values, facts, note)


def summary_of_classes(name: str, columns: int, values: dict[str, Any]) -> Summary:
    """Build the `Summary` of a classifier from its name, number of columns, and values."""
    priors, without = values["priors"], held_out(values)
    shown = [f"{label} {fraction:.1%}" for label, fraction in list(priors.items())[:MOST_CLASSES]]
    facts = {"classes": ", ".join(shown) + ", ..." * (len(priors) > len(shown))}
    if "prior_share" in values:
        facts["prior share"] = f"{values['prior_share']:.3g}"
    facts |= {f"{without} log loss": f"{values['log_loss']:.4g}", f"{without} accuracy": f"{values['accuracy']:.1%}"}
    return Summary(title_of(name, columns, values, f"{len(priors)} classes"), values, facts | _rows_alone(values))


def held_out(values: dict[str, Any]) -> str:
    """Return how rows are held out: each alone, or with their clusters."""
    return "leave-one-out" if values["left_out"] == "row" else "leave-cluster-out"


def _rows_alone(values: dict[str, Any]) -> dict[str, str]:
    return {"rows alone in a window": f"{values['alone']}"} if values.get("alone") else {}


def title_of(name: str, columns: int, values: dict[str, Any], of: str) -> str:
    """Return the first line of a summary: name of the model, and numbers of rows, columns and outputs or classes."""
    return f"{name}: {values['rows']:g} rows, {columns} column{'s' * (columns != 1)}, {of}"


def _lines_of_members(values: dict[str, Any]) -> list[str]:
    """Return the lines of a printed summary that list the members of a stack."""
    table = [[m.name, f"{m.weight:.3f}", f"{m.loo_score:.4g}", m.description] for m in values["members"]]
    score = f"{held_out(values)} {'log loss' if 'priors' in values else 'R2'}"
    return columns_of_text(["member", "weight", score, "fit"], table)


def _lines_of(columns: tuple[ColumnSummary, ...]) -> list[str]:
    """Return the lines of a printed summary that list the bandwidth and relevance of each column."""
    rows = [
        [
            column.name,
            f"{column.width:.4g}{column.unit and ' '}{column.unit}{' (smoothing)' * column.has_levels}",
            "" if column.relevance is None else f"{column.relevance:.3g}",
        ]
        for column in columns
    ]
    return columns_of_text(["column", "bandwidth", "relevance"], rows)


def summarise(
    smoother: Smoother,
    training: Training,
    title: str,
    chosen: str,
    columns: tuple[ColumnSummary, ...],
) -> Summary:
    """Compute the `Summary` of a fitted regressor from its training rows, in one pass over their pairs."""
    weight, rows = training.weight, training.rows
    own, left_out = training.value - training.fitted, training.value - training.deleted
    squared, effective = _norms(smoother, training.linear_weights)
    kept = weight > 0
    trace, trace_squared = training.trace, float(weighted_sum(weight[kept], squared[kept]))
    mean = _mean(training.value, weight)
    rss, away, towards = weighted_sum(weight, own**2), training.value - mean, training.fitted - mean
    norms = np.sqrt(weighted_sum(weight, away**2)), np.sqrt(weighted_sum(weight, towards**2))
    values = errors_of_fit(training.value, own, left_out, weight, trace, trace_squared)
    values |= criteria_of_fit(rss, trace, rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        values |= {
            "kernel": smoother.recipe.kernel.name,
            "chosen": chosen,
            "columns": columns,
            "left_out": "row",
            "rss": rss,
            "correlation_r2": (weighted_sum(weight, away * towards) / norms[0] / norms[1]) ** 2,
            "effective_rows": (
                float(effective[kept].min()),
                weighted_median(effective[kept], weight[kept]),
                float(effective[kept].max()),
            ),
            "few": float(weight[kept & (effective < FEW)].sum() / rows),
            "alone": training.alone,
        }
    if smoother.units.code is not None:
        values |= _left_out(smoother.units.code, smoother.residual_of_units, training.value, weight)
    return summary_of_regression(title, len(columns), values)


def errors_of_fit(
    value: Array, residual: Array, left_out: Array, weight: Array, trace: float, trace_squared: float | None = None
) -> dict[str, Any]:
    """Return what the summaries of all linear smoothers have, by name, from residuals of fits and of held-out ones.

    Without the trace of H'H the residual standard deviation takes that of H for it.
    """
    rows, rss = float(weight.sum()), weighted_sum(weight, residual**2)
    freedom = rows - 2.0 * trace + (trace if trace_squared is None else trace_squared)
    squared = {} if trace_squared is None else {"trace_squared": trace_squared}
    return squared | {
        "rows": rows,
        "trace": trace,
        "residual_sd": np.sqrt(rss / freedom) if freedom > 0 else np.full_like(rss, math.nan),
        "r2": explained(value, residual, weight),
        "loo_r2": explained(value, left_out, weight),
        "loo_error": float(np.sum(weighted_sum(weight, left_out**2)) / rows),
    }


def criteria_of_fit(rss: Array, trace: float, rows: float) -> dict[str, Array]:
    """Return AICc and GCV of residual sums of squares; infinite if the fit uses up all degrees of freedom."""
    with np.errstate(divide="ignore"):
        log_mean = np.log(rss / rows)
    found = {}
    for name in ("aicc", "gcv"):
        of = CRITERIA[name].log_penalty
        penalty = 0.0 if of is None else float(of(trace, rows)[0])
        found[name] = log_mean + penalty if math.isfinite(penalty) else np.full_like(log_mean, math.inf)
    return {"aicc": found["aicc"], "gcv": np.exp(found["gcv"])}


def explained(value: Array, residual: Array, weight: Array) -> Array:
    """Return R2 of each output: one minus residual over total sum of squares; NaN where an output is constant."""
    total = weighted_sum(weight, (value - _mean(value, weight)) ** 2)
    unexplained = np.divide(
        weighted_sum(weight, residual**2), total, where=total > 0, out=np.full_like(total, math.nan)
    )
    return 1.0 - unexplained


def _mean(value: Array, weight: Array) -> Array:
    """Return the weighted means of outputs, without rounding where an output is constant."""
    first = value[weight.argmax()]
    return np.asarray(first + weighted_sum(weight, value - first) / weight.sum())


def _left_out(code: Integers, residual: Array, value: Array, weight: Array) -> dict[str, Any]:
    """Return number and sizes (smallest, median, largest) of the clusters, and R2 and error without the row's own."""
    kept = weight > 0
    size = np.sort(np.bincount(np.unique(code[kept], return_inverse=True)[1], weight[kept]))
    return {
        "n_clusters": len(size),
        "cluster_sizes": (float(size[0]), float(np.median(size)), float(size[-1])),
        "cluster_r2": explained(value, residual, weight),
        "cluster_error": float(weighted_sum(weight, residual**2).sum() / weight.sum()),
    }


def _norms(smoother: Smoother, share: LinearWeights) -> tuple[Array, Array]:
    """Return, for each training row, the squared norm of its fit's linear weights and the effective sample size."""
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
    names : optional
        Labels of the rows, those of the frame of the fit.

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
    cluster: Integers | None = None
    names: Any = None

    @property
    def standardized(self) -> Array:
        """Residuals in local standard deviations of an observation; infinite or NaN where there is no noise."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.residual / self.noise

    def _columns(self) -> dict[str, Array]:
        return {"fitted": self.fitted, "residual": self.residual, "standardized": self.standardized}

    def to_frame(self) -> Any:
        """Return a data frame with a row per training row, labelled as in the frame of the fit.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        frame = {"leverage": self.leverage, "noise": self.noise, "weight": self.weight}
        return frame_of(self._columns() | frame, self.names)

    def __str__(self) -> str:
        columns = self._columns()
        size = np.nan_to_num(np.abs(columns["standardized"]), posinf=0.0)
        labels, rows = names_of(self.names, len(size)), []
        for i in np.argsort(-size, axis=None, kind="stable")[:ROWS]:
            at = np.unravel_index(i, size.shape)
            cells = [f"{column[at]:.4g}" for column in columns.values()]
            rows.append([f"{labels[at[0]]}", *map(str, at[1:]), *cells, f"{self.leverage[at[0]]:.3g}"])
        names = ["row", "output"][: size.ndim]
        largest = f"{len(size)}, those of the largest standardized residuals below"
        return printed_table({"rows": largest}, [*names, *columns, "leverage"], rows)


def residuals(smoother: Smoother, training: Training) -> Residuals:
    """Compute fitted values, held-out residuals, leverages and local noise at the training rows of a fit."""
    # two passes over pairs of rows
    if smoother.units.code is None:
        residual, squared = training.value - training.deleted, squared_residuals(smoother, training)
    else:
        residual = smoother.residual_of_units
        squared = residual**2
    noise = np.sqrt(local_noise(smoother, smoother.training, squared)[0])
    return residuals_of(smoother, training.fitted, residual, training.leverage, noise)


def residuals_of(
    smoother: Smoother, fitted: Array, residual: Array, leverage: Array, noise: Array, names: Any = None
) -> Residuals:
    """Return residuals of the rows of a smoother, with their weights and clusters."""
    # Copies: the model keeps these arrays for its standard errors, and callers may modify residuals.
    code = smoother.units.code
    cluster = None if code is None else code.copy()
    return Residuals(fitted.copy(), np.array(residual), leverage.copy(), noise, smoother.weight.copy(), cluster, names)


FAR = 300.0  # log of a sum of weights, below that of a row at distance zero, beyond which weights are kept apart
ISOLATED = 0.1  # attention, of that of an average row, below which a row is hardly used


def attention_received(smoother: Smoother) -> Array:
    """Return the attention that one unit of each row receives in leave-one-out predictions of the other units."""
    # one is that of an average row; two passes over pairs of rows
    smoother = smoother.of_degree(0).with_values(np.zeros((len(smoother.weight), 1)))
    problem, weight = smoother.left_out_problem(smoother.exclusion), smoother.weight
    mass = smoother.sums(problem).log_denominator
    peak = problem.similarity.log_peak
    near = (weight > 0) & (mass > peak - FAR)
    attention = np.zeros(len(weight))
    if near.any():
        unit = float(mass[near].min())
        share = np.where(near, weight * np.exp(unit - np.where(near, mass, unit)), 0.0)
        largest = float(share.max())  # so that the largest weight is one unit, and a row is left out as a whole
        equal = problem.own_weight * problem.weight_unit  # of the other units of a row, which attend to it as well
        attention += equal * np.exp(np.where(near & (equal > 0), problem.log_own - mass, 0.0)) * near
        received = replace(problem, key_weight=share / largest, weight_unit=1.0, prepared=None)
        for rows, similarity in problem.similarity.parts():  # of keys now: windows are those of the rows that attend
            state = smoother.sums(replace(received, similarity=similarity).block(slice(None), rows))
            attention += np.where(state.denominator > 0, largest * np.exp(state.log_denominator - unit), 0.0)
    (far,) = np.nonzero((weight > 0) & ~near & (mass > -np.inf))
    for rows, alpha in weight_rows(problem.block(far)) if far.size else ():
        attention += weight[far[rows]] @ np.divide(alpha, weight, where=weight > 0, out=np.zeros_like(alpha))
    return np.where(weight > 0, attention, 0.0)


@dataclass(frozen=True, eq=False)
class RowDiagnostics(PrintedResult):
    """Roles of training rows in a fit: attention received, and leave-one-out residuals in units of the noise.

    Made by `row_diagnostics`.

    Parameters
    ----------
    attention : ndarray of shape (n,)
        Attention that one unit of each row receives from all others, in units of an average row: the pooling weight in
        leave-one-out predictions of the others, summed over these. A weight of 3 is three rows.
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
    names : optional
        Labels of the rows, those of the frame of the fit.

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
    label: AnyArray | None = None
    names: Any = None

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
    def _first(order: Array, allowed: Flags, k: int) -> Integers:
        (rows,) = np.nonzero(allowed)
        return rows[np.argsort(order[rows], kind="stable")[:k]].astype(np.int64)

    def to_frame(self) -> Any:
        """Return a data frame with a line per training row, labelled by their names.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        frame: dict[str, AnyArray] = {} if self.label is None else {"class": self.label}
        numbers = {"attention": self.attention, "residual": self.residual, "standardized": self.standardized}
        return frame_of(frame | numbers | {"weight": self.weight}, self.names)

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
        name = f"{names_of(self.names, len(self.weight))[row]}"
        label = [] if self.label is None else [f"{self.label[row]}"]
        numbers = (
            ", ".join(f"{number:.3g}" for number in np.atleast_1d(of[row]))
            for of in (self.attention, self.residual, self.standardized)
        )
        return [name, *label, *numbers]
