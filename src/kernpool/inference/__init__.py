"""How sure a fit is: standard errors, intervals, bands, what a summary prints, resampling and tests.

Read `quadratic_forms.py` first: variances are sums over squared shares, one more pass over the keys with the kernel
squared. `smoother.py` is all that is known of a model, `residuals.py` and `noise.py` tell the noise of its rows,
`corrected.py` the center of an interval, `standard_errors.py` and `intervals.py` put these together, and `clusters.py`
where rows are not independent. `bands.py` makes intervals hold all at once: `tube.py` along a curve, `multiplier.py` by
random draws at any places. `warnings.py` says where none of this is to be trusted. `summary.py` is what a fit amounts
to, `diagnostics.py` the same row by row, `slope_map.py` where a curve rises and falls, `group_curves.py` what
`curves.py` compares.

What resamples begins with `linear_map.py`: shares do not depend on values, so nothing is fitted again. `draws.py` has
the random numbers, `bootstrap.py` the resamples of a fit, `sample.py` the rows of a test. Tests by residuals share the
statistic of `pairs.py`: `columns.py`, `specification.py`. Those of curves are `monotonicity.py` and `curves.py`,
with `offsets.py` where they are parallel and `overlap.py`, which groups can be compared.

How sure probabilities of classes are is in `probabilities.py` and `wilson.py`.
"""

from kernpool.inference.bootstrap import bootstrap
from kernpool.inference.clusters import Clusters, fit_clusters, number_clusters
from kernpool.inference.curves import compare_curves
from kernpool.inference.diagnostics import Residuals
from kernpool.inference.intervals import Interval, interval, intervals
from kernpool.inference.monotonicity import monotonicity_test
from kernpool.inference.residuals import Training, fit_training, squared_residuals
from kernpool.inference.results import TestResult
from kernpool.inference.slope_map import SlopeMap
from kernpool.inference.smoother import Places, Smoother
from kernpool.inference.specification import specification_test
from kernpool.inference.summary import ClassSummary, Summary, summarise
from kernpool.inference.warnings import ExtrapolationWarning, InferenceWarning
from kernpool.inference.wilson import ProbabilityInterval

__all__ = [
    "ClassSummary",
    "Clusters",
    "ExtrapolationWarning",
    "InferenceWarning",
    "Interval",
    "Places",
    "ProbabilityInterval",
    "Residuals",
    "SlopeMap",
    "Smoother",
    "Summary",
    "TestResult",
    "Training",
    "bootstrap",
    "compare_curves",
    "fit_clusters",
    "fit_training",
    "interval",
    "intervals",
    "monotonicity_test",
    "number_clusters",
    "specification_test",
    "squared_residuals",
    "summarise",
]
