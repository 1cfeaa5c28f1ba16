"""What stays the same for all rows of a search, and what a strategy reports of itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernpool.bandwidth.categories import Categories
from kernpool.bandwidth.criteria import Criterion
from kernpool.bandwidth.search.objective import Objective
from kernpool.bandwidth.search.regularity import Regularity
from kernpool.bandwidth.search.ridge import FIRST_RIDGE
from kernpool.bandwidth.search.rows import TrainingRows
from kernpool.execution.progress import Progress
from kernpool.kernels import Kernel


@dataclass(frozen=True)
class Setting:
    """What is minimised, and how rows are pooled for it: the same for all rows of a search.

    Parameters
    ----------
    criterion : Criterion
        What is minimised.
    categories : Categories
        What the codes of the rows mean.
    degree, kernel, composition, algorithm, n_jobs
        As in `pool`.
    progress : callable or None
        Called as ``progress(done, total)`` in queries of the evaluation at hand.
    regularity : Regularity or None
        A penalty on bandwidths.
    ridge : float or None
        On the slopes of planes; None is to be searched for.
    """

    criterion: Criterion
    categories: Categories
    degree: int
    kernel: Kernel
    composition: str
    algorithm: str
    n_jobs: int | None
    progress: Progress | None
    regularity: Regularity | None = None
    ridge: float | None = 0.0

    def objective(self, rows: TrainingRows) -> Objective:
        """Return the criterion of some rows as a function of bandwidths."""
        return Objective(
            rows,
            self.criterion,
            categories=self.categories,
            degree=self.degree,
            kernel=self.kernel,
            composition=self.composition,
            algorithm=self.algorithm,
            n_jobs=self.n_jobs,
            progress=self.progress,
            regularity=self.regularity,
            ridge=FIRST_RIDGE * rows.unit if self.ridge is None else self.ridge,
        )


def is_flat(kernel: Kernel) -> bool:
    """Tell whether the weights of a kernel do not change within its support: criteria are step functions then."""
    slope = kernel.log_slope
    return slope is None or not np.any(slope(np.array([0.25, 0.5, 0.75])))
