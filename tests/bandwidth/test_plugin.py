"""The plug-in bandwidth: against KernSmooth's number, a slow reference, and the optimum of known functions."""

from pathlib import Path

import numpy as np
import pytest

from kernpool import get_kernel, kernel_names
from kernpool.bandwidth import plugin as plugin_pilots
from kernpool.bandwidth import plugin_bandwidth

OLD_FAITHFUL = Path(__file__).parent / "old_faithful.csv"


def dpill(x, y, grid=None, last_is_lost=False):
    """What R's KernSmooth does, step by step and densely: on a grid of points, or with rows as they are."""
    order = np.argsort(x, kind="stable")
    cut = int(0.01 * len(x))
    x, y = x[order][cut : len(x) - cut], y[order][cut : len(x) - cut]
    deviation = x.std(ddof=1)
    x = (x - x.mean()) / deviation
    n, low, width = len(x), x[0], x[-1] - x[0]

    def quartics(number):
        residual = product = 0.0
        for j in range(number):
            rows = slice(j * (n // number), n if j == number - 1 else (j + 1) * (n // number))
            b = np.linalg.lstsq(np.vander(x[rows], 5, increasing=True), y[rows], rcond=None)[0]
            residual += np.sum((y[rows] - np.vander(x[rows], 5, increasing=True) @ b) ** 2)
            product += np.sum((2 * b[2] + 6 * b[3] * x[rows] + 12 * b[4] * x[rows] ** 2) * 24 * b[4])
        return residual, product / n

    most = max(min(n // 20, 5), 1)
    fits = [quartics(number) for number in range(1, most + 1)]
    mallows = [r / fits[-1][0] * (n - 5 * most) + 10 * i - n for i, (r, _) in enumerate(fits, 1)]
    number = 1 + int(np.argmin(mallows))
    noise, product = fits[number - 1][0] / (n - 5 * number), fits[number - 1][1]

    point, count, total, step = x, np.ones(n), y, 0.0
    if grid:
        point, count, total = np.linspace(low, x[-1], grid), np.zeros(grid), np.zeros(grid)
        step = width / (grid - 1)
        for a, b in list(zip(x, y, strict=True))[: n - last_is_lost]:
            left = min(int((a - low) / step), grid - 2)
            right_share = (a - low) / step - left
            for i, share in ((left, 1 - right_share), (left + 1, right_share)):
                count[i] += share
                total[i] += share * b

    def local(degree, h):
        """Coefficients at each point, and the first row of the inverse design with that of the squared weights."""
        found = []
        for q in point:
            offset = point - q
            weight = np.exp(-0.5 * (offset / h) ** 2)
            if grid:
                weight[np.abs(offset) > (np.floor(4 * h / step) + 0.5) * step] = 0.0
            powers = np.vander(offset, degree + 1, increasing=True)
            inverse = np.linalg.inv(powers.T @ ((count * weight)[:, None] * powers))
            squared = powers.T @ ((count * weight**2)[:, None] * powers)
            found.append((inverse @ powers.T @ (weight * total), inverse[0, 0], inverse[0] @ squared @ inverse[0]))
        return [np.array(part) for part in zip(*found, strict=True)]

    constant = 3 / 8 if product < 0 else 15 / 16
    pilot = (constant / np.sqrt(np.pi) * noise * width / (abs(product) * n)) ** (1 / 7)
    second = 2 * local(3, pilot)[0][:, 2]
    inside = (point >= low + (0.05 - 1e-9) * width) & (point <= low + (0.95 + 1e-9) * width)
    curvature = np.sum(second[inside] ** 2 * count[inside]) / n
    constant = (4 * (1 / 2 + 2 * np.sqrt(2) - 4 / 3 * np.sqrt(3)) / np.sqrt(2 * np.pi)) ** (1 / 9)
    beta, own, squared = local(1, constant * (noise**2 * width / (curvature * n) ** 2) ** (1 / 9))
    residual = np.sum(y**2) - 2 * np.sum(beta[:, 0] * total) + np.sum(beta[:, 0] ** 2 * count)
    noise = residual / (n - 2 * np.sum(own * count) + np.sum(squared * count))
    return deviation * (noise * width / (2 * np.sqrt(np.pi) * curvature * n)) ** (1 / 5)


def sample(n, seed, function=lambda x: np.sin(6 * x), noise=0.3, draw="uniform"):
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1, 1, n) if draw == "uniform" else generator.normal(0, 0.5, n)
    return x, function(x) + noise * generator.normal(size=n)


FUNCTIONS = {
    "sine": lambda x: np.sin(6 * x),
    "bump": lambda x: np.exp(-8 * x**2),
    "square": lambda x: x**2,
    "line": lambda x: x,
    "fast": lambda x: np.sin(20 * x),
}


def test_the_reference_is_kernsmooth():
    """R's dpill(geyser$duration, geyser$waiting) of 2014, which lost the last row in binning: test of KernSmooth.jl."""
    waiting, duration = np.loadtxt(OLD_FAITHFUL, delimiter=",", skiprows=3, unpack=True)
    assert dpill(duration, waiting, grid=401, last_is_lost=True) == pytest.approx(0.238350165926485, rel=1e-11)


@pytest.mark.covering
@pytest.mark.parametrize("draw", ["uniform", "normal"])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("n", [25, 60, 300])
def test_it_is_that_of_the_reference(n, function, draw):
    x, y = sample(n, n, FUNCTIONS[function], draw=draw)
    assert plugin_bandwidth(x, y) == pytest.approx(dpill(x, y), rel=1e-7)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_bins_change_little(function, monkeypatch):
    x, y = sample(2500, 3, FUNCTIONS[function])
    binned = plugin_bandwidth(x, y)
    assert binned == pytest.approx(dpill(x, y, grid=401), rel=1e-2)
    monkeypatch.setattr(plugin_pilots, "EXACT_POINTS", 2500)
    exact = plugin_bandwidth(x, y)
    assert exact != binned
    assert exact == pytest.approx(binned, rel=1e-2)


@pytest.mark.parametrize(
    ("function", "curvature"),
    [
        (lambda x: np.sin(6 * x), 6**4 * (1 / 2 - np.sin(12) / 24)),  # mean of 6^4 sin(6x)^2 over (-1, 1)
        (lambda x: np.cos(4 * x), 4**4 * (1 / 2 + np.sin(8) / 16)),
        (lambda x: 5 * x**2, 100.0),
    ],
)
def test_it_finds_the_optimum_of_known_functions(function, curvature):
    x, y = sample(5000, 0, function, noise=0.5)
    optimum = (0.5**2 * 2 / (2 * np.sqrt(np.pi) * 5000 * curvature)) ** (1 / 5)
    assert plugin_bandwidth(x, y) == pytest.approx(optimum, rel=0.1)


@pytest.mark.parametrize("n", [60, 1500])
def test_weights_are_frequencies(n, generator):
    x, y = sample(n, 5)
    x[: n // 3] = np.round(x[: n // 3], 1)  # ties, too
    weight = generator.integers(0, 4, n)
    order = generator.permutation(weight.sum())
    repeated = plugin_bandwidth(np.repeat(x, weight)[order], np.repeat(y, weight)[order])
    assert plugin_bandwidth(x, y, weight) == pytest.approx(repeated, rel=1e-9)
    assert plugin_bandwidth(x, y, np.ones(n)) == plugin_bandwidth(x, y)


def test_units_do_not_matter():
    x, y = sample(200, 6)
    h = plugin_bandwidth(x, y)
    assert plugin_bandwidth(1000 * x + 1e5, -7 * y + 1e6) == pytest.approx(1000 * h, rel=1e-7)
    assert plugin_bandwidth(1e-9 * x, 1e-9 * y) == pytest.approx(1e-9 * h, rel=1e-9)
    assert plugin_bandwidth(x[:, None], y[:, None]) == h


@pytest.mark.parametrize("kernel", kernel_names())
def test_other_kernels_smooth_as_much(kernel):
    x, y = sample(100, 7)
    ratio = 1.0
    if kernel != "constant":
        ratio = get_kernel(kernel).canonical_factor / get_kernel("gaussian").canonical_factor
    assert plugin_bandwidth(x, y, kernel=kernel) == pytest.approx(ratio * plugin_bandwidth(x, y), rel=1e-12)


def test_gaps_and_heavy_ties():
    """Windows that determine no cubic, and blocks that determine no quartic."""
    x, y = sample(300, 8)
    apart = x + 100 * np.digitize(x, [-0.3, 0.3])
    assert 0 < plugin_bandwidth(apart, y) < 200
    coarse = np.round(20 * x) / 20
    coarse[:200] = 0.0
    assert 0 < plugin_bandwidth(coarse, y) < 2


def test_what_it_cannot_do():
    x, y = sample(50, 9)
    for columns in (np.c_[x, x], np.zeros((50, 0))):
        with pytest.raises(ValueError, match=r"for one column, got x of shape .*; use bandwidth='loo' for several"):
            plugin_bandwidth(columns, y)
    with pytest.raises(ValueError, match=r"for one output, got y of shape \(50, 2\)"):
        plugin_bandwidth(x, np.c_[y, y])
    with pytest.raises(ValueError, match="must have the same number of rows, got 50 and 49"):
        plugin_bandwidth(x, y[1:])
    with pytest.raises(ValueError, match=r"got 19 rows \(the sum of the weights\); use bandwidth='loo'"):
        plugin_bandwidth(x[:19], y[:19])
    with pytest.raises(ValueError, match=r"got 1 rows \(the sum of the weights\)"):
        plugin_bandwidth(x, y, np.full(50, 0.02))
    with pytest.raises(ValueError, match=r"got \d+ different x; use bandwidth='loo'"):
        plugin_bandwidth(np.round(x, 1)[:21], y[:21])
    with pytest.raises(ValueError, match="got 1 different x"):
        plugin_bandwidth(x, y, np.r_[5000.0, np.ones(49)][np.argsort(np.argsort(x))])
    with pytest.raises(ValueError, match="weight must hold one frequency per row"):
        plugin_bandwidth(x, y, -np.ones(50))
    with pytest.raises(ValueError, match="weight must hold one frequency per row"):
        plugin_bandwidth(x, y, np.ones(49))
    with pytest.raises(ValueError, match="x holds nan"):
        plugin_bandwidth(np.full(50, np.nan), y)
    for smooth in (np.zeros(50), 1e6 + x, x**4):
        with pytest.raises(ValueError, match=r"no noise about a smooth curve.*use bandwidth='loo'"):
            plugin_bandwidth(x, smooth)
    ends = np.r_[np.linspace(0, 0.01, 25), np.linspace(0.99, 1, 25)]
    with pytest.raises(ValueError, match="curvature is zero"):
        plugin_bandwidth(ends, y)
    sparse = np.linspace(0, 1, 30)
    with pytest.raises(ValueError, match="gaps in x are so large that local fits interpolate"):
        plugin_bandwidth(sparse, 100 * sparse**4 + 0.01 * np.random.default_rng(0).normal(size=30))
