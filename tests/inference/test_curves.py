"""Whether curves are equal or parallel: against R's sm, dense matrices, laws."""

import numpy as np
import pytest
from scipy.stats import chi2

from kernpool import compare_curves
from kernpool.execution import report_progress
from kernpool.inference.resampling import random_draws
from tests.support.dense_resampling import leave_one_out, p_value, smoother, two_curves


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


@pytest.mark.parametrize("null", ["equal", "parallel"])
def test_laws(null):
    random = np.random.default_rng(0)
    x, group = random.uniform(size=60), np.arange(60) % 2
    y = np.sin(6 * x) + 0.2 * random.normal(size=60)
    one = compare_curves(x, y, group, null=null, n_resamples=29)
    labels = np.array(["first", "second"])[1 - group]
    other = compare_curves(1000.0 * x + 7.0, 3.0 - 50.0 * y, labels, null=null, n_resamples=29)
    np.testing.assert_allclose(other.resampled, one.resampled, rtol=1e-5)
    np.testing.assert_allclose(other.statistic, one.statistic, rtol=1e-5)
    order = np.random.default_rng(0).permutation(60)
    shuffled = compare_curves(x[order], y[order], group[order], null=null, bandwidth=0.1, n_resamples=1)
    plain = compare_curves(x, y, group, null=null, bandwidth=0.1, n_resamples=1)
    np.testing.assert_allclose(shuffled.statistic, plain.statistic, rtol=1e-9)
    weight = np.arange(60) % 3
    weighted = compare_curves(x, y, group, null=null, sample_weight=weight, bandwidth=0.2, n_resamples=29)
    many = [np.repeat(a, weight) for a in (x, y, group)]
    repeated = compare_curves(*many, null=null, bandwidth=0.2, n_resamples=29)
    assert np.array_equal(weighted.resampled, repeated.resampled)
    assert weighted.statistic == repeated.statistic


def test_threads_and_progress():
    x, y, group = two_curves(3000)
    found = [compare_curves(x, y, group, bandwidth=0.05, n_resamples=9, n_jobs=jobs).resampled for jobs in (1, 2)]
    assert np.array_equal(*found)
    seen = []
    with report_progress(lambda done, total: seen.append((done, total))):
        compare_curves(x[:60], y[:60], group[:60], bandwidth=0.1, n_resamples=70)
    assert seen == [(64, 70), (70, 70)]


def test_ties():
    """Neighbours at one place are compared with their mean."""
    x, y, group = two_curves(80)
    found = compare_curves(np.round(4 * x) / 4, y, group, bandwidth=0.3, n_resamples=19)
    assert np.isfinite(found.statistic)
    assert 0.05 <= found.p_value <= 1.0


X, Y, GROUP = two_curves(40)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"groups": np.zeros(40)}, "groups has the single label"),
        ({"groups": np.where(np.arange(40) == 7, "c", "a")}, r"group 'c' has 1 row"),
        ({"groups": GROUP[:5]}, "one label for each of the 40 rows"),
        ({"groups": GROUP, "sample_weight": 1.0 * (GROUP == 1)}, "single label"),
        ({"null": "same"}, "null must be 'equal' or 'parallel'"),
        ({"null_distribution": "residual"}, "null_distribution must be one of"),
        ({"n_resamples": 0}, "n_resamples must be"),
        ({"bandwidth": -1.0}, "bandwidth must be positive"),
        ({"y": np.ones(40)}, "y is 1 in every row"),
        ({"bandwidth": 1e-6}, "passes through every row.*give bandwidth= a larger one"),
        ({"sample_weight": np.full(40, 2.0)}, "leave-one-out finds next to no bandwidth"),
        ({"sample_weight": 1.0 + GROUP}, "give bandwidth=, or each row once without sample_weight"),
        ({"y": 1.0 + 2.0 * X, "bandwidth": 0.1}, "leaves no residuals beyond rounding"),
        ({"y": np.stack([Y, Y], axis=1)}, "test one column after the other"),
        ({"X": X[:4], "y": Y[:4], "groups": GROUP[:4]}, "at least 5 rows"),
        ({"sample_weight": np.full(40, 0.1)}, "must be whole numbers"),
    ],
)
def test_what_is_refused(changes, message):
    arguments = {"X": X, "y": Y, "groups": GROUP} | changes
    with pytest.raises(ValueError, match=message):
        compare_curves(**arguments)
