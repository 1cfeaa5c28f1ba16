"""Bad input: an error that names the argument, what came, and what would do."""

import ast
import inspect
import re
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType

import numpy as np
import pandas
import pytest
from numpy.testing import assert_array_equal

import kernpool
from kernpool import NadarayaWatsonClassifier, NadarayaWatsonRegressor, kernel_names, pool, pooling_weights
from kernpool.algorithms import ALGORITHMS
from kernpool.estimators.model import NAMED_BANDWIDTHS, NAMED_FOR_CLASSES
from kernpool.execution.error_messages import SYNONYMS
from kernpool.kernels import categorical_kernel_names

X = np.array([0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"query": [np.nan]}, ValueError, r"query holds nan at index \(0,\)"),
        ({"key": [0.0, np.inf, 1.0]}, ValueError, r"key holds inf at index \(1,\)"),
        ({"query": []}, ValueError, "query is empty"),
        ({"key": np.empty((3, 0))}, ValueError, "key is empty"),
        ({"value": [1.0, 2.0]}, ValueError, "key has 3 rows and value has 2"),
        ({"query": np.zeros((2, 2))}, ValueError, r"query has 2 column\(s\) and key has 1"),
        ({"query": 3.0}, ValueError, r"query must have shape"),
        ({"query": [[0.0], [1.0, 2.0]]}, ValueError, "query must be a rectangular array"),
        ({"query": [1e200]}, ValueError, "query holds numbers beyond 1e\\+150"),
        ({"bandwidth": 0.0}, ValueError, "bandwidth must be positive, and at least 1e-150, got 0.0"),
        ({"bandwidth": np.nan}, ValueError, "bandwidth is nan; it must be finite"),
        ({"bandwidth": [1.0, 2.0]}, ValueError, "bandwidth must be one number or one per column"),
        ({"bandwidth": np.ones((2, 0))}, ValueError, r"one number or one per column, got shape \([0-9, ]*\)$"),
        ({"bandwidth": "loo"}, TypeError, "belong to NadarayaWatsonRegressor"),
        ({"bandwidth": 1e-149, "key": [0.0, 1.0, 100.0]}, ValueError, "bandwidth is too small"),
        ({"kernel": "gausian"}, ValueError, "unknown kernel 'gausian'; did you mean 'gaussian'"),
        ({"kernel": None}, TypeError, "kernel must be a name"),
        ({"kernel": "product gausian"}, ValueError, "did you mean 'product gaussian'"),
        ({"key_weight": [1.0, -1.0, 1.0]}, ValueError, "key_weight must not be negative, got -1.0"),
        ({"key_weight": [0.0, 0.0, 0.0]}, ValueError, "key_weight is zero for every key"),
        ({"value": [1j, 2, 3]}, TypeError, "value must hold real numbers, got dtype complex128"),
        ({"value": np.array([1, "2", None], dtype=object)}, TypeError, r"object array with '2' \(str\)"),
        ({"value": np.array(["2020", "2021", "2022"], "M8[Y]")}, TypeError, "got dtype datetime64"),
        ({"attn_mask": [[1, 0, 1]]}, TypeError, "attn_mask must be boolean"),
        ({"attn_mask": [[True, False]]}, ValueError, r"attn_mask of shape \(1, 2\) does not broadcast"),
        ({"attn_mask": [[0.0, np.nan, 0.0]]}, ValueError, "attn_mask holds NaN"),
        ({"exclude_self": True}, ValueError, "1 queries and 3 keys; say which with self_index"),
        ({"self_index": [0]}, ValueError, "needs exclude_self=True"),
        ({"exclude_self": True, "self_index": [3]}, ValueError, r"self_index must lie in \[-1, 2\]"),
        ({"exclude_self": True, "self_index": [0.5]}, ValueError, "self_index must be 1 integers"),
        ({"exclude_self": "no"}, TypeError, "exclude_self must be True or False"),
        ({"bandwidth": 1e-200}, ValueError, "bandwidth must be positive, and at least 1e-150"),
        ({"value": np.array([10**400, 1, 2], dtype=object)}, ValueError, "too large for a float"),
        ({"value": np.ma.masked_array(X, mask=[0, 1, 0])}, TypeError, "value is a masked array"),
        ({"tol": 1.0}, ValueError, r"tol must be None or a fraction of the weight in \[0, 1\)"),
        ({"empty": "maybe"}, ValueError, "empty must be one of"),
        ({"algorithm": "magic"}, ValueError, "unknown algorithm 'magic'"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be None"),
        ({"query": np.zeros((2, 1, 1)), "key": np.zeros((3, 3, 1))}, ValueError, "batch dimensions do not broadcast"),
    ],
)
def test_pool_says_what_is_wrong(change, error, message):
    arguments = {"query": [0.5], "key": X, "value": X} | change
    with pytest.raises(error, match=message):
        pool(**arguments)


def test_a_misspelt_argument_is_named():
    from kernpool import pool_state

    with pytest.raises(TypeError, match=r"to_frame\(\) missing 1 required positional argument: 'self'"):
        kernpool.Interval.to_frame()
    with pytest.raises(TypeError, match=r"^pool_state\(\) has no argument 'bandwith'; use bandwidth=$"):
        pool_state(X, X, X, bandwith=2.0)


def test_torch_tensors_are_sent_to_the_other_door():
    torch = pytest.importorskip("torch", reason="torch is an optional extra")
    with pytest.raises(TypeError, match=r"value is a torch tensor.*value.detach\(\).cpu\(\).numpy\(\)"):
        pool(X, X, torch.zeros(3))
    for name, tensor in (
        ("key_weight", torch.ones(3)),
        ("attn_mask", torch.ones(3, 3, dtype=torch.bool)),
        ("self_index", torch.arange(3)),
        ("query", [torch.tensor(1.0, requires_grad=True)] * 3),
        ("key", torch.nn.Parameter(torch.zeros(3))),
    ):
        arguments = {"query": X, "key": X, "value": X, "exclude_self": name == "self_index"} | {name: tensor}
        with pytest.raises(TypeError, match=f"{name} is a torch tensor"):
            pool(**arguments)


def test_a_class_of_torch_is_recognised_without_importing_torch():
    tensor = type("Tensor", (), {"__module__": "torch"})()
    with pytest.raises(TypeError, match="key is a torch tensor"):
        pooling_weights(X, tensor)


ESTIMATORS = [
    kernpool.NadarayaWatsonRegressor,
    kernpool.LocalLinearRegressor,
    kernpool.LocalPolynomialRegressor,
    kernpool.NadarayaWatsonClassifier,
    kernpool.KernelStackingRegressor,
    kernpool.KernelStackingClassifier,
]
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is an optional extra")


def calls_of(kind):
    """Return the constructor and all public methods of a class that take no arbitrary keywords, by name."""
    if issubclass(kind, Warning):
        return {}
    instance, functions = object.__new__(kind), (FunctionType, classmethod, staticmethod)
    names = [name for name in dir(kind) if isinstance(inspect.getattr_static(kind, name), functions)]
    calls = {name: getattr(instance, name) for name in names if not name.startswith("_")} | {"": kind}
    kinds = {name: [one.kind for one in inspect.signature(call).parameters.values()] for name, call in calls.items()}
    return {name: call for name, call in calls.items() if inspect.Parameter.VAR_KEYWORD not in kinds[name]}


@cache
def internal_classes():
    """Return the names of all classes of the package that users do not import."""
    classes = {
        node.name
        for path in (Path(kernpool.__file__).parent).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    }
    return classes - set(kernpool.__all__)


def can_be_called(name):
    try:
        return callable(getattr(kernpool, name))
    except ImportError:
        return False  # of an extra that is not installed


PUBLIC = [name for name in kernpool.__all__ if not name.startswith("Dask") and can_be_called(name)]


# Whose arguments have other names.
EXPLAINED = {"pool", "pool_state", "pooling_weights", "pool_quantile", "lowess"} | {one.__name__ for one in ESTIMATORS}


@pytest.mark.parametrize("name", PUBLIC)
def test_no_call_that_does_not_fit_names_an_internal_class(name):
    public = getattr(kernpool, name)
    calls = calls_of(public) if isinstance(public, type) else {"": public}
    internal = re.compile(rf"\b({'|'.join(internal_classes())})\b")
    for method, call in calls.items():
        with pytest.raises(TypeError) as caught:
            call(nonsense=1)
        assert not internal.search(str(caught.value))
        if name in EXPLAINED:
            assert str(caught.value).startswith(f"{name}{'.' * bool(method)}{method}() has no argument 'nonsense'; ")


@needs_torch
@pytest.mark.parametrize("name", ["AdditiveSimilarity", "AttentionPooling", "BilinearSimilarity", "GaussianSimilarity"])
def test_layers_name_arguments_that_they_do_not_have(name):
    layers = import_module("kernpool.torch")
    with pytest.raises(TypeError, match=rf"^{name}\(\) has no argument 'nonsense'; it has "):
        getattr(layers, name)(nonsense=1)
    with pytest.raises(TypeError, match=r"similarity must be a layer such as GaussianSimilarity.*, got 'gaussian'"):
        layers.AttentionPooling("gaussian")
    with pytest.raises(TypeError, match=r"got the class; use DotProductSimilarity\(\)"):
        layers.AttentionPooling(layers.DotProductSimilarity)


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (lambda: pool(X, X, X, h=0.1), r"^pool\(\) has no argument 'h'; use bandwidth=$"),
        (lambda: pool(X, X, X, sample_weight=X), "use key_weight=$"),
        (lambda: pool(X, X, X, gamma=2.0), r"bandwidth=1 / sqrt\(2 gamma\), which is 0.5 for gamma=2"),
        (lambda: kernpool.pool_quantile(X, X, X, q=0.5), "use levels=$"),
        (lambda: pool(X), r"^pool\(\) missing 1 required positional argument: 'key'"),
    ],
)
def test_functions_have_a_remedy_for_arguments_of_other_libraries(call, remedy):
    with pytest.raises(TypeError, match=remedy):
        call()


def test_errors_inside_a_function_stay_as_they_are():
    def broken(u):
        return len(u, u)

    with pytest.raises(TypeError, match=r"^len\(\) takes exactly one argument"):
        kernpool.make_kernel("broken", broken)


LARGE = [
    np.full(200, -0.5),
    np.full((20, 10), 0.5),
    [-0.5] * 200,
    dict.fromkeys(range(200), -0.5),
    "x" * 5000,
    np.full(200, "many"),
]


@pytest.mark.parametrize("value", LARGE, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_no_parameter_is_printed_whole(kind, value):
    """Nor is one that is an array compared with names, which NumPy refuses in its own words."""
    labels = [0, 1, 1] if "Classifier" in kind.__name__ else X
    for name in kind().get_params():
        try:
            kind(**{name: value}).fit(X[:, None], labels)
        except Exception as error:
            message = str(error)
            assert len(message) < 600, (name, message)
            assert message.count("0.5") < 12, (name, message)
            assert name in message, (name, message)
            assert "truth value" not in message, (name, message)


OF_MODELS = ("confidence_interval", "prediction_interval", "conditional_distribution")


@pytest.mark.parametrize("value", LARGE, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("name", [*OF_MODELS, "quantile", "interval", "quantile_interval", "sample"])
def test_no_argument_of_a_method_is_printed_whole(name, value):
    model = NadarayaWatsonRegressor(bandwidth=1.0).fit(np.arange(9.0)[:, None], np.arange(9.0) % 4)
    of_distribution = model.conditional_distribution(X[:, None])
    call = partial(getattr(model, name), X[:, None]) if name in OF_MODELS else getattr(of_distribution, name)
    for argument in inspect.signature(call).parameters:
        if argument in ("X", "y", "X_calibration", "y_calibration", "groups"):
            continue
        try:
            call(**{argument: value})
        except Exception as error:
            message = str(error)
            assert len(message) < 450, (argument, message)
            assert message.count("0.5") < 12, (argument, message)
            assert "truth value" not in message, (argument, message)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_complex_inputs_are_not_printed(kind):
    model = kind()
    rows, labels = np.arange(200.0)[:, None], np.arange(200) % 2
    for call in (lambda: model.fit(rows + 1j, labels), lambda: kind().fit(rows, labels).predict(rows + 1j)):
        with pytest.raises(ValueError, match=r"X must hold real numbers, got ndarray of shape \(200, 1\)") as caught:
            call()
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (lambda model: type(model)(degree=1), "LocalLinearRegressor degree 1; use LocalPolynomialRegressor"),
        (lambda model: type(model)(gamma=2.0), r"use bandwidth=1 / sqrt\(2 gamma\), which is 0.5 for gamma=2"),
        (lambda model: type(model)(bandwith=2.0), "use bandwidth=$"),
        (lambda model: type(model)(cv=5), "use bandwidth='loo'"),
        (lambda model: model.confidence_interval(X[:, None], alpha=0.01), "use level=0.99$"),
        (lambda model: model.prediction_interval(X[:, None], coverage=0.8), "use level=$"),
        (lambda model: model.quantile(X[:, None], q=0.5), "use levels=$"),
        (lambda model: model.fit(X[:, None], X, weight=X), "use sample_weight=$"),
        (lambda model: model.bootstrap(seed=1), "use random_state=$"),
        (lambda model: model.get_prediction(X[:, None], order=2), "it has X, variance, groups$"),
        (lambda model: model.predict(), r"NadarayaWatsonRegressor.predict\(\) missing 1 required .*'X'"),
    ],
)
def test_arguments_of_other_libraries_have_a_remedy(call, remedy):
    with pytest.raises(TypeError, match=remedy):
        call(NadarayaWatsonRegressor(bandwidth=1.0).fit(X[:, None], X))


def test_errors_inside_a_method_stay_as_they_are():
    class Odd(NadarayaWatsonRegressor):
        def predict(self, X, return_std=False):
            return super().predict(X, wrong=return_std)

    with pytest.raises(TypeError, match=r"Odd.predict\(\) has no argument 'wrong'; it has X, return_std"):
        Odd().predict(X)
    with pytest.raises(TypeError, match="statistic must take the fit"):
        NadarayaWatsonRegressor(bandwidth=1.0).fit(X[:, None], X).bootstrap(X[:, None], 3)


@pytest.mark.parametrize(
    ("parameters", "meant"),
    [
        ({"kernel": "rbf"}, "gaussian"),
        ({"kernel": "Normal"}, "gaussian"),
        ({"kernel": "uniform"}, "boxcar"),
        ({"bandwidth": "cv"}, "loo"),
        ({"bandwidth": "auto"}, "regularised"),
        ({"bandwidth": "silvermann"}, "silverman"),
        ({"unordered": [0], "categorical_kernel": "aitchisonaitken"}, "aitchison_aitken"),
    ],
)
def test_names_of_other_libraries_have_a_suggestion(parameters, meant):
    with pytest.raises(ValueError, match=f"did you mean '{meant}'"):
        NadarayaWatsonRegressor(**parameters).fit(X[:, None], X)


def test_synonyms_lead_to_names_that_there_are():
    known = {*kernel_names(), *categorical_kernel_names(), *NAMED_BANDWIDTHS, *NAMED_FOR_CLASSES, *ALGORITHMS, "auto"}
    assert SYNONYMS.keys() <= known


def test_formulas_and_names_of_columns_say_how_to_select():
    pytest.importorskip("pyarrow", reason="a frame with the name of its target is a stream of Arrow")
    frame = pandas.DataFrame({"rain": X, "soil": ["clay", "sand", "clay"], "crop": X})
    for arguments in (("crop ~ rain + soil", frame), (frame, "crop~rain+soil")):
        for model in (NadarayaWatsonRegressor(), NadarayaWatsonClassifier()):
            with pytest.raises(TypeError, match=r"fit\(frame\[\['rain', 'soil'\]\], frame\['crop'\]\)$"):
                model.fit(*arguments)
    with pytest.raises(TypeError, match=r"fit\(frame\[\['a', 'b'\]\], frame\['y'\]\)$"):
        NadarayaWatsonRegressor().fit("crop ~ log(rain)", frame)
    with pytest.raises(FileNotFoundError):
        NadarayaWatsonRegressor().fit("~/there-is-none.parquet", "crop")
    regressor, classifier = NadarayaWatsonRegressor(), NadarayaWatsonClassifier()
    for model, y in ((regressor, "crop"), (regressor, ["crop"]), (classifier, "soil")):
        with pytest.raises(TypeError, match=r"y must hold a value per row, got .*; pass the column: fit\(frame.drop"):
            model.fit(frame, y)


def test_missing_cells_are_counted():
    frame = pandas.DataFrame(
        {"a": [1.0, np.nan, 3.0, np.nan], "b": ["x", None, None, None], "c": [1.0, 2.0, 3.0, None]}
    )
    for name, said in (
        ("a", r"row 1 \(counted from 0\) and in 1 more; "),
        ("b", "and in 2 more: "),
        ("c", r"0\); drop"),
    ):
        with pytest.raises(ValueError, match=said):
            NadarayaWatsonRegressor().fit(frame[[name]], np.arange(4.0))


def test_series_of_other_rows_than_the_frame_are_refused():
    """Rows are paired by position, so that a shuffled y, or one without the rows that X has lost, would be silent."""
    frame = pandas.DataFrame({"x": [1.0, 2.0, 4.0, 7.0, 8.0]}, index=[3, 5, 6, 8, 9])
    y = pandas.Series(frame["x"] ** 2, name="y")
    model = NadarayaWatsonRegressor(bandwidth=2.0)
    expected = model.fit(frame, y.to_numpy()).predict(frame)
    for same in (y, y.reset_index(drop=True), y.tolist()):
        assert_array_equal(model.fit(frame, same).predict(frame), expected)
        assert_array_equal(model.fit(frame.reset_index(drop=True), same).predict(frame), expected)
    for other, labels in ((y.iloc[::-1], "0: 9 for 3"), (pandas.Series(y.to_numpy(), [3, 5, 7, 8, 9]), "2: 7 for 6")):
        with pytest.raises(ValueError, match=rf"y has other row labels than X, the first in row {labels}; .*y.loc\[X"):
            model.fit(frame, other)
        for name in ("sample_weight", "groups"):
            with pytest.raises(ValueError, match=rf"{name} has other row labels than X"):
                model.fit(frame, y, **{name: other})
        with pytest.raises(ValueError, match=r"y has other row labels"):
            NadarayaWatsonClassifier().fit(frame, other > 5)
    with pytest.raises(ValueError, match=r"y has other row labels than X, the first in row 0: 4 for 0"):
        model.fit(frame.reset_index(drop=True), y.reset_index(drop=True).iloc[::-1])


def raise_sites():
    """Return path, place and text of every error of the package, without what calls inside of it look for."""
    root = Path(kernpool.__file__).parent
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and node.exc is not None:
                calls = [one for one in ast.walk(node.exc) if isinstance(one, ast.Call) and one is not node.exc]
                skipped = {id(part) for call in calls for argument in call.args for part in ast.walk(argument)}
                parts = [one for one in ast.walk(node.exc) if isinstance(one, ast.Constant) and id(one) not in skipped]
                yield path.relative_to(root), f"{path}:{node.lineno}", " ".join(str(part.value) for part in parts)


def test_no_error_names_an_internal_class():
    words = {"Gaussian", "Columns"}  # that are classes too
    layers = (Path(kernpool.__file__).parent / "torch").rglob("*.py")
    public = {
        node.name for path in layers for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)
    }
    internal = internal_classes() - words - public - set(kernpool.kernels.__all__)
    pattern = re.compile(rf"\b({'|'.join(internal)})\b")
    assert [(at, pattern.search(text)[0]) for _, at, text in raise_sites() if pattern.search(text)] == []


def test_slips_are_answered_with_the_remedy():
    X = np.random.default_rng(0).uniform(size=(20, 2))
    y = X[:, 0]
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, y)
    with pytest.raises(TypeError, match="return_std must be True or False, got ndarray of shape"):
        model.predict(X, X)
    with pytest.raises(ValueError, match="X has 20 rows and y 4; pass one value of y for each row"):
        model.fit(X, y[:4])
    for weight, message in (
        (-y, "sample_weight must not be negative"),
        (0 * y, "sample_weight is zero"),
        (y[:4], "sample_weight must have one entry"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="which are no classes; use NadarayaWatsonRegressor"):
        NadarayaWatsonClassifier().fit(X, y)
    with pytest.raises(TypeError, match="path must be the path of a saved model, got 3"):
        kernpool.load_model(3)
    with pytest.raises(FileNotFoundError, match=r"no/such\.parquet does not exist"):
        kernpool.open_chunks("no/such.parquet")


def test_values_without_a_length_are_named_in_messages():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises((TypeError, ValueError), match="kernel"):
        NadarayaWatsonRegressor(kernel=sparse.csr_matrix(np.eye(3))).fit([[0.0], [1.0]], [0.0, 1.0])


@pytest.mark.parametrize(
    ("parameters", "error", "remedy"),
    [
        ({"kernel": 1.5}, TypeError, r"kernel must be a name .* got 1.5; a bandwidth is bandwidth=1.5$"),
        ({"kernel": "loo"}, ValueError, "use bandwidth='loo'$"),
        ({"bandwidth": None}, TypeError, "bandwidth must be a positive number.*'regularised'.*got None; leave it out"),
        ({"bandwidth": True}, TypeError, "bandwidth must be a positive number.*got True"),
    ],
)
def test_parameters_in_the_place_of_others(parameters, error, remedy):
    with pytest.raises(error, match=remedy):
        NadarayaWatsonRegressor(**parameters).fit(X[:, None], X)


def test_suggestions_for_classes_are_for_classes():
    with pytest.raises(ValueError, match="did you mean 'log_loss'"):
        NadarayaWatsonClassifier(bandwidth="auto").fit(X[:, None], [0, 1, 1])
