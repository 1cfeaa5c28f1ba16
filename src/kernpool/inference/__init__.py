"""How sure a fit is: standard errors, intervals, bands, and what a summary prints.

Read `quadratic_forms.py` first: variances are sums over squared shares, one more pass over the keys with the kernel
squared. `smoother.py` is all that is known of a model, `residuals.py` and `noise.py` tell the noise of its rows,
`corrected.py` the center of an interval, `standard_errors.py` and `intervals.py` put these together, `bands.py` for
whole curves. `summary.py` is what a fit amounts to.
"""

from kernpool.inference.bands import band
from kernpool.inference.intervals import InferenceWarning, Interval, interval
from kernpool.inference.residuals import Training, fit_training, squared_residuals
from kernpool.inference.smoother import Places, Smoother
from kernpool.inference.summary import Summary, summarise

__all__ = [
    "InferenceWarning",
    "Interval",
    "Places",
    "Smoother",
    "Summary",
    "Training",
    "band",
    "fit_training",
    "interval",
    "squared_residuals",
    "summarise",
]
