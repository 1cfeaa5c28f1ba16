"""Dense reference of leaving groups out, or rows within a gap: each row from all others, by normal equations."""

import numpy as np

from tests.support.dense_inference import Dense


def left_out(x, y, group, *, weight=None, gap=0, **options):
    """Predictions of every row from the groups that are further away than the gap; one row has to be in reach."""
    weight = np.ones(len(x)) if weight is None else weight
    table = Dense(x, y, np.broadcast_to(options.pop("h"), x.shape[1:]).astype(float), weight, **options)
    frequency = weight * (np.abs(group[:, None] - group) > gap)
    return table.coefficients(x, table.code, frequency=frequency)[:, 0] @ y


def mean_of_others(y, group, weight, gap=0):
    """The weighted mean of all groups that are further away than the gap, row by row."""
    frequency = weight * (np.abs(group[:, None] - group) > gap)
    return frequency @ y / frequency.sum(axis=1)[:, None]
