"""Whether curves are equal or parallel, and which groups have something to be compared with: against dense matrices."""

import numpy as np
import pytest
from scipy.stats import chi2

from kernpool import compare_curves
from kernpool.inference.hypothesis_tests.curve_equality import LEAST_SHARE, out_of_reach
from kernpool.inference.resampling import random_draws
from kernpool.pooling import Recipe
from tests.support.dense_resampling import kernel_matrix, leave_one_out, p_value, smoother, two_curves


class Ancova:
    """`sm.ancova` of R's sm: matrices of both fits and of the variance."""

    def __init__(self, x, group, h, parallel=False):
        n, code = len(x), np.unique(group, return_inverse=True)[1]
        x = x.reshape(n, -1)
        self.own, self.noise = np.zeros((n, n)), np.zeros((n, n))
        count = 0
        for g in range(code.max() + 1):
            members = np.flatnonzero(code == g)
            self.own[np.ix_(members, members)] = smoother(x[members], h, 1)
            order = members[np.argsort(x[members, 0], kind="stable")]
            for left, middle, right in zip(order[:-2], order[1:-1], order[2:], strict=True):
                a = (x[right, 0] - x[middle, 0]) / (x[right, 0] - x[left, 0])
                row = np.zeros(n)
                row[[left, middle, right]] = a, -1.0, 1.0 - a
                self.noise += np.outer(row, row) / (row @ row)
                count += 1
        self.noise /= count
        self.smooth, self.shift = smoother(x, h, 1), np.zeros((n, n))
        if parallel:
            D = (code[:, None] == np.arange(1, code.max() + 1)).astype(float)
            rest = np.eye(n) - smoother(x, 2 * np.ptp(x, axis=0) / n, 1)
            self.shift = D @ np.linalg.pinv(rest @ D) @ rest
        self.null = self.shift + self.smooth @ (np.eye(n) - self.shift)
        gap = self.null - self.own
        self.gap = gap.T @ gap

    def __call__(self, y):
        return y @ self.gap @ y / (y @ self.noise @ y)

    def three_moments(self, y):
        """The p-value that sm prints: a chi-squared distribution of three matching moments."""
        form = self.gap - self(y) * self.noise
        squared = form @ form
        k1, k2, k3 = np.trace(form), 2 * np.trace(squared), 8 * np.trace(squared @ form)
        a, b = abs(k3 / (4 * k2)), 8 * k2**3 / k3**2
        return chi2.sf(-(k1 - a * b) / a, b)


@pytest.mark.parametrize(("h", "published"), [(0.05, 0.0140), (0.1, 0.0028)])
def test_as_sm(h, published):
    x, y, group = two_curves()
    reference = Ancova(x, group, h)
    assert reference.three_moments(y) == pytest.approx(published, abs=5e-5)
    found = compare_curves(x, y, group, bandwidth=h, null_distribution="normal", n_resamples=2000)
    assert found.statistic == pytest.approx(reference(y), rel=1e-11)
    assert found.p_value == pytest.approx(published, abs=0.006)


@pytest.mark.parametrize("null", ["equal", "parallel"])
@pytest.mark.parametrize("kind", ["wild", "normal"])
def test_the_whole_test(null, kind):
    x, y, group = two_curves(90)
    group = np.where(np.arange(90) % 5 == 0, 2, group)
    found = compare_curves(
        x, y, group, null=null, bandwidth=0.1, null_distribution=kind, n_resamples=99, random_state=4
    )
    reference = Ancova(x, group, 0.1, null == "parallel")
    rest = y - reference.shift @ y
    if kind == "normal":
        again = random_draws.multipliers("gaussian", 4, slice(0, 99), 90)
    else:
        left = leave_one_out(reference.smooth, rest)
        again = (reference.null @ y)[:, None] + left[:, None] * random_draws.multipliers(kind, 4, slice(0, 99), 90)
    np.testing.assert_allclose(found.statistic, reference(y), rtol=1e-9)
    np.testing.assert_allclose(found.resampled, [reference(column) for column in again.T], rtol=1e-8)
    assert found.p_value == p_value(found.statistic, found.resampled)
    assert found.null == f"the curves of all groups are {null}"
    np.testing.assert_allclose(found.bandwidth, [0.1])


def test_offsets_do_not_matter_to_parallel_curves():
    x, y, group = two_curves(80)
    one = compare_curves(x, y, group, null="parallel", bandwidth=0.1, n_resamples=19)
    moved = compare_curves(x, y + 50.0 * group, group, null="parallel", bandwidth=0.1, n_resamples=19)
    np.testing.assert_allclose(moved.statistic, one.statistic, rtol=1e-8)
    np.testing.assert_allclose(moved.resampled, one.resampled, rtol=1e-8)
    assert compare_curves(x, y + 50.0 * group, group, bandwidth=0.1, n_resamples=19).p_value == 0.05


def test_two_columns():
    random = np.random.default_rng(0)
    X, group = random.uniform(size=(120, 2)), np.arange(120) % 2
    y = np.sin(4 * X[:, 0]) + X[:, 1] + 0.2 * random.normal(size=120)
    assert compare_curves(X, y, group, n_resamples=99).p_value > 0.05
    assert compare_curves(X, y + group * X[:, 1], group, n_resamples=99).p_value == 0.01
    assert compare_curves(X, y + group, group, null="parallel", n_resamples=99).p_value > 0.05
    found = compare_curves(X, y, group, bandwidth=[0.3, 0.4], n_resamples=1)
    common, own = smoother(X, np.array([0.3, 0.4]), 1) @ y, np.empty(120)
    for g in (0, 1):
        own[group == g] = smoother(X[group == g], np.array([0.3, 0.4]), 1) @ y[group == g]
    np.testing.assert_allclose(found.statistic, np.sum((own - common) ** 2) / np.mean((y - own) ** 2), rtol=1e-9)


def test_ties():
    """Neighbours at one place are compared with their mean."""
    x, y, group = two_curves(80)
    found = compare_curves(np.round(4 * x) / 4, y, group, bandwidth=0.3, n_resamples=19)
    assert np.isfinite(found.statistic)
    assert 0.05 <= found.p_value <= 1.0


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


X, Y, GROUP = two_curves(40)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"groups": np.where(np.arange(40) == 7, "c", "a")}, r"group 'c' has 1 row"),
        ({"groups": GROUP, "sample_weight": 1.0 * (GROUP == 1)}, "single label"),
        ({"bandwidth": -1.0}, "bandwidth must be positive"),
        ({"bandwidth": 1e-6}, "passes through every row.*give bandwidth= a larger one"),
        ({"sample_weight": np.full(40, 2.0)}, "leave-one-out finds next to no bandwidth"),
        ({"sample_weight": 1.0 + GROUP}, "give bandwidth=, or each row once without sample_weight"),
    ],
)
def test_what_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        compare_curves(**({"X": X, "y": Y, "groups": GROUP} | changes))
