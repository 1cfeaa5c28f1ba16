"""`pool` as users call it: batches, precisions, policies for empty windows, threads, one-dimensional arrays."""

import numpy as np

from kernpool import choose, pool
from kernpool.pooling import rounding_bound
from tests.fuzz.report import LEAST

NAMES = ("kernel", "bandwidth", "tol", "key_weight")
POLICIES = ("nan", "zero", "mean", "nearest")


def public_function(case, report):
    """Call `pool` in several ways, each with the same answers as brute force."""
    problem = case.problem()
    base = choose(problem, "brute").reduce(problem)
    empty, target = base.denominator == 0, base.finalize("zero")
    left_out = problem.tol * np.ptp(problem.value, axis=0)
    single = 2.0**-23 * np.abs(target) if problem.dtype == np.float32 else 0.0  # answers are rounded to it
    allowed = 2.0 * rounding_bound(problem, base) + left_out + single + LEAST
    options = {name: case.options.get(name) for name in NAMES}
    policy = POLICIES[case.index % len(POLICIES)]

    def hold(found, who, rows=slice(None), column=slice(None)):
        report.saw(who, len(found))
        if found.dtype != case.key.dtype:
            report.wrong(who, [], f"the answer is {found.dtype} for {case.key.dtype}")
        off, few = np.abs(found.astype(float) - target[rows][:, column]), empty[rows]
        off[few] = 0.0
        if (bad := np.flatnonzero(np.any(~(off <= allowed[rows][:, column]), axis=1))).size:
            report.wrong(who, bad, f"{bad.size} of {len(off)} queries are off by up to {np.nanmax(off[bad]):.3g}")
        expected = {"nan": np.nan, "zero": 0.0}
        if policy in expected:
            np.testing.assert_array_equal(found[few], expected[policy])
        elif not np.all(np.isfinite(found[few])):
            report.wrong(who, np.flatnonzero(few), f"an empty window has no value for empty={policy!r}")

    arrays = (case.query, case.key, case.value)
    for n_jobs in (1, 3):
        hold(pool(*arrays, empty=policy, n_jobs=n_jobs, **options), "pool")
    first = pool(case.query, case.key, case.value[:, 0], empty=policy, **options)
    hold(first[:, None], "pool, one value", column=slice(0, 1))
    half = len(case.query) // 2
    if half:
        batch = pool(np.stack([case.query[:half], case.query[half : 2 * half]]), case.key[None], case.value[None],
                     empty=policy, **options)  # fmt: skip
        hold(batch[0], "pool, batches", slice(0, half))
        hold(batch[1], "pool, batches", slice(half, 2 * half))
