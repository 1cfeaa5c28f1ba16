"""Running pools: the numbers of all pairs at once, in any order, across files and processes."""

import copy
import pickle

import numpy as np
import pytest

from kernpool import EmptyWindowWarning, RunningPool, kernel_names, pool


def pairs_of(generator, columns=2, values=2, rows=300):
    key = generator.normal(size=(rows, columns))
    return key, 1e6 + generator.normal(size=(rows, values)), generator.integers(0, 3, rows)


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("kernel", kernel_names())
def test_updates_and_merges_in_any_order(kernel, degree, generator):
    key, value, weight = pairs_of(generator)
    query, options = key[:9], {"kernel": kernel, "bandwidth": [2.0, 3.0], "degree": degree}
    expected = pool(query, key, value, key_weight=weight, **options)
    parts = []
    for rows in np.array_split(generator.permutation(300), 5):
        part = RunningPool(query, **options)
        for some in np.array_split(rows, 2):
            part.update(key[some], value[some], weight[some])
        parts.append(part)
    total = copy.deepcopy(parts[0])
    for part in reversed(parts[1:]):
        total.merge(part)
    np.testing.assert_allclose(total.values(), expected, rtol=1e-12)
    assert total.rows == 300


def test_one_value_column_stays_flat(generator):
    running = RunningPool([0.0, 1.0]).update([0.0, 1.0], [1.0, 3.0])
    assert running.values().shape == (2,)
    with pytest.raises(ValueError, match=r"must have shape \(rows,\) as before"):
        running.update([0.0], [[1.0, 2.0]])


def test_nothing_yet_and_nothing_in_reach():
    running = RunningPool([0.0, 9.0], kernel="boxcar")
    with pytest.raises(ValueError, match="nothing has been pooled yet"):
        running.values()
    assert running.update([], []).state is None
    running.update([0.5], [7.0])
    with pytest.warns(EmptyWindowWarning, match="1 of 2 queries"):
        np.testing.assert_array_equal(running.values(), [7.0, np.nan])
    zero = RunningPool([0.0, 9.0], kernel="boxcar", empty="zero").update([0.5], [7.0])
    np.testing.assert_array_equal(zero.values(), [7.0, 0.0])
    with pytest.raises(ValueError, match="needs the pairs"):
        RunningPool([0.0], empty="nearest")


def test_a_failed_update_changes_nothing(generator, monkeypatch):
    monkeypatch.setattr("kernpool.data.chunks.base.BYTES_PER_CHUNK", 1 << 10)
    key = generator.random(5000)
    running = RunningPool([0.5]).update(key, key)
    before, bad = running.values(), key.copy()
    bad[4900] = np.nan
    with pytest.raises(ValueError, match="row 4900 of value is nan"):
        running.update(key, bad)
    assert running.values() == before
    assert running.rows == 5000


def test_pools_that_differ_do_not_merge():
    running = RunningPool([0.0, 1.0], bandwidth=1.0).update([0.0], [1.0])
    for other in (
        RunningPool([0.0, 2.0]), RunningPool([0.0, 1.0], bandwidth=2.0), RunningPool([0.0, 1.0], kernel="laplace"),
        RunningPool([0.0, 1.0], degree=1),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="to be merged"):
            running.merge(other)
    with pytest.raises(ValueError, match=r"2 value column\(s\)"):
        running.merge(RunningPool([0.0, 1.0]).update([0.0], [[1.0, 2.0]]))


def test_pairs_without_weight_fix_nothing():
    running = RunningPool([0.0]).update([0.0, 0.0], [1e20, 1e20], [0.0, 0.0]).update([0.0], [[3.1, 4.0]])
    np.testing.assert_allclose(running.values(), [[3.1, 4.0]], rtol=1e-15)
    with pytest.raises(ValueError, match=r"key must have 1 column\(s\) as query, got 2"):
        running.update([[0.0, 1.0]], [[1.0, 7.0]], [0.0])
    with pytest.raises(ValueError, match=r"value must have shape \(rows, 2\) as before"):
        running.update([0.0], [1.0])


def test_the_policy_for_empty_windows_may_change_later():
    running = RunningPool([0.0, 9.0], kernel="boxcar").update([0.0], [5.0])
    running.empty = "zero"
    assert running.values().tolist() == [5.0, 0.0]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda pool: pickle.loads(pickle.dumps(pool))])
def test_copies_of_a_pool_go_their_own_way(duplicate):
    pool = RunningPool([0.0]).update([0.0], [1.0])
    other = duplicate(pool)
    pool.update([0.0], [3.0])
    other.update([0.0], [5.0])
    assert (pool.rows, other.rows) == (2, 2)
    assert [*pool.values(), *other.values()] == [2.0, 3.0]
