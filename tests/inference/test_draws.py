"""Draws are functions of the seed and their number."""

import numpy as np
import pytest

from kernpool.inference.resampling import random_draws


@pytest.mark.parametrize("kind", ["wild", "mammen", "gaussian"])
def test_multipliers_have_mean_zero_and_variance_one(kind):
    drawn = random_draws.multipliers(kind, 3, slice(0, 100), 2000)
    assert abs(drawn.mean()) < 0.01
    assert abs((drawn**2).mean() - 1) < 0.02
    assert abs((drawn**3).mean() - (kind == "mammen")) < 0.05


def test_columns_are_the_same_in_any_block():
    whole = random_draws.multipliers("gaussian", 5, slice(0, 40), 300)
    parts = [random_draws.multipliers("gaussian", 5, slice(start, start + 8), 300) for start in range(0, 40, 8)]
    assert np.array_equal(whole, np.hstack(parts))


def test_columns_share_no_numbers():
    """Philox counts in its first word: generators that differ there give the same numbers, a little later."""
    drawn = random_draws.multipliers("gaussian", 5, slice(0, 20), 500)
    assert len(np.unique(drawn)) == drawn.size
    assert np.abs(np.corrcoef(drawn.T) - np.eye(20)).max() < 0.2


def test_blocks_cover_all_resamples():
    for resamples, numbers in [(1, 10), (399, 100), (399, 10**6), (999, 10**9)]:
        blocks = random_draws.blocks(resamples, numbers)
        assert [n for block in blocks for n in range(block.start, block.stop)] == list(range(resamples))
        assert all(block.stop - block.start <= random_draws.MOST_COLUMNS for block in blocks)


def test_random_states_make_seeds():
    assert random_draws.as_seed(np.int64(4)) == 4
    assert random_draws.as_seed(np.random.RandomState(1)) == random_draws.as_seed(np.random.RandomState(1)) >= 0
    assert random_draws.as_seed(np.random.default_rng(1)) == random_draws.as_seed(np.random.default_rng(1)) >= 0
    assert random_draws.as_seed(None) != random_draws.as_seed(None)
    with pytest.raises(ValueError, match="random_state must not be negative"):
        random_draws.as_seed(-1)
    largest = 2**128 - 1
    assert np.isfinite(random_draws.multipliers("gaussian", random_draws.as_seed(largest), slice(0, 1), 3)).all()
    with pytest.raises(ValueError, match=r"random_state must be less than 2\*\*128"):
        random_draws.as_seed(largest + 1)


def test_weights_are_whole_numbers():
    assert random_draws.unit_counts([1.0, 1.0], "it") is None
    assert random_draws.unit_counts([0.0, 2.0], "it").tolist() == [0, 2]
    with pytest.raises(ValueError, match="draw a sample"):
        random_draws.unit_counts([1e12, 1.0], "it")
