"""The table that mgwr 2.2.1 printed the numbers of `mgwr.md` for; it holds no random numbers."""

import numpy as np
import pandas as pd

from kernpool import Nearest, VaryingCoefficientRegressor

i = np.arange(1, 251)
coords = np.column_stack([i * 0.7548776662466927 % 1, i * 0.5698402909980532 % 1])
X = np.column_stack([np.sin(7.0 * i), (i * 0.618033988749895 % 1 - 0.5) * 2])
first, second = np.sin(3 * coords[:, 1]), coords[:, 0] * coords[:, 1] * 2 - 0.5
y = 1 + coords[:, 0] + first * X[:, 0] + second * X[:, 1] + 0.3 * np.cos(13.0 * i)
table = np.column_stack([coords, X])
fixed = VaryingCoefficientRegressor("gaussian", 0.1, by=[0, 1]).fit(table, y)
nearest = VaryingCoefficientRegressor("biweight", 1.0, by=[0, 1], window=Nearest(45)).fit(table, y)
frame = pd.DataFrame(table, columns=["east", "north", "a", "b"])
new = frame.head(3)
as_mgwr = {"method": "naive", "variance": "constant"}
