"""Fits to rows that are not in memory, such as files or Dask collections: the model refers to them, without a copy.

A number as bandwidth needs no pass over the rows at all; a name needs one, which draws a sample (`bandwidth.py`). The
sample depends on the rows, their order and `random_state`, not on how the rows are divided into chunks or partitions.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth import TrainingRows
from kernpool.data import Encoding
from kernpool.data.chunks.base import seed_of
from kernpool.data.encoding import COLUMN_OPTIONS
from kernpool.estimators.bandwidth import DEFAULT_SEARCH_ROWS, bandwidth_of_sample, choose_bandwidth, search_options
from kernpool.estimators.extrapolation import Extent, Ranges
from kernpool.estimators.limits import refuse
from kernpool.estimators.model import FittedModel, check_parameters
from kernpool.execution.error_messages import abbreviate
from kernpool.execution.progress import current_progress
from kernpool.pooling import Source

# Values that parameters and arguments of ``fit`` may have for rows that are not in memory, and why no others.
SAMPLE = "fit a sample of them in memory"
OF_SERIES = (
    "in the sample by which a bandwidth is found no rows are next to each other; fit a part of the series in memory, "
    "with its bandwidth as a number"
)
OF_COLUMNS = ((None,), f"their columns are read as numbers, and pooled as they are; {SAMPLE}")
IN_MEMORY_ONLY: dict[str, tuple[tuple[Any, ...], str]] = dict.fromkeys(COLUMN_OPTIONS, OF_COLUMNS) | {
    "window": (("auto", "fixed"), f"other windows take more passes through the files; {SAMPLE}"),
    "robust": ((False,), f"each re-weighting takes residuals of all rows; {SAMPLE}"),
    "groups": (
        (None,),
        "the sample by which a bandwidth is found would break clusters up; fit some of the clusters in memory, and "
        "give the bandwidth as a number",
    ),
    "gap": ((0,), OF_SERIES),
    "time": ((None,), OF_SERIES),
}


def refuse_stored(given: Mapping[str, Any]) -> None:
    """Raise ValueError if a parameter or argument of ``fit`` has a value that is for rows in memory alone.

    Examples
    --------
    >>> refuse_stored({"robust": True})
    Traceback (most recent call last):
    ...
    ValueError: robust must be False for rows that are not in memory, got True: each re-weighting takes residuals of all
    rows; fit a sample of them in memory
    """
    for name, (values, reason) in IN_MEMORY_ONLY.items():
        found = given.get(name, values[0])
        if np.ndim(found) or found not in values:
            raise ValueError(
                f"{name} must be {' or '.join(map(repr, values))} for rows that are not in memory, got "
                f"{abbreviate(found)}: {reason}"
            )


def fit_stored(model: FittedModel, pairs: Source, **given: Any) -> None:
    """Fit a regressor to rows that are not in memory: store a reference to the rows, and choose the bandwidth.

    Sets `source_`, `reference_`, `bandwidth_` and `bandwidth_note_`. `given` has the further arguments of ``fit``.
    """
    check_parameters(model)
    refuse(model, "rows that are not in memory")
    refuse_stored(model.__dict__ | given)
    pairs = pairs.counted()
    options = search_options(model)
    if isinstance(model.bandwidth, str):
        most, seed = options.rows, seed_of(options.random_state)
        size = DEFAULT_SEARCH_ROWS if most is None or isinstance(most, str) else most
        sample = pairs.sample(size, seed, current_progress())
        found = bandwidth_of_sample(sample, pairs.labels, model.bandwidth, replace(options, rows=None), model.smoothing)
        columns = len(found.bandwidth)
    else:
        columns = pairs.columns
        rows = TrainingRows.from_arrays(np.zeros((1, columns)), np.zeros(1))
        found = choose_bandwidth(model.bandwidth, rows, options, smoothing=model.smoothing)
        found = replace(found, bandwidth_note="as given")
    encoding = Encoding.of_numbers(pairs.labels, columns)
    if pairs.kinds is not None:
        encoding = replace(encoding, kinds=tuple(pairs.kinds))
    reference = getattr(pairs, "reference", None)
    fitted = {"source_": pairs, "reference_": reference, "encoding_": encoding, "exclusion_": None}
    model.__dict__ |= found.of_table(encoding).attributes() | fitted
    model._freeze()


def predict_lazily(model: FittedModel, pairs: Any, X: Any) -> Any:
    """Predict at queries in a Dask collection, with training rows in Dask partitions: return a Dask array.

    Nothing is computed yet. Queries far beyond the training rows are warned of where a block is computed.
    """
    encoding, extent = model.encoding_, model._extent
    array = pairs.queries(X, encoding.labels, len(encoding.kinds), encoding.kinds)
    if extent.warns:
        known = pairs.delayed_answer(Ranges()) if extent.key_range is None else extent.key_range
        extent = replace(extent, source=None)
        array = array.map_blocks(_warned, extent=extent, key_range=known, dtype=array.dtype, meta=array._meta)
    return pairs.pool(model.smoother_.recipe, array)


def _warned(query: NDArray[Any], extent: Extent, key_range: Any) -> NDArray[Any]:
    """Return a block of queries; warn if some are far beyond the training rows. This runs in a Dask task."""
    if len(query):
        replace(extent, key_range=key_range).warn(np.asarray(query))
    return query
