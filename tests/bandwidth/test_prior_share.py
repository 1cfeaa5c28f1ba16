"""The prior share: the minimum of the log loss between the bounds, and what weights mean."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernpool.bandwidth.criteria import prior_of_others, prior_share

probabilities = st.lists(st.sampled_from([0.0, 1e-40, 1e-6, 0.2, 0.5, 0.9, 1.0]), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(probabilities, st.integers(0, 99))
def test_no_share_between_the_bounds_is_better(probability, seed):
    p = np.array(probability)
    prior = np.random.default_rng(seed).uniform(0.05, 0.95, p.size)
    found = prior_share(p, prior)
    n = p.size
    assert 1 / (n + 1) <= found.share <= max(0.5, n / (n + 1))
    losses = [-np.mean(np.log((1 - s) * p + s * prior)) for s in np.linspace(1 / (n + 1), n / (n + 1), 400)]
    assert found.log_loss <= min(losses) + 1e-12
    np.testing.assert_allclose(found.mixed, (1 - found.share) * p + found.share * prior)


@pytest.mark.parametrize("n", [1, 2, 10, 1000])
def test_rows_that_never_failed_prove_the_rule_of_succession(n):
    assert prior_share(np.ones(n), np.full(n, 0.5)).share == 1 / (n + 1)


def test_probabilities_that_say_less_than_the_priors():
    assert prior_share(np.zeros(9), np.full(9, 0.5)).share == 0.9


def test_a_weight_is_how_often_a_row_counts():
    generator = np.random.default_rng(0)
    p, prior, weight = generator.uniform(size=20), np.full(20, 0.4), generator.integers(0, 4, 20)
    once, repeated = prior_share(p, prior, weight * 1.0), prior_share(p.repeat(weight), prior.repeat(weight))
    assert once.share == pytest.approx(repeated.share, abs=1e-8)
    assert once.log_loss == pytest.approx(repeated.log_loss)
    label = np.eye(3)[generator.integers(0, 3, 20)]
    others = prior_of_others(label, weight * 1.0)
    np.testing.assert_allclose(others.repeat(weight), prior_of_others(label.repeat(weight, axis=0)))
    assert np.all(others > 0)


def test_priors_of_the_others():
    label = np.eye(3)[[0, 0, 0, 1, 1, 2]]
    np.testing.assert_allclose(prior_of_others(label), [2 / 5] * 3 + [1 / 5] * 2 + [1 / 6])  # the last is the only one
    np.testing.assert_allclose(prior_of_others(np.ones((1, 1))), 1.0)
