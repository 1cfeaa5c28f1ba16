"""Rows that several benchmarks draw."""

import numpy as np


def peak(x: np.ndarray) -> np.ndarray:
    """A wave with a peak."""
    return np.sin(2 * np.pi * x) + 2 * np.exp(-16 * (x - 0.5) ** 2)


def wave_with_peak(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of it at uniform places, and noise that grows."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(size=n)
    return x[:, None], peak(x) + (0.2 + 0.3 * x) * generator.normal(size=n)
