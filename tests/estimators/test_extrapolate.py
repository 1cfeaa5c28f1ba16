"""Planes beyond the range of the outputs, clipped or not, over every kind of rows."""

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, load_model, open_chunks, save_model
from kernpool.estimators.extrapolation import widened


@pytest.fixture
def line():
    x = np.arange(11.0)[:, None]
    return x, np.column_stack([x[:, 0], -2.0 * x[:, 0]])


def make(**options):
    return LocalLinearRegressor(bandwidth=1.0, **options)


FAR = np.array([[-9.0], [-0.5], [5.0], [10.5], [19.0]])
CLIPPED = [-1.0, -0.5, 5.0, 10.5, 11.0]


def test_planes_are_clipped_to_the_widened_range_of_each_output(line):
    plane, clip = make().fit(*line).predict(FAR), make(extrapolate="clip").fit(*line).predict(FAR)
    np.testing.assert_allclose(plane[:, 0], FAR[:, 0], rtol=1e-6)
    np.testing.assert_allclose(clip, np.column_stack([CLIPPED, -2.0 * np.array(CLIPPED)]), rtol=1e-9)
    one = make(extrapolate="clip").fit(line[0], line[1][:, 0]).predict(FAR)
    assert one.shape == (5,)
    np.testing.assert_allclose(one, CLIPPED, rtol=1e-9)


def test_rows_of_weight_zero_have_no_range(line):
    x, y = np.vstack([line[0], [[11.0]]]), np.append(line[1][:, 0], 1e6)
    model = make(extrapolate="clip").fit(x, y, np.append(np.ones(11), 0.0))
    np.testing.assert_allclose(model.predict(FAR), CLIPPED, rtol=1e-9)


def test_inside_of_the_range_nothing_changes(generator):
    x = generator.normal(size=(80, 2))
    y = np.sin(x[:, 0]) + x[:, 1]
    queries = generator.normal(size=(300, 2)) * 1.5
    plane, clip = (make(extrapolate=e).fit(x, y).predict(queries) for e in ("plane", "clip"))
    low, high = (float(end[0]) for end in widened([(y, None)]))
    np.testing.assert_array_equal(clip, np.clip(plane, low, high))
    assert np.any(plane != clip)


@pytest.mark.parametrize("sizes", [(11,), (4, 7), (1, 1, 9)])
def test_chunks_have_the_range_of_all_of_them(line, sizes):
    ends = np.cumsum(sizes)[:-1]
    parts = [(x, y, np.ones(len(x))) for x, y in zip(np.split(line[0], ends), np.split(line[1], ends), strict=True)]
    parts.append((np.array([[3.0]]), np.array([[1e5, 1e5]]), np.zeros(1)))
    model = make(extrapolate="clip").fit(open_chunks(parts))
    np.testing.assert_allclose(model.predict(FAR)[:, 0], CLIPPED, rtol=1e-9)


def test_saved_models_clip(line, tmp_path):
    np.save(tmp_path / "rows.npy", np.column_stack([line[0], line[1][:, 0]]))
    in_memory = make(extrapolate="clip").fit(line[0], line[1][:, 0])
    on_chunks = make(extrapolate="clip").fit(tmp_path / "rows.npy", "1")
    for i, model in enumerate((in_memory, on_chunks)):
        save_model(model, tmp_path / f"model{i}")
        again = load_model(tmp_path / f"model{i}")
        assert again.extrapolate == "clip"
        np.testing.assert_allclose(again.predict(FAR), CLIPPED, rtol=1e-9)


def test_more_rows_widen_the_range(line):
    x, y = line[0], line[1][:, 0]
    model = make(extrapolate="clip").partial_fit(x[:6], y[:6])
    assert model.predict([[14.0]])[0] == pytest.approx(5.5)
    assert model.partial_fit(x[6:], y[6:]).predict([[19.0]])[0] == pytest.approx(11.0)


@pytest.mark.filterwarnings("ignore::kernpool.core.empty.EmptyWindowWarning")
@pytest.mark.parametrize(("empty", "expected"), [("zero", 0.0), ("nan", np.nan), ("nearest", 110.0), ("mean", 105.0)])
def test_what_empty_windows_become_is_not_clipped(line, empty, expected):
    model = LocalLinearRegressor("epanechnikov", 1.5, empty=empty, extrapolate="clip").fit(
        line[0], 100.0 + line[0][:, 0]
    )
    assert model.predict([[40.0], [5.0]]) == pytest.approx([expected, 105.0], nan_ok=True)


def test_slopes_and_leave_one_out_are_those_of_the_planes(line, generator):
    y = line[1][:, 0] + generator.normal(size=11)
    plane, clip = (make(extrapolate=e).fit(line[0], y) for e in ("plane", "clip"))
    np.testing.assert_array_equal(plane.derivative(FAR[1:4]), clip.derivative(FAR[1:4]))
    np.testing.assert_array_equal(plane.leave_one_out().prediction, clip.leave_one_out().prediction)


def test_a_constant_output_has_a_range_of_one_number():
    model = make(extrapolate="clip").fit(np.arange(5.0)[:, None], np.full(5, 3.0))
    np.testing.assert_allclose(model.predict(FAR[:4]), 3.0, rtol=1e-12)


@pytest.mark.parametrize("extrapolate", ["nearest", None, True, ["clip"]])
def test_policies_that_there_are_not(line, extrapolate):
    with pytest.raises(ValueError, match="extrapolate must be 'plane' or 'clip', got "):
        make(extrapolate=extrapolate).fit(*line)
