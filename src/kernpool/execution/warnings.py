"""Warnings attributed to the user's line that called the package."""

import os
import re
import sys
import warnings
from types import FrameType

import numpy as np

from kernpool._arrays import Flags

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep  # noqa: PTH120  # pathlib takes longer to load
# Libraries that only pass calls on: pipelines call estimators, decorators of torch and NumPy wrap functions, and
# cached properties of functools compute.
_PASSING_THROUGH = {"sklearn", "joblib", "torch", "numpy", "functools"}
_SHOWN: set[tuple[str, str, int]] = set()  # texts without their numbers, with the file and line that they point at


class SerialCorrelationWarning(UserWarning):
    """Warning that the noise of rows next to each other is correlated, so that leave-one-out bandwidths are too small.

    Issued once by ``fit`` of the kernel regressors, where leave-one-out finds the bandwidth and rows have an order:
    that of ``time=``, or of their only column. Of rows with a lag-one correlation of .3 the curve has four times the
    squared error, and with .6 eleven times; with the gap that the message names 1.6 and three times, which is hardly
    more than at the best bandwidth. See `kernpool.estimators.methods.row_order`.

    A curve that bends within a few rows may cause the warning as well, because it cannot be told from such noise. It
    does not where neighbours predict rows nearly exactly.

    With a gap it is issued where windows of a bandwidth that was given lie within the gap: they average rows by whose
    noise they are not judged.

    Examples
    --------
    >>> import numpy as np
    >>> from kernpool import LocalLinearRegressor
    >>> generator = np.random.default_rng(0)
    >>> day, noise = np.arange(200.0), generator.normal(size=200)
    >>> for t in range(1, 200):
    ...     noise[t] += 0.6 * noise[t - 1]
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     model = LocalLinearRegressor().fit(day[:, None], np.sin(day / 30) + 0.4 * noise)
    >>> [warning.category.__name__ for warning in caught]
    ['SerialCorrelationWarning']
    >>> with_gap = LocalLinearRegressor(gap=5).fit(day[:, None], np.sin(day / 30) + 0.4 * noise)
    >>> bool(with_gap.bandwidth_[0] > 3 * model.bandwidth_[0])
    True
    """


def queries_in_words(which: Flags) -> str:
    """Return how many queries `which` is true of, and the first of them.

    Examples
    --------
    >>> queries_in_words(np.array([False, True, True]))
    '2 of 3 queries (the first is query 1)'
    """
    return f"{np.count_nonzero(which)} of {which.size} queries (the first is query {np.argmax(which)})"


def warn_of_queries(which: Flags, text: str, category: type[Warning] = UserWarning, before: str = "around ") -> None:
    """Issue a warning of the queries that `which` is true of, if there are any."""
    if which.any():
        warn_caller(f"{before}{queries_in_words(which)} {text}", category)


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning attributed to the calling line outside of the package."""
    # The `stacklevel` of `warnings.warn` is a fixed number of frames, which is right for one way of calling only.
    frame, is_passed_on = _caller(sys._getframe(1))
    if is_passed_on and _is_shown(message, category, frame):
        return
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__") or "<string>",
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def _is_shown(message: str, category: type[Warning], frame: FrameType) -> bool:
    """Return whether the line was shown this text before, but for numbers, and repeated warnings are shown once."""
    # Each fit of a grid search counts other rows, and each task of scikit-learn has Python forget what it has shown.
    found = re.sub(r"(?<![\w'])\d[\d.e+-]*", "", message), frame.f_code.co_filename, frame.f_lineno
    action = next(
        (
            action
            for action, text, kind, module, _ in warnings.filters
            if issubclass(category, kind) and module is None and (text is None or text.match(message))
        ),
        "default",
    )
    if action not in ("default", "module", "once"):
        return False
    is_known = found in _SHOWN
    _SHOWN.add(found)
    return is_known


def _caller(frame: FrameType) -> tuple[FrameType, bool]:
    """Return the first stack frame outside the package and libraries that pass calls on, and whether scikit-learn did.

    The outermost frame if there is none.
    """
    is_passed_on = False
    while frame.f_back is not None:
        module = str(frame.f_globals.get("__name__")).partition(".")[0]
        is_passed_on |= module == "sklearn"
        if not frame.f_code.co_filename.startswith(_PACKAGE) and module not in _PASSING_THROUGH:
            break
        frame = frame.f_back
    return frame, is_passed_on
