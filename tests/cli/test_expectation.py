"""How sure predictions are, and what to expect of the next value: the numbers are those of Python."""

import io
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor, load_model, save_model
from kernpool.cli.options import build_parser
from kernpool.cli.terminal import in_options
from kernpool.conformal import METHODS
from kernpool.conformal.sets import SCORES
from kernpool.core.local_fit import RankDeficiencyWarning, warn_of_curvature
from kernpool.data.chunks.base import FEWEST_ROWS
from kernpool.estimators.model import NAMED_BANDWIDTHS
from kernpool.inference.variance.standard_errors import VARIANCES
from tests.support.commands import kernpool, process
from tests.support.parquet import write_parquet
from tests.support.thinning import slow

needs_pyarrow = pytest.mark.skipif(not find_spec("pyarrow"), reason="Parquet needs the extra 'arrow'")

RANDOM = np.random.default_rng(0)
X = np.sort(RANDOM.uniform(size=90))
Y = np.sin(6 * X) + (0.1 + 0.4 * X) * RANDOM.normal(size=90)
LABEL = np.array(["low", "high", "wide"])[np.digitize(Y, [0.0, 0.7])]
PLACES = np.linspace(0.05, 0.95, 7)[:, None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models of one output, of two, with windows that end, of text labels and numbers; tables of places and rows."""
    path = tmp_path_factory.mktemp("expectation")
    fit = X[::3, None], Y[::3]
    save_model(NadarayaWatsonRegressor(bandwidth=0.1).fit(*fit), path / "model", features=["x"], target="y")
    save_model(LocalLinearRegressor(bandwidth=0.15).fit(*fit), path / "planes", features=["x"], target="y")
    save_model(NadarayaWatsonRegressor(bandwidth=0.1).fit(*fit), path / "nameless", features=["x"])
    save_model(LocalLinearRegressor(bandwidth=0.1).fit(X[:, None], Y), path / "lines", features=["x"], target="y")
    two = NadarayaWatsonRegressor(bandwidth=0.1).fit(X[:, None], np.c_[Y, Y**2])
    save_model(two, path / "two", features=["x"], target="y")
    text = NadarayaWatsonClassifier(bandwidth=0.1).fit(X[:, None], LABEL)
    save_model(text, path / "text", features=["x"], target="kind")
    number = NadarayaWatsonClassifier(bandwidth=0.1).fit(X[:, None], (Y > 0.3).astype(int))
    save_model(number, path / "number", features=["x"], target="kind")
    np.savetxt(path / "new.csv", PLACES, header="x", comments="")
    np.savetxt(path / "data.csv", np.c_[X, Y], delimiter=",", header="x,y", comments="", fmt="%.17g")
    other = np.arange(90) % 3 != 0
    np.savetxt(path / "more.csv", np.c_[X, Y][other], delimiter=",", header="x,y", comments="", fmt="%.17g")
    for name, label in (("text", LABEL), ("number", (Y > 0.3).astype(int))):
        lines = [f"{x!r},{kind}" for x, kind in zip(X[other].tolist(), label[other].tolist(), strict=True)]
        (path / f"more-{name}.csv").write_text("\n".join(["x,kind", *lines]) + "\n")
    return path


def table(done):
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode()
    return lines.split("\n")[0].split(","), np.genfromtxt(io.StringIO(lines), delimiter=",", skip_header=1)


def test_the_help_names_what_python_accepts_and_its_own_command_takes():
    for command, names in (
        ("predict", {*METHODS, *SCORES, *VARIANCES}),
        ("fit", {*NAMED_BANDWIDTHS, "decimal SIGN "}),
        ("test specification", {"number of resamples (default: 399)"}),
    ):
        shown = kernpool(*command.split(), "--help").stdout.decode()
        assert [name for name in names if name not in shown] == []


def test_a_warning_names_no_method_that_the_command_line_refuses():
    with pytest.warns(RankDeficiencyWarning) as said:
        warn_of_curvature(np.array([3, 2, 3]), np.ones(3, dtype=bool), 3)
    options = build_parser().parse_args(["predict", "model", "t.csv", "--interval", "0.9"])
    assert in_options(options, str(said[0].message)).endswith(
        "is linear or constant in some direction; use a larger bandwidth"
    )


@pytest.mark.parametrize("run", [kernpool, *slow(process)])
def test_columns_are_those_of_python(run, folder):
    """In the order in which they were asked for, each output by itself."""
    asked = ("--quantiles", ".9,.05", "--se", "--interval", "0.9")
    for kind, outputs in (("two", ["_0", "_1"]), ("lines", [""]), ("model", [""])):
        done = run("predict", folder / kind, folder / "new.csv", *asked)
        names, numbers = table(done)
        ends = ["", "_se", "_center", "_lower", "_upper", "_q0.9", "_q0.05"]
        assert names == [f"y{output}{end}" for output in outputs for end in ends]
        assert done.stderr == b""
        model = load_model(folder / kind)
        found, prediction = model.confidence_interval(PLACES, level=0.9), model.get_prediction(PLACES)
        columns = [prediction.mean, prediction.standard_error, found.center, found.lower, found.upper]
        quantiles = np.moveaxis(model.quantile(PLACES, [0.9, 0.05]), -1, 0)
        expected = np.stack([column.reshape(len(PLACES), -1) for column in (*columns, *quantiles)], axis=2)
        assert_allclose(numbers, expected.reshape(len(PLACES), -1), rtol=1e-12)
    names, numbers = table(kernpool("predict", folder / "lines", folder / "new.csv", "--se", "--variance", "nn"))
    assert names == ["y", "y_se"]
    expected = load_model(folder / "lines").get_prediction(PLACES, variance="nn").standard_error
    assert_allclose(numbers[:, 1], expected, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:.*the correction for bias is larger than two standard errors")
def test_bands(folder):
    options = ("--interval", "0.95", "--simultaneous", "--variance", "sandwich")
    names, numbers = table(kernpool("predict", folder / "lines", folder / "new.csv", *options))
    assert names == ["y", "y_center", "y_lower", "y_upper"]
    found = load_model(folder / "lines").confidence_interval(PLACES, simultaneous=True, variance="sandwich")
    assert_allclose(numbers[:, 2:], np.c_[found.lower, found.upper], rtol=1e-12)


@pytest.mark.parametrize("method", [*METHODS])
def test_prediction_intervals(method, folder):
    model = load_model(folder / "model")
    calibrated = METHODS[method].rows == "other"
    more = ["--calibration", folder / "more.csv"] if calibrated else []
    options = ["--interval", ".8", "--method", method, *more, "--seed", "3"]
    done = kernpool("predict", folder / "model", folder / "new.csv", *options)
    names, numbers = table(done)
    assert names == ["y", "y_new_lower", "y_new_upper"]
    given = {}
    if calibrated:
        rows = np.loadtxt(folder / "more.csv", delimiter=",", skiprows=1)
        given = {"X_calibration": rows[:, :1], "y_calibration": rows[:, 1]}
    found = model.prediction_interval(PLACES, level=0.8, method=method, random_state=3, **given)
    assert_array_equal(numbers, np.c_[model.predict(PLACES), found.lower, found.upper])
    said = found.guarantee.replace("X_calibration", "--calibration")
    assert done.stderr.decode() == f"guarantee  {said}\n"
    quiet = kernpool("predict", folder / "model", folder / "new.csv", *options, "--quiet")
    assert (quiet.stdout, quiet.stderr) == (done.stdout, b"")


@needs_pyarrow
@pytest.mark.parametrize(
    "asked",
    [
        ("--quantiles", "0.1,0.5,0.9"),
        ("--se", "--interval", "0.95"),
        ("--interval", "0.8", "--method", "adaptive"),
        ("--interval", "0.8", "--method", "jackknife+"),
    ],
    ids=" ".join,
)
def test_parts_of_the_data_have_the_numbers_of_the_whole(asked, folder, tmp_path, monkeypatch):
    from pyarrow import parquet

    monkeypatch.setattr("kernpool.data.chunks.base.rows_per_chunk", lambda *_: FEWEST_ROWS)
    monkeypatch.setattr("kernpool.data.chunks.parquet.rows_per_chunk", lambda *_: FEWEST_ROWS)
    places = np.linspace(0.0, 1.0, 2 * FEWEST_ROWS + 7)
    write_parquet(tmp_path / "new.parquet", {"x": places})
    command = ("predict", folder / "model", tmp_path / "new.parquet", *asked)
    done = kernpool(*command, "--memory", "1MiB", "--out", tmp_path / "out.parquet")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(b"guarantee  ") == ("--method" in asked)
    found = parquet.read_table(tmp_path / "out.parquet")
    names, whole = table(kernpool(*command))
    assert found.column_names == names
    assert_allclose(np.column_stack([c.to_numpy() for c in found.columns]), whole, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", ["text", "number"])
@pytest.mark.parametrize(("method", "calibrated"), [(None, False), ("aps", True)])
def test_sets_of_classes(method, kind, calibrated, folder):
    model = load_model(folder / kind)
    more = ["--calibration", folder / f"more-{kind}.csv"] * calibrated
    asked = ["--sets", ".9", *([] if method is None else ["--method", method]), *more]
    done = kernpool("predict", folder / kind, folder / "new.csv", *asked)
    assert done.returncode == 0, done.stderr
    lines = [line.split(",") for line in done.stdout.decode().splitlines()]
    assert lines[0] == ["kind", *(f"kind_in_{label}" for label in model.classes_)]
    given = {}
    if calibrated:
        other = np.arange(90) % 3 != 0
        label = LABEL if kind == "text" else (Y > 0.3).astype(int)
        given = {"X_calibration": X[other, None], "y_calibration": label[other]}
    found = model.predict_set(PLACES, 0.9, method=method or "lac", random_state=0, **given)
    assert [line[0] for line in lines[1:]] == [str(label) for label in model.predict(PLACES)]
    assert_array_equal(np.array([line[1:] for line in lines[1:]], dtype=float), found.member)
    assert done.stderr.decode() == f"guarantee  {found.guarantee}\n"
