"""Linear smoothers: fits, slopes and bias corrections as linear combinations of the outputs, and their norms.

Read `linear_smoother.py` first: the fitted model, its training rows, how they are pooled, and their fits.
`quadratic_forms.py` has norms of linear weights, for variances, and the sums that these share with fits;
`bias_correction.py` the estimates, plain or bias-corrected, of the curve and its slopes. `windows.py` finds how much
wider than the bandwidths windows with few rows are. `stored_rows.py` has the smoother of rows that are not in memory,
`local_least_squares.py` that of products of regressors, `varying_error.py` the criterion of its search, and
`backfitting.py` those of one coefficient after the other.
"""

from kernpool.smoother.bias_correction import Estimate, estimate, estimates
from kernpool.smoother.linear_smoother import (
    EvaluationPoints,
    Fitted,
    Smoother,
    Training,
    absolute_residuals,
    fit_training,
    nothing_left,
)
from kernpool.smoother.quadratic_forms import LinearWeights, SharedSums, WeightTables, squared_norm
from kernpool.smoother.stored_rows import StoredModel, StoredSmoother, mean_slopes, mean_slopes_of_stored

__all__ = [
    "Estimate",
    "EvaluationPoints",
    "Fitted",
    "LinearWeights",
    "SharedSums",
    "Smoother",
    "StoredModel",
    "StoredSmoother",
    "Training",
    "WeightTables",
    "absolute_residuals",
    "estimate",
    "estimates",
    "fit_training",
    "mean_slopes",
    "mean_slopes_of_stored",
    "nothing_left",
    "squared_norm",
]
