"""Fits to rows that are not in memory, such as files or Dask collections: the model refers to them, without a copy.

A number as bandwidth needs no pass over the rows at all; a name needs one, which draws a sample (`bandwidth.py`). The
sample depends on the rows, their order and `random_state`, not on how the rows are divided into chunks or partitions.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from kernpool._arrays import AnyArray
from kernpool.bandwidth import TrainingRows
from kernpool.data import Encoding
from kernpool.data.chunks.base import seed_of
from kernpool.estimators.bandwidth import DEFAULT_SEARCH_ROWS, bandwidth_of_sample, choose_bandwidth, search_options
from kernpool.estimators.extrapolation import Extent, Ranges
from kernpool.estimators.limits import refuse, refuse_stored
from kernpool.estimators.model import FittedModel, check_parameters
from kernpool.execution import current_progress
from kernpool.pooling import Source


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


def _warned(query: AnyArray, extent: Extent, key_range: Any) -> AnyArray:
    """Return a block of queries; warn if some are far beyond the training rows. This runs in a Dask task."""
    if len(query):
        replace(extent, key_range=key_range).warn(np.asarray(query))
    return query
