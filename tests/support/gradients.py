"""Gradients of an algorithm, held against those of the reference implementation and against differences."""

import numpy as np
import pytest

from kernpool import choose
from tests.support.problems import EVERYTHING


def assert_same_gradients(problem, algorithm, cotangent, err_msg=""):
    """All gradients by an algorithm are those of the reference implementation, up to rounding beside the largest one.

    Parameters
    ----------
    problem : Problem
        Any that the algorithm can do.
    algorithm : str
        Its name.
    cotangent : ndarray of shape (m, c)
        Of the pooled values.
    err_msg : str, optional
        What the problem is, for the message.
    """
    reference, other = choose(problem, "reference"), choose(problem, algorithm)
    expected = reference.pullback(problem, reference.reduce(problem), cotangent, EVERYTHING)
    found = other.pullback(problem, other.reduce(problem), cotangent, EVERYTHING)
    for name in EVERYTHING:
        target, largest = getattr(expected, name), np.abs(getattr(expected, name)).max()
        np.testing.assert_allclose(
            getattr(found, name), target, rtol=1e-9, atol=1e-9 * largest, err_msg=f"{err_msg}, by {name}"
        )


def assert_derivatives(loss, starts, found, *, rel=1e-5, abs=1e-6, step=1e-6):
    """Gradients are what a central difference says, along a random direction: every entry counts.

    Parameters
    ----------
    loss : callable
        Takes arrays by name, and returns a number.
    starts : dict
        Name to the array at which the loss is differentiated.
    found : Gradients
        What is claimed. That by log_bandwidth has a row per query, for a loss that has one bandwidth for all.
    rel, abs : float, optional
        As of `pytest.approx`.
    step : float, optional
        In units of the direction, whose entries are of size one.
    """
    generator = np.random.default_rng(5)
    for name, start in starts.items():
        gradient = getattr(found, name)
        gradient = gradient.sum(axis=0) if name == "log_bandwidth" else gradient
        assert gradient.shape == start.shape
        for _ in range(2):
            direction = generator.normal(size=start.shape)
            ends = [loss(**{name: start + sign * step * direction}) for sign in (1, -1)]
            difference = (ends[0] - ends[1]) / (2 * step)
            assert np.sum(gradient * direction) == pytest.approx(difference, rel=rel, abs=abs), name
