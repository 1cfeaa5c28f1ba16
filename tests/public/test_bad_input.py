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
from scipy.sparse import csr_matrix

import kernpool
from kernpool import NadarayaWatsonClassifier, NadarayaWatsonRegressor, kernel_names, pool, pooling_weights
from kernpool.algorithms import ALGORITHMS
from kernpool.estimators.model import NAMED_BANDWIDTHS, NAMED_FOR_CLASSES
from kernpool.execution.error_messages import SYNONYMS
from kernpool.kernels import categorical_kernel_names

X = np.array([0.0, 1.0, 2.0])


# the argument of `pool` that the error names, its type, and values that are refused
REFUSED = [
    ("query", ValueError, ([np.nan], [], np.zeros((2, 2)), 3.0, [[0.0], [1.0, 2.0]], [1e200])),
    ("key", ValueError, ([0.0, np.inf, 1.0], np.empty((3, 0)))),
    ("value", ValueError, ([1.0, 2.0], np.array([10**400, 1, 2], dtype=object))),
    ("value", TypeError, ([1j, 2, 3], np.array([1, "2", None], dtype=object), np.array(["2020"] * 3, "M8[Y]"))),
    ("value", TypeError, (np.ma.masked_array(X, mask=[0, 1, 0]),)),
    ("bandwidth", ValueError, (0.0, np.nan, [1.0, 2.0], np.ones((2, 0)), 1e-200)),
    ("bandwidth", TypeError, ("loo",)),
    ("kernel", ValueError, ("gausian", "product gausian")),
    ("kernel", TypeError, (None,)),
    ("key_weight", ValueError, ([1.0, -1.0, 1.0], [0.0, 0.0, 0.0])),
    ("attn_mask", ValueError, ([[True, False]], [[0.0, np.nan, 0.0]])),
    ("attn_mask", TypeError, ([[1, 0, 1]],)),
    ("self_index", ValueError, ([3], [0.5])),
    ("exclude_self", ValueError, (True,)),
    ("exclude_self", TypeError, ("no",)),
    ("tol", ValueError, (1.0,)),
    ("empty", ValueError, ("maybe",)),
    ("algorithm", ValueError, ("magic",)),
    ("n_jobs", ValueError, (0,)),
]


@pytest.mark.parametrize(("name", "error", "values"), REFUSED)
def test_pool_names_the_argument_that_is_wrong(name, error, values):
    for value in values:
        with pytest.raises(error, match=rf"\b{name}\b"):
            pool(**{"query": [0.5], "key": X, "value": X, "exclude_self": name == "self_index", name: value})


def test_torch_tensors_are_sent_to_the_other_door():
    torch = pytest.importorskip("torch", reason="torch is an optional extra")
    for name, tensor in (
        ("key_weight", torch.ones(3)),
        ("attn_mask", torch.ones(3, 3, dtype=torch.bool)),
        ("self_index", torch.arange(3)),
        ("query", [torch.tensor(1.0, requires_grad=True)] * 3),
        ("key", torch.nn.Parameter(torch.zeros(3))),
        ("value", torch.zeros(3)),
    ):
        arguments = {"query": X, "key": X, "value": X, "exclude_self": name == "self_index"} | {name: tensor}
        with pytest.raises(TypeError, match=rf"{name} is a torch tensor.*{name}.detach\(\).cpu\(\).numpy\(\)"):
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


def message_of(call, otherwise=""):
    """Return the message with which a call is refused, which is short."""
    try:
        call()
    except Exception as error:
        message = str(error)
        assert len(message) < 600
        assert message.count("0.5") < 12
        assert "truth value" not in message
        return message
    return otherwise


@pytest.mark.parametrize("value", LARGE, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_no_parameter_is_printed_whole(kind, value):
    """Nor is one that is an array compared with names, which NumPy refuses in its own words."""
    labels = [0, 1, 1] if "Classifier" in kind.__name__ else X
    for name in kind().get_params():
        assert name in message_of(lambda name=name: kind(**{name: value}).fit(X[:, None], labels), name)


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
        message_of(partial(call, **{argument: value}))


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_complex_inputs_are_not_printed(kind):
    model = kind()
    rows, labels = np.arange(200.0)[:, None], np.arange(200) % 2
    for call in (lambda: model.fit(rows + 1j, labels), lambda: kind().fit(rows, labels).predict(rows + 1j)):
        with pytest.raises(ValueError, match=r"X must hold real numbers, got ndarray of shape \(200, 1\)") as caught:
            call()
        assert len(str(caught.value)) < 200


MODEL = NadarayaWatsonRegressor(bandwidth=1.0).fit(X[:, None], X)
REMEDIES = [
    (lambda: kernpool.Interval.to_frame(), r"to_frame\(\) missing 1 required positional argument: 'self'"),
    (
        lambda: kernpool.pool_state(X, X, X, bandwith=2.0),
        r"^pool_state\(\) has no argument 'bandwith'; use bandwidth",
    ),
    (lambda: pool(X, X, X, h=0.1), r"^pool\(\) has no argument 'h'; use bandwidth=$"),
    (lambda: pool(X, X, X, sample_weight=X), "use key_weight=$"),
    (lambda: pool(X, X, X, gamma=2.0), r"bandwidth=1 / sqrt\(2 gamma\), which is 0.5 for gamma=2"),
    (lambda: kernpool.pool_quantile(X, X, X, q=0.5), "use levels=$"),
    (lambda: pool(X), r"^pool\(\) missing 1 required positional argument: 'key'"),
    (lambda: NadarayaWatsonRegressor(degree=1), "LocalLinearRegressor degree 1; use LocalPolynomialRegressor"),
    (lambda: NadarayaWatsonRegressor(gamma=2.0), r"use bandwidth=1 / sqrt\(2 gamma\), which is 0.5 for gamma=2"),
    (lambda: NadarayaWatsonRegressor(bandwith=2.0), "use bandwidth=$"),
    (lambda: NadarayaWatsonRegressor(cv=5), "use bandwidth='loo'"),
    (lambda: MODEL.confidence_interval(X[:, None], alpha=0.01), "use level=0.99$"),
    (lambda: MODEL.prediction_interval(X[:, None], coverage=0.8), "use level=$"),
    (lambda: MODEL.quantile(X[:, None], q=0.5), "use levels=$"),
    (lambda: MODEL.fit(X[:, None], X, weight=X), "use sample_weight=$"),
    (lambda: MODEL.bootstrap(seed=1), "use random_state=$"),
    (lambda: MODEL.get_prediction(X[:, None], order=2), "it has X, variance, groups$"),
    (lambda: MODEL.predict(), r"NadarayaWatsonRegressor.predict\(\) missing 1 required .*'X'"),
    (lambda: MODEL.predict(X[:, None], X), "return_std must be True or False, got array"),
    (lambda: MODEL.bootstrap(X[:, None], 3), "statistic must take the fit"),
    (lambda: kernpool.load_model(3), "path must be the path of a saved model, got 3"),
]


@pytest.mark.parametrize(("call", "remedy"), REMEDIES)
def test_calls_that_do_not_fit_have_a_remedy(call, remedy):
    with pytest.raises(TypeError, match=remedy):
        call()


def test_errors_inside_a_method_stay_as_they_are():
    class Odd(NadarayaWatsonRegressor):
        def predict(self, X, return_std=False):
            return super().predict(X, wrong=return_std)

    with pytest.raises(TypeError, match=r"Odd.predict\(\) has no argument 'wrong'; it has X, return_std"):
        Odd().predict(X)


PARAMETERS = [
    ({"kernel": "rbf"}, "did you mean 'gaussian'"),
    ({"kernel": "Normal"}, "did you mean 'gaussian'"),
    ({"kernel": "uniform"}, "did you mean 'boxcar'"),
    ({"kernel": "loo"}, "use bandwidth='loo'$"),
    ({"kernel": 1.5}, r"kernel must be a name .* got 1.5; a bandwidth is bandwidth=1.5$"),
    ({"kernel": csr_matrix(np.eye(3))}, "kernel must be a name"),  # which has no length
    ({"bandwidth": "cv"}, "did you mean 'loo'"),
    ({"bandwidth": "auto"}, "did you mean 'regularised'"),
    ({"bandwidth": "silvermann"}, "did you mean 'silverman'"),
    ({"bandwidth": None}, "bandwidth must be a positive number.*'regularised'.*got None; leave it out"),
    ({"bandwidth": True}, "bandwidth must be a positive number.*got True"),
    ({"unordered": [0], "categorical_kernel": "aitchisonaitken"}, "did you mean 'aitchison_aitken'"),
]


@pytest.mark.parametrize(("parameters", "remedy"), PARAMETERS)
def test_parameters_have_a_suggestion(parameters, remedy):
    with pytest.raises((TypeError, ValueError), match=remedy):
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


def raise_sites():
    """Return place and text of every error of the package, without what calls inside of it look for."""
    for path in sorted(Path(kernpool.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise) and node.exc is not None:
                calls = [one for one in ast.walk(node.exc) if isinstance(one, ast.Call) and one is not node.exc]
                skipped = {id(part) for call in calls for argument in call.args for part in ast.walk(argument)}
                parts = [one for one in ast.walk(node.exc) if isinstance(one, ast.Constant) and id(one) not in skipped]
                yield f"{path}:{node.lineno}", " ".join(str(part.value) for part in parts)


def test_no_error_names_an_internal_class():
    words = {"Gaussian", "Columns"}  # that are classes too
    layers = (Path(kernpool.__file__).parent / "torch").rglob("*.py")
    public = {
        node.name for path in layers for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)
    }
    internal = internal_classes() - words - public - set(kernpool.kernels.__all__)
    pattern = re.compile(rf"\b({'|'.join(internal)})\b")
    assert [(at, pattern.search(text)[0]) for at, text in raise_sites() if pattern.search(text)] == []


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: MODEL.fit(X[:, None], X[:2]), "X has 3 rows and y 2; pass one value of y for each row"),
        (lambda: MODEL.fit(X[:, None], X, sample_weight=-X), "sample_weight must not be negative"),
        (lambda: MODEL.fit(X[:, None], X, sample_weight=0 * X), "sample_weight is zero"),
        (lambda: MODEL.fit(X[:, None], X, sample_weight=X[:2]), "sample_weight must have one entry"),
        (lambda: NadarayaWatsonClassifier().fit(X[:, None], X / 4), "are no classes; use NadarayaWatsonRegressor"),
        (lambda: pool(X, [0.0, 1.0, 100.0], X, bandwidth=1e-149), "bandwidth is too small"),
        (lambda: pool(np.zeros((2, 1, 1)), np.zeros((3, 3, 1)), X), "batch dimensions do not broadcast"),
        (lambda: pool(X, X, X, self_index=[0]), "needs exclude_self=True"),
    ],
)
def test_arguments_that_do_not_go_together(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_suggestions_for_classes_are_for_classes():
    with pytest.raises(ValueError, match="did you mean 'log_loss'"):
        NadarayaWatsonClassifier(bandwidth="auto").fit(X[:, None], [0, 1, 1])
