"""Do intervals of coefficients next to a curve cover as often as they say? By Monte Carlo.

python benchmarks/coefficient_coverage.py [RUNS]     400 runs of each setting by default: two minutes of a core
"""

import sys
import warnings

import numpy as np

from kernpool import PartiallyLinearRegressor

SLOPE, POINTS = 1.5, 20


def draw(rng, rows, grows):
    """Return columns, outputs and the truth: a curve, and a column that depends on where it is taken."""
    z = rng.uniform(size=rows)
    x = np.sin(4 * z) + 0.5 * rng.normal(size=rows)
    truth = SLOPE * x + np.cos(5 * z)
    noise = 0.3 * (0.3 + np.abs(x)) if grows else 0.3
    return np.column_stack([x, z]), truth + noise * rng.normal(size=rows), truth


def covered(rng, rows, grows):
    """Return whether the interval of the coefficient covers, and how often those of the mean and of new rows do."""
    X, y, _ = draw(rng, rows, grows)
    model = PartiallyLinearRegressor(linear=[0]).fit(X, y)
    coefficients = model.coefficients()
    at, new, truth = draw(rng, POINTS, grows)
    found = [coefficients.lower[0] <= SLOPE <= coefficients.upper[0], np.nan, np.nan]
    try:
        mean, values = model.confidence_interval(at), model.prediction_interval(at)
    except ValueError:  # the curve passes through every row
        return found
    found[1:] = (np.mean((of.lower <= y) & (y <= of.upper)) for of, y in ((mean, truth), (values, new)))
    return found


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    warnings.simplefilter("ignore")
    print("rows  noise   coefficient 95  mean 95  new rows 90")
    for rows in (60, 200):
        for grows in (False, True):
            rng = np.random.default_rng(1)
            shares = np.nanmean([covered(rng, rows, grows) for _ in range(runs)], axis=0)
            noise = "uneven" if grows else "even"
            print(f"{rows:4}  {noise:6}  {shares[0]:14.3f}  {shares[1]:7.3f}  {shares[2]:11.3f}", flush=True)


if __name__ == "__main__":
    main()
