"""With more data the estimate comes to the truth, at the rate n^(-4/5)."""

import numpy as np

from kernpool import pool
from kernpool.datasets import make_sine_power

inner, sizes = slice(10, 41), [50, 200, 800, 3200, 12800]
errors = []
for n in sizes:
    squared = []
    for draw in range(20):
        x_train, y_train, x_test, y_truth = make_sine_power(n, random_state=draw)
        prediction = pool(x_test[inner], x_train, y_train, bandwidth=0.5 * n**-0.2)
        squared.append(np.mean((prediction - y_truth[inner]) ** 2))
    errors.append(np.mean(squared))
    print(f"n = {n:6}: mean squared error {errors[-1]:.6f}")
print("slope", np.polyfit(np.log(sizes), np.log(errors), 1)[0].round(2), "in theory -0.8")
