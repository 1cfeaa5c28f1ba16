"""How sums of kernels are interpolated: the bounds of the table, with 40 digits."""

import numpy as np
import pytest
from mpmath import mp, mpf

from kernpool.distribution.one_column_quantile import least_sum, reach_of, smoothness_of
from kernpool.kernels import get_kernel


def profile(name, u):
    u = abs(u)
    return {
        "gaussian": lambda: mp.exp(-u * u / 2),
        "logistic": lambda: mp.sech(u / 2) ** 2,
        "cosine": lambda: mp.cos(mp.pi * u / 2),
        "boxcar": lambda: mpf(1),
        "epanechnikov": lambda: 1 - u**2,
        "triangular": lambda: 1 - u,
        "biweight": lambda: (1 - u**2) ** 2,
        "triweight": lambda: (1 - u**2) ** 3,
        "tricube": lambda: (1 - u**3) ** 3,
    }[name]()


def largest_errors(name, center):
    """Return the largest error of the interpolant on the widest block at a distance, and that beside the kernel."""
    smooth = smoothness_of(get_kernel(name))
    half, steps = mpf(smooth.width) / 2, range(smooth.nodes)
    node = [center + half * mp.cos(mp.pi * (i + mpf(1) / 2) / smooth.nodes) for i in steps]
    value = [profile(name, x) for x in node]
    pull = [1 / mp.fprod((node[i] - node[r]) / half for r in steps if r != i) for i in steps]
    errors = []
    for t in np.linspace(-0.997, 0.997, 40):
        x = center + half * mpf(float(t))
        basis = [weight / (x - point) for weight, point in zip(pull, node, strict=True)]
        error = abs(mp.fdot(basis, value) / mp.fsum(basis) - profile(name, x))
        errors.append((error, error / profile(name, x)))
    return (float(max(column)) for column in zip(*errors, strict=True))


@pytest.mark.parametrize("center", [0.0, 0.2, 0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize(
    ("name", "bound", "beside"),
    [("gaussian", 2e-21, np.inf), ("logistic", 7e-17, 7e-17), ("cosine", 5e-17, np.inf)]
    + [(name, 1e-35, np.inf) for name in ("boxcar", "epanechnikov", "biweight", "triweight", "triangular", "tricube")],
)
def test_the_interpolant_is_within_its_bound(name, bound, beside, center):
    with mp.workdps(40):
        smooth = smoothness_of(get_kernel(name))
        if smooth.edge:  # whole within the window, and on one side of a kink
            center = max(min(center, 1.0 - 0.51 * smooth.width), 0.51 * smooth.width if smooth.kink else 0.0)
        error, share = largest_errors(name, center)
    assert error < bound
    assert share < beside
    assert error > bound / 100 or bound < 1e-30 or center > 0.7 or name == "boxcar"  # and the bound is no idle one


@pytest.mark.parametrize("name", ["gaussian", "logistic"])
@pytest.mark.parametrize("keys", [10, 10_000, 10**8])
def test_keys_out_of_reach_weigh_nothing_beside_sums_that_are_used(name, keys):
    kernel = get_kernel(name)
    reach = reach_of(kernel, keys)
    assert keys * float(kernel.profile(np.array(reach))) < 2.0**-55 * least_sum(kernel, keys, float(keys))
    assert reach < 80.0
