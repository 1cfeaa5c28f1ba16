"""Bad input: an error that names the argument, what came, and what would do."""

import numpy as np
import pytest

from kernpool import NadarayaWatsonClassifier, NadarayaWatsonRegressor, pool, pooling_weights

X = np.array([0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"query": [np.nan]}, ValueError, r"query holds nan at index \(0,\)"),
        ({"key": [0.0, np.inf, 1.0]}, ValueError, r"key holds inf at index \(1,\)"),
        ({"value": [0.0, 1.0, -np.inf]}, ValueError, r"value holds -inf at index \(2,\)"),
        ({"query": []}, ValueError, "query is empty"),
        ({"key": np.empty((3, 0))}, ValueError, "key is empty"),
        ({"value": [1.0, 2.0]}, ValueError, "key has 3 rows and value has 2"),
        ({"query": np.zeros((2, 2))}, ValueError, r"query has 2 column\(s\) and key has 1"),
        ({"query": 3.0}, ValueError, r"query must have shape"),
        ({"query": [[0.0], [1.0, 2.0]]}, ValueError, "query must be a rectangular array"),
        ({"query": [1e200]}, ValueError, "query holds numbers beyond 1e\\+150"),
        ({"bandwidth": 0.0}, ValueError, "bandwidth must be positive, got 0.0"),
        ({"bandwidth": -1}, ValueError, "bandwidth must be positive, got -1"),
        ({"bandwidth": np.nan}, ValueError, "bandwidth is nan; it must be finite"),
        ({"bandwidth": np.inf}, ValueError, "bandwidth is inf"),
        ({"bandwidth": [1.0, 2.0]}, ValueError, "bandwidth must be one number or one per column"),
        ({"bandwidth": "loo"}, TypeError, "belong to NadarayaWatsonRegressor"),
        ({"bandwidth": 1e-149, "key": [0.0, 1.0, 100.0]}, ValueError, "bandwidth is too small"),
        ({"kernel": "gausian"}, ValueError, "unknown kernel 'gausian'; did you mean 'gaussian'"),
        ({"kernel": None}, TypeError, "kernel must be a name"),
        ({"composition": "sum"}, ValueError, "composition must be 'radial' or 'product', got 'sum'"),
        ({"key_weight": [1.0, -1.0, 1.0]}, ValueError, "key_weight must not be negative, got -1.0"),
        ({"key_weight": [0.0, 0.0, 0.0]}, ValueError, "key_weight is zero for every key"),
        ({"key_weight": [1.0, 2.0]}, ValueError, "key_weight must have one entry per key"),
        ({"value": [1j, 2, 3]}, TypeError, "value must hold real numbers, got dtype complex128"),
        ({"value": np.array(["1", "2", "3"])}, TypeError, "value must hold real numbers, got dtype <U1"),
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
        ({"bandwidth": 1e-200}, ValueError, "bandwidth must be at least 1e-150"),
        ({"key_weight": [[1], [1, 2]]}, ValueError, "key_weight must be a rectangular array"),
        ({"value": np.array([10**400, 1, 2], dtype=object)}, ValueError, "too large for a float"),
        ({"value": np.ma.masked_array(X, mask=[0, 1, 0])}, TypeError, "value is a masked array"),
        ({"tol": 1.0}, ValueError, r"tol must be None or a share of the weight in \[0, 1\)"),
        ({"tol": "small"}, ValueError, "tol must be None"),
        ({"empty": "maybe"}, ValueError, "empty must be one of"),
        ({"algorithm": "magic"}, ValueError, "unknown algorithm 'magic'"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be None"),
        ({"n_jobs": 1.5}, ValueError, "n_jobs must be None"),
        ({"query": np.zeros((2, 1, 1)), "key": np.zeros((3, 3, 1))}, ValueError, "batch dimensions do not broadcast"),
    ],
)
def test_pool_says_what_is_wrong(change, error, message):
    arguments = {"query": [0.5], "key": X, "value": X} | change
    with pytest.raises(error, match=message):
        pool(**arguments)


def test_a_misspelt_argument_is_named():
    from kernpool import pool_state

    with pytest.raises(TypeError, match="unexpected keyword argument 'bandwith'"):
        pool_state(X, X, X, bandwith=2.0)


def test_sparse_matrices_are_refused():
    from scipy.sparse import csr_array

    with pytest.raises(TypeError, match=r"key is a sparse matrix.*key.toarray\(\)"):
        pool(X, csr_array(np.eye(3)), X)


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


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bandwidth": "lo"}, "bandwidth must be a positive number, one per column, or one of 'loo'"),
        ({"bandwidth": -1.0}, "bandwidth must be positive"),
        ({"bandwidth": [1.0, 1.0]}, "one per column"),
        ({"kernel": "epanechikov"}, "did you mean 'epanechnikov'"),
        ({"empty": "maybe"}, "empty must be one of"),
        ({"composition": "sum"}, "composition must be"),
        ({"algorithm": "magic"}, "unknown algorithm"),
    ],
)
def test_estimators_say_what_is_wrong(parameters, message):
    with pytest.raises(ValueError, match=message):
        NadarayaWatsonRegressor(**parameters).fit(X[:, None], X)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, -1.0, 1.0], "sample_weight must not be negative"),
        ([0.0, 0.0, 0.0], "sample_weight is zero"),
        ([1.0, np.nan, 1.0], "sample_weight holds nan"),
        ([1.0, 1.0], "sample_weight must have one entry"),
    ],
)
def test_sample_weights_say_what_is_wrong(weight, message):
    with pytest.raises(ValueError, match=message):
        NadarayaWatsonRegressor().fit(X[:, None], X, sample_weight=weight)


@pytest.mark.parametrize("make", [np.array, lambda rows: np.array(rows, dtype=object), list])
def test_text_is_not_read_as_numbers(make):
    """scikit-learn would read "1" as 1."""
    text, numbers = make([["1"], ["2"], ["3"]]), X[:, None]
    for model in (NadarayaWatsonRegressor(bandwidth=1.0), NadarayaWatsonClassifier(bandwidth=1.0)):
        with pytest.raises(ValueError, match="column 0 of X holds text such as"):
            model.fit(text, [0, 1, 1])
        with pytest.raises(ValueError, match="column 0 of X holds text such as"):
            model.fit(numbers, [0, 1, 1]).predict(text)
    with pytest.raises(ValueError, match=r"y must hold numbers, got text such as|could not convert"):
        NadarayaWatsonRegressor(bandwidth=1.0).fit(numbers, make(["1", "2", "3"]))
