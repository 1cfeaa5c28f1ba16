"""Dense reference of quantiles: a table of all weights, sorted by value and added up, with digits to spare."""

import numpy as np

WITHIN_ROUNDING = 1e-12


def allowed(weights, value, level):
    """Return for each query the least and the largest value that rounding lets be its quantile, of shape (m, 2).

    They differ only where the distribution function meets the level within 1e-12. NaN where all weights are zero.
    """
    order = np.argsort(value, kind="stable")
    found = np.full((len(weights), 2), np.nan)
    for i, row in enumerate(np.asarray(weights)[:, order]):
        if not row.any():
            continue
        kept = np.flatnonzero(row > 0)
        sums = np.cumsum(row[kept].astype(np.longdouble))
        sums /= sums[-1]
        values = value[order][kept]
        for side, shift in enumerate((-WITHIN_ROUNDING, WITHIN_ROUNDING)):
            place = int(np.searchsorted(sums, level + shift, side="left"))
            found[i, side] = values[min(place, len(values) - 1)]
    return found


def assert_quantiles(found, weights, value, levels, empty=np.nan):
    """Compare the quantiles of one value column, of shape (m, l), with the reference, bit for bit."""
    assert found.shape == (len(weights), len(levels))
    for column, level in zip(found.T, levels, strict=True):
        bounds = allowed(weights, np.asarray(value), level)
        is_empty = np.isnan(bounds[:, 0])
        np.testing.assert_array_equal(column[is_empty], np.full(is_empty.sum(), empty))
        inside, (low, high) = column[~is_empty], bounds[~is_empty].T
        assert np.isin(inside, value).all()
        wrong = (inside < low) | (inside > high)
        assert not wrong.any(), f"level {level}: {inside[wrong][:3]} is not in {low[wrong][:3]} to {high[wrong][:3]}"
        # Nearly all have to be decided, or nothing would be compared.
        assert np.mean(low == high) > 0.5 or level in (0.0, 1.0) or len(low) < 5
