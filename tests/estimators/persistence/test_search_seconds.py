"""The limit of seconds of a search in model files."""

import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, load_model, save_model


@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, LocalLinearRegressor])
@pytest.mark.parametrize("seconds", [None, 60, 2.5])
def test_seconds_of_a_search_are_saved(make, seconds, tmp_path):
    model = make(bandwidth=0.5, max_search_seconds=seconds).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0])
    assert model._to_record().header["parameters"]["max_search_seconds"] == seconds
    path = tmp_path / "model.kernpool"
    save_model(model, path)
    assert load_model(path).max_search_seconds == seconds


@pytest.mark.parametrize("seconds", [0, -1, "long", True])
def test_invalid_seconds_in_a_file_are_refused(seconds):
    model = NadarayaWatsonRegressor(bandwidth=0.5, max_search_seconds=5.0).fit([[0.0], [1.0]], [0.0, 1.0])
    record = model._to_record()
    record.header["parameters"]["max_search_seconds"] = seconds
    with pytest.raises(ValueError, match="max_search_seconds must be None or a positive number"):
        NadarayaWatsonRegressor._from_record(record)
