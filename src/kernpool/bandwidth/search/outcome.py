"""What a search for bandwidths found, and how."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BandwidthSearch:
    """Outcome of a search for bandwidths.

    Parameters
    ----------
    criterion : str
        What was minimised.
    value : float
        The criterion at `bandwidth`; several outputs count in units of their standard deviations.
    bandwidth : ndarray of shape (d,)
        The best found.
    smoothing : ndarray of shape (k,)
        The best lambda of each categorical column.
    relevance : ndarray of shape (d + k,)
        Of numeric columns, the spread over the bandwidth: zero where the best bandwidth is infinite, so that the column
        plays no role, or, in a local linear fit without a ridge, none but a linear one. Of categorical columns, how far
        the smoothing is from the upper end of its box, of which it is a share: one for levels that are kept apart, zero
        for none.
    spread : ndarray of shape (d,)
        Spreads of the columns.
    common_factor : bool
        Whether one factor on the spreads was searched for, instead of one bandwidth per column.
    error : float
        Mean squared residual, from the other rows or groups with ``"loo"``, summed over outputs in their own units.
    empty_windows : int
        Rows with an empty window once they, or their groups, are left out.
    tried : ndarray of shape (e, d + k)
        The bandwidths and smoothings that were tried on all rows of the search.
    values : ndarray of shape (e,)
        The criterion there; of quick evaluations to twelve digits or so.
    evaluations : int
        How often the criterion was evaluated, on fewer rows included.
    starts : int
        Number of starts, or of points of the grid.
    rows : int
        Distinct rows that the result is of.
    seconds : float
        Wall-clock time.
    reason : str
        Why the search ended.
    names : tuple of str, optional
        Of the columns, numeric ones first.
    way : str, default=""
        How the criterion was evaluated for each bandwidth tried on the first rows, and why so.
    ridge : float, default=0.0
        On the slopes of local planes, in keys at the query.
    groups : int, default=0
        Number of groups, if all rows of a group were left out together; zero if each row was by itself.
    expected_error : float, optional
        What to expect of new rows, in the units of `error`; None before the model is asked for `expected_error`.
    """

    criterion: str
    value: float
    bandwidth: Array
    smoothing: Array
    relevance: Array
    spread: Array
    common_factor: bool
    error: float
    empty_windows: int
    tried: Array
    values: Array
    evaluations: int
    starts: int
    rows: int
    seconds: float
    reason: str
    names: tuple[str, ...] | None = None
    way: str = ""
    ridge: float = 0.0
    groups: int = 0
    expected_error: float | None = None

    def _says_of_error(self) -> str:
        if self.groups:
            return f"leave-cluster-out mean squared error ({self.groups} clusters)"
        left_out = self.criterion in ("loo", "regularised", "log_loss")
        return "leave-one-out mean squared error" if left_out else "mean squared residual"

    def __str__(self) -> str:
        d, k = len(self.bandwidth), len(self.smoothing)
        names = self.names or [str(a) for a in (*range(d), *range(k))]
        wide = max(8, *map(len, names))
        lines = [
            f"{self.criterion} = {self.value:.6g} on {self.rows} rows; {self.evaluations} evaluations from "
            f"{self.starts} starts in {self.seconds:.2g} s; {self.reason}",
            self.way,
            f"{self._says_of_error()} {self.error:.6g}"
            + ("" if self.expected_error is None else f", to be expected of new rows {self.expected_error:.6g}"),
            f"ridge {self.ridge:.3g}" if self.ridge else "",
            f"{self.empty_windows} empty windows" if self.empty_windows else "",
            f"{'column':>{wide}} {'bandwidth':>12} {'relevance':>10}",
        ]
        shown = np.where(self.relevance[:d] > 0, self.bandwidth, np.inf)
        for name, bandwidth, relevance in zip(names[:d], shown, self.relevance[:d], strict=True):
            lines.append(f"{name:>{wide}} {bandwidth:>12.6g} {relevance:>10.4g}")
        if k:
            lines.append(f"{'category':>{wide}} {'smoothing':>12} {'relevance':>10}")
        for name, smoothing, relevance in zip(names[d:], self.smoothing, self.relevance[d:], strict=True):
            lines.append(f"{name:>{wide}} {smoothing:>12.6g} {relevance:>10.4g}")
        return "\n".join(line for line in lines if line)
