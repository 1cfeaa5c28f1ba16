"""Training samples, as circles behind a curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernpool.displays.style import GRAY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


def draw_samples(ax: Axes, x: Array | None, y: Array | None, style: dict[str, Any]) -> Any:
    """Scatter samples; many overlapping circles must not become a blot: they are smaller and more transparent.

    Parameters
    ----------
    ax : matplotlib Axes
        Where.
    x, y : ndarray of shape (n,) or None
        Samples; nothing is drawn if there are none.
    style : dict
        Passed to matplotlib.

    Returns
    -------
    matplotlib PathCollection or None
        What was drawn.
    """
    if x is None or y is None:
        return None
    crowd = min(1.0, 100 / max(len(x), 1))
    default: dict[str, Any] = {"s": 14 + 22 * crowd, "color": GRAY, "alpha": 0.2 + 0.25 * crowd, "linewidths": 0}
    default |= {"label": "training samples", "zorder": 1}
    return ax.scatter(x, y, **(default | style))
