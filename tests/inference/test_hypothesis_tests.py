"""What hypothesis tests and the bootstrap share: frequencies, units, order, threads, progress, and refusals."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kernpool import LocalLinearRegressor, specification_test
from kernpool.execution import report_progress

SIGNIFICANCE = ["residual", "gradient"]
KINDS = [f"bootstrap {kind}" for kind in ("wild", "mammen", "gaussian", "residual", "pairs")]
TESTS = [*SIGNIFICANCE, "specification"]
NAMES = [*TESTS, *KINDS]
H = np.array([0.2, 0.4])


def rows(n=60, seed=0):
    random = np.random.default_rng(seed)
    X = random.uniform(size=(n, 2))
    return X, np.sin(6 * X[:, 0]) + 0.3 * X[:, 1] ** 2 + 0.2 * random.normal(size=n), np.arange(n) % 2


def ask(name, X, y, group, weight=None, h=H, n_resamples=49, **options):
    """Do a test by its name, of the first column where there is but one."""
    options["n_resamples"] = n_resamples
    if name == "specification":
        return specification_test(X, y, bandwidth=h, sample_weight=weight, **options)
    model = LocalLinearRegressor(bandwidth=h, n_jobs=options.pop("n_jobs", None)).fit(X, y, weight)
    if name in KINDS:
        return model.bootstrap([[0.4, 0.5], [0.7, 0.1]], kind=name.split()[1], **options)
    return model.significance_test(1, method=name, **options)


def numbers(*given, **options):
    found = ask(*given, **options)
    return found if given[0] in KINDS else np.array([found.statistic, *found.resampled])


@pytest.mark.parametrize("name", NAMES)
def test_the_same_bits_for_any_number_of_threads(name):
    sample = rows(3000 if name == "specification" else 1500)
    assert_array_equal(*(numbers(name, *sample, n_resamples=9, n_jobs=jobs) for jobs in (1, 2)))


@pytest.mark.parametrize("name", NAMES)
def test_progress_interruption_and_what_is_refused(name):
    seen = []
    with report_progress(lambda *counts: seen.append(counts)):
        ask(name, *rows(), n_resamples=130)
    assert seen[-3:] == [(128, 130) if name in KINDS else (64, 130), *seen[-2:-1], (130, 130)]

    def stop(done, total):
        raise KeyboardInterrupt

    with report_progress(stop), pytest.raises(KeyboardInterrupt):
        ask(name, *rows())
    with pytest.raises(ValueError, match=r"must be whole numbers, got 2\.5; round them"):
        ask(name, *rows(), weight=np.full(60, 2.5))
