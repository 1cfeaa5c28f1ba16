"""Rows by label: every public function that takes an entry per row, and every answer about rows of a frame.

Both tables are made from the public names: a new argument has to be named below, and is tested if it has an entry for
each row; a new answer with `to_frame` is tested by existing.
"""

import inspect
import re
import warnings

import numpy as np
import pandas
import polars
import pytest
from sklearn.base import clone

import kernpool
from kernpool import load_model, save_model

N = 24
RANDOM = np.random.default_rng(4)
LABELS = pandas.Index([*map("house {}".format, range(N - 1)), 7], name="house")  # of mixed types
FRAME = pandas.DataFrame({"a": RANDOM.uniform(0, 4, N)}, index=LABELS)
Y = np.cos(FRAME["a"]) + RANDOM.normal(0, 0.2, N)
WEIGHT, GROUP = (pandas.Series(of, LABELS) for of in (RANDOM.integers(1, 4, N).astype(float), np.arange(N) % 6))
OTHER = RANDOM.permutation(N)  # rows in another order, each with its label

POINTS = FRAME + 0.01  # other rows than those of fits, with their labels
TABLES = {
    **dict.fromkeys(("X", "X_calibration", "query", "key", "source", "data"), POINTS),
    **dict.fromkeys(("x", "x_train", "exog"), POINTS["a"]),
}
CLASSES = pandas.Series(np.where(Y > 0, "warm", "cold"), LABELS)
BY_ROW = {  # arguments with an entry for each row of a table
    **dict.fromkeys(("y", "y_calibration", "value", "endog", "y_train", "prediction", "truth", "time"), Y),
    **dict.fromkeys(("sample_weight", "key_weight", "weight", "exposure"), WEIGHT),
    "groups": GROUP,
    "self_index": pandas.Series(np.arange(N), LABELS),
    "attn_mask": pandas.DataFrame(np.ones((N, N), dtype=bool), index=LABELS),
    "interval": (Y - 1.0, Y + 1.0),
}
TOGETHER = (  # arguments that are of the same rows
    {"y", "sample_weight", "groups", "time", "interval", "exposure"}, {"y_calibration", "groups"},
    {"value", "key_weight", "weight"}, {"prediction", "truth"},
)  # fmt: skip
NEEDED = {"y", "y_calibration", "value", "endog", "prediction", "interval", "y_train"}
# Arguments of these names that have no entry per row.
NO_ROWS = """
against algorithm aliases allow_empty ax axes band bands bandwidth by by_class calibration cmap colorbar column
columns composition confidence cotangent criterion deep degree delta empty estimator exclude_self
factor factors feature feature_names features fill force frac geometry grid_resolution is_sorted it
k kernel kernels keys kind language level levels load log_profile log_slope make max_bytes memory method
missing model n_columns n_jobs n_queries n_resamples name null of output parameters path points prediction_interval
prediction_method problem profile progress q quantity queries query_code random_state resampled return_sorted
return_std rows seed self simultaneous size slices sort state statistic style subsample support target thresholds
title tol trials u variance wanted weights which window x_label xvals y_bandwidth y_label
"""
LABELLED_OTHERWISE = {  # of these calls the argument is something else
    ("explore", "query"), ("explore", "truth"), ("KernelCurveDisplay.from_estimator", "truth"),
    ("KernelCurveDisplay.from_estimator", "prediction"), ("smooth", "x"), ("smooth", "y"),
}  # fmt: skip
MORE = {
    "self_index": {"exclude_self": True},
    "prediction_interval": {"method": "split", "level": 0.6},
    "LocalLikelihoodRegressor.prediction_interval": {"level": 0.6},
    "predict_set": {"level": 0.6},
    "pool_cdf": {"y": Y.to_frame()},
    "cdf": {"y": Y.to_frame()},
    "pdf": {"y": Y.to_frame()},
    "bootstrap": {"n_resamples": 3},
    "specification_test": {"n_resamples": 19},
    "from_intervals": {"level": 0.9},
}
BUILT = r"[A-Z]\w+(Display)?|\w+\.(plot|set_\w+_request|set_params)|save_model|merge|choose"


def _calls():
    """Yield name and function of every public function and method, but constructors."""
    for name in kernpool.__all__:
        member = getattr(kernpool, name)
        parts = inspect.getmembers(member, callable) if inspect.isclass(member) else []
        for full, function in {name: member, **{f"{name}.{part}": of for part, of in parts if part[0] != "_"}}.items():
            if callable(function) and not re.fullmatch(BUILT, full) and not issubclass(type(function), type):
                yield full, function


def _arguments(full, function):
    try:
        names = inspect.signature(function).parameters
    except ValueError:
        return []
    return [name for name in names if (full, name) not in LABELLED_OTHERWISE]


def _doors():
    """Yield every argument with an entry per row, with the call that has it."""
    for full, function in _calls():
        for name in _arguments(full, function):
            if name in BY_ROW:
                yield pytest.param(full, name, id=f"{full}-{name}")


@pytest.fixture(scope="module", params=["frame", "array"])
def owners(request):
    """Models and answers whose methods are called, of a frame and of an array."""
    x = FRAME if request.param == "frame" else FRAME.to_numpy()
    regressor = kernpool.LocalLinearRegressor(bandwidth=0.8).fit(x, Y.to_numpy())
    classifier = kernpool.NadarayaWatsonClassifier(bandwidth=0.8).fit(x, CLASSES.to_numpy())
    return {
        "x": request.param,
        "NadarayaWatsonRegressor": kernpool.NadarayaWatsonRegressor(bandwidth=0.8).fit(x, Y.to_numpy()),
        "LocalLinearRegressor": regressor,
        "LocalPolynomialRegressor": kernpool.LocalPolynomialRegressor(bandwidth=0.8, degree=1).fit(x, Y.to_numpy()),
        "PartiallyLinearRegressor": kernpool.PartiallyLinearRegressor(linear=[1], bandwidth=0.8).fit(
            with_linear(x), Y.to_numpy()
        ),
        "VaryingCoefficientRegressor": kernpool.VaryingCoefficientRegressor(by=[0], bandwidth=0.8).fit(
            with_linear(x), Y.to_numpy()
        ),
        "LocalLikelihoodRegressor": kernpool.LocalLikelihoodRegressor(bandwidth=0.8).fit(x, Y.to_numpy() + 2.0),
        "LocalLogisticClassifier": kernpool.LocalLogisticClassifier(bandwidth=0.8).fit(x, CLASSES.to_numpy()),
        "NadarayaWatsonClassifier": classifier,
        "KernelStackingRegressor": kernpool.KernelStackingRegressor(regressor).fit(x, Y.to_numpy()),
        "KernelStackingClassifier": kernpool.KernelStackingClassifier(classifier).fit(x, CLASSES.to_numpy()),
        "Prediction": regressor.get_prediction(x),
        "ClassPrediction": classifier.get_prediction(x),
        "ConditionalDistribution": regressor.conditional_distribution(x, y_bandwidth=0.3),
    }


def _call(owners, full, name, changed):
    """Call a public function with what it needs and one argument changed; return which others are labelled as it is."""
    owner, _, part = full.rpartition(".")
    function = getattr(owners.get(owner) or getattr(kernpool, owner, kernpool), part)
    if owner == "ConditionalDistribution" and part in ("pit", "crps"):
        function = getattr(owners["LocalLinearRegressor"].conditional_distribution(_table("X", owners, full)), part)
    given = MORE.get(name, {}) | MORE.get(full, MORE.get(part, {}))
    by_row = _by_row(full)
    if part == "fit":
        function = clone(function.__self__).fit
    asked = {"y_calibration"} if name == "groups" and part != "fit" else set()
    for one, parameter in inspect.signature(function).parameters.items():
        if (full, one) in LABELLED_OTHERWISE:
            continue
        if one in TABLES and (one != "X_calibration" or name in ("y_calibration", "groups")):
            given[one] = _table(one, owners, full)
        elif one in by_row and one not in given and one in NEEDED - {"y_calibration"} | asked:
            given[one] = by_row[one]
        elif one in ("estimator", "model") and parameter.default is inspect.Parameter.empty:
            given[one] = owners["LocalLinearRegressor"]
    value = by_row[name]
    given[name] = tuple(map(changed, value)) if isinstance(value, tuple) else changed(value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function(**given)
    return {
        one
        for rows in TOGETHER
        if name in rows
        for one in rows & given.keys()
        if hasattr(given[one], "iloc") or one == "interval"
    } - {name}


def _by_row(full):
    classes = dict.fromkeys(("y", "y_calibration"), CLASSES) if "Classifier" in full else {}
    classes |= {"y": Y + 2.0} if "Likelihood" in full else {}  # counts are not negative
    return BY_ROW | classes | MORE.get(full.rpartition(".")[2], {})


def with_linear(x):
    """Return inputs with a linear column."""
    return x.assign(b=np.cos(99.0 * x["a"])) if hasattr(x, "iloc") else np.column_stack([x, np.cos(99.0 * x)])


def _table(name, owners, full):
    table = with_linear(TABLES[name]) if full.startswith(("PartiallyLinear", "VaryingCoefficient")) else TABLES[name]
    return table if owners["x"] == "frame" else table.to_numpy()


SAME = {  # what a Series may be instead, in the order of the other rows
    "labels": lambda rows: rows,
    "counted": lambda rows: rows.set_axis(range(N)),  # labels that count from 0 are new ones
    "array": lambda rows: rows.to_numpy(),
    "list": lambda rows: rows.to_numpy().tolist(),
    "polars": lambda rows: (polars.Series if rows.ndim == 1 else polars.DataFrame)(rows.to_numpy()),
}
OTHERS = {  # rows with other labels, of which only the first can be paired
    "reversed": lambda rows: rows.iloc[::-1],
    "renamed": lambda rows: rows.rename({"house 3": "flat"}),
    "repeated": lambda rows: rows.set_axis([*LABELS[:-1], LABELS[0]]),
}


@pytest.mark.parametrize(("full", "name"), list(_doors()))
def test_rows_are_paired_by_their_labels(owners, full, name):
    """The remedy of a refusal is one that works. Rows of an array have no labels, but those of other arguments may."""
    if "Display" in full:
        pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")
    for same in SAME.values() if owners["x"] == "frame" else [SAME["labels"]]:
        labelled = _call(owners, full, name, same)
    for case, other in OTHERS.items():
        if owners["x"] == "array" and not labelled:
            _call(owners, full, name, other)
            continue
        with pytest.raises(ValueError, match="has other row labels than") as error:
            _call(owners, full, name, other)
        remedy = re.search(r"so pass (\S+)", str(error.value))[1]
        assert (".loc[" in remedy) == (case == "reversed")
        if not remedy.startswith(f"{name}."):
            continue  # of an end of an interval
        known = {
            **TABLES,
            **_by_row(full),
            "lower": Y,
            "model": owners.get(full.partition(".")[0]),
            name: other(_by_row(full)[name]),
        }
        paired = eval(remedy, known)
        _call(owners, full, name, lambda _: paired)  # noqa: B023  # at once


def test_every_argument_is_known():
    """An argument with an entry per row joins the table above by its name."""
    named = {name for full, function in _calls() for name in _arguments(full, function)}
    assert sorted(named - {*NO_ROWS.split()} - BY_ROW.keys() - TABLES.keys()) == []


ASKED = FRAME.iloc[OTHER[:5]]


def _answers(owner, asked):
    """Yield the answers of a model, prediction or distribution that have a frame, from calls that need X at most."""
    for name, method in inspect.getmembers(owner, callable):
        if name[0] == "_" or name in ("fit", "bootstrap", "expected_error", "crps", "pit"):
            continue
        needed = {
            one for one, of in inspect.signature(method).parameters.items()
            if one == "X" or (of.default is of.empty and of.kind is of.POSITIONAL_OR_KEYWORD)
        }  # fmt: skip
        if needed <= {"X"} and not name.startswith(("set_", "get_params", "get_metadata", "predict_proba")):
            found = method(**dict.fromkeys(needed, asked))
            if hasattr(found, "to_frame"):
                yield f"{type(owner).__name__}.{name}", found
            elif name == "to_frame":
                yield f"{type(owner).__name__}", owner


def _all_answers(asked, x):
    for kind in ("LocalLinearRegressor", "NadarayaWatsonClassifier", "KernelStackingRegressor"):
        own = {"local": kernpool.LocalLinearRegressor(bandwidth=0.8)} if "Stacking" in kind else {"bandwidth": 0.8}
        model = getattr(kernpool, kind)(**own).fit(x, (CLASSES if "Classifier" in kind else Y).to_numpy())
        owners = [model, *([model.get_prediction(asked)] if hasattr(model, "get_prediction") else [])]
        owners += [model.conditional_distribution(asked)] if hasattr(model, "conditional_distribution") else []
        for owner in owners:
            yield from _answers(owner, asked)
        if hasattr(model, "_given"):
            yield "row_diagnostics", kernpool.row_diagnostics(model)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_answers_are_labelled_as_the_frame_that_they_are_about(tmp_path):
    found = {}
    for name, answer in _all_answers(ASKED, FRAME):
        frame = found[name] = answer.to_frame()
        if "query" in frame:
            assert frame["query"].drop_duplicates().tolist() == ASKED.index.tolist(), name
            assert set(frame.get("row", ())) <= set(LABELS), name
            continue
        assert frame.index.equals(FRAME.index if len(frame) == N else ASKED.index), name
        assert str(frame.index[0]) in str(answer) or len(frame) == N, name
    assert len(found) > 12
    for name, answer in _all_answers(polars.DataFrame({"a": ASKED["a"].to_numpy()}), FRAME.to_numpy()):
        assert isinstance(answer.to_frame(), polars.DataFrame) == (len(answer.to_frame()) != N), name


@pytest.mark.parametrize(
    "index", [LABELS, pandas.RangeIndex(10, 10 + N), pandas.date_range("2020-01-01", periods=N), LABELS.astype(str)]
)
def test_saved_models_know_the_labels_of_their_rows(index, tmp_path):
    model = kernpool.LocalLinearRegressor(bandwidth=0.8).fit(FRAME.set_axis(index), Y.to_numpy())
    save_model(model, tmp_path / "model.skops")
    assert load_model(tmp_path / "model.skops").residuals().to_frame().index.equals(index)


def test_rows_of_polars_are_answered_by_polars_after_loading(tmp_path):
    model = kernpool.LocalLinearRegressor(bandwidth=0.8).fit(polars.from_pandas(FRAME), Y.to_numpy())
    save_model(model, tmp_path / "model.skops")
    assert isinstance(load_model(tmp_path / "model.skops").residuals().to_frame(), polars.DataFrame)


def test_series_of_a_table_and_repeated_labels():
    with pytest.raises(ValueError, match=r"y has other row labels than x, .* y\.loc\[x\.index\]"):
        kernpool.smooth({"x": FRAME["a"], "y": Y[::-1]}, x="x", y="y")
    pairs = pandas.Index([*range(N // 2)] * 2)
    with pytest.raises(ValueError, match=r"so pass y\.to_numpy\(\) if its rows are in the order of X"):
        kernpool.LocalLinearRegressor(bandwidth=0.8).fit(FRAME.set_axis(pairs), Y.set_axis(pairs[::-1]))
    model = kernpool.LocalLinearRegressor(bandwidth=0.8).fit(FRAME.to_numpy(), Y)  # rows are named by y
    assert model.residuals().to_frame().index.equals(LABELS)
    band = kernpool.LocalLinearRegressor(bandwidth=0.8).fit(FRAME, Y).confidence_interval(POINTS)
    with pytest.raises(ValueError, match=r"x has other row labels than bands\[0\]"):
        kernpool.KernelCurveDisplay.from_predictions(POINTS["a"][::-1], Y.to_numpy(), bands=[band])


def test_outputs_go_by_name():
    """As columns of inputs do: of rows that score, calibrate or are in chunks."""
    y = pandas.DataFrame({"u": Y, "v": 5 - Y})
    model = kernpool.NadarayaWatsonRegressor(bandwidth=0.8).fit(FRAME, y)
    turned = y[["v", "u"]]
    assert model.score(FRAME, turned) == model.score(FRAME, y)
    some = {"method": "split", "level": 0.8, "X_calibration": FRAME}
    found = [model.prediction_interval(FRAME[:3], y_calibration=one, **some).upper for one in (y, turned)]
    np.testing.assert_array_equal(*found)
    found = [model.conditional_distribution(FRAME).crps(one) for one in (y, turned)]
    np.testing.assert_array_equal(*found)
    found = [kernpool.pool(FRAME, [(FRAME, y), (FRAME, one)], bandwidth=0.8) for one in (y, turned)]
    np.testing.assert_array_equal(*found)
    with pytest.raises(ValueError, match=r"columns of y and the outputs of the fit are compared by name.*'w'"):
        model.score(FRAME, y.rename(columns={"v": "w"}))
