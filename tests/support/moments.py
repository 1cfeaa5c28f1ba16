"""Sums with moments against those of another algorithm, and local fits against least squares."""

import numpy as np

from kernpool import choose
from kernpool.core import monomials


def check_moments(problem, algorithm, reference, err_msg=""):
    """As weighted means, beside the root mean square of what is averaged: that is what rounding is relative to."""
    expected, found = choose(problem, reference).reduce(problem), choose(problem, algorithm).reduce(problem)
    np.testing.assert_array_equal(found.denominator == 0, expected.denominator == 0, err_msg=err_msg)
    layout, mean = problem.layout, expected.finalize("zero")
    largest = np.abs(problem.value + problem.value_center).max()
    squares = mean[:, layout.second][:, np.equal(*np.triu_indices(layout.columns))]
    distance = np.sqrt(squares).max(axis=1, keepdims=True)
    size = np.full_like(mean, largest)
    size[:, layout.first] = distance
    size[:, layout.second] = distance**2
    size[:, layout.cross] = distance * largest
    if layout.degree == 2:
        fourth = mean[:, [layout.places(4)[a, a, a, a] for a in range(layout.columns)]]
        size[:, layout.fourth] = fourth.max(axis=1, keepdims=True)
        size[:, layout.third] = np.sqrt(fourth.max(axis=1, keepdims=True)) * distance
        size[:, layout.cross_second] = np.sqrt(fourth.max(axis=1, keepdims=True)) * largest
    weight = len(problem.key) if problem.key_weight is None else problem.key_weight.sum()
    share = np.where(expected.denominator > 0, weight / np.maximum(1000 * expected.denominator, 1e-300), 1.0)
    factor = np.maximum(1.0, share)[:, None] if problem.similarity.kernel.is_compact else 1.0 + distance**2
    assert np.all(np.abs(found.finalize("zero") - mean) <= 2e-12 * factor * size + 1e-300), err_msg


def least_squares(query, key, value, weight, degree=1):
    """The obvious way, in the units of the columns: one design and one call of `lstsq` per query."""
    fits = []
    for q, w in zip(query, np.sqrt(weight), strict=True):
        offset = key - q
        products = [offset[:, a] * offset[:, b] for a, b in monomials(key.shape[1], 2)] if degree == 2 else []
        design = np.column_stack([np.ones(len(key)), offset, *products])
        fits.append(np.linalg.lstsq(w[:, None] * design, w[:, None] * value, rcond=None)[0])
    return np.stack(fits)
