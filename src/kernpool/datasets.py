"""Synthetic data sets for teaching kernel regression: noisy ``2 sin(x) + x`` and ``2 sin(x) + x**0.8``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernpool._arrays import Array


class RegressionSample(NamedTuple):
    """Training sample of a known function with noise, and the function itself on a test grid.

    Attributes
    ----------
    x_train, y_train : ndarray of shape (n,)
        Sorted inputs and noisy outputs.
    x_test : ndarray of shape (50,)
        The grid 0, 0.1, ..., 4.9.
    y_truth : ndarray of shape (50,)
        The function on the grid, without noise.
    """

    x_train: Array
    y_train: Array
    x_test: Array
    y_truth: Array


def make_sine_linear(n_samples: int = 40, *, noise: float = 1.0, random_state: int | None = None) -> RegressionSample:
    """Sample ``f(x) = 2 sin(x) + x`` at sorted uniform inputs on (0, 5) with Gaussian noise.

    Parameters
    ----------
    n_samples : int, default=40
        Number of training samples.
    noise : float, default=1.0
        Standard deviation of the noise.
    random_state : int, optional
        Seed; None draws a new sample every time.

    Returns
    -------
    RegressionSample
        Training samples, and the truth on the grid 0, 0.1, ..., 4.9.

    Examples
    --------
    >>> make_sine_linear(random_state=0).x_train.shape
    (40,)
    """
    return _sample(1.0, n_samples, noise, random_state)


def make_sine_power(n_samples: int = 50, *, noise: float = 0.5, random_state: int | None = None) -> RegressionSample:
    """Sample ``f(x) = 2 sin(x) + x**0.8`` at sorted uniform inputs on (0, 5) with Gaussian noise.

    Parameters
    ----------
    n_samples : int, default=50
        Number of training samples.
    noise : float, default=0.5
        Standard deviation of the noise.
    random_state : int, optional
        Seed; None draws a new sample every time.

    Returns
    -------
    RegressionSample
        Training samples, and the truth on the grid 0, 0.1, ..., 4.9.

    Examples
    --------
    >>> sample = make_sine_power(random_state=0)
    >>> float(sample.x_test[-1]), float(sample.y_truth[0])
    (4.9, 0.0)
    """
    return _sample(0.8, n_samples, noise, random_state)


def _sample(power: float, n_samples: int, noise: float, random_state: int | None) -> RegressionSample:
    if n_samples < 1 or noise < 0:
        raise ValueError(f"n_samples must be at least 1 and noise at least 0, got n_samples={n_samples}, noise={noise}")

    def truth(x: Array) -> Array:
        return 2.0 * np.sin(x) + x**power

    generator = np.random.default_rng(random_state)
    x_train = np.sort(generator.uniform(0.0, 5.0, n_samples))
    y_train = truth(x_train) + generator.normal(0.0, noise, n_samples)
    x_test = np.arange(50) / 10
    return RegressionSample(x_train, y_train, x_test, truth(x_test))
