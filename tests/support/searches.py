"""Bandwidth searches and their criteria, with options by name."""

import numpy as np

from kernpool import bandwidth
from kernpool.bandwidth import CRITERIA, LOG_LOSS, SearchOptions, TrainingRows
from kernpool.bandwidth.search.objective import Objective
from kernpool.core import NO_CATEGORIES, Exclusion


def options_of(criterion="loo", **options):
    """Options of a search by the name of its criterion."""
    return SearchOptions(criterion=(CRITERIA | {"log_loss": LOG_LOSS})[criterion], **options)


def search_bandwidth(X, value, weight=None, *, code=None, group=None, categories=NO_CATEGORIES, **options):
    """Find bandwidths."""
    rows = TrainingRows.from_arrays(X, value, weight, code, None if group is None else Exclusion(group))
    return bandwidth.search_bandwidth(rows, options_of(**options), categories)


def canonical_rows(X, value, weight=None, code=None, group=None):
    """Rows of arrays in canonical form."""
    exclusion = None if group is None else Exclusion(np.asarray(group))
    return bandwidth.canonical_rows(TrainingRows.from_arrays(X, value, weight, code, exclusion))


def search_log_loss(X, label, weight=None, **options):
    """Find bandwidths for probabilities of classes."""
    return search_bandwidth(X, label, weight, criterion="log_loss", **options)


def objective_of(
    rows, criterion="loo", *, kind=Objective, categories=NO_CATEGORIES, penalty=None, queries=None, **options
):
    """A criterion as a function of log bandwidths."""
    return kind(rows, options_of(criterion, **options), categories, penalty, queries)


def gradient_of(objective, at):
    """Slopes of the logarithm of the penalised mean square."""
    return 2.0 * objective.jacobian(at).T @ at.residual.ravel() / at.penalised


def check_derivatives(objective, theta, tolerance=1e-6, step=1e-4):
    """Compare slopes of residuals with differences over five points."""
    jacobian = objective.jacobian(objective.evaluate(theta))
    for a, shift in enumerate(step * np.eye(len(theta))):
        near, far = ([objective.evaluate(theta + k * sign * shift).residual for sign in (1, -1)] for k in (1, 2))
        slope = (8 * (near[0] - near[1]) - (far[0] - far[1])).ravel() / (12 * step)
        np.testing.assert_allclose(jacobian[:, a], slope, atol=tolerance * np.abs(slope).max())
