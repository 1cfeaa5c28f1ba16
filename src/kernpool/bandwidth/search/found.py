"""What is found of the windows of a fit: bandwidths, and the numbers that go with them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.rules_of_thumb import bring_to_rows, rate_order
from kernpool.bandwidth.search.search import BandwidthSearch
from kernpool.bandwidth.search.setup import SearchOptions
from kernpool.data.circular import Coordinates
from kernpool.data.encoding import Encoding

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Found:
    """Result of a bandwidth search; what was not found is None.

    Fields are the attributes of a fitted estimator, without the underscore at the end.
    """

    bandwidth: Array
    smoothing: Array
    ridge: float | None = None
    bandwidth_search: BandwidthSearch | None = None
    relevance: Array | None = None  # in the order of the columns of the table, from `of_table`
    loo_error: float | None = None
    loo_empty_windows: int | None = None
    bandwidth_note: str | None = None
    search_rows: NDArray[np.int64] | None = None
    prior_share: float | None = None
    robust_weight: Array | None = None
    min_effective_rows: float | None = None
    n_neighbors: int | None = None
    key_range: Array | None = None

    @property
    def matters(self) -> NDArray[np.bool_]:
        """Which columns are not smoothed away, numeric ones first; all where nothing was searched for."""
        if self.bandwidth_search is None:
            return np.ones(len(self.bandwidth) + len(self.smoothing), dtype=np.bool_)
        return self.bandwidth_search.relevance > 0

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of a fitted estimator."""
        return {f"{name}_": found for name, found in vars(self).items() if found is not None} | {
            "min_effective_rows_": self.min_effective_rows
        }

    def of_table(self, coordinates: Coordinates, encoding: Encoding | None, names: Sequence[Any] | None) -> "Found":
        """Return what was found for pooled columns, numeric ones first, as that of the columns of the table."""
        of_numbers = coordinates.bandwidth_of

        def spread(of: Array) -> Array:
            return of[..., np.append(of_numbers, np.arange(of_numbers.max() + 1, of.shape[-1]))]

        found, search = replace(self, bandwidth=spread(self.bandwidth)), self.bandwidth_search
        if search is None:
            return found
        relevance = spread(search.relevance)
        order = range(relevance.size) if encoding is None else (*encoding.numeric, *encoding.categorical)
        search = replace(
            search, bandwidth=spread(search.bandwidth), relevance=relevance, spread=spread(search.spread),
            tried=spread(search.tried),
            names=tuple(str(names[i]) for i in order) if names is not None and len(order) == relevance.size else None,
        )  # fmt: skip
        if encoding is not None:
            # Levels alone are searched with one column of zeros before them, which is no column of the table.
            relevance, by_search = np.zeros(len(encoding.kinds)), relevance[relevance.size - len(order) :]
            relevance[list(order)] = by_search
        return replace(found, bandwidth_search=search, relevance=relevance)


def rescale_to_all_rows(found: Found, name: str, few: int, many: int, options: SearchOptions) -> Found:
    """Rescale bandwidths found on a sample of rows to the number of all rows, and describe this in a note.

    Parameters
    ----------
    found : Found
        From the sample.
    name : str
        The criterion or the rule.
    few, many : int
        Rows of the sample, and in all.
    options : SearchOptions
        Degree of the fit, and the random state by which the sample was drawn.
    """
    matters = found.matters
    bandwidth, smoothing, factor = bring_to_rows(found.bandwidth, found.smoothing, matters, few, many, options.degree)
    d = int(np.count_nonzero(matters[: len(bandwidth)]))
    note = (
        f"{name!r} on a sample of {few} of {many} rows ({seed_as_text(options.random_state)}), then times "
        f"{factor:.6g}: with d = {d} the best bandwidth shrinks as rows^(-1/({rate_order(options.degree)} + d))"
    )
    return replace(found, bandwidth=bandwidth, smoothing=smoothing, bandwidth_note=note)


def seed_as_text(random_state: Any) -> str:
    """Return by which seed a sample was drawn, for notes."""
    return f"random_state={random_state}" if isinstance(random_state, int | np.integer) else "drawn at random"
