"""Dates and durations of Parquet files and Arrow streams that are read in chunks: days, and kinds that are compared."""

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="frames need pandas")
pytest.importorskip("pyarrow", reason="Parquet and Arrow need the extra 'arrow'")

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, load_model, open_chunks, pool, save_model
from kernpool.data import TableError

N = 300
RNG = np.random.default_rng(8)
HOURS = RNG.integers(0, 24 * 200, N)
Y = np.sin(HOURS / 400)
KINDS = {
    "date": pd.Timestamp("2023-01-01") + pd.to_timedelta(HOURS, unit="h"),
    "date with a time zone": pd.Timestamp("2023-01-01", tz="Asia/Tokyo") + pd.to_timedelta(HOURS, unit="h"),
    "duration": pd.to_timedelta(HOURS, unit="h"),
}
OTHER = {"date": "date with a time zone", "date with a time zone": "duration", "duration": "date"}


def frame_of(kind):
    return pd.DataFrame({"when": KINDS[kind], "z": HOURS % 7})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model", [NadarayaWatsonRegressor(bandwidth=[3.0, 1.0]), LocalLinearRegressor(bandwidth=9.0)])
def test_a_model_on_chunks_is_that_in_memory(model, kind, tmp_path):
    X = frame_of(kind)
    expected = model.fit(X, Y).predict(X)
    X.assign(y=Y).to_parquet(tmp_path / "t.parquet", index=False, row_group_size=70)
    for source in (tmp_path / "t.parquet", X.assign(y=Y)):
        chunks = open_chunks(source, target="y", rows=64)
        assert chunks.kinds == (kind, "numeric")
        model.fit(chunks)
        np.testing.assert_allclose(model.predict(X), expected, rtol=1e-9)
        with pytest.raises(ValueError, match=r"column 'when' of X holds .*, and it held"):
            model.predict(frame_of(OTHER[kind]))
        with pytest.raises(ValueError, match="holds numbers, and it held"):
            model.predict(X.assign(when=HOURS / 24))
        with pytest.raises(TypeError, match=r"key, column 'when', must hold real numbers, got the kind"):
            pool([[19_400.0, 1.0]], chunks)
    model.fit(open_chunks(tmp_path / "t.parquet", target="y"))
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.encoding_.kinds == (kind, "numeric")


def test_missing_dates_and_steps_that_are_too_short(tmp_path):
    X = frame_of("date")
    X.loc[7, "when"] = pd.NaT
    with pytest.raises(TableError, match="row 7, column 'when'"):
        NadarayaWatsonRegressor(bandwidth=1.0).fit(open_chunks(X.assign(y=Y), target="y"))
    X["when"] = np.datetime64("2023-01-01T00:00:00.000000000") + np.arange(N)
    with pytest.raises(ValueError, match="too close together"):
        NadarayaWatsonRegressor(bandwidth=1.0).fit(open_chunks(X.assign(y=Y), target="y"))
