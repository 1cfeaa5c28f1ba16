"""Columns that look like something else: estimators warn, the command line notes or refuses, in the same words."""

import warnings

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor, SuspectColumnWarning
from kernpool.data.suspect_columns import is_row_number
from tests.support.commands import kernpool

pd = pytest.importorskip("pandas", reason="frames need pandas")
polars = pytest.importorskip("polars", reason="frames of polars")

N = 44
RNG = np.random.default_rng(5)
WIDTH = RNG.uniform(1, 3, N).round(3)
Y = (np.cos(WIDTH) + 0.1 * RNG.normal(size=N)).round(4)
NUMBERS_OF_ROWS = {
    "rownames": np.arange(1, N + 1),
    "ID": RNG.permutation(5000)[:N],
    "Index": np.arange(N),
    "PassengerId": np.arange(1, N + 1),
    "row.names": np.arange(1, N + 1),
    "shop_id": RNG.permutation(10**6)[:N].astype(float),
    "Unnamed: 0": RNG.permutation(N),
    "size": RNG.permutation(N) + 1,  # a name like any other, and exactly 1 to n
}
SUSPECT_TEXT = {
    "numbers as text": (np.char.mod("%.2f", WIDTH), "holds numbers as text"),
    "dates as text": (np.datetime_as_string(np.datetime64("2021-03-01") + np.arange(N) % 9), "holds dates as text"),
}
LEGITIMATE = {
    "year": np.arange(1, N + 1),
    "t": np.arange(N),
    "day_of_trial": np.arange(N),
    "index": (100 + np.arange(N) / 7).round(2),  # of prices
    "id": np.arange(N) // 2,  # of two rows each
    "size": 3 + np.arange(N),
    "kind": np.array(["007", "012"])[np.arange(N) % 2],  # codes
    "street": np.array(["elm", "oak", "ash"])[np.arange(N) % 3],
}


def model_of(frame, **options):
    text = any(dtype.kind not in "fiu" for dtype in frame.dtypes)
    return NadarayaWatsonRegressor(bandwidth=1.0, smoothing=[0.1] if text else None, **options)


def warned(frame, model=None, y=Y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (model or model_of(frame)).fit(frame, y)
    return [str(warning.message) for warning in caught if warning.category is SuspectColumnWarning]


def beside(name, cells):
    return pd.DataFrame({name: cells, "width": WIDTH})


@pytest.mark.parametrize("name", NUMBERS_OF_ROWS)
def test_numbers_of_rows(name):
    frame = beside(name, NUMBERS_OF_ROWS[name])
    (sentence,) = warned(frame)
    for kind, y in ((LocalLinearRegressor, Y), (NadarayaWatsonClassifier, Y > 0)):
        assert warned(polars.from_pandas(frame), kind(bandwidth=1.0), y) == [sentence]
    assert sentence.startswith(f"column {name!r} of X numbers the rows")
    assert "drop it" in sentence
    assert warned(pd.DataFrame({name: NUMBERS_OF_ROWS[name]})) == []  # the one column was chosen


def test_names_of_time_order_and_measure_may_count():
    count = np.arange(1.0, N + 1)
    measures = ["timestamp", "depth", "trial", "Trials", "hr", "yr", "t1", "x2", "epoch", "wave", "age", "week12"]
    assert not any(is_row_number(name, count) for name in (*measures, "trial_number", "body.height"))
    assert all(is_row_number(name, count) for name in ("house", "rate", "page_id", "text", "index"))


def test_columns_of_chunks_are_looked_at(tmp_path):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    table = pd.DataFrame({"serial": np.arange(N) + 1, "width": WIDTH, "y": Y})
    table.to_parquet(tmp_path / "some.parquet")
    for rows, words in (({}, ["column 'serial' of X numbers the rows"]), ({"search": {"rows": 20}}, [])):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            NadarayaWatsonRegressor(**rows).fit(tmp_path / "some.parquet", "y")
        found = [str(one.message) for one in caught if one.category is SuspectColumnWarning]
        assert [sentence.partition(",")[0] for sentence in found] == words
    table.rename(columns={"serial": "house_id"}).to_parquet(tmp_path / "some.parquet")
    with pytest.warns(SuspectColumnWarning, match="column 'house_id' of X numbers the rows"):
        NadarayaWatsonRegressor(search={"rows": 20}).fit(tmp_path / "some.parquet", "y")


@pytest.mark.parametrize("name", SUSPECT_TEXT)
def test_text(name):
    cells, words = SUSPECT_TEXT[name]
    (sentence,) = warned(beside("note", cells))
    assert sentence.startswith("column 'note' of X ")
    assert words in sentence
    assert "unordered=['note']" in sentence
    assert warned(beside("note", cells), model_of(beside("note", cells), unordered=["note"])) == []
    assert warned(beside("note", pd.Categorical(cells))) == []  # categories that the frame declares


@pytest.mark.parametrize("name", LEGITIMATE)
def test_no_false_alarm(name):
    assert warned(beside(name, LEGITIMATE[name])) == []


def test_the_command_line_says_the_same_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = beside("rownames", NUMBERS_OF_ROWS["rownames"]).assign(y=Y)
    frame.to_csv("t.csv", index=False)
    (sentence,) = warned(frame.drop(columns="y"))
    words = sentence.partition(";")[0]
    options = ("fit", "t.csv", "--target", "y", "--bandwidth", "1")
    assert f"{words}; leave it out with --features" in kernpool(*options).stderr.decode()
