"""Kernels side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.displays.style import BLUE, import_pyplot, tidy
from kernpool.execution.messages import abbreviate, explain_calls
from kernpool.kernels import Kernel, get_kernel

Array = NDArray[np.float64]


@explain_calls
class KernelDisplay:
    """Profiles of kernels over ``u = (q - k) / h``, one panel each, sharing the y axis.

    Parameters
    ----------
    u : ndarray of shape (g,)
        Where the profiles are drawn.
    profiles : dict of str to ndarray of shape (g,)
        ``K(u)`` by name.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One per kernel.
    figure_ : matplotlib Figure
        The figure.
    lines_ : list of matplotlib Line2D
        One per kernel.

    Examples
    --------
    >>> from kernpool import KernelDisplay
    >>> display = KernelDisplay.from_kernels(["epanechnikov", "triangular"])  # doctest: +SKIP
    """

    def __init__(self, *, u: Array, profiles: dict[str, Array]) -> None:
        self.u = u
        self.profiles = profiles

    @classmethod
    def from_kernels(
        cls,
        kernels: Sequence[str | Kernel] = ("gaussian", "boxcar", "constant", "epanechnikov"),
        *,
        u: ArrayLike | None = None,
        axes: Any = None,
        **style: Any,
    ) -> KernelDisplay:
        """Evaluate kernels and draw them.

        Parameters
        ----------
        kernels : sequence of str or Kernel, default=("gaussian", "boxcar", "constant", "epanechnikov")
            Which; by default the four that the subject is taught with.
        u : array_like, optional
            Where; by default -2.5 to 2.5 in steps of 0.1 as taught, with each edge of a support drawn as a step.
        axes : sequence of matplotlib Axes, optional
            One per kernel; a new figure by default.
        **style
            `curve_kwargs` and `names` of `plot`.

        Returns
        -------
        KernelDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If a kernel is unknown.
        """
        found = [get_kernel(kernel) for kernel in ([kernels] if isinstance(kernels, str | Kernel) else kernels)]
        if not found or len({kernel.name for kernel in found}) < len(found):
            raise ValueError(f"kernels must name at least one kernel, each once; got {abbreviate(kernels)}")
        if u is None:
            grid = np.arange(-25, 26) / 10
            edges = [kernel.support * sign for kernel in found if kernel.is_compact for sign in (-1, 1)]
            # a point on either side of each edge, or a jump looks like a slope
            grid = np.unique(np.r_[grid, edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)])
        else:
            grid = np.sort(np.ravel(np.asarray(u, dtype=np.float64)))
        profiles = {kernel.name: kernel.profile(np.abs(grid)) for kernel in found}
        return cls(u=grid, profiles=profiles).plot(axes=axes, **style)

    def plot(
        self, *, axes: Any = None, names: Sequence[str] | None = None, curve_kwargs: dict[str, Any] | None = None
    ) -> KernelDisplay:
        """Draw.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, optional
            One per kernel; a new figure by default.
        names : sequence of str, optional
            Titles; by default the kernels' names.
        curve_kwargs : dict, optional
            Passed to matplotlib for the curves.

        Returns
        -------
        KernelDisplay
            Itself, with `axes_`, `figure_` and `lines_`.

        Raises
        ------
        ValueError
            If there are not as many axes as kernels.
        """
        count = len(self.profiles)
        if axes is None:
            size = (2.6 * count + 0.6, 2.8)
            _, axes = import_pyplot().subplots(1, count, figsize=size, sharex=True, sharey=True, layout="constrained")
        self.axes_ = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
        if names is not None and len(names) != count:
            raise ValueError(f"names must be one per kernel, got {len(names)} for {count}")
        if len(self.axes_) != count:
            raise ValueError(f"axes must hold one pair of axes per kernel, got {len(self.axes_)} for {count}")
        self.figure_ = self.axes_[0].figure
        self.lines_: list[Any] = []
        highest = max(float(profile.max()) for profile in self.profiles.values())  # of all panels: they share the axis
        style: dict[str, Any] = {"color": BLUE, "linewidth": 2.0} | (curve_kwargs or {})
        for ax, profile, name in zip(self.axes_, self.profiles.values(), names or list(self.profiles), strict=True):
            ax.fill_between(self.u, profile, color=style["color"], alpha=0.15, linewidth=0)
            self.lines_ += ax.plot(self.u, profile, **style)
            ax.set(title=name, xlabel="u = (q − k) / h", ylim=(0, 1.05 * highest))
            tidy(ax)
        self.axes_[0].set_ylabel("K(u)")
        return self
