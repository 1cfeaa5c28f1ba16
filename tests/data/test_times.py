"""Columns of dates and durations are days in every library and unit; other kinds in their place are refused."""

import datetime as dt

import numpy as np
import polars
import pytest
from numpy.testing import assert_array_equal

import kernpool
from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor, load_model, save_model
from kernpool.data import TIME_KINDS, Encoding, Times
from kernpool.data.dates import looks_like_date, times_of

pandas = pytest.importorskip("pandas", reason="frames of pandas are most of what this is about")

HOURS = np.array([0, 5, 30, 77, 240, 241, 500, 1003, 1100, 1500])
START = np.datetime64("2019-12-30T00", "h")
MOMENTS = START + HOURS.astype("m8[h]")
DAYS = (START - np.datetime64(0, "D")) / np.timedelta64(1, "D") + HOURS / 24
UNITS = ["h", "m", "s", "ms", "us", "ns"]
Y = np.sin(HOURS / 200)


def slow_days(cells):
    """Days one after the other by exact fractions of Python's own durations."""
    epoch = dt.datetime(1970, 1, 1)
    return np.array([(cell - epoch) / dt.timedelta(days=1) for cell in cells])


def as_arrow(kind, cells=None):
    pyarrow = pytest.importorskip("pyarrow", reason="types of Arrow need the extra 'arrow'")
    cells = MOMENTS.astype("M8[us]").tolist() if cells is None else cells
    return pandas.Series(cells, dtype=pandas.ArrowDtype(kind(pyarrow)))


def as_polars(kind, cells=None):
    return polars.Series(MOMENTS.astype("M8[us]").tolist() if cells is None else cells).cast(kind(polars))


MADE = {unit: lambda unit=unit: MOMENTS.astype(f"M8[{unit}]") for unit in UNITS} | {
    "pandas s": lambda: pandas.Series(MOMENTS.astype("M8[s]")),
    "pandas ns": lambda: pandas.Series(MOMENTS.astype("M8[ns]")),
    "index": lambda: pandas.DatetimeIndex(MOMENTS.astype("M8[us]")),
    "objects": lambda: np.array(MOMENTS.astype("M8[us]").tolist(), dtype=object),
    "stamps": lambda: [pandas.Timestamp(cell) for cell in MOMENTS],
    "scalars": lambda: [*MOMENTS.astype("M8[ns]")],
    "big-endian": lambda: MOMENTS.astype(">M8[ms]"),
    "every second": lambda: np.repeat(MOMENTS.astype("M8[s]"), 2)[::2],
    "arrow ms": lambda: as_arrow(lambda pa: pa.timestamp("ms")),
    "arrow dictionary": lambda: as_arrow(lambda pa: pa.timestamp("us")).array.__arrow_array__().dictionary_encode(),
    "polars ns": lambda: as_polars(lambda pl: pl.Datetime("ns")),
    "polars ms": lambda: as_polars(lambda pl: pl.Datetime("ms")),
}


@pytest.mark.parametrize("made", MADE)
def test_equal_times_of_any_unit_and_library_are_equal_numbers_of_days(made):
    times = times_of("column", MADE[made]())
    assert times.kind == "date"
    assert_array_equal(times.days(), DAYS)
    assert_array_equal(times.days(), slow_days(MOMENTS.astype("M8[us]").tolist()))


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
def test_dates_with_a_time_zone_are_days_in_utc(zone):
    aware = pandas.Series(MOMENTS.astype("M8[us]")).dt.tz_localize("UTC").dt.tz_convert(zone)
    arrow = as_arrow(lambda pa: pa.timestamp("us", zone), aware.tolist())
    for column in (
        aware,
        aware.astype(object),
        aware.tolist(),
        polars.Series(MOMENTS.astype("M8[us]")).dt.replace_time_zone("UTC").dt.convert_time_zone(zone),
        arrow,
    ):
        times = times_of("column", column)
        assert times.kind == "date with a time zone"
        assert_array_equal(times.days(), DAYS)


def test_whole_days_durations_and_missing_cells():
    whole = MOMENTS.astype("M8[D]")
    days = (whole - np.datetime64(0, "D")).astype(float)
    for column in (
        whole, whole.tolist(), as_arrow(lambda pa: pa.date32(), whole.tolist()),
        as_arrow(lambda pa: pa.date64(), whole.tolist()), as_polars(lambda pl: pl.Date, whole.tolist()),
    ):  # fmt: skip
        assert_array_equal(times_of("column", column).days(), days)
    spans = HOURS.astype("m8[h]")
    lengths = spans.astype("m8[us]").tolist()
    for column in (
        spans, spans.astype("m8[ns]"), lengths, pandas.Series(spans.astype("m8[ms]")),
        [*map(pandas.Timedelta, lengths)],
        as_arrow(lambda pa: pa.duration("s"), lengths), as_polars(lambda pl: pl.Duration("ns"), lengths),
    ):  # fmt: skip
        times = times_of("column", column)
        assert times.kind == "duration"
        assert_array_equal(times.days(), HOURS / 24)
    odd = [cell + dt.timedelta(microseconds=40_320) for cell in MOMENTS.astype("M8[us]").tolist()]
    assert_array_equal(times_of("column", odd).days(), slow_days(odd))
    gaps = [None, *MOMENTS.astype("M8[us]").tolist()]
    for column in (
        gaps, pandas.Series(gaps), as_arrow(lambda pa: pa.timestamp("us"), gaps),
        as_polars(lambda pl: pl.Datetime("us"), gaps),
    ):  # fmt: skip
        found = times_of("column", column).days()
        assert np.isnan(found[0])
        assert_array_equal(found[1:], DAYS)


def test_what_is_no_time_is_none():
    for column in (
        HOURS, HOURS.astype(float), ["2020-01-01"], [None, np.nan], [dt.time(3)], np.array(["a"]), pandas.Series(["a"]),
        as_arrow(lambda pa: pa.time64("us"), [dt.time(3)]), as_polars(lambda pl: pl.Time, [dt.time(3)]),
    ):  # fmt: skip
        assert times_of("column", column) is None
    with pytest.raises(ValueError, match="column mixes cells of the kinds 'date' and 'date with a time zone'"):
        times_of("column", [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)])
    with pytest.raises(ValueError, match=r"durations of dtype timedelta64\[M\], which have no length in days"):
        times_of("column", np.array([1, 2], "m8[M]"))


def test_what_looks_like_a_date():
    dates = (
        "01 Jan 2020", "31-Jan-2020", "31-Jan-20", "Jan 31, 2020", "January 2020", "31. Januar 2020", "2020-01",
        "2020/12", "01/2020", "2020Q1", "2020-Q1", "2020-W01", "2020\u5e741\u670831\u65e5", "2020\u5e741\u6708",
    )  # fmt: skip
    others = ("10.0.0.1", "1/3", "18-25", "a01f-1", "2020", "may", "route 2020", "1.5", "2020-99", "12 a", "0x1f")
    assert [cell for cell in (*dates, *others) if looks_like_date(cell)] == [*dates]


@pytest.mark.parametrize(
    ("cells", "refused"),
    [
        (np.datetime64("2024-05-01", "ns") + np.arange(30), True),  # all become one number
        (np.datetime64("2024-05-01", "ns") + 400 * np.arange(30), True),  # neighbours differ by one rounding
        (np.datetime64("2024-05-01", "us") + np.arange(30), True),  # steps of three roundings
        (np.datetime64("2024-05-01", "us") + 40 * np.arange(30), False),
        (np.datetime64("1970-01-01", "ns") + np.arange(30), False),  # near zero numbers are dense
        (np.datetime64("2024-05-01", "ms") + np.arange(30), False),
        (np.datetime64("2024-05-01", "ns") + np.zeros(5, "m8[ns]"), False),
        (np.array(["2024-05-01", "2024-05-02", "NaT"], "M8[ns]"), False),
    ],
)
def test_steps_that_days_do_not_hold_are_refused_at_fit(cells, refused):
    times = Times("date", cells)
    if not refused:
        times.check_steps("column 'when'")
        return
    with pytest.raises(ValueError, match=r"column 'when' holds a date per row, too close .* Subtract an origin"):
        times.check_steps("column 'when'")
    with pytest.raises(ValueError, match="column 0 of X holds a date per row, too close"):
        NadarayaWatsonRegressor(bandwidth=1.0).fit(cells, np.arange(len(cells)))
    seconds = (cells - cells[0]) / np.timedelta64(1, "s")  # the remedy
    assert len(np.unique(NadarayaWatsonRegressor(bandwidth=1.0).fit(seconds, seconds).key_)) == len(cells)


@pytest.mark.parametrize("model", [NadarayaWatsonRegressor(), LocalLinearRegressor(), NadarayaWatsonClassifier()])
def test_models_of_dates_are_those_of_days(model):
    y = Y > 0.5 if hasattr(model, "predict_proba") else Y
    expected = model.fit(DAYS[:, None], y)
    answer = expected.predict(DAYS[:4, None])
    bandwidth = expected.bandwidth_
    fitted = model.fit(pandas.DataFrame({"when": MOMENTS.astype("M8[s]")}), y)
    assert_array_equal(fitted.bandwidth_, bandwidth)
    assert fitted.encoding_.kinds == ("date",)
    assert set(fitted.encoding_.kinds) < set(TIME_KINDS)
    labels = Encoding.fit(pandas.DataFrame({"t": KINDS["date"], "x": DAYS}), unordered=["t"])
    assert labels.kinds == ("unordered", "numeric")
    for unit in UNITS[2:]:
        assert_array_equal(fitted.predict(pandas.DataFrame({"when": MOMENTS[:4].astype(f"M8[{unit}]")})), answer)


KINDS = {
    "numeric": DAYS,
    "date": pandas.Series(MOMENTS.astype("M8[s]")),
    "date with a time zone": pandas.Series(MOMENTS.astype("M8[s]")).dt.tz_localize("UTC"),
    "duration": pandas.Series(HOURS.astype("m8[h]").astype("m8[s]")),
}


@pytest.mark.parametrize("asked", KINDS)
@pytest.mark.parametrize("fitted", KINDS)
def test_one_kind_in_the_place_of_another_is_refused_by_both_names(fitted, asked, tmp_path):
    table, other = pandas.DataFrame({"t": KINDS[fitted], "s": list("ab" * 5)}), pandas.DataFrame({"t": KINDS[asked]})
    model = NadarayaWatsonRegressor(bandwidth=2.0, smoothing=0.2).fit(table, Y)
    save_model(model, tmp_path / "m")
    for one in (model, load_model(tmp_path / "m")):
        assert one.encoding_.kinds == (fitted, "unordered")
        if asked == fitted:
            assert_array_equal(one.predict(table), model.predict(table))
            continue
        with pytest.raises(
            ValueError, match=r"column 't' of X holds .*, and it held .* when the model was fitted; \w+"
        ):
            one.predict(other.assign(s=table["s"]))


@pytest.mark.parametrize("cell", [None, pandas.NaT, pandas.NA, np.nan])
def test_missing_cells_are_named_and_not_of_another_kind(cell):
    table = pandas.DataFrame({"when": MOMENTS.astype("M8[s]")})
    model = NadarayaWatsonRegressor(bandwidth=2.0).fit(table, Y)
    with pytest.raises(ValueError, match=r"column 'when' of X is missing .* in row 0"):
        model.predict(pandas.DataFrame({"when": [cell, cell]}))
    table.loc[7, "when"] = pandas.NaT
    for ask in (lambda: model.predict(table), lambda: NadarayaWatsonRegressor().fit(table, Y)):
        with pytest.raises(ValueError, match=r"column 'when' of X is missing .* in row 7 \(counted from 0\)"):
            ask()


@pytest.mark.parametrize("argument", ["y", "sample_weight"])
@pytest.mark.parametrize("cells", [MOMENTS, HOURS.astype("m8[h]"), np.array([dt.date(2020, 1, 1)] * 10, dtype=object)])
def test_times_where_numbers_are_needed_are_refused_with_the_remedy(argument, cells):
    data = {"X": DAYS[:, None], "y": Y} | {argument: cells}
    with pytest.raises(
        TypeError, match=rf"{argument} must hold real numbers.*convert dates to days, as in \({argument}"
    ):
        NadarayaWatsonRegressor(bandwidth=1.0).fit(**data)


@pytest.mark.parametrize("kind", ["Datetime", "Date", "Duration", "Time"])
def test_times_next_to_numbers_in_a_frame_of_polars_are_no_ticks(kind):
    """Where no columns are read, NumPy gets one table of floats, in which dates are numbers of their unit."""
    y = np.arange(6.0)
    ticks = polars.Series(np.arange(6) * (1 if kind == "Date" else 3_600_000_000), dtype=polars.Int64)
    table = polars.DataFrame({"a": y, "t": ticks.cast(getattr(polars, kind))})
    for call in (
        lambda: kernpool.pool([[1.0, 2.0]], table, y),
        lambda: kernpool.pool(table, np.c_[y, y], y),
        lambda: kernpool.pool([1.0], y, table),
        lambda: kernpool.pool([[1.0, 2.0]], kernpool.open_chunks([(table, y)])),
        lambda: kernpool.NadarayaWatsonRegressor(bandwidth=1.0).fit(y[:, None], table),
    ):
        with pytest.raises(TypeError, match="convert dates to days"):
            call()


@pytest.mark.parametrize("kind", KINDS)
def test_a_warning_of_extrapolation_prints_dates(kind):
    make = {
        "date": lambda days: pandas.to_datetime(days, unit="D"),
        "date with a time zone": lambda days: pandas.to_datetime(days, unit="D", utc=True).tz_convert("Asia/Tokyo"),
        "duration": lambda days: pandas.to_timedelta(days, unit="D"),
        "numeric": lambda days: days,
    }[kind]
    days = np.arange(18_000.0, 18_040.0)
    model = NadarayaWatsonRegressor(bandwidth=2.0).fit(pandas.DataFrame({"when": make(days)}), np.sin(days))
    said = {
        "date": "'when' is 2020-01-31T06:00, the training rows have 2019-04-14 to 2019-05-23",
        "date with a time zone": "'when' is 2020-01-31T06:00Z, the training rows have 2019-04-14Z to 2019-05-23Z",
        "duration": "'when' is 18292.25 days, the training rows have 18000 days to 18039 days",
        "numeric": "'when' is 18292.2, the training rows have 18000 to 18039",
    }[kind]
    with pytest.warns(kernpool.ExtrapolationWarning, match=said):
        model.predict(pandas.DataFrame({"when": make(np.array([18_292.25]))}))
