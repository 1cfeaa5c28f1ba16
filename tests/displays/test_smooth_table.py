"""Curve and band as a table, and as parts of plots of seaborn and plotnine: the numbers of a fit per group."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pd = pytest.importorskip("pandas", reason="frames need pandas")

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, smooth
from kernpool.displays.plotnine import kernel_smoother
from tests.support.pictures import ends

N = 90
RNG = np.random.default_rng(0)
X = np.sort(RNG.uniform(0, 5, N))
DATA = pd.DataFrame({"age": X, "sex": ["m", "f", "f"] * (N // 3), "wage": np.sin(X) + 0.2 * RNG.normal(size=N)})


def expected(group, points=100, level=0.95):
    rows = DATA[DATA["sex"] == group]
    model = LocalLinearRegressor().fit(rows[["age"]].to_numpy(), rows["wage"])
    at = np.linspace(rows["age"].min(), rows["age"].max(), points)
    band = model.confidence_interval(at[:, None], level=level)
    return np.c_[at, model.predict(at[:, None]), band.lower, band.upper]


@pytest.mark.parametrize("library", ["pandas", "polars", "builtins"])
def test_a_fit_per_group(library):
    data = DATA if library == "pandas" else DATA.to_dict("list")
    if library == "polars":
        data = pytest.importorskip("polars", reason="frames of polars").DataFrame(data)
    table = smooth(data, x="age", y="wage", by="sex", level=0.9, points=20)
    assert type(table) is type(data)
    assert_array_equal(table["sex"], ["f"] * 20 + ["m"] * 20)
    columns = np.column_stack([np.asarray(table[name]) for name in ("age", "wage", "lower", "upper")])
    assert_allclose(columns, np.r_[expected("f", 20, 0.9), expected("m", 20, 0.9)])


def test_dates_given_points_and_another_model():
    days = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=40), "y": RNG.normal(size=40)})
    table = smooth(days, x="day", y="y", points=3)
    assert_array_equal(table["day"], np.array(["2020-01-01", "2020-01-20T12", "2020-02-09"], "M8[ns]"))
    model = NadarayaWatsonRegressor(bandwidth=0.5)
    table = smooth(DATA, x="age", y="wage", model=model, points=[1.0, 2.0])
    assert_allclose(table["wage"], model.fit(DATA[["age"]], DATA["wage"]).predict(pd.DataFrame({"age": [1.0, 2.0]})))


def test_groups_keep_their_type():
    data = DATA.assign(sex=pd.Categorical(DATA["sex"], ["m", "f", "x"], ordered=True), hired=DATA["sex"] == "f")
    data.index = [0] * N
    for by in ("sex", "hired"):
        assert smooth(data, x="age", y="wage", by=by, points=2)[by].dtype == data[by].dtype
    assert list(smooth(pd.DataFrame(np.eye(9)), x=0, y=1, points=2)) == [0, 1, "lower", "upper"]


def test_the_group_that_is_refused_is_named():
    with pytest.raises(ValueError, match="row 1 ") as found:
        smooth(DATA.assign(wage=DATA["wage"].where(DATA.index != 2)), x="age", y="wage", by="sex")
    assert found.value.__notes__ == ["in the group ['f'], whose rows are counted by themselves"]


@pytest.mark.filterwarnings("ignore:The copy keyword is deprecated")  # of pandas, in seaborn
@pytest.mark.parametrize("orient", ["x", "y"])
def test_a_stat_of_seaborn(orient):
    so = pytest.importorskip("seaborn.objects", reason="the stat needs seaborn")
    from kernpool.displays.seaborn import Smooth

    data = pd.concat([DATA, DATA[:1].assign(wage=np.nan)])
    names = {"x": "age", "y": "wage"} if orient == "x" else {"x": "wage", "y": "age"}
    plot = so.Plot(data, color="sex", **names)
    plot = plot.add(so.Line(), Smooth(), orient=orient).add(so.Band(), Smooth(), orient=orient)
    (ax,) = plot.plot()._figure.axes
    assert (ax.get_xlabel(), ax.get_ylabel()) == (names["x"], names["y"])
    for line, band, group in zip(ax.lines, ax.patches, ("m", "f"), strict=True):
        found = expected(group)
        assert_allclose(line.get_xydata(), found[:, :2] if orient == "x" else found[:, 1::-1])
        low, high = band.get_xy().min(axis=0), band.get_xy().max(axis=0)
        assert_allclose((low[int(orient == "x")], high[int(orient == "x")]), (found[:, 2].min(), found[:, 3].max()))


def test_a_method_of_plotnine():
    plotnine = pytest.importorskip("plotnine", reason="the method needs plotnine")
    aes = plotnine.aes("age", "wage", color="sex")
    model = {"model": LocalLinearRegressor()}
    layer = plotnine.geom_smooth(method=kernel_smoother, method_args=model, level=0.9)
    (ax,) = (plotnine.ggplot(DATA, aes) + layer).draw().axes
    for line, group in zip(ax.lines, ("f", "m"), strict=True):
        x, y = line.get_data()
        assert_allclose(np.c_[x, y], expected(group, len(x))[:, :2])
    bands = [ends(one) for one in ax.collections]
    assert_allclose(bands[0][1], expected("f", len(bands[0][0]), 0.9)[:, 2])
