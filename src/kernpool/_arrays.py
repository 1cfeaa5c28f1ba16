"""Types of arrays, by what they hold."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Codes = NDArray[np.int64]  # of categories, clusters and cells
Index = NDArray[np.intp]
Flags = NDArray[np.bool_]
AnyArray = NDArray[Any]
