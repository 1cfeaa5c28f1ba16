"""Warnings attributed to the user's line that called the package."""

import os
import sys
import warnings
from types import FrameType

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep  # noqa: PTH120  # pathlib takes longer to load
# Libraries that only pass calls on: pipelines call estimators, decorators of torch and NumPy wrap functions, and
# cached properties of functools compute.
_PASSING_THROUGH = {"sklearn", "joblib", "torch", "numpy", "functools"}


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


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning attributed to the calling line outside of the package."""
    # The `stacklevel` of `warnings.warn` is a fixed number of frames, which is right for one way of calling only.
    frame = _caller(sys._getframe(1))
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__") or "<string>",
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def _caller(frame: FrameType) -> FrameType:
    """Return the first stack frame outside the package and outside libraries that pass calls on; else the outermost."""
    while frame.f_back is not None:
        module = str(frame.f_globals.get("__name__")).partition(".")[0]
        if not frame.f_code.co_filename.startswith(_PACKAGE) and module not in _PASSING_THROUGH:
            break
        frame = frame.f_back
    return frame
