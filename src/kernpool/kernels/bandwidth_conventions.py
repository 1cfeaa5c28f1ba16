"""Bandwidth conventions of other packages (R np, Stata, locfit, ksmooth), and conversion between them.

Here a bandwidth is the ``h`` of ``u = distance / h`` with the profiles of `kernpool.kernels`: the radius of the
support of a compact kernel, the standard deviation of the Gaussian. The same kernel with the same number is another
smoother in another package; every convention differs from this one by one factor per kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kernpool._arrays import Array
from kernpool.execution import abbreviate, check_choice
from kernpool.kernels.registry import Kernel, get_kernel

Factor = Callable[[Kernel], float]


def _as_here(_: Kernel) -> float:
    return 1.0


def _standard_deviation(kernel: Kernel) -> float:
    return 1.0 / math.sqrt(kernel.second_moment)


def _quartile_of_gaussian(_: Kernel) -> float:
    from statistics import NormalDist

    return 0.25 / NormalDist().inv_cdf(0.75)


_OF_EVERY_KERNEL: dict[str, Factor] = {
    "support": _as_here,
    "std": _standard_deviation,
    "canonical": lambda kernel: kernel.canonical_factor,
}
_OF_PACKAGES: dict[str, dict[str, Factor]] = {
    # The Epanechnikov kernel of R np and of Stata has variance one, and so a support of sqrt(5).
    "np": {"gaussian": _as_here, "epanechnikov": _standard_deviation, "boxcar": _as_here},
    "stata": {
        "epanechnikov": _standard_deviation,
        **dict.fromkeys(("gaussian", "boxcar", "triangular", "biweight"), _as_here),
    },
    "locfit": {
        # Its weight is exp(-(2.5 u)^2 / 2), which is next to nothing at u = 1, as if it were compact.
        "gaussian": lambda _: 1.0 / 2.5,
        **dict.fromkeys(("boxcar", "epanechnikov", "triangular", "biweight", "triweight", "tricube"), _as_here),
    },
    "ksmooth": {"gaussian": _quartile_of_gaussian, "boxcar": lambda _: 0.25 / 0.5},
}
CONVENTIONS = ("support", *_OF_PACKAGES, "std", "canonical")


def convert_bandwidth(
    bandwidth: ArrayLike, kernel: str | Kernel = "gaussian", *, source: str = "support", target: str = "support"
) -> Array:
    r"""Convert bandwidths of a kernel from one convention to another.

    .. math:: h_{\text{target}} = h_{\text{source}} \, c_{\text{source}}(K) / c_{\text{target}}(K)

    where ``c(K)`` is the bandwidth in the package's units that the convention calls 1.

    Parameters
    ----------
    bandwidth : float or array_like
        Positive, in the units of the columns; infinity stays what it is.
    kernel : str or Kernel, default="gaussian"
        One that both conventions know.
    source, target : str, default="support"
        Convention of the given bandwidths, and convention of the result:

        - ``"support"``, the package's own: the ``h`` of ``u = distance / h`` (scikit-learn's, too);
        - ``"np"``: R np, where the Epanechnikov kernel has variance 1;
        - ``"stata"``: Stata (``npregress kernel``, ``lpoly``, ``kdensity``), likewise; its ``epan2`` is ``"support"``;
        - ``"locfit"``: R locfit, where the Gaussian is ``exp(-(2.5 u)^2 / 2)``;
        - ``"ksmooth"``: R ``ksmooth``, where quartiles of the kernel lie at plus and minus a quarter of the bandwidth;
        - ``"std"``: the standard deviation of the kernel (R ``density``, KDEpy, statsmodels' ``KernelReg``);
        - ``"canonical"``: Marron and Nolan's, at which all kernels smooth equally (KernSmooth's ``canonical=TRUE``).

    Returns
    -------
    float or ndarray
        Of the shape of `bandwidth`.

    Raises
    ------
    ValueError
        If a convention or kernel is unknown, the package of a convention does not have the kernel, or a bandwidth is
        not a positive number.

    Notes
    -----
    To convert a bandwidth from one kernel to another, convert it to ``"canonical"`` and back.

    References
    ----------
    .. [1] J. S. Marron and D. Nolan, "Canonical kernels for density estimation", Statistics and Probability Letters 7
       (1988), 195-199.

    Examples
    --------
    >>> float(convert_bandwidth(1.0, "epanechnikov", source="np") ** 2)
    5.0
    >>> convert_bandwidth([0.4, 4.0], "gaussian", target="locfit")
    array([ 1., 10.])
    >>> canonical = convert_bandwidth(1.0, "gaussian", target="canonical")
    >>> float(convert_bandwidth(canonical, "epanechnikov", source="canonical").round(3))
    2.214
    """
    kernel = get_kernel(kernel)
    check_choice("source", source, CONVENTIONS)
    check_choice("target", target, CONVENTIONS)
    factor = _factor(kernel, source) / _factor(kernel, target)
    converted: Array = _positive(bandwidth) * factor
    return converted


def _factor(kernel: Kernel, convention: str) -> float:
    """Return the bandwidth, in the package's own convention, that another convention calls 1."""
    if convention in _OF_PACKAGES:
        factors = _OF_PACKAGES[convention]
        if kernel.name not in factors or get_kernel(kernel.name) is not kernel:
            raise ValueError(
                f"bandwidth convention {convention!r} has no kernel {kernel.name!r}, it has {', '.join(factors)}; "
                "use one of these, or give the bandwidth as convention 'support' or 'std'"
            )
        return factors[kernel.name](kernel)
    factor = _OF_EVERY_KERNEL[convention](kernel)
    if not 0 < factor < math.inf:
        raise ValueError(
            f"bandwidth convention {convention!r} has no kernel {kernel.name!r}, whose second moment is "
            f"{kernel.second_moment}; use convention 'support'"
        )
    return factor


def _positive(bandwidth: Any) -> Array:
    given = np.asarray(bandwidth)
    if given.dtype.kind not in "fiu" or not np.all(given > 0):
        raise ValueError(f"bandwidth must be a positive number, or an array of them, got {abbreviate(bandwidth)}")
    return given.astype(np.float64)
