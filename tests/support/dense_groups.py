"""Dense reference of leaving groups out: each row from the rows of all other groups, by normal equations."""

import numpy as np

from tests.support.dense_inference import Dense


def left_out(x, y, group, *, weight=None, **options):
    """Predictions of every row from the other groups; at least one row has to be in reach of each."""
    weight = np.ones(len(x)) if weight is None else weight
    table = Dense(x, y, np.broadcast_to(options.pop("h"), x.shape[1:]).astype(float), weight, **options)
    frequency = weight * (group[:, None] != group)
    return table.coefficients(x, table.code, frequency=frequency)[:, 0] @ y


def mean_of_others(y, group, weight):
    """The weighted mean of all other groups, row by row."""
    frequency = weight * (group[:, None] != group)
    return frequency @ y / frequency.sum(axis=1)[:, None]
