"""What the parameters of estimators may be, checked in one place: by every fit, and again for models from files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernpool.bandwidth import CRITERIA, RULES
from kernpool.core.empty import check_empty
from kernpool.core.reading import as_tol
from kernpool.core.similarity import check_composition
from kernpool.data.checks import as_bandwidth
from kernpool.estimators.extrapolation import check_extrapolate
from kernpool.estimators.recalibration import check_recalibrate
from kernpool.estimators.scale import check_scale
from kernpool.execution.messages import abbreviate, check_choice, did_you_mean
from kernpool.execution.threads import resolve_n_jobs
from kernpool.inference.draws import as_random
from kernpool.kernels import check_convention, get_categorical_kernel, get_kernel
from kernpool.pooling.plan import check_algorithm

NAMED_BANDWIDTHS = (*CRITERIA, "plugin", *RULES)
FOR_CLASSES = "log_loss"
NAMED_FOR_CLASSES = (FOR_CLASSES, *CRITERIA, *RULES)  # the plug-in is for one output
# What `choose_bandwidth` takes of an estimator; smoothing, which not all have, is given beside them.
OF_SEARCH = (
    "kernel", "bandwidth", "bandwidth_convention", "composition", "common_factor", "max_search_rows",
    "max_search_seconds", "random_state", "algorithm", "n_jobs",
)  # fmt: skip
LARGEST_RIDGE = 1e100  # keys: any slope is zero long before


def check_parameters(model: Any) -> None:
    """Raise if a parameter is out of its range, as far as that can be seen without data.

    Those that a model does not have are not checked: the Dask regressor has none for categorical columns.

    Examples
    --------
    >>> from kernpool import NadarayaWatsonRegressor
    >>> check_parameters(NadarayaWatsonRegressor(max_search_rows=1))
    Traceback (most recent call last):
    ...
    ValueError: max_search_rows must be None or a number of rows from 2 on, got 1
    """
    parameters = vars(model)  # `get_params` reads signatures again: a tenth of a fit to 1000 rows
    for name, check in CHECKS.items():
        if name in parameters:
            check(parameters[name])
    named = NAMED_FOR_CLASSES if hasattr(model, "predict_proba") else NAMED_BANDWIDTHS
    _check_bandwidth(parameters.get("bandwidth"), named)


def check_restored(model: Any) -> None:
    """Raise if a parameter of a fitted smoother is out of its range, those included that only a fit looks at."""
    check_parameters(model)
    if not isinstance(model.bandwidth, str):
        as_bandwidth(model.bandwidth, len(model.bandwidth_))
    for name in ("unordered", "ordered"):
        columns = getattr(model, name)
        if columns is not None and (isinstance(columns, str | dict) or not all(map(_is_column, columns))):
            raise ValueError(f"{name} must be None or a collection of names or positions, got {abbreviate(columns)}")
        get_categorical_kernel(getattr(model, f"{name}_kernel"), ordered=name == "ordered")
    check_choice("ordered_by", model.ordered_by, ("value", "rank"))
    smoothing = np.atleast_1d(np.asarray(0.0 if model.smoothing is None else model.smoothing, dtype=np.float64))
    if smoothing.ndim != 1 or not np.all(smoothing >= 0.0):
        raise ValueError(f"smoothing must be None, or numbers from 0 on, got {abbreviate(model.smoothing)}")


def search_parameters(model: Any) -> dict[str, Any]:
    """Return what `choose_bandwidth` has to know of a model: its parameters by name."""
    names = (*OF_SEARCH, "ridge") if hasattr(model, "ridge") else OF_SEARCH  # only models of planes have one
    return {name: getattr(model, name) for name in names}


def _check_unseen(unseen: Any) -> None:
    check_choice("unseen", unseen, ("raise", "unlike"))


def _check_common_factor(common_factor: Any) -> None:
    if not isinstance(common_factor, bool | np.bool_):
        raise ValueError(f"common_factor must be True or False, got {abbreviate(common_factor)}")


def _check_max_search_rows(most: Any) -> None:
    if most is not None and (isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 2):
        raise ValueError(f"max_search_rows must be None or a number of rows from 2 on, got {abbreviate(most)}")


def _check_max_search_seconds(most: Any) -> None:
    if most is not None and not (_is_number(most) and most > 0):
        raise ValueError(f"max_search_seconds must be None or a positive number of seconds, got {abbreviate(most)}")


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


def check_ridge(ridge: Any) -> None:
    """Refuse a ridge that is none."""
    if ridge is not None and not (_is_number(ridge) and 0.0 <= ridge <= LARGEST_RIDGE):
        raise ValueError(
            f"ridge must be None, to be found, or a number from 0 to {LARGEST_RIDGE:g}, got {abbreviate(ridge)}"
        )


def check_prior_share(share: Any) -> None:
    """Refuse a share of the class priors that is none."""
    if isinstance(share, str) and share == "loo":
        return
    number = isinstance(share, int | float | np.integer | np.floating) and not isinstance(share, bool)
    if not number or not 0.0 <= share < 1.0:
        raise ValueError(f"prior_share must be 'loo', or a number from 0 on and below 1, got {abbreviate(share)}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _is_column(column: Any) -> bool:
    return isinstance(column, str | int | np.integer) and not isinstance(column, bool)


def _check_random_state(random_state: Any) -> None:
    if type(random_state) is not int or not 0 <= random_state < 1 << 32:  # to seed one takes longer than a small fit
        as_random(random_state, generators=False)


CHECKS: dict[str, Callable[[Any], object]] = {
    "empty": check_empty,
    "scale": check_scale,
    "extrapolate": check_extrapolate,
    "composition": check_composition,
    "bandwidth_convention": check_convention,
    "algorithm": check_algorithm,
    "tol": as_tol,
    "random_state": _check_random_state,
    "n_jobs": resolve_n_jobs,
    "unseen": _check_unseen,
    "common_factor": _check_common_factor,
    "max_search_rows": _check_max_search_rows,
    "max_search_seconds": _check_max_search_seconds,
    "kernel": _check_kernel,
    "ridge": check_ridge,
    "prior_share": check_prior_share,
    "recalibrate": check_recalibrate,
}
