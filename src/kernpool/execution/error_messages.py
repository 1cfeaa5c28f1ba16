"""Parts of error messages: abbreviated values, and "did you mean" suggestions for unknown values and arguments.

Suggestions are the names of the same thing in other libraries, or the closest spelling.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from itertools import chain
from numbers import Real
from operator import index
from types import FunctionType
from typing import Any, TypeVar, cast

Public = TypeVar("Public", bound=Callable[..., Any])

LONGEST = 80  # characters of a value in a message

# Names here, and what other libraries call the same, unless it is spelled alike. Of a name with several meanings the
# first that fits counts.
SYNONYMS: dict[str, tuple[str, ...]] = {
    "gaussian": ("rbf", "normal", "squared_exponential"),
    "boxcar": ("uniform", "rectangular"),
    "epanechnikov": ("quadratic", "parabolic"),
    "biweight": ("bisquare",),
    "constant": ("flat",),
    "loo": ("cv", "cv.ls", "cv_ls", "cross_validation", "leave_one_out", "jackknife"),
    "log_loss": ("cv_ml", "cross_entropy", "auto", "default"),
    "regularised": ("auto", "default"),
    "scott": ("normal_reference",),
    "li_racine": ("liracine",),
    "nufft": ("fourier",),
}

# The same for arguments.
ARGUMENT_SYNONYMS: dict[str, tuple[str, ...]] = {
    "bandwidth": ("gamma", "sigma", "length_scale", "h", "bw", "cv", "scale"),
    "level": ("alpha", "confidence", "confidence_level", "coverage"),
    "levels": ("alpha", "q", "quantile", "quantiles", "probs", "tau"),
    "ridge": ("alpha", "l2"),
    "n_resamples": ("n_boot", "n_bootstrap", "nboot"),
    "random_state": ("seed",),
    "search": ("seed", "random_seed", "random_state"),
    "algorithm": ("method",),
    "y": ("thresholds",),
    "X": ("newdata",),
    "groups": ("cluster", "clusters"),
    "unordered": ("categorical_features", "cat_features"),
    "n_jobs": ("threads", "n_threads"),
    "return_weights": ("need_weights",),
}
# Arguments that calls with another one have elsewhere: `attn_mask` of torch's attention, and `return_std` of `predict`.
ELSEWHERE = {
    "attn_mask": {
        "dropout_p": "use dropout= of the constructor",
        "scale": "use DotProductSimilarity(scale=), or give a similarity of distances its bandwidth=",
    },
    "return_std": {"interval": "use prediction_interval(X, level=0.9) or confidence_interval(X)"},
}
DEGREES = (
    "NadarayaWatsonRegressor has degree 0, LocalLinearRegressor degree 1; use LocalPolynomialRegressor(degree=2) for "
    "local quadratic fits"
)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a "did you mean" suggestion for an unknown name, or an empty string if no known name is close."""
    able, plain = list(known), name.strip().lower().replace("-", "_").replace(" ", "_")
    found = _ours(plain, SYNONYMS, able) or get_close_matches(plain, able, n=1, cutoff=0.5)
    return f"did you mean {found[0]!r}? " if found else ""


def _ours(name: str, synonyms: dict[str, tuple[str, ...]], known: Iterable[str]) -> list[str]:
    """Return the known names whose synonym a name is, in the order of the table."""
    return [ours for ours, others in synonyms.items() if name in others and ours in known]


def abbreviate(value: Any) -> str:
    """Describe a value in an error message: its `repr`, or type, shape and first value if that is long."""
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        value = value.item()  # `np.float64(0.5)` is 0.5
    shape = getattr(value, "shape", None)
    count = 0
    if shape != ():
        with suppress(Exception):  # sparse matrices and Dask arrays have no length
            count = len(value)
    if isinstance(value, str) or count <= LONGEST // 3:
        text = repr(value)
        if len(text) <= LONGEST and "\n" not in text:
            return text
    kind = type(value).__name__
    if not count or isinstance(value, str):
        text = " ".join(repr(value).split())
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
    found = f"{kind} of shape {tuple(shape)}" if shape is not None else f"{kind} of length {count}"
    with suppress(Exception):  # some containers have no first value, or do not give it
        first = value
        while not isinstance(first, str) and hasattr(first, "__len__"):
            first = next(chain.from_iterable(first.to_numpy())) if hasattr(first, "columns") else next(iter(first))
        found += f" that begins with {abbreviate(first):.{LONGEST}}"
    return found


def check_choice(name: str, value: Any, known: Iterable[Any]) -> None:
    """Raise ValueError unless a value is one of the choices of an argument, and suggest the closest one."""
    able = list(known)
    if (isinstance(value, str) or value is None) and value in able:
        return
    choices = " or ".join(map(repr, able)) if len(able) < 3 else f"one of {', '.join(map(repr, able))}"
    names = [other for other in able if isinstance(other, str)]
    hint = did_you_mean(value, names).rstrip() if isinstance(value, str) else ""
    raise ValueError(f"{name} must be {choices}, got {abbreviate(value)}" + (f"; {hint}" if hint else ""))


def check_flag(name: str, value: Any) -> None:
    """Raise TypeError unless a value is True or False."""
    if type(value).__name__ not in ("bool", "bool_"):  # Python's, and that of NumPy
        raise TypeError(f"{name} must be True or False, got {abbreviate(value)}")


def as_count(name: str, value: Any, least: int = 1, hint: str = "") -> int:
    """Return an integer argument; raise ValueError unless it is one from `least` on, with a hint if there is one."""
    try:
        read = least - 1 if isinstance(value, bool) else index(value)
    except TypeError:
        read = least - 1
    if read < least:
        raise ValueError(f"{name} must be an integer from {least} on{hint}, got {abbreviate(value)}")
    return read


def as_level(level: Any, name: str = "level") -> float:
    """Convert a confidence level to a float with the same decimal digits; raise unless it lies between 0 and 1.

    ``np.float32(0.9)`` becomes 0.9.
    """
    given = level[()] if getattr(level, "shape", None) == () else level
    number = isinstance(given, Real | Decimal) and not isinstance(given, bool)
    if not number or not 0 < given < 1:
        percent = number and 1 < given < 100
        hint = f"; {given:g} percent is {name}={float(given) / 100:g}" if percent else f"; the usual one is {name}=0.95"
        raise ValueError(f"{name} must lie between 0 and 1, got {abbreviate(given)}{hint}")
    return float(str(given)) if type(given).__module__ == "numpy" else float(given)


def explain_calls(public: Public) -> Public:
    """Decorate a public function or class so that calls with wrong arguments raise errors that name the remedy."""
    # Valid calls cost 0.2 us more; arguments are inspected only after Python has raised a TypeError.
    if not isinstance(public, type):
        return cast(Public, _explained(public, is_method=False))
    for name, function in list(vars(public).items()):
        called = name in ("__init__", "forward") or (not name.startswith("_") and not hasattr(public, "forward"))
        if called and isinstance(function, FunctionType):
            setattr(public, name, _explained(function, is_method=True))
    return public


def _explained(function: Callable[..., Any], *, is_method: bool) -> Callable[..., Any]:
    @wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except TypeError as error:
            try:
                signature(function).bind(*arguments, **keywords)
            except TypeError:
                owner = type(arguments[0]).__name__ if is_method and arguments else ""
                raise TypeError(describe_call(owner, function, keywords, str(error))) from None
            raise

    return call


def describe_call(owner: str, function: Callable[..., Any], keywords: dict[str, Any], error: str) -> str:
    """Return the error message for a call whose arguments do not fit: what is wrong, and the remedy."""
    called = owner if function.__name__ == "__init__" else f"{owner}.{function.__name__}".lstrip(".")
    known = [name for name in signature(function).parameters if name not in ("self", "cls")]
    unknown = [name for name in keywords if name not in known]
    if not unknown:
        return re.sub(r"^[\w.<>]+\(\)", f"{called}()", error)
    name = unknown[0]
    if name == "degree" and owner.endswith(("Regressor", "Classifier")):
        return f"{called}() has no argument {name!r}; {DEGREES}"
    return f"{called}() has no argument {name!r}; {_remedy(name, keywords[name], known)}"


def _remedy(name: str, value: Any, known: Sequence[str]) -> str:
    for argument, remedies in ELSEWHERE.items():
        if name in remedies and argument in known:
            return remedies[name]
    able = _ours(name.lower(), ARGUMENT_SYNONYMS, known) or get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    number = value if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None
    if not able:
        return f"it has {', '.join(known)}" if known else "it takes no arguments"
    use = f"use {able[0]}="
    if able[0] == "level" and name == "alpha" and number is not None and number < 1:
        return f"{use}{1 - number:.12g}"
    if name == "gamma" and able[0] == "bandwidth":
        same = "" if number is None else f", which is {(2 * number) ** -0.5:.4g} for gamma={number:g}"
        return f"{use}1 / sqrt(2 gamma){same}"
    if name == "cv":
        return f"{use}'loo'"
    return use
