"""Linear smoothers: fits, slopes and bias corrections as linear combinations of the outputs, and their norms.

Read `linear_smoother.py` first: the training rows, how they are pooled, and the cache of their sums.
`quadratic_forms.py` has inner products of linear weights, of which variances are made; `bias_correction.py` the
estimates, plain or bias-corrected, of the curve and its slopes. `windows.py` finds how much wider than the bandwidths
windows with few rows are. `stored_rows.py` has the smoother of rows that are not in memory.
"""

from kernpool.smoother.bias_correction import Estimate, estimate, estimates, value_shares
from kernpool.smoother.linear_smoother import EvaluationPoints, Fitted, SharedSums, Smoother
from kernpool.smoother.quadratic_forms import LinearWeights, WeightTables, inner, log_mass, squared_norm
from kernpool.smoother.stored_rows import MeanSlopes, StoredSmoother, mean_slopes

__all__ = [
    "Estimate",
    "EvaluationPoints",
    "Fitted",
    "LinearWeights",
    "MeanSlopes",
    "SharedSums",
    "Smoother",
    "StoredSmoother",
    "WeightTables",
    "estimate",
    "estimates",
    "inner",
    "log_mass",
    "mean_slopes",
    "squared_norm",
    "value_shares",
]
