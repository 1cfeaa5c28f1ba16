"""Columns of dates and durations: ticks are dates, units are said, and curves are those of days."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pd = pytest.importorskip("pandas", reason="frames need pandas")
pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")
from matplotlib.dates import ConciseDateFormatter

from kernpool import (
    CoverageDisplay,
    KernelCurveDisplay,
    LocalLinearRegressor,
    NadarayaWatsonRegressor,
    QuantileFanDisplay,
    ResidualDisplay,
)

N = 60
RNG = np.random.default_rng(11)
DAYS = np.sort(RNG.integers(18_000, 18_700, N)).astype(float)
Y = np.cos(DAYS / 90) + 0.1 * RNG.normal(size=N)
KINDS = {
    "dates": (pd.to_datetime(DAYS, unit="D"), "when"),
    "dates with a zone": (pd.to_datetime(DAYS, unit="D", utc=True).tz_convert("Asia/Tokyo"), "when (UTC)"),
    "durations": (pd.to_timedelta(DAYS, unit="D"), "when (days)"),
}
DISPLAYS = {
    "curve": lambda model, X: KernelCurveDisplay.from_estimator(model, X, Y, band="confidence"),
    "slope": lambda model, X: KernelCurveDisplay.from_estimator(model, X, Y, quantity="derivative"),
    "fan": lambda model, X: QuantileFanDisplay.from_estimator(model, X, Y),
    "residuals": lambda model, _: ResidualDisplay.from_estimator(model, against="when"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", DISPLAYS)
def test_axes_of_dates(name, kind):
    cells, label = KINDS[kind]
    X = pd.DataFrame({"when": cells})
    display = DISPLAYS[name](LocalLinearRegressor(bandwidth=40.0, ridge=0.0).fit(X, Y), X)
    assert display.ax_.get_xlabel() == label
    assert isinstance(display.ax_.xaxis.get_major_formatter(), ConciseDateFormatter) == kind.startswith("dates")
    assert display.plot().ax_.get_xlabel() == label  # drawn again
    assert repr(display).endswith(">")  # and not all its numbers
    if name == "slope":
        assert display.ax_.get_ylabel() == "slope of y per day"


@pytest.mark.parametrize("kind", KINDS)
def test_the_curve_is_that_of_days(kind):
    X = pd.DataFrame({"when": KINDS[kind][0], "z": RNG.normal(size=N)})
    days = np.column_stack([DAYS, X["z"]])
    for columns, numbers in ((X, days), (X[["when"]].to_numpy(), days[:, :1])):
        if kind == "dates with a zone" and numbers.shape[1] == 1:
            continue  # an array has no zone
        options = {"bandwidth": [40.0, 1.0][: numbers.shape[1]]}
        found = KernelCurveDisplay.from_estimator(
            NadarayaWatsonRegressor(**options).fit(columns, Y), columns, Y, feature=0
        )
        expected = KernelCurveDisplay.from_estimator(
            NadarayaWatsonRegressor(**options).fit(numbers, Y), numbers, Y, feature=0
        )
        assert_allclose(found.x, expected.x, rtol=1e-12)
        assert_allclose(found.prediction, expected.prediction, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_coverage_by_slices_of_dates(kind):
    cells, label = KINDS[kind]
    X = pd.DataFrame({"when": cells, "z": RNG.normal(size=N)})
    ends = Y - 1.0, np.where(np.arange(N) % 5, Y + 1.0, Y - 0.5)
    expected = CoverageDisplay.from_intervals(DAYS, Y, ends, level=0.9, slices=4).slices
    model = LocalLinearRegressor(bandwidth=[40.0, 1.0], ridge=0.0).fit(X[::2], Y[::2])
    for display in (
        CoverageDisplay.from_intervals(cells, Y, ends, level=0.9, slices=4, x_label="when"),
        CoverageDisplay.from_estimator(model, X, Y, against="when", slices=4),
    ):
        assert_array_equal(display.slices.center, expected.center)
        assert display.ax_.get_xlabel() == label
        assert isinstance(display.ax_.xaxis.get_major_formatter(), ConciseDateFormatter) == kind.startswith("dates")
