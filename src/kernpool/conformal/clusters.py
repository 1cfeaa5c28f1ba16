r"""Rows in clusters, such as the visits of a patient: where the value of a new cluster is expected.

Each cluster counts as one row, and its weight is shared equally among its rows: with G clusters of :math:`N_g` rows the
scores are those of the distribution

.. math:: \sum_g \sum_{i \in g} \frac{1}{(G + 1) N_g}\, \delta_{S_{gi}} + \frac{1}{G + 1}\, \delta_{\infty}

whose quantile at the level covers a row of a new cluster with at least that probability, if clusters are exchangeable,
and rows within each [1]_. One row drawn from each cluster has the same guarantee and a wider spread [2]_.

References
----------
.. [1] Y. Lee, R. F. Barber and R. Willett, "Distribution-free inference with hierarchical data", arXiv:2306.06342,
   sections 3 and 4.
.. [2] R. Dunn, L. Wasserman and A. Ramdas, "Distribution-free prediction sets for two-layer hierarchical models", JASA
   118 (2023), 2491-2502.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernpool.core.groups import sums_of_groups

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def cluster_weight(code: Integers, weight: Array) -> Array:
    """Return the share of each row, of all of its unit rows, in its cluster.

    Parameters
    ----------
    code : ndarray of int64, shape (n,)
        Number of the cluster of each row.
    weight : ndarray of shape (n,)
        Frequencies, positive.

    Returns
    -------
    ndarray of shape (n,)
        Whose sum is the number of clusters.

    Examples
    --------
    >>> cluster_weight(np.array([0, 1, 0]), np.array([1.0, 2.0, 3.0]))
    array([0.25, 1.  , 0.75])
    """
    return np.asarray(weight / sums_of_groups(code, weight))
