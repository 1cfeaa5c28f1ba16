"""Every kind of data at every public function that takes data: refused by name, or answered as plain numbers are.

The table of functions is made from the public names, so a new function, method or argument joins by existing: it is
called with data by the names of its arguments and must answer. What it needs besides is in `NEEDED`.
"""

import dataclasses
import inspect
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

import numpy as np
import pandas
import polars
import pytest
from scipy.sparse import csr_array

import kernpool
from kernpool import (
    KernelStackingClassifier,
    KernelStackingRegressor,
    LocalLikelihoodRegressor,
    LocalLinearRegressor,
    LocalLogisticClassifier,
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    PartiallyLinearRegressor,
    VaryingCoefficientRegressor,
)

N = 40
RANDOM = np.random.default_rng(7)
# Eighths and sixteenths are the same numbers as text, decimals and days with hours.
X = np.sort(RANDOM.integers(0, 160, N)) / 16.0
Y = np.round(np.cos(X) + RANDOM.normal(0, 0.3, N), 3)
WEIGHT = RANDOM.integers(1, 4, N).astype(float)
GROUP = RANDOM.integers(0, 8, N)
AT = np.array([1.5, 3.25, 5.0, 7.75])
Y_AT = np.array([0.25, -1.0, 0.5, 0.125])
LABEL = np.where(Y > 0, "warm", "cold")

# What an argument of data is given, by its name: among the rows of a fit, and at new points.
ROWS = {"X": X[:, None], "y": Y, "sample_weight": WEIGHT, "groups": GROUP, "exposure": WEIGHT}
POINTS = {"X": AT[:, None], "y": Y_AT, "sample_weight": WEIGHT[:4], "exposure": WEIGHT[:4]}
SHIFTED = {"X_calibration": X[::2, None] + 0.0625, "y_calibration": Y[::2]}
PAIRS = {"query": AT, "key": X, "value": Y, "key_weight": WEIGHT, "weight": WEIGHT}
DATA = {*ROWS, *SHIFTED, *PAIRS}

FITTING = ("fit",)
ESTIMATORS = {
    "NadarayaWatsonRegressor": lambda: NadarayaWatsonRegressor(bandwidth=0.75),
    "LocalLinearRegressor": lambda: LocalLinearRegressor(bandwidth=0.75),
    "LocalPolynomialRegressor": lambda: LocalPolynomialRegressor(bandwidth=0.75, degree=1),
    "PartiallyLinearRegressor": lambda: PartiallyLinearRegressor(linear=[1], bandwidth=0.75),
    "VaryingCoefficientRegressor": lambda: VaryingCoefficientRegressor(by=[0], bandwidth=0.75),
    "LocalLikelihoodRegressor": lambda: LocalLikelihoodRegressor(bandwidth=0.75),
    "LocalLogisticClassifier": lambda: LocalLogisticClassifier(bandwidth=3.0),
    "NadarayaWatsonClassifier": lambda: NadarayaWatsonClassifier(bandwidth=0.75),
    "KernelStackingClassifier": lambda: KernelStackingClassifier(NadarayaWatsonClassifier(bandwidth=0.75)),
    "KernelStackingRegressor": lambda: KernelStackingRegressor(LocalLinearRegressor(bandwidth=0.75)),
}


WITH_COEFFICIENTS = ("PartiallyLinearRegressor", "VaryingCoefficientRegressor")


def columns_for(owner, X):
    """Return X as the estimator takes it: some have coefficients of a further column."""
    return np.column_stack([X, np.mod(7.0 * X, 2.0)]) if owner in WITH_COEFFICIENTS else X


def outcome_for(owner, y=Y):
    """Return y as the estimator takes it: counts are not negative."""
    return LABEL if "Classifier" in owner and y is Y else np.abs(y) if owner == "LocalLikelihoodRegressor" else y


# Further arguments that a call needs, or in which it is quick.
NEEDED = {
    "bootstrap": {"n_resamples": 5},
    "quantile": {"levels": [0.25, 0.5]},
    "pool_quantile": {"levels": [0.25, 0.5]},
    "pool_cdf": {"y": [0.0, 0.5]},
    "specification_test": {"n_resamples": 19},
    "prediction_interval": {"method": "split", "level": 0.8},
    "LocalLikelihoodRegressor.prediction_interval": {"level": 0.8},
    "LocalLikelihoodRegressor.quantile": {"q": [0.25, 0.5]},
    "predict_set": {"level": 0.8},
}
# Arguments that are not given in a call, with the reason.
LEFT_OUT = {
    "confidence_interval": {"groups": "the groups of the fit, which has none"},
    "get_prediction": {"groups": "the groups of the fit, which has none"},
    "bootstrap": {"groups": "the groups of the fit, which has none"},
    "prediction_interval": {"groups": "the groups of the fit, which has none"},
    "fit": {"groups": "given in tests of groups; here weights"},
    "open_chunks": {"weight": "the name of a column", "value": "the name of a column"},
}
# Public names whose arguments of these names are no data of a user, with the reason.
EXEMPT = {
    r"\w+Display(\.\w+)?": "pictures; they call methods of the table",
    r"Interval|\w*Prediction|PredictionSet|Residuals|Summary|TestResult|Explanation": "results",
    r"PoolState(\.\w+)?|Problem(\.\w+)?|Plan(\.\w+)?|choose|merge|Kernel|Nearest|Floor": "made by the table",
    r"explore|Explorer(\.\w+)?": "calls fit, and its pages are tested in a browser",
    r"\w+\.set_\w+_request|save_model": "arguments are names",
    r"smooth": "names of columns of a table; it calls fit",
    r"open_chunks": "sources of chunks are tested in tests/data",
}


def _arguments(function):
    try:
        return [name for name in inspect.signature(function).parameters if name != "self"]
    except ValueError:
        return []


def _functions():
    """Yield every public function and method with an argument of data, with the names of these arguments."""
    for name in kernpool.__all__:
        try:
            member = getattr(kernpool, name)
        except ImportError:
            continue  # of an extra that is not installed
        if not callable(member):
            continue
        members = {name: member}
        if inspect.isclass(member):
            members |= {
                f"{name}.{part}": method
                for part, method in inspect.getmembers(member, callable)
                if not part.startswith("_") and not inspect.isclass(method)
            }
        for full, function in members.items():
            given = [argument for argument in _arguments(function) if argument in DATA]
            if given and not any(re.fullmatch(pattern, full) for pattern in EXEMPT):
                yield full, given


TABLE = dict(_functions())
CALLS = [(name, argument) for name, arguments in TABLE.items() for argument in arguments]


@dataclass(frozen=True)
class Call:
    """A public function with the arguments of data that it is given, and whatever else it needs."""

    function: Callable
    data: dict
    others: dict

    def answer(self, **changed):
        return numbers_of(self.function(**self.data | changed, **self.others))


@cache
def fitted(owner):
    make = ESTIMATORS[owner]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of learned models that have not converged
        return make().fit(X=columns_for(owner, ROWS["X"]), y=outcome_for(owner))


def call_of(name):
    """Return a call of the function of this name."""
    owner, _, method = name.rpartition(".")
    others = NEEDED.get(name, NEEDED.get(method or name, {}))
    skipped = {*LEFT_OUT.get(method or name, ()), *others}
    given = [argument for argument in TABLE[name] if argument not in skipped]
    if owner in ESTIMATORS:
        known = (ROWS if method in FITTING else POINTS) | SHIFTED
        if "Classifier" in owner:
            known = known | {"y": LABEL if method in FITTING else np.array(["warm", "cold", "cold", "warm"])}
            known |= {"y_calibration": LABEL[::2]}
        known |= {"y": outcome_for(owner, known["y"])}
        data = {
            argument: columns_for(owner, known[argument]) if "X" in argument else known[argument] for argument in given
        }
        if method == "fit":
            return Call(ESTIMATORS[owner]().fit, data, others)
        return Call(getattr(fitted(owner), method), data, others)
    if owner == "ConditionalDistribution":
        y_at = fitted("LocalLinearRegressor").conditional_distribution(
            POINTS["X"], y_bandwidth=0.25 if method == "pdf" else None
        )
        return Call(getattr(y_at, method), {argument: POINTS[argument] for argument in given}, others)
    known = ROWS | PAIRS
    return Call(getattr(kernpool, name), {argument: known[argument] for argument in given}, others)


def numbers_of(result):
    """Return all numbers of a result as one list of arrays: of a model its predictions, of a record its fields."""
    if result is None or isinstance(result, str):
        return []
    if hasattr(result, "compute"):
        return numbers_of(result.compute())
    if isinstance(result, kernpool.ConditionalDistribution):
        return [result.cdf([0.0, 0.5])]
    if isinstance(result, kernpool.Prediction):
        return [result.mean, result.standard_error, result.slope, result.effective_sample_size]
    if isinstance(result, kernpool.ClassPrediction):
        return [result.probability, result.standard_error, result.effective_sample_size]
    if hasattr(result, "predict"):
        predict = getattr(result, "predict_proba", result.predict)
        return numbers_of(predict(columns_for(type(result).__name__, POINTS["X"])))
    if dataclasses.is_dataclass(result):
        names = [field.name for field in dataclasses.fields(result) if field.name != "index"]  # labels of rows
        return [x for name in names for x in numbers_of(getattr(result, name))]
    if isinstance(result, tuple | list):
        return [x for part in result for x in numbers_of(part)]
    array = np.asarray(result)
    return [array.astype(float)] if array.dtype.kind in "fiub" else []


def assert_same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def spoiled(array, entry):
    """Return the array as objects, with another first entry."""
    cells = array.astype(object)
    cells.flat[0] = entry
    return cells


def _missing(array):
    cells = array.astype(float)
    cells.flat[0] = np.nan
    return cells


def _na(array):
    return spoiled(array, pandas.NA)


def _tensor(array):
    torch = pytest.importorskip("torch", reason="torch is an optional extra")
    numbers = array if array.dtype.kind == "f" else np.arange(array.size).reshape(array.shape)
    return torch.tensor(numbers.astype(float), requires_grad=True)


def _sparse(array):
    return csr_array(np.atleast_2d(array))


def _masked(array):
    mask = np.zeros(array.shape, bool)
    mask.flat[0] = True
    return np.ma.array(array, mask=mask)


def _dates(array):
    days = np.round(np.abs(array.astype(float))).astype("timedelta64[D]")
    return np.datetime64("2024-03-01") + days


# What no function can answer: the kinds, and what a refusal says besides the argument.
REFUSED = {
    "masked": (_masked, "mask"),
    "sparse": (_sparse, "sparse|dense"),
    "tensor with a gradient": (_tensor, "tensor"),
    "NaN": (_missing, "nan|missing"),
    "None": (lambda array: spoiled(array, None), "none|nan|missing"),
    "pandas.NA": (_na, "na|missing"),
    "text among numbers": (lambda array: spoiled(array, "about 3"), "about 3|text|string|label|strings"),
    "complex": (lambda array: array.astype(complex), "complex|real"),
    "dates for numbers": (_dates, "date"),
}
# Containers of the same numbers.
SAME = {
    "list": lambda array: array.tolist(),
    "big-endian": lambda array: array.astype(">f8"),
    "read-only Fortran order": lambda array: _read_only(np.asfortranarray(array)),
    "strided": lambda array: np.repeat(array, 2, axis=0)[::2],
    "objects": lambda array: array.astype(object),
    "decimals": lambda array: np.array([Decimal(str(x)) for x in array.ravel()], dtype=object).reshape(array.shape),
    "nothing masked": np.ma.array,
}
# Kinds that mean something for this argument: groups and classes are labels of any kind.
LABELS = ("groups",)
LABELS_REFUSED = {"masked", "sparse", "tensor with a gradient", "None", "pandas.NA"}
TESTS_OF_ROWS = ("specification_test",)  # read dates of X as days, without a fit


def _read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def _holds_labels(name, argument):
    return argument in LABELS or ("Classifier" in name and argument in ("y", "y_calibration"))


@pytest.mark.parametrize("name", TABLE)
def test_errors_that_the_caller_lets_numpy_raise_change_no_answer(name):
    """Weights of far rows underflow, as they are meant to."""
    call = call_of(name)
    beyond = np.append(AT[:3], 97.75)
    far = {"X": columns_for(name.partition(".")[0], beyond[:, None]), "query": beyond}
    far = {argument: points for argument, points in far.items() if len(call.data.get(argument, ())) == 4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of extrapolation
        expected = call.answer(**far)
        with np.errstate(all="raise"):
            found = call.answer(**far)
    assert_same(found, expected)


def _kinds_for(name, argument, kinds):
    """Leave out what means something as a label."""
    if _holds_labels(name, argument):
        kinds = {kind: kinds[kind] for kind in kinds if kind in LABELS_REFUSED}
    if name in TESTS_OF_ROWS and argument == "X":
        kinds = {kind: kinds[kind] for kind in kinds if kind != "dates for numbers"}
    return kinds


@pytest.mark.parametrize(("name", "argument"), CALLS)
def test_what_is_no_number_is_refused_by_name(name, argument):
    call = call_of(name)
    if argument not in call.data:
        assert argument in LEFT_OUT.get(name.rpartition(".")[2], ()) or argument in call.others
        return
    failures = []
    for kind, (change, words) in _kinds_for(name, argument, REFUSED).items():
        try:
            call.answer(**{argument: change(call.data[argument])})
        except (TypeError, ValueError) as error:
            message = str(error)
            if not re.search(words, message, re.IGNORECASE):
                failures.append(f"{kind}: the message does not say what came: {message}")
            if len(message) > 600:
                failures.append(f"{kind}: the message has {len(message)} letters: {message[:200]}")
            if re.search("KernelSmoother|Inference\\b|HistGradientBoosting|Encoding", message):
                failures.append(f"{kind}: the message names what is not the user's: {message}")
        except Exception as error:
            failures.append(f"{kind}: {type(error).__name__}: {error}")
        else:
            failures.append(f"{kind}: answered")
    assert not failures, f"{name}({argument}=):\n" + "\n".join(failures)


@pytest.mark.parametrize(("name", "argument"), CALLS)
def test_the_same_numbers_in_another_container_have_the_same_answer(name, argument):
    call = call_of(name)
    if argument not in call.data or _holds_labels(name, argument):
        return
    expected, failures = call.answer(), []
    for kind, change in _kinds_for(name, argument, SAME).items():
        try:
            assert_same(call.answer(**{argument: change(call.data[argument])}), expected)
        except (TypeError, ValueError, AssertionError) as error:
            failures.append(f"{kind}: {type(error).__name__}: {str(error)[:300]}")
    assert not failures, f"{name}({argument}=):\n" + "\n".join(failures)


@pytest.mark.parametrize(
    ("name", "argument"), [c for c in CALLS if c[1][0] == "X" and c[0].split(".")[0] not in WITH_COEFFICIENTS]
)
def test_one_column_may_have_one_dimension(name, argument):
    """As in `pool`; a table of one column is shorter to write."""
    call = call_of(name)
    if argument in call.data:
        assert_same(call.answer(**{argument: call.data[argument][:, 0]}), call.answer())


@pytest.mark.parametrize("name", TESTS_OF_ROWS)
def test_tests_of_rows_read_dates_as_days(name):
    call = call_of(name)
    dates = _dates(call.data["X"])
    days = (dates - np.datetime64("1970-01-01")) / np.timedelta64(1, "D")
    assert_same(call.answer(X=dates.astype("M8[ms]")), call.answer(X=days))


FAR = {
    "attention_weights": "weights are right anywhere; they show which rows a prediction rests on",
}


@pytest.mark.parametrize("name", [name for name, given in TABLE.items() if "X" in given and "." in name])
def test_points_far_from_all_rows_are_told(name):
    method = name.partition(".")[2]
    if method in FITTING or method in FAR:
        return
    call = call_of(name)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")  # planes have no slope there, which is told as well
        call.answer(X=columns_for(name.partition(".")[0], np.array([[-40.0], [5.0], [60.0], [99.0]])))
    told = [str(warning.message) for warning in caught if warning.category is kernpool.ExtrapolationWarning]
    assert len(told) == 1, told
    assert "3 of 4" in told[0]


FITTED = [name.partition(".")[0] for name in TABLE if name.endswith(".fit")]


@pytest.mark.parametrize("owner", FITTED)
def test_every_fit_warns_of_copied_rows(owner):
    model = ESTIMATORS[owner]()
    x = np.random.default_rng(3).uniform(size=(N, 1))  # labels could be equal by chance where x has ties
    y = outcome_for(owner)
    with pytest.warns(kernpool.RepeatedRowsWarning, match="drop duplicates"):
        model.fit(X=columns_for(owner, np.concatenate([x, x])), y=np.concatenate([y, y]))


METHODS = [
    (name.partition(".")[0], name.partition(".")[2])
    for name, arguments in TABLE.items()
    if name.partition(".")[0] in ESTIMATORS.keys() - {*WITH_COEFFICIENTS} and "X" in arguments and name[-4:] != ".fit"
]
DAY = np.timedelta64(86_400, "s")
START = np.datetime64("2024-01-01T00:00:00", "s")


def _pandas(days, **options):
    return pandas.DataFrame({"t": pandas.Series(days, **options)})


def _polars(days, dtype):
    return polars.DataFrame({"t": days}).cast({"t": dtype(polars)})


def _arrow(days, dtype):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is an optional extra")
    return _pandas(days.tolist(), dtype=pandas.ArrowDtype(dtype(pyarrow)))


def _moments(days, unit="s"):
    return (START + (np.asarray(days) * 86_400).astype("timedelta64[s]")).astype(f"datetime64[{unit}]")


def _durations(days, unit="s"):
    return (np.asarray(days) * 86_400).astype("timedelta64[s]").astype(f"timedelta64[{unit}]")


# Columns of the rows of a fit, and of new points, that hold the same numbers (of days) as plain arrays.
COLUMNS = {
    "nullable floats": (lambda t: _pandas(t, dtype="Float64"),) * 2,
    "floats of Arrow": (lambda t: _arrow(t, lambda pa: pa.float64()),) * 2,
    "decimals of Arrow": (lambda t: _arrow(np.array([Decimal(str(x)) for x in t]), lambda pa: pa.decimal128(12, 4)),)
    * 2,
    "floats of polars": (lambda t: _polars(t, lambda pl: pl.Float64),) * 2,
    "pandas, then polars": (_pandas, lambda t: _polars(t, lambda pl: pl.Float64)),
}
TIMES = {
    "seconds, then nanoseconds": (lambda t: _pandas(_moments(t)), lambda t: _pandas(_moments(t, "ns"))),
    "pandas, then polars": (
        lambda t: _pandas(_moments(t, "ns")),
        lambda t: _polars(_moments(t, "us"), lambda pl: pl.Datetime("ms")),
    ),
    "pandas, then Arrow": (
        lambda t: _pandas(_moments(t)),
        lambda t: _arrow(_moments(t), lambda pa: pa.timestamp("us")),
    ),
    "two time zones": (
        lambda t: _pandas(_moments(t)).apply(lambda c: c.dt.tz_localize("UTC")),
        lambda t: _pandas(_moments(t)).apply(lambda c: c.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")),
    ),
    "durations of two units": (lambda t: _pandas(_durations(t)), lambda t: _pandas(_durations(t, "ns"))),
}
# Columns of new points that are not of the kind of those that were fitted.
OTHER_TIMES = {
    "with a zone, then without": (
        lambda t: _pandas(_moments(t)).apply(lambda c: c.dt.tz_localize("UTC")),
        lambda t: _pandas(_moments(t)),
    ),
    "without a zone, then with one": (
        lambda t: _pandas(_moments(t)),
        lambda t: _pandas(_moments(t)).apply(lambda c: c.dt.tz_localize("UTC")),
    ),
    "dates, then durations": (lambda t: _pandas(_moments(t)), lambda t: _pandas(_durations(t))),
    "numbers, then dates": (_pandas, lambda t: _pandas(_moments(t))),
    "dates, then numbers": (lambda t: _pandas(_moments(t)), _pandas),
}


def _ask(owner, method, rows, points):
    """Return the answer of a method of a model that is fitted to these rows, at these points."""
    name = f"{owner}.{method}"
    call = call_of(name)
    model = ESTIMATORS[owner]().fit(rows(X), outcome_for(owner))
    changed = {"X": points(AT)}
    if "X_calibration" in call.data:
        changed["X_calibration"] = points(SHIFTED["X_calibration"][:, 0])
    return numbers_of(getattr(model, method)(**call.data | changed, **call.others))


def _plain(t):
    return np.asarray(t)[:, None]


def _since_1970(t):
    return _plain(t) + (START - np.datetime64(0, "s")) / DAY


@pytest.mark.parametrize(("owner", "method"), METHODS)
def test_columns_of_every_type_are_read_as_the_numbers_that_they_hold(owner, method):
    expected = _ask(owner, method, _plain, _plain), _ask(owner, method, _since_1970, _since_1970)
    for kind, (rows, points) in (COLUMNS | TIMES).items():
        is_date = kind in TIMES and "durations" not in kind
        found = _ask(owner, method, rows, points)
        try:
            assert_same(found, expected[is_date])
        except AssertionError as error:
            raise AssertionError(f"{kind}: {error}") from error


@pytest.mark.parametrize(("owner", "method"), METHODS)
def test_times_of_another_kind_than_those_fitted_are_refused(owner, method):
    for rows, points in OTHER_TIMES.values():
        with pytest.raises((TypeError, ValueError), match=r"(?i)date|time zone|duration|frame"):
            _ask(owner, method, rows, points)


LABEL_TYPES = {
    "strings": ["a", "b"],
    "default integers": [0, 1],
    "floats": [0.5, 1.5],
    "dates": [np.datetime64("2024-01-01"), np.datetime64("2025-01-01")],
}


@pytest.mark.parametrize("labels", LABEL_TYPES)
@pytest.mark.parametrize(("owner", "method"), METHODS)
def test_columns_in_another_order_are_refused(owner, method, labels):

    def frame(t):
        table = pandas.DataFrame({0: t, 1: np.cos(t)})
        table.columns = pandas.Index(LABEL_TYPES[labels])
        return table

    _ask(owner, method, frame, frame)
    with pytest.raises((TypeError, ValueError), match=r"(?s)order.*X\[|frame"):
        _ask(owner, method, frame, lambda t: frame(t).iloc[:, ::-1])


@pytest.mark.parametrize("name", ["confidence_interval", "prediction_interval"])
def test_the_default_method_of_intervals_has_one_name(name):
    owners = [getattr(kernpool, full.partition(".")[0]) for full in TABLE if full.endswith(f".{name}")]
    parameters = [inspect.signature(getattr(owner, name)).parameters for owner in owners]
    defaults = [each["method"].default for each in parameters if "method" in each]
    assert len(defaults) >= 3
    assert set(defaults) == {"auto"}
