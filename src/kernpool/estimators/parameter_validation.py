"""Validation of parameters and method arguments of estimators, and isotonic recalibration of class probabilities.

Every fit checks parameters here, and so does loading a model from a file.

Recalibration maps the leave-one-out probabilities of each class, one class against the rest, to observed
frequencies by isotonic regression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth import CRITERIA, RULES
from kernpool.core import check_empty
from kernpool.data.encoding import COLUMN_CHECKS
from kernpool.estimators.model import FittedModel
from kernpool.execution.error_messages import abbreviate, did_you_mean
from kernpool.execution.threads import resolve_n_jobs
from kernpool.inference.resampling.random_draws import as_random
from kernpool.kernels import get_kernel, kernel_of_family
from kernpool.pooling.widths import Floor, Nearest

Array = NDArray[np.float64]

ISOTONIC = "isotonic"
DIGITS = 12  # of probabilities: those that differ by rounding are equal, or they would be steps


def isotonic_maps(probability: Array, label: Array, weight: Array | None = None) -> Array:
    r"""Fit an isotonic recalibration map for the probabilities of each class by least squares.

    Parameters
    ----------
    probability : ndarray of shape (n, k)
        Leave-one-out probabilities.
    label : ndarray of shape (n, k)
        One-hot labels.
    weight : ndarray of shape (n,), optional
        Frequencies.

    Returns
    -------
    ndarray of shape (points, 3)
        Class index, probability and recalibrated probability, in this order; linear between points of a class,
        and constant beyond its first and last.

    Raises
    ------
    ValueError
        If there are fewer than two unit rows.

    Notes
    -----
    `sklearn.isotonic.IsotonicRegression`, between :math:`\pi_c / (W + 1)` and :math:`(W + \pi_c) / (W + 1)` by
    Laplace's rule of succession, as `kernpool.bandwidth.criteria`: W rows prove no class to be impossible.
    """
    from sklearn.isotonic import IsotonicRegression

    weight = np.ones(len(label)) if weight is None else weight
    total = float(weight.sum())
    if not total > 1.0:
        raise ValueError(
            f"recalibrate={ISOTONIC!r} needs rows to leave out, got 1 sample; leave recalibrate=None for so few"
        )
    kept = weight > 0
    prior, points = weight @ label / total, []
    for c, (said, seen) in enumerate(zip(np.round(probability[kept], DIGITS).T, label[kept].T, strict=True)):
        least, most = prior[c] / (total + 1.0), 1.0 - (1.0 - prior[c]) / (total + 1.0)
        found = IsotonicRegression(y_min=least, y_max=most, out_of_bounds="clip")
        found.fit(said, seen, sample_weight=weight[kept])
        x, y = found.X_thresholds_, found.y_thresholds_
        points.append(np.column_stack([np.full(len(x), float(c)), x, y]))
    return np.concatenate(points)


def recalibrated(probability: NDArray[Any], maps: Array) -> NDArray[Any]:
    """Apply recalibration maps to class probabilities, and rescale each row to sum to one.

    Parameters
    ----------
    probability : ndarray of shape (m, k)
        Rows of zeros or NaN, for empty windows, stay as they are.
    maps : ndarray of shape (points, 3)
        Of `isotonic_maps`.

    Returns
    -------
    ndarray of shape (m, k)
        Of the type of `probability`.

    Examples
    --------
    >>> maps = np.array([[0, 0.25, 0.5], [0, 0.75, 0.75], [1, 0.25, 0.25], [1, 0.75, 0.5]])
    >>> recalibrated(np.array([[0.5, 0.5], [0.0, 1.0], [0.0, 0.0]]), maps)
    array([[0.625, 0.375],
           [0.5  , 0.5  ],
           [0.   , 0.   ]])
    """
    new = np.empty(probability.shape)
    for c in range(probability.shape[1]):
        points = maps[maps[:, 0] == c]
        new[:, c] = np.interp(probability[:, c], points[:, 1], points[:, 2])
    told = probability.sum(axis=1, keepdims=True) > 0
    total = new.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.where(told, new / np.where(told, total, 1.0), probability).astype(probability.dtype)


NAMED_BANDWIDTHS = (*CRITERIA, *RULES)
FOR_CLASSES = "log_loss"
NAMED_FOR_CLASSES = (FOR_CLASSES, *CRITERIA, *RULES)
LARGEST_RIDGE = 1e100  # keys: any slope is zero long before


def check_parameters(model: FittedModel) -> None:
    """Raise if a parameter of an estimator is invalid, as far as that can be checked without data.

    Those that a model does not have are not checked: the Dask regressor has none for categorical columns.

    Examples
    --------
    >>> from kernpool import NadarayaWatsonRegressor
    >>> check_parameters(NadarayaWatsonRegressor(search={"rows": 1}))
    Traceback (most recent call last):
    ...
    ValueError: search['rows'] must be 'auto', None for all, or a number of rows from 2 on, got 1
    """
    parameters = model.__dict__  # `get_params` reads signatures again: a tenth of a fit to 1000 rows
    for name, value in parameters.items():
        if name in ACCEPTED:
            ACCEPTED[name].check(name, value)
        elif name in READERS:
            READERS[name](value)
    named = NAMED_FOR_CLASSES if hasattr(model, "predict_proba") else NAMED_BANDWIDTHS
    _check_bandwidth(parameters.get("bandwidth"), named)


def _check_kernel(kernel: Any) -> None:
    if isinstance(kernel, str) and kernel in (*NAMED_BANDWIDTHS, FOR_CLASSES):
        raise ValueError(f"kernel={kernel!r} is a way to find bandwidths; use bandwidth={kernel!r}")
    get_kernel(kernel)


def _check_bandwidth(bandwidth: Any, named: tuple[str, ...]) -> None:
    impossible = bandwidth is None or isinstance(bandwidth, bool | dict)
    if not impossible and (not isinstance(bandwidth, str) or bandwidth in named):
        return
    if bandwidth == FOR_CLASSES:
        raise ValueError(f"bandwidth={FOR_CLASSES!r} is for probabilities of classes; use 'loo' for numbers")
    hint = did_you_mean(bandwidth, named) if isinstance(bandwidth, str) else "leave it out to have it found"
    raise (TypeError if impossible else ValueError)(
        f"bandwidth must be a positive number, one per column, or one of {', '.join(map(repr, named))}; "
        f"got {abbreviate(bandwidth)}; {hint}".rstrip("; ")
    )


def _check_window(window: Any) -> None:
    if not isinstance(window, Nearest | Floor) and not (isinstance(window, str) and window in WINDOWS):
        hint = did_you_mean(window, WINDOWS) if isinstance(window, str) else ""
        expected = "'auto', 'fixed', Nearest(k) or Floor(rows)"
        raise ValueError(f"window must be {expected}, got {abbreviate(window)}; {hint}".rstrip("; "))


def _check_random_state(random_state: Any) -> None:
    if type(random_state) is not int or not 0 <= random_state < 1 << 32:  # to seed one takes longer than a small fit
        as_random(random_state, generators=False)


def _check_search(search: Any) -> None:
    if search is None:
        return
    expected = "search must be None or a dict with 'rows', 'seconds' and 'random_state', or some of them"
    if not isinstance(search, Mapping):
        raise TypeError(f"{expected}, got {abbreviate(search)}")
    for name, value in search.items():
        if name == "random_state":
            _check_random_state(value)
        elif name in ACCEPTED_OF_SEARCH:
            ACCEPTED_OF_SEARCH[name].check(f"search[{name!r}]", value)
        else:
            hint = did_you_mean(str(name), (*ACCEPTED_OF_SEARCH, "random_state"))
            raise ValueError(f"{expected}, got the key {abbreviate(name)}; {hint}".rstrip("; "))


WINDOWS = "auto", "fixed"

READERS: dict[str, Callable[[Any], object]] = {
    "empty": check_empty,
    "categorical_kernel": partial(kernel_of_family, ordered=False),
    "window": _check_window,
    "search": _check_search,
    "n_jobs": resolve_n_jobs,
    "kernel": _check_kernel,
    **COLUMN_CHECKS,
}


class Accepted(NamedTuple):
    """Values that a parameter accepts: some by name, and numbers that fulfil a condition.

    Parameters
    ----------
    words : str
        The values in words, for the error message.
    names : tuple, optional
        Strings, None, True and False that are accepted.
    numbers : callable, optional
        Condition on numbers; without one no number is accepted.
    whole : bool, default=False
        Whether numbers have to be integers.

    Examples
    --------
    >>> Accepted("a number of rows from 2 on", numbers=lambda n: n >= 2, whole=True).check("rows", 2.5)
    Traceback (most recent call last):
    ...
    ValueError: rows must be a number of rows from 2 on, got 2.5
    """

    words: str
    names: tuple[str | bool | None, ...] = ()
    numbers: Callable[[Any], bool] | None = None
    whole: bool = False

    def check(self, name: str, value: Any) -> None:
        """Raise ValueError unless the value of the parameter called `name` is accepted."""
        if value is None or isinstance(value, str | bool | np.bool_):
            accepted = value in self.names
        else:
            kinds = (int, np.integer) if self.whole else (int, float, np.integer, np.floating)
            accepted = self.numbers is not None and isinstance(value, kinds) and bool(self.numbers(value))
        if not accepted:
            known = [name for name in self.names if isinstance(name, str)]
            hint = did_you_mean(value, known) if isinstance(value, str) else ""
            raise ValueError(f"{name} must be {self.words}, got {abbreviate(value)}; {hint}".rstrip("; "))


ACCEPTED = {
    "degree": Accepted("0, 1 or 2", (), lambda n: 0 <= n <= 2, whole=True),
    "unseen": Accepted("'raise' or 'unlike'", ("raise", "unlike")),
    "ridge": Accepted(
        f"None, to be found, or a number from 0 to {LARGEST_RIDGE:g}", (None,), lambda x: 0 <= x <= LARGEST_RIDGE
    ),
    "gap": Accepted("a whole number of places, 0 for none", (), lambda n: 0 <= n < 2**62, whole=True),
    "prior_share": Accepted("'loo', or a number from 0 on and below 1", ("loo",), lambda x: 0 <= x < 1),
    "robust": Accepted(
        "False, True, 'tukey', 'huber', or a number of re-weightings from 1 on",
        (False, True, "tukey", "huber"),
        lambda n: n >= 1,
        whole=True,
    ),
    "recalibrate": Accepted(f"None or {ISOTONIC!r}", (None, ISOTONIC)),
}
ACCEPTED_OF_SEARCH = {
    "rows": Accepted(
        "'auto', None for all, or a number of rows from 2 on", ("auto", None), lambda n: n >= 2, whole=True
    ),
    "seconds": Accepted("None or a positive number of seconds", (None,), lambda x: x > 0),
}
