"""How sure predictions are, asked for on the command line."""

import io
import json
from importlib.util import find_spec

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor, load_model, save_model
from kernpool.data.chunks.base import FEWEST_ROWS
from tests.support.commands import kernpool, process
from tests.support.thinning import slow

needs_pyarrow = pytest.mark.skipif(not find_spec("pyarrow"), reason="Parquet needs the extra 'arrow'")

RANDOM = np.random.default_rng(0)
X = np.sort(RANDOM.uniform(size=80))
Y = np.sin(6 * X) + 0.2 * RANDOM.normal(size=80)
PLACES = np.linspace(0.05, 0.95, 7)[:, None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of one output, one of two, one with windows that end, and a table of places."""
    path = tmp_path_factory.mktemp("uncertainty")
    two = LocalLinearRegressor(bandwidth=0.1).fit(X[:, None], np.c_[Y, Y**2])
    save_model(LocalLinearRegressor(bandwidth=0.1).fit(X[:, None], Y), path / "model", features=["x"], target="y")
    save_model(two, path / "two", features=["x"], target="y")
    compact = NadarayaWatsonRegressor("boxcar", 0.2).fit(X[:, None], Y)
    save_model(compact, path / "compact", features=["x"], target="y")
    save_model(NadarayaWatsonClassifier(bandwidth=0.1).fit(X[:, None], Y > 0), path / "classes", features=["x"])
    np.savetxt(path / "new.csv", PLACES, header="x", comments="")
    np.savetxt(path / "data.csv", np.c_[X, Y], delimiter=",", header="x,y", comments="", fmt="%.17g")
    return path


def table(done):
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode()
    return lines.split("\n")[0].split(","), np.loadtxt(io.StringIO(lines), delimiter=",", skiprows=1)


@pytest.mark.parametrize("run", [kernpool, *slow(process)])
def test_columns_are_those_of_python(run, folder):
    model = load_model(folder / "model")
    names, numbers = table(run("predict", folder / "model", folder / "new.csv", "--se", "--interval", ".9"))
    assert names == ["y", "y_se", "y_center", "y_lower", "y_upper"]
    found = model.confidence_interval(PLACES, level=0.9)
    prediction = model.get_prediction(PLACES)
    expected = [prediction.mean, prediction.standard_error, found.center, found.lower, found.upper]
    np.testing.assert_allclose(numbers, np.column_stack(expected), rtol=1e-12)
    names, numbers = table(kernpool("predict", folder / "model", folder / "new.csv", "--se", "--variance", "nn"))
    assert names == ["y", "y_se"]
    np.testing.assert_allclose(numbers[:, 1], model.get_prediction(PLACES, variance="nn").standard_error, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:.*the correction for bias is larger than two standard errors")
def test_bands(folder):
    options = ("--interval", "0.95", "--simultaneous", "--variance", "sandwich")
    names, numbers = table(kernpool("predict", folder / "model", folder / "new.csv", *options))
    assert names == ["y", "y_center", "y_lower", "y_upper"]
    found = load_model(folder / "model").confidence_interval(PLACES, simultaneous=True, variance="sandwich")
    np.testing.assert_allclose(numbers[:, 2:], np.c_[found.lower, found.upper], rtol=1e-12)
    _, numbers = table(kernpool("predict", folder / "compact", folder / "new.csv", *options[:3]))  # by draws
    found = load_model(folder / "compact").confidence_interval(PLACES, simultaneous=True)
    np.testing.assert_allclose(numbers[:, 2:], np.c_[found.lower, found.upper], rtol=1e-9)


def test_several_outputs_have_their_columns(folder):
    names, numbers = table(kernpool("predict", folder / "two", folder / "new.csv", "--se", "--interval", "0.95"))
    ends = ["", "_se", "_center", "_lower", "_upper"]
    assert names == [f"y_{i}{end}" for i in (0, 1) for end in ends]
    found = load_model(folder / "two").confidence_interval(PLACES)
    np.testing.assert_allclose(numbers[:, [3, 8]], found.lower, rtol=1e-12)
    np.testing.assert_allclose(numbers[:, [4, 9]], found.upper, rtol=1e-12)


@needs_pyarrow
@pytest.mark.parametrize("suffix", ["csv", "npy", "parquet"])
def test_intervals_of_chunks_are_those_of_the_whole(suffix, folder, tmp_path, monkeypatch):
    import pyarrow
    from pyarrow import parquet

    monkeypatch.setattr("kernpool.data.chunks.base.rows_per_chunk", lambda *_: FEWEST_ROWS)
    monkeypatch.setattr("kernpool.data.chunks.parquet.rows_per_chunk", lambda *_: FEWEST_ROWS)
    places = np.linspace(0.0, 1.0, 3 * FEWEST_ROWS + 7)
    parquet.write_table(pyarrow.table({"x": places}), tmp_path / "new.parquet")
    asked = ("predict", folder / "model", tmp_path / "new.parquet", "--se", "--interval", "0.95")
    out = tmp_path / f"out.{suffix}"
    assert kernpool(*asked, "--memory", "1MiB", "--out", out).returncode == 0
    if suffix == "parquet":
        found = parquet.read_table(out)
        assert found.column_names == ["y", "y_se", "y_center", "y_lower", "y_upper"]
        numbers = np.column_stack([column.to_numpy() for column in found.columns])
    else:
        numbers = np.load(out) if suffix == "npy" else np.loadtxt(out, delimiter=",", skiprows=1)
    _, whole = table(kernpool(*asked))
    np.testing.assert_allclose(numbers, whole, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--interval", "95"], 2, "--interval must lie between 0 and 1, got 95.0; 95 percent is --interval 0.95"),
        (["--interval", "0"], 2, "--interval must lie between 0 and 1, got 0.0; the usual one is --interval 0.95"),
        (["--interval", "1"], 2, "--interval must lie between 0 and 1"),
        (["--interval", "nan"], 2, "--interval must lie between 0 and 1"),
        (["--interval", "wide"], 2, "invalid float value: 'wide'"),
        (["--simultaneous"], 2, "--simultaneous is for intervals: say --interval 0.95 too"),
        (["--variance", "nn"], 2, "say --se or --interval 0.95 too"),
        (["--se", "--variance", "hc9"], 2, "invalid choice: 'hc9'"),
        (["--interval", "0.9", "--simultaneous", "--memory", "1GiB"], 2, "leave --memory out"),
        (["--interval", "0.9", "--cluster", "tcp://nowhere:1"], 2, "predict here, without --cluster"),
    ],
)
def test_what_cannot_be_meant_writes_nothing(options, code, message, folder, tmp_path):
    done = kernpool("predict", folder / "model", folder / "new.csv", *options, "--out", tmp_path / "out.csv")
    assert (done.returncode, message in done.stderr.decode()) == (code, True), done.stderr
    assert not list(tmp_path.iterdir())


def test_models_that_cannot_say_write_nothing(folder, tmp_path):
    def refuses(model, text, *options, data=folder / "new.csv"):
        done = kernpool("predict", model, data, "--out", tmp_path / "out.csv", *(options or ["--interval", "0.95"]))
        assert (done.returncode, text in done.stderr.decode()) == (1, True), done.stderr
        assert not list(tmp_path.iterdir())

    refuses(folder / "classes", "is for regressors, and")
    few = NadarayaWatsonRegressor(bandwidth=0.1).fit(X[:3, None], Y[:3])
    save_model(few, folder / "few", features=["x"], target="y", force=True)
    refuses(folder / "few", "inference needs at least 5 rows, got 3", "--se")
    (folder / "wide.csv").write_text("a,b\n1,2\n")
    refuses(folder / "model", "no column 'x'; columns are 'a', 'b'", data=folder / "wide.csv")


@needs_pyarrow
def test_models_in_chunks_hold_no_rows(folder, tmp_path):
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"x": X, "y": Y}), folder / "data.parquet")
    fit = ("fit", folder / "data.parquet", "--target", "y", "--memory", "1MiB", "--bandwidth", "0.1")
    assert kernpool(*fit, "--model", folder / "chunked").returncode == 0
    remedy = b"fit a sample of the rows without --memory, with --bandwidth 0.1"
    for command in (
        ("predict", folder / "chunked", folder / "new.csv", "--se", "--out", tmp_path / "out.csv"),
        (
            "predict",
            folder / "chunked",
            folder / "data.parquet",
            "--se",
            "--memory",
            "1MiB",
            "--out",
            tmp_path / "o.csv",
        ),
        ("info", folder / "chunked", "--summary"),
        ("test", "significance", folder / "chunked", "--column", "x"),
    ):
        done = kernpool(*command)
        assert (done.returncode, remedy in done.stderr, done.stdout) == (1, True, b""), done.stderr
    assert not list(tmp_path.iterdir())
    done = kernpool(*fit, "--summary")
    assert (done.returncode, b"--summary needs the rows in memory" in done.stderr) == (2, True)


@pytest.mark.filterwarnings("default")  # as in a process of its own
def test_windows_that_are_empty_say_so_in_options(folder):
    done = kernpool("predict", folder / "compact", "-", "--interval", "0.95", "--empty", "mean", stdin=b"x\n0.5\n9\n")
    names, numbers = table(done)
    assert names == ["y", "y_center", "y_lower", "y_upper"]
    assert np.isfinite(numbers[0]).all()
    assert np.isnan(numbers[1, 1:]).all()
    assert np.isfinite(numbers[1, 0])
    assert b"1 of 2 queries have no key" in done.stderr
    assert b"whatever --empty says" in done.stderr


def test_summaries(folder, tmp_path):
    fit = ("fit", folder / "data.csv", "--target", "y", "--degree", "1", "--model", tmp_path / "model")
    done = kernpool(*fit, "--summary", "--quiet")
    assert (done.returncode, done.stderr) == (0, b"")
    model = LocalLinearRegressor().fit(X[:, None], Y)
    shown = done.stdout.decode()
    assert shown.startswith("LocalLinearRegressor: 80 rows, 1 column, 1 output\nkernel gaussian, bandwidth by 'regul")
    assert f"\n  x       {model.bandwidth_[0]:.4g}" in shown
    assert f"{model.summary().trace:.2f} (tr H)" in shown
    assert kernpool("info", tmp_path / "model", "--summary").stdout.decode() == shown
    assert json.loads(kernpool("info", tmp_path / "model").stdout)["rows"] == 80
    classes = kernpool("info", folder / "classes", "--summary")
    assert (classes.returncode, classes.stderr) == (0, b"")
    assert classes.stdout.decode() == f"{load_model(folder / 'classes').summary()}\n".replace("\n  0 ", "\n  x ")
    (tmp_path / "few.csv").write_text("x,y\n1,2\n2,3\n3,4\n")
    few = ("fit", tmp_path / "few.csv", "--target", "y", "--bandwidth", "1", "--quiet", "--summary")
    refused = kernpool(*few, "--model", tmp_path / "few")
    assert (refused.returncode, b"at least 5 rows, got 3" in refused.stderr, refused.stdout) == (1, True, b"")
    assert not (tmp_path / "few").exists()
