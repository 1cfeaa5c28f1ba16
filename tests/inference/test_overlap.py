"""Which groups have something to be compared with: against dense weights, and what the test of curves refuses."""

import numpy as np
import pytest

from kernpool import compare_curves
from kernpool.inference.hypothesis_tests.curve_equality import LEAST_SHARE, out_of_reach
from kernpool.pooling import Recipe
from tests.support.dense_resampling import kernel_matrix


def dense(X, code, h, kernel):
    """Return the groups that have no share around rows of others, nor others around theirs, pair by pair."""
    weight = kernel_matrix(X, X, h, kernel)
    share = weight / weight.sum(axis=1, keepdims=True)
    found = []
    for group in np.unique(code):
        own = code == group
        if max(share[own][:, ~own].sum(axis=1).max(), share[~own][:, own].sum(axis=1).max()) < LEAST_SHARE:
            found.append(group)
    return found


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "logistic", "constant"])
@pytest.mark.parametrize("columns", [1, 2])
def test_as_pair_by_pair(kernel, columns):
    counts = set()
    for seed in range(12):
        random = np.random.default_rng(seed)
        code = np.concatenate([np.arange(4), random.integers(0, 4, 56)])
        X = random.uniform(size=(60, columns)) + random.uniform(0, 4, size=(4, columns))[code]
        for h in (0.05, 0.2, 0.5):
            found = out_of_reach(X, code, Recipe.of(kernel, np.full(columns, h))).tolist()
            assert found == dense(X, code, np.full(columns, h), kernel)
            counts.add(len(found))
    assert counts == {0} if kernel == "constant" else len(counts) > 1


def test_a_small_group_within_a_large_one_is_compared():
    """Around each row of the large group it has less weight than the bar, and around its own rows the other has all."""
    X = np.append(np.linspace(0.0, 1.0, 4000), [0.5, 0.51, 0.52])[:, None]
    code = np.repeat([0, 1], [4000, 3])
    assert out_of_reach(X, code, Recipe.of("gaussian", np.array([0.5]))).size == 0


def apart(gap):
    random = np.random.default_rng(0)
    x = np.concatenate([random.uniform(size=40), 1.0 + gap + random.uniform(size=40)])
    group = np.repeat(["a", "b"], 40)
    return x, np.sin(3 * x) + 0.2 * random.normal(size=80) + (group == "b"), group


@pytest.mark.parametrize("null", ["equal", "parallel"])
@pytest.mark.parametrize("bandwidth", [None, 0.1])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_groups_that_do_not_overlap(null, bandwidth, kernel):
    """T would be rounding, and p would be 1 whatever the curves."""
    message = r"no rows of other groups are within reach of 'a' and 'b' at the bandwidth \[0\.\d+\]"
    message += r".*from 0\.\d+ to 0\.\d+ in 'a', from 2\.\d+ to 2\.\d+ in 'b'.*over a common range"
    with pytest.raises(ValueError, match=message):
        compare_curves(*apart(1.0), null=null, bandwidth=bandwidth, kernel=kernel)


def test_lines_are_extended_where_the_bandwidth_reaches():
    x, y, group = apart(1.0)
    assert compare_curves(x, y, group, bandwidth=0.5, n_resamples=99).p_value == 0.01
    with pytest.raises(ValueError, match=r"of the offsets of parallel curves.*leave these out$"):
        compare_curves(x, y, group, null="parallel", bandwidth=0.5)
    assert compare_curves(*apart(-0.5), null="parallel", bandwidth=0.3, n_resamples=9).p_value <= 1.0


def test_one_group_by_itself_is_named():
    x, y, group = apart(-1.0)
    x, y, group = np.append(x, x[:10] + 100.0), np.append(y, y[:10]), np.append(group, np.full(10, "far"))
    with pytest.raises(ValueError, match=r"within reach of 'far' at .* in 'a', from 100.* in 'far'.*leave it out"):
        compare_curves(x, y, group, bandwidth=0.1)
    weight = 1.0 * (group != "far")
    assert compare_curves(x, y, group, sample_weight=weight, bandwidth=0.1, n_resamples=9).p_value <= 1.0
    with pytest.raises(ValueError, match=r"from 0.* to 0.* and from 0 to 0 in 'a'"):
        compare_curves(np.stack([x, 0 * x], axis=1), y, group, bandwidth=0.1)
