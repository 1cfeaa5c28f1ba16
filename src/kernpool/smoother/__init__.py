"""Linear smoothers: fits, slopes and bias corrections as linear combinations of the outputs, and their norms.

Read `linear_smoother.py` first: the fitted model, its training rows and how they are pooled. `quadratic_forms.py` has
norms of linear weights, for variances, and the sums that these share with fits; `bias_correction.py` the estimates,
plain or bias-corrected, of the curve and its slopes. `windows.py` finds how much wider than the bandwidths windows with
few rows are, `training_fits.py` has what there is for each training row. `stored_rows.py` has the smoother of rows that
are not in memory.
"""

from kernpool.smoother.bias_correction import Estimate, estimate, estimates
from kernpool.smoother.linear_smoother import (
    EvaluationPoints,
    Fitted,
    Smoother,
    absolute_residuals,
    fit_clusters,
    fit_training,
)
from kernpool.smoother.quadratic_forms import LinearWeights, SharedSums, WeightTables, log_mass, squared_norm
from kernpool.smoother.stored_rows import StoredModel, StoredSmoother, mean_slopes, mean_slopes_of_stored
from kernpool.smoother.training_fits import Clusters, Training, nothing_left

__all__ = [
    "Clusters",
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
    "fit_clusters",
    "fit_training",
    "log_mass",
    "mean_slopes",
    "mean_slopes_of_stored",
    "nothing_left",
    "squared_norm",
]
