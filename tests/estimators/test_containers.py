"""Methods of regressors by containers of rows: the answers of arrays, or the one sentence that refuses."""

import pickle
import warnings
from importlib.util import find_spec

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, distribution_bandwidth, open_chunks
from kernpool.kernels import get_kernel
from kernpool.kernels.squares import products
from kernpool.pooling import ChunkPairs
from kernpool.smoother import quadratic_forms, stored_rows

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(120, 2))
Y = np.sin(4 * X[:, 0]) + X[:, 1] + 0.2 * RNG.normal(size=120)
Q = np.vstack([RNG.uniform(0.2, 0.8, size=(4, 2)), [[1.5, 1.4]]])  # the last window is empty
SEEN = RNG.normal(size=5)
REFUSAL = (
    "was fitted to rows that are not in memory, and .* needs? the rows themselves; fit it to arrays, such as a sample "
    r"of the rows, with bandwidth=model.bandwidth_$"
)


def interval(found):
    return np.stack([found.center, found.lower, found.upper, found.standard_error])


# Each method is asked of a model at queries, in the type of table that the model was fitted to.
OF_ALL = {
    "predict": lambda model, q: model.predict(q),
    "score": lambda model, q: model.score(q, SEEN),
    "has_support": lambda model, q: model.get_prediction(q).has_support,
    "effective_sample_size": lambda model, q: model.get_prediction(q).effective_sample_size,
    "slope": lambda model, q: model.get_prediction(q).slope,
    "standard_error": lambda model, q: model.get_prediction(q).standard_error,
    "slope_standard_error": lambda model, q: model.get_prediction(q).slope_standard_error,
    "return_std": lambda model, q: np.stack(model.predict(q, return_std=True)),
    "confidence_interval": lambda model, q: interval(model.confidence_interval(q)),
    "robust": lambda model, q: interval(model.confidence_interval(q, method="robust")),
    "undersmoothed": lambda model, q: interval(model.confidence_interval(q, method="undersmoothed")),
    "slope interval": lambda model, q: interval(model.confidence_interval(q, quantity="derivative")),
    "to_frame": lambda model, q: model.get_prediction(q[:4]).to_frame()["center"],
    "prediction_interval": lambda model, q: np.stack(
        [model.prediction_interval(q).upper, model.prediction_interval(q, X_calibration=q, y_calibration=SEEN).lower]
    ),
}
OF_MEANS = {
    "quantile": lambda model, q: model.quantile(q, [0.2, 0.7]),
    "cdf": lambda model, q: model.conditional_distribution(q).cdf([0.5, 1.0]),
    "pdf": lambda model, q: model.conditional_distribution(q, y_bandwidth=0.3).pdf(0.5),
    "interval": lambda model, q: np.stack(model.conditional_distribution(q).interval(0.8)),
    "smoothed pit": lambda model, q: model.conditional_distribution(q, y_bandwidth=0.3).pit(SEEN),
    "pit": lambda model, q: model.conditional_distribution(q).pit(SEEN, random_state=0),
}
OF_ROWS = {
    "left-out quantile": lambda model, _: model.quantile(None),
    "quantile_interval": lambda model, q: model.conditional_distribution(q).quantile_interval(0.4).lower,
    "distribution_bandwidth": lambda model, _: distribution_bandwidth(model).bandwidth,
    "crps": lambda model, q: model.conditional_distribution(q).crps(SEEN),
    "sample": lambda model, q: model.conditional_distribution(q).sample(2, random_state=0),
    "smoothed quantile": lambda model, q: model.conditional_distribution(q, y_bandwidth=0.3).quantile(0.2),
    "weights": lambda model, q: model.attention_weights(q),
    "leave_one_out": lambda model, _: model.leave_one_out().prediction,
    "residuals": lambda model, _: model.residuals().residual,
    "summary": lambda model, _: model.summary().r2,
    "expected_error": lambda model, _: model.expected_error(),
    "significance_test": lambda model, _: model.significance_test(0, n_resamples=9).p_value,
    "sandwich": lambda model, q: model.get_prediction(q, variance="sandwich").standard_error,
    "groups": lambda model, q: model.get_prediction(q, groups=np.arange(120) // 4).standard_error,
    "band": lambda model, q: interval(model.confidence_interval(q[:4], simultaneous="multiplier")),
}


def in_arrays(model, _):
    return model.fit(X, Y), np.asarray


def with_a_level(model, _):
    pandas = pytest.importorskip("pandas", reason="frames need pandas")

    def table(query):
        return pandas.DataFrame(query, columns=["a", "b"]).assign(level="same")

    return model.set_params(smoothing=0.0).fit(table(X), Y), table


def in_memory_map(model, folder):
    np.save(folder / "x.npy", X)
    return model.fit(np.load(folder / "x.npy", mmap_mode="r"), Y), np.asarray


def in_chunks(model, _):
    return model.fit(open_chunks(X, Y, rows=37)), np.asarray


def in_parquet(model, folder):
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"a": X[:, 0], "b": X[:, 1], "y": Y}), folder / "t.parquet", row_group_size=50)
    return model.fit(folder / "t.parquet", "y"), lambda query: pandas.DataFrame(query, columns=["a", "b"])


def on_dask(model, _):
    da = pytest.importorskip("dask.array", reason="clusters need the extra 'dask'")
    return model.fit(da.from_array(X, chunks=(50, 2)), da.from_array(Y, chunks=50)), np.asarray


STORED = (in_chunks, in_parquet, on_dask)
# Windows of a Gaussian kernel are never empty; norms of the tricube kernel have no closed form.
KERNELS = [("epanechnikov", empty) for empty in ("nearest", "mean", "nan", "zero", "raise")]
KERNELS += [("gaussian", "nearest"), ("tricube", "nearest"), ("tricube", "nan")]


@pytest.fixture(autouse=True)
def without_threads():
    if not find_spec("dask"):
        yield
        return
    import dask

    with dask.config.set(scheduler="synchronous"):
        yield


def answer(ask, model, query):
    """Return the answer as an array, or the error, which is of empty windows or refuses; warnings differ in words."""
    with warnings.catch_warnings(action="ignore"):
        try:
            return np.asarray(ask(model, query), dtype=float)
        except (TypeError, ValueError) as error:
            return error


@pytest.mark.covering
@pytest.mark.parametrize("estimator", [NadarayaWatsonRegressor, LocalLinearRegressor])
@pytest.mark.parametrize("container", [in_memory_map, with_a_level, *STORED])
@pytest.mark.parametrize(("kernel", "empty"), KERNELS)
def test_every_method_answers_as_of_arrays_or_refuses(estimator, container, empty, kernel, tmp_path):
    options = {"kernel": kernel, "bandwidth": [0.4, 0.3] if kernel != "gaussian" else 0.2, "empty": empty}
    known, _ = in_arrays(estimator(**options), tmp_path)
    model, table = container(estimator(**options), tmp_path)
    refused = {}
    if container in STORED:
        refused = OF_ROWS if estimator is NadarayaWatsonRegressor else OF_ROWS | OF_MEANS
    for name, ask in (OF_ALL | OF_MEANS | OF_ROWS).items():
        found = answer(ask, model, table(Q))
        if name in refused:
            with pytest.raises(TypeError, match=REFUSAL):
                raise found
            continue
        expected = answer(ask, known, Q)
        if isinstance(expected, Exception):
            assert (type(found), str(found)) == (type(expected), str(expected)), name
        else:
            rtol = 1e-3 if name == "distribution_bandwidth" else 1e-10  # a search, of a criterion that is flat there
            np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("container", [in_chunks, on_dask])
def test_weights_outputs_and_sums_row_by_row(container, tmp_path, monkeypatch):
    monkeypatch.setattr(quadratic_forms, "DOUBT", -1.0)  # no norm is that of moments
    both, weight = np.column_stack([Y, X[:, 0] ** 2]), RNG.integers(0, 3, 120).astype(float)
    weight[:37] = 0.0  # a chunk without weight
    model = LocalLinearRegressor(bandwidth=0.2, ridge=0.1)
    if container is in_chunks:
        stored = model.fit(open_chunks(X, both, weight, rows=37))
    else:
        da = pytest.importorskip("dask.array", reason="clusters need the extra 'dask'")
        stored = model.fit(*(da.from_array(each, chunks=50) for each in (X, both, weight)))
    known = LocalLinearRegressor(bandwidth=0.2, ridge=0.1).fit(X, both, weight)
    names = (
        "predict",
        "standard_error",
        "slope",
        "slope_standard_error",
        "effective_sample_size",
        "confidence_interval",
    )
    for name in names:
        found, expected = OF_ALL[name](stored, Q[:4]), OF_ALL[name](known, Q[:4])
        np.testing.assert_allclose(found, expected, rtol=1e-10, err_msg=name)


def test_noise_of_a_sample_is_that_of_all_rows_up_to_chance(monkeypatch):
    n, sampled = 6000, 600
    x = RNG.uniform(size=(n, 1))
    y = np.sin(5 * x[:, 0]) + (0.1 + 0.2 * x[:, 0]) * RNG.normal(size=n)
    query = np.linspace(0.0, 1.0, 7)[:, None]
    known = NadarayaWatsonRegressor(bandwidth=0.03).fit(x, y).confidence_interval(query)
    monkeypatch.setattr(stored_rows, "NOISE_ROWS", sampled)
    found, other = (
        NadarayaWatsonRegressor(bandwidth=0.03).fit(open_chunks(x, y, rows=rows)).confidence_interval(query)
        for rows in (6000, 701)
    )
    np.testing.assert_allclose(interval(found), interval(other), rtol=1e-10)  # however rows are cut
    np.testing.assert_allclose(found.center, known.center, rtol=1e-10)
    assert np.all(found.df < known.df)  # fewer residuals say it, and the intervals know
    # A standard deviation from so many residuals is off by 1 / sqrt(2 df), as a fraction.
    assert np.all(np.abs(np.log(found.standard_error / known.standard_error)) < 4.0 / np.sqrt(2.0 * found.df))


def test_a_sample_knows_the_places_of_its_rows():
    x = np.arange(40.0)
    sample = ChunkPairs(open_chunks(x, x, np.where(x < 9, 0.0, 1.0), rows=7)).sample(6, 3)
    np.testing.assert_array_equal(sample.place, sample.key[:, 0])


def test_products_of_kernels_go_to_a_cluster():
    (term,) = products(get_kernel("product tricube"), 1.5)
    u = np.linspace(0.0, 1.2, 9)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(term.kernel)).profile(u), term.kernel.profile(u))
