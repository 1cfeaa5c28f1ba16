"""What an interval prints: a short record, whatever its shape and however many places there are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernpool import Interval, LocalLinearRegressor
from tests.support.inference_cases import bend

X, Y = bend()[0][:, None], bend()[1]
AT = np.linspace(0.0, 1.0, 9)[:, None]

# How intervals print is tested, and not whether they cover.
pytestmark = pytest.mark.filterwarnings("ignore:.*the correction for bias is larger than two standard errors")


def table(text):
    """Return the head as a dict, the names of the columns and the rows of cells."""
    head, _, body = text.partition("\n\n")
    names, *rows = body.splitlines()
    return dict(line.split("  ", 1) for line in head.splitlines()), names.split(), [row.split() for row in rows]


def test_the_head_says_level_and_method():
    head, _, _ = table(str(LocalLinearRegressor(bandwidth=0.1).fit(X, Y).confidence_interval(AT[:2])))
    assert {name: words.strip() for name, words in head.items()} == {
        "points": "2",
        "level": "0.95, pointwise",
        "method": "quadratic",
    }


@pytest.mark.filterwarnings("ignore::kernpool.EmptyWindowWarning")
def test_empty_windows_have_no_interval_whatever_a_prediction_there_does():
    model = LocalLinearRegressor("epanechnikov", bandwidth=0.1, empty="raise").fit(X, Y)
    found = model.confidence_interval([[0.5], [9.0]])
    assert np.isnan(found.lower).tolist() == [False, True]
    assert table(str(found))[2][1][:5] == ["1", "nan", "nan", "nan", "nan"]


def test_bands_say_how_they_were_found_and_long_ones_are_cut():
    model = LocalLinearRegressor(bandwidth=0.1).fit(X, Y)
    tube, drawn = (model.confidence_interval(AT, simultaneous=kind, level=0.9) for kind in ("tube", "multiplier"))
    assert (
        f"level     0.9, simultaneous for the whole curve, by the tube formula, critical value {tube.critical:.4g}"
        in str(tube)
    )
    words = (
        f"level     0.9, simultaneous at all points, by the multiplier bootstrap, critical value {drawn.critical:.4g}"
    )
    assert words in str(drawn)
    _, _, rows = table(str(drawn))
    assert len(rows) == 7
    assert rows[-1] == ["..."]


@pytest.mark.parametrize(
    ("columns", "outputs", "of", "labels"),
    [
        (1, 1, "fit", []),
        (1, 2, "fit", ["output"]),
        (2, 1, "fit", []),
        (2, 1, "derivative", ["column"]),
        (1, 1, "derivative", ["column"]),
        (2, 2, "derivative", ["column", "output"]),
    ],
)
@pytest.mark.parametrize("groups", [None, np.arange(200) % 20])
def test_outputs_and_slopes_have_their_names(columns, outputs, of, labels, groups):
    Z = np.column_stack([X[:, 0], np.cos(9 * X[:, 0])])[:, :columns]
    y = np.column_stack([Y, Y**2]) if outputs == 2 else Y
    model = LocalLinearRegressor(bandwidth=0.5).fit(Z, y)
    found = model.confidence_interval(Z[:3], quantity=of, groups=groups, simultaneous=True, n_resamples=39)
    _, names, rows = table(str(found))
    predicted = ["predict"] if of == "fit" else []
    assert names == ["point", *labels, *predicted, "bias-corrected", "lower", "upper", "se", "df", "n_eff"]
    sizes = model.get_prediction(Z[:3]).effective_sample_size
    for row in rows[:6]:
        at = tuple(int(cell) for cell in row[: 1 + len(labels)])
        df = found.df[at[: found.df.ndim]]
        target = [model.predict(Z[:3])[at]] if predicted else []
        target += [getattr(found, name)[at] for name in ("center", "lower", "upper", "standard_error")]
        assert_allclose(np.array(row[1 + len(labels) :], dtype=float), [*target, df, sizes[at[0]]], rtol=5e-3)


@pytest.mark.parametrize("offset", [0.0, 1e8, -1e-9])
@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_ends_are_told_apart_whatever_the_unit(offset, size):
    center = np.array([1.0 + offset, 2.0 + offset]) * size
    error = np.array([0.25, 0.5]) * size
    found = Interval(center, center - 2 * error, center + 2 * error, 0.95, "robust", error, np.array([9.0, 99.5]))
    _, _, rows = table(str(found))
    for i, row in enumerate(rows):
        shown = np.array(row[1:5], dtype=float)
        assert_allclose(shown[2] - shown[1], 4 * error[i], rtol=0.02)


def test_what_is_nan_or_zero_is_shown_as_such():
    number = np.array([1.0, np.nan, 3.0])
    found = Interval(number, number, number, 0.95, "naive", number * 0.0, number)
    _, _, rows = table(str(found))
    assert rows[1] == ["1", "nan", "nan", "nan", "nan", "nan"]
    assert rows[2] == ["2", "3", "3", "3", "0", "3"]
    none = np.empty((0, 2))
    assert str(Interval(none, none, none, 0.95, "naive", none, np.empty(0))).splitlines()[0] == "points    0"


def test_printing_reads_no_more_than_it_shows():
    class Counted(np.ndarray):
        """Numbers that refuse to be read all together."""

        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            assert all(np.size(each) < 1000 for each in inputs)
            plain = [np.asarray(each) for each in inputs]
            return getattr(ufunc, method)(*plain, **options)

    many = np.zeros((10**6, 3)).view(Counted)
    text = str(Interval(many, many, many, 0.95, "robust", many, many[:, 0]))
    assert len(text) < 1000
    assert "points    1000000, the first below" in text
    assert len(repr(Interval(many, many, many, 0.95, "robust", many, many[:, 0]))) < 3000
