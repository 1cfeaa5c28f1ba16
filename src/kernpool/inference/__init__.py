"""How sure: resampling and tests.

Read `smoothing.py` first: a fit as a linear map of values, which is why nothing has to be fitted again. `draws.py` has
the random numbers, `bootstrap.py` the resamples of a fit, `sample.py` the rows of a test. Tests by residuals share the
statistic of `pairs.py`: `columns.py`, `specification.py`. Those of curves are in `curves.py` and `monotonicity.py`.
"""

from kernpool.inference.bootstrap import bootstrap
from kernpool.inference.curves import compare_curves
from kernpool.inference.monotonicity import monotonicity_test
from kernpool.inference.results import TestResult
from kernpool.inference.specification import specification_test

__all__ = ["TestResult", "bootstrap", "compare_curves", "monotonicity_test", "specification_test"]
