"""Kernel records, their registration by name, the built-in kernels, and the form of each formula.

A sum over keys costs less than a visit to each key where a few numbers can stand for many keys: moments for a
polynomial or a Gaussian, a single sum for an exponential. The form states this as data. Algorithms choose by the
form, never by the name of a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from kernpool._arrays import Array
from kernpool.execution.error_messages import abbreviate, check_choice, did_you_mean


@dataclass(frozen=True)
class Polynomial:
    """Form of a kernel ``K(u) = height (1 - u**inner)**outer`` for ``u < 1``, zero beyond.

    It is positive at the edge only if `outer` is 0.
    """

    inner: int
    outer: int
    height: float


@dataclass(frozen=True)
class Gaussian:
    """Form of the Gaussian kernel ``K(u) = exp(-u**2 / 2)``.

    Its product over columns is the radial kernel of the Euclidean distance.
    """


@dataclass(frozen=True)
class Exponential:
    """Form of the exponential (Laplace) kernel ``K(u) = height exp(-u)``."""

    height: float


@dataclass(frozen=True)
class NearlyExponential:
    """Form of a kernel ``exp(-u)`` times a factor between `least` and 1, such as the logistic.

    Its reach is bounded, but sums of it cannot be factorised.
    """

    least: float


@dataclass(frozen=True)
class Flat:
    """Form of the constant kernel ``K(u) = 1``."""


Form = Polynomial | Gaussian | Exponential | NearlyExponential | Flat


Profile = Callable[[Array], Array]
Composition = Literal["radial", "product"]

PRODUCT = "product "  # begins the names of product kernels


@dataclass(frozen=True, eq=False)
class Kernel:
    r"""Smoothing kernel: profile ``K(u)``, ``log K(u)`` and its slope, support, and constants such as the integral.

    Parameters
    ----------
    name : str
        The name it is registered and saved under.
    profile : callable
        ``K(u)`` for an array of ``u >= 0``: non-negative, non-increasing, zero beyond `support`.
    log_profile : callable
        ``log K(u)``, minus infinity where ``K`` is zero. Far tails live here: ``exp`` underflows, logarithms do not.
    log_slope : callable or None
        ``d log K / du`` where ``K > 0``. Gradients need it; None means that the kernel has none.
    support : float
        The radius of the support, infinity for kernels that are positive everywhere.
    integral : float
        :math:`\int K(u)\,du` over the real line; ``K / integral`` is a probability density.
    roughness : float
        :math:`R(K) = \int k(u)^2 du` of that density `k`.
    second_moment : float
        :math:`\mu_2(K) = \int u^2 k(u)\,du` of that density.
    aliases : tuple of str, default=()
        Other names that find it.
    form : Form or None, default=None
        How it adds up, a record of this module; None says nothing, as for all kernels of one's own.
    radial : Kernel or None, default=None
        The radial kernel of the same profile, for a product kernel; None for a radial kernel.

    Notes
    -----
    With ``u_a = |q_a - k_a| / h_a`` the weight in several columns is :math:`K(\sqrt{\sum_a u_a^2})` of a radial
    kernel, and :math:`\prod_a K(u_a)` of a product kernel. Every registered kernel is found as a product kernel too,
    by ``"product "`` and its name. Both are the same for the Gaussian and the constant kernel, and
    ``"product gaussian"`` is the Gaussian.

    Equality is identity: there is one record per kernel. Pickles and model files carry the name alone, so that a
    kernel of one's own has to be registered before they are loaded.
    """

    name: str
    profile: Profile
    log_profile: Profile
    log_slope: Profile | None
    support: float
    integral: float
    roughness: float
    second_moment: float
    aliases: tuple[str, ...] = ()
    form: Form | None = None
    radial: Kernel | None = None

    @cached_property
    def composition(self) -> Composition:
        """How the kernel acts in several columns, ``"radial"`` or ``"product"``."""
        return "radial" if self.radial is None else "product"

    @cached_property
    def profile_name(self) -> str:
        """Name of the radial kernel of the same profile: of its compiled loop and in tables of costs."""
        return self.name if self.radial is None else self.radial.name

    def log_peak(self, columns: int) -> float:
        """Return the logarithm of the weight of a key that coincides with the query, of so many columns."""
        at_zero = float(self.log_profile(np.zeros(1))[0])
        return at_zero if self.radial is None else columns * at_zero

    @cached_property
    def is_compact(self) -> bool:
        """Whether the support is finite, so that keys farther than `support` bandwidths have zero weight."""
        return math.isfinite(self.support)

    @cached_property
    def is_flat(self) -> bool:
        """Whether the kernel is constant on its support, so that criteria are steps, or has no `log_slope`."""
        return self.log_slope is None or not np.any(self.log_slope(np.array([0.25, 0.5, 0.75])))

    @property
    def adds_up(self) -> bool:
        """Whether sums of the kernel over many keys can be computed from a few moments."""
        return not isinstance(self.form, NearlyExponential | None)

    @property
    def canonical_factor(self) -> float:
        r"""Canonical factor :math:`\delta_0 = (R(K) / \mu_2(K)^2)^{1/5}` of Marron and Nolan (1988).

        Bandwidths ``h1`` and ``h2`` of two kernels smooth equally when ``h1 / h2`` equals the ratio of their factors.
        It is NaN for the constant kernel, which smooths everything away at any bandwidth.
        """
        if not math.isfinite(self.second_moment):
            return math.nan
        return float((self.roughness / self.second_moment**2) ** 0.2)

    def __repr__(self) -> str:
        return f"Kernel({self.name!r})"

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Kernel:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return get_kernel, (registered_name(self),)


def is_registered(kernel: Kernel) -> bool:
    """Return whether a kernel is found by its name."""
    return _NAMES.get(kernel.name) is kernel


def registered_name(kernel: Kernel) -> str:
    """Return the registered name of a kernel for pickles and model files; raise ValueError if it is not registered."""
    if not is_registered(kernel):
        raise ValueError(
            f"{kernel!r} is not registered, so it could not be found by its name; call register_kernel before saving"
        )
    return kernel.name


def logarithm(profile: Profile) -> Profile:
    """Return the function ``log(profile(u))``, minus infinity where the profile is zero."""
    # For profiles that do not underflow.

    def log_profile(u: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):  # `_check_profile` reports invalid profiles
            return np.log(profile(u))

    return log_profile


_REGISTERED: list[str] = []  # without aliases
_NAMES: dict[str, Kernel] = {}  # names, aliases and those of product kernels


def register_kernel(kernel: Kernel) -> Kernel:
    """Register a kernel under its name and aliases, so that it is used and saved like a built-in one.

    Parameters
    ----------
    kernel : Kernel
        The kernel to add. `make_kernel` computes its constants from the profile.

    Returns
    -------
    Kernel
        The same record.

    Raises
    ------
    ValueError
        If a name is taken, or the profile is negative, increasing or NaN somewhere, or positive beyond its support,
        or disagrees with its logarithm.

    Examples
    --------
    >>> import kernpool, numpy as np
    >>> mine = kernpool.make_kernel("cauchy", lambda u: 1 / (1 + u**2) ** 2)
    >>> _ = kernpool.register_kernel(mine)
    >>> kernpool.pool([0.0], [-1.0, 1.0], [10.0, 20.0], kernel="cauchy")
    array([15.])
    """
    taken = [name for name in (kernel.name, *kernel.aliases) if name in _NAMES]
    if taken:
        raise ValueError(
            f"kernel name {taken[0]!r} is already taken by {_NAMES[taken[0]]!r}; register it under another name"
        )
    _check_profile(kernel)
    product = kernel
    if kernel.radial is None and not isinstance(kernel.form, Gaussian | Flat):
        product = replace(kernel, name=PRODUCT + kernel.name, aliases=(), radial=kernel)
    _REGISTERED.append(kernel.name)
    for name in (kernel.name, *kernel.aliases):
        _NAMES.update({name: kernel, PRODUCT + name: product})
    return kernel


def _check_profile(kernel: Kernel) -> None:
    u = np.r_[np.linspace(0.0, 4.0, 401), np.linspace(4.0, 50.0, 100)]
    weight, logarithm = np.asarray(kernel.profile(u)), np.asarray(kernel.log_profile(u))
    wrong = ""
    if weight.shape != u.shape or not np.all(np.isfinite(weight)) or np.any(weight < 0) or not np.any(weight > 0):
        wrong = "profile must map u >= 0 to as many finite weights >= 0, not all zero"
    elif np.any(np.diff(weight) > 1e-12 * weight[0]):
        wrong = "profile must not increase with u"
    elif np.any(weight[u > kernel.support] > 0):
        wrong = f"profile is positive beyond support={kernel.support}; give the u beyond which it is zero, or infinity"
    elif not np.allclose(np.exp(logarithm), weight, rtol=1e-9, atol=0):
        wrong = "log_profile is not the logarithm of profile; correct it, or let make_kernel compute it"
    if wrong:
        raise ValueError(f"kernel {kernel.name!r}: {wrong}")


def get_kernel(kernel: str | Kernel) -> Kernel:
    """Return a kernel by its name or alias; a `Kernel` record is returned as it is.

    Parameters
    ----------
    kernel : str or Kernel
        For instance ``"gaussian"``, ``"epanechnikov"``, ``"tophat"``, or ``"product epanechnikov"``, which multiplies
        the weights of several columns.

    Returns
    -------
    Kernel
        The record.

    Raises
    ------
    ValueError
        If nothing is registered under this name; the message names the closest one.
    TypeError
        If `kernel` is neither a name nor a record.

    Examples
    --------
    >>> get_kernel("tophat")
    Kernel('boxcar')
    >>> get_kernel("product tophat").composition
    'product'
    >>> round(get_kernel("epanechnikov").canonical_factor ** 5, 12)
    15.0
    """
    if isinstance(kernel, Kernel):
        if _NAMES.get(kernel.name) is not kernel:
            _check_profile(kernel)
        return kernel
    if not isinstance(kernel, str):
        number = isinstance(kernel, int | float | np.number) and not isinstance(kernel, bool)
        remedy = f"a bandwidth is bandwidth={abbreviate(kernel)}" if number else "use 'gaussian', or make_kernel()"
        raise TypeError(f"kernel must be a name or a kernpool.Kernel, got {abbreviate(kernel)}; {remedy}")
    if kernel not in _NAMES:
        hint = did_you_mean(kernel, sorted(name for name in _NAMES if not name.removeprefix(PRODUCT).startswith("_")))
        raise ValueError(
            f"unknown kernel {abbreviate(kernel)}; {hint}known kernels: {', '.join(kernel_names())}, and those that "
            "register_kernel has been given"
        )
    return _NAMES[kernel]


def kernel_names() -> list[str]:
    """List the names of the registered kernels, in the order of registration.

    Returns
    -------
    list of str
        Names without aliases, without the product kernel of each, and without names that begin with an underscore,
        which are for internal computations.

    Examples
    --------
    >>> kernel_names()[:4]
    ['gaussian', 'boxcar', 'constant', 'epanechnikov']
    """
    return [name for name in _REGISTERED if not name.startswith("_")]


def make_kernel(
    name: str,
    profile: Profile,
    *,
    support: float = math.inf,
    log_profile: Profile | None = None,
    log_slope: Profile | None = None,
    aliases: tuple[str, ...] = (),
    composition: Composition = "radial",
) -> Kernel:
    r"""Make a kernel from its profile; the constants are computed by numerical integration.

    Parameters
    ----------
    name : str
        Its name.
    profile : callable
        ``K(u)`` for an array of ``u >= 0``; see `Kernel`.
    support : float, default=inf
        Where the profile ends: beyond it `profile` is not called and the weight is zero.
    log_profile : callable, optional
        ``log K(u)``. Give it for a kernel of infinite support: the logarithm of an underflowed profile is minus
        infinity, and then far queries have an empty window.
    log_slope : callable, optional
        ``d log K / du``, needed for gradients only.
    aliases : tuple of str, default=()
        Other names.
    composition : {"radial", "product"}, default="radial"
        How it acts in several columns; see `Kernel`.

    Returns
    -------
    Kernel
        The record, not yet registered: `pool` takes it as it is, `register_kernel` makes its name known.

    Raises
    ------
    ValueError
        If the profile is negative, increasing or NaN somewhere, or zero everywhere, or disagrees with `log_profile`,
        or is beyond 1e-100 to 1e100 at zero.

    Notes
    -----
    The constants of a profile whose integrals do not converge are meaningless; pooling does not use them, the rules of
    thumb do.

    Examples
    --------
    >>> import numpy as np
    >>> raised_cosine = make_kernel("raised cosine", lambda u: np.where(u < 1, 1 + np.cos(np.pi * u), 0.0), support=1.0)
    >>> round(raised_cosine.integral, 12)
    2.0
    """
    from scipy.integrate import quad

    check_choice("composition", composition, get_args(Composition))

    def supported(u: Array) -> Array:
        if not math.isfinite(support):
            return profile(u)
        return np.where(u <= support, profile(np.minimum(u, support)), 0.0)

    zero = np.asarray(profile(np.zeros(3)))
    if zero.shape != (3,) or zero.dtype.kind not in "fiu":
        raise ValueError(
            f"profile of {name!r} must map an array of u to an array of as many weights, got {abbreviate(zero)}"
        )
    if zero[0] != 0 and not 1e-100 <= abs(zero[0]) <= 1e100:  # squares and sums of weights would leave the range
        raise ValueError(
            f"profile of {name!r} must be between 1e-100 and 1e100 at u = 0, got {zero[0]:g}; divide the profile by "
            "this: a constant factor changes no weighted mean"
        )

    def moment(power: int, order: int) -> float:
        def integrand(u: float) -> float:
            return u**order * float(supported(np.array([u]))[0]) ** power

        return 2.0 * float(quad(integrand, 0.0, support, limit=200, full_output=True)[0])

    integral = moment(1, 0)
    if integral == 0.0:
        raise ValueError(f"profile of {name!r} must not be all zero")
    made = Kernel(
        name=name,
        profile=supported,
        log_profile=log_profile or logarithm(supported),
        log_slope=log_slope,
        support=support,
        integral=integral,
        roughness=moment(2, 0) / integral**2,
        second_moment=moment(1, 2) / integral,
        aliases=aliases,
    )
    _check_profile(made)
    return made if composition == "radial" else replace(made, radial=made)


# Built-in kernels. Their constants are (integral, roughness, second moment), as in Wand and Jones, Kernel Smoothing
# (1995), Table B.1.


def _zero(u: Array) -> Array:
    return np.zeros_like(u)


def _one_minus_square(u: Array) -> Array:
    # (1 - u)(1 + u) and not 1 - u^2: near the edge 1 - u is exact, so small weights keep all their digits.
    return np.maximum(1.0 - u, 0.0) * (1.0 + u)


def _log_logistic(u: Array) -> Array:
    return -u - 2.0 * np.log1p(np.exp(-u))


def _compact(
    name: str,
    profile: Profile,
    log_slope: Profile,
    constants: tuple[float, float, float],
    form: Form | None,
    *aliases: str,
) -> None:
    register_kernel(Kernel(name, profile, logarithm(profile), log_slope, 1.0, *constants, aliases, form))


def _infinite(
    name: str,
    profile: Profile,
    log_profile: Profile,
    log_slope: Profile,
    constants: tuple[float, float, float],
    form: Form,
    *aliases: str,
) -> None:
    register_kernel(Kernel(name, profile, log_profile, log_slope, math.inf, *constants, aliases, form))


_infinite(
    "gaussian",
    lambda u: np.exp(-0.5 * u**2),
    lambda u: -0.5 * u**2,
    np.negative,
    (math.sqrt(2 * math.pi), 0.5 / math.sqrt(math.pi), 1.0),
    Gaussian(),
)
_compact(
    "boxcar",
    lambda u: np.where(u <= 1.0, 1.0, 0.0),  # the edge belongs to the window
    _zero,
    (2.0, 1 / 2, 1 / 3),
    Polynomial(2, 0, 1.0),
    "tophat",
)
_infinite("constant", np.ones_like, _zero, _zero, (math.inf, 0.0, math.inf), Flat())
_compact(
    "epanechnikov",
    lambda u: 0.75 * _one_minus_square(u),
    lambda u: -2 * u / _one_minus_square(u),
    (1.0, 3 / 5, 1 / 5),
    Polynomial(2, 1, 3 / 4),
)
_compact(
    "triangular",
    lambda u: np.maximum(1.0 - u, 0.0),
    lambda u: -1 / (1 - u),
    (1.0, 2 / 3, 1 / 6),
    Polynomial(1, 1, 1.0),
    "linear",
)
_compact(
    "biweight",
    lambda u: 15 / 16 * _one_minus_square(u) ** 2,
    lambda u: -4 * u / _one_minus_square(u),
    (1.0, 5 / 7, 1 / 7),
    Polynomial(2, 2, 15 / 16),
    "quartic",
)
_compact(
    "triweight",
    lambda u: 35 / 32 * _one_minus_square(u) ** 3,
    lambda u: -6 * u / _one_minus_square(u),
    (1.0, 350 / 429, 1 / 9),
    Polynomial(2, 3, 35 / 32),
)
_compact(
    "tricube",
    # 1 - u^3 factored for the same reason as 1 - u^2
    lambda u: 70 / 81 * (np.maximum(1.0 - u, 0.0) * (1.0 + u + u**2)) ** 3,
    lambda u: -9 * u**2 / ((1 - u) * (1 + u + u**2)),
    (1.0, 175 / 247, 35 / 243),
    Polynomial(3, 3, 70 / 81),
)
_compact(
    "cosine",
    # cos(pi u / 2), written from the edge inwards so that it vanishes exactly at u = 1
    lambda u: math.pi / 4 * np.sin(math.pi / 2 * np.maximum(1.0 - u, 0.0)),
    lambda u: -math.pi / 2 / np.tan(math.pi / 2 * (1 - u)),
    (1.0, math.pi**2 / 16, 1 - 8 / math.pi**2),
    None,
)
_infinite(
    "laplace",
    lambda u: 0.5 * np.exp(-u),
    lambda u: -u - math.log(2),
    lambda u: -np.ones_like(u),
    (1.0, 1 / 4, 2.0),
    Exponential(0.5),
    "exponential",
)
_infinite(
    "logistic",
    lambda u: np.exp(_log_logistic(u)),
    _log_logistic,
    lambda u: -np.tanh(u / 2),
    (1.0, 1 / 6, math.pi**2 / 3),
    NearlyExponential(1 / 4),
)
