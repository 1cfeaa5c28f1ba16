"""Logarithms of kernels in as many digits as mpmath works with."""

from mpmath import exp, log, mpf

LOG = {
    "gaussian": lambda u: -u * u / 2,
    "laplace": lambda u: -u,
    "logistic": lambda u: -u - 2 * log(1 + exp(-u)),
    "epanechnikov": lambda u: log(1 - u * u) if u < 1 else mpf("-inf"),
}
