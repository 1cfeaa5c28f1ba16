"""Statistical inference for kernel fits: standard errors, intervals and bands, tests, bootstrap, summaries.

Read `model_summary.py` first: effective parameters, R2, residuals and roles of training rows. Then the folders:
`variance` has residuals, noise and standard errors, `confidence` confidence intervals and simultaneous bands,
`resampling` random draws and the bootstrap, and `hypothesis_tests` the tests.
`coefficients.py` has coefficients next to a curve, `class_probabilities.py` standard errors and intervals of a
classifier, `explanation.py` the training rows and columns behind predictions. Variances are sums over squared linear
weights; the subpackage `smoother` computes them.
"""

from kernpool.execution.interval import Interval
from kernpool.inference.class_probabilities import Probabilities
from kernpool.inference.coefficients import Coefficients
from kernpool.inference.confidence.intervals import interval
from kernpool.inference.explanation import AdditiveTerms, Explanation
from kernpool.inference.hypothesis_tests.base import SignificanceTable, TestResult
from kernpool.inference.hypothesis_tests.specification import specification_test
from kernpool.inference.model_summary import Residuals, RowDiagnostics, Summary, summarise
from kernpool.inference.resampling.bootstrap import bootstrap
from kernpool.inference.resampling.random_draws import as_random
from kernpool.inference.variance.residuals import local_noise, squared_residuals
from kernpool.inference.variance.standard_errors import ExtrapolationWarning, InferenceWarning

__all__ = [
    "AdditiveTerms",
    "Coefficients",
    "Explanation",
    "ExtrapolationWarning",
    "InferenceWarning",
    "Interval",
    "Probabilities",
    "Residuals",
    "RowDiagnostics",
    "SignificanceTable",
    "Summary",
    "TestResult",
    "as_random",
    "bootstrap",
    "interval",
    "local_noise",
    "specification_test",
    "squared_residuals",
    "summarise",
]
