"""The CO2 of Mauna Loa: leave-one-out and AICc follow the seasons, the rule of Scott smooths them away."""

import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from kernpool import LocalLinearRegressor, SerialCorrelationWarning

table = np.loadtxt(Path(__file__).parent / "data" / "mauna_loa_co2.csv", delimiter=",", skiprows=1)
year, co2 = table[:, :1], table[:, 1]

# One week is much like the next, and fits say so; here only the three bandwidths are compared.
warnings.simplefilter("ignore", SerialCorrelationWarning)
models = {criterion: LocalLinearRegressor(bandwidth=criterion).fit(year, co2) for criterion in ("loo", "aicc", "scott")}

STYLES = {"loo": ("#3f90da", "-"), "aicc": ("#bd1f01", "--"), "scott": ("#000000", "-")}
fig, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained", width_ratios=(1, 1.3))
for ax, first, last in zip(axes, (year.min(), 1990.0), (year.max(), 1996.0), strict=True):
    shown = (year[:, 0] >= first) & (year[:, 0] <= last)
    ax.plot(year[shown, 0], co2[shown], "o", color="0.75", markersize=3, label="weekly measurements")
    grid = np.linspace(first, last, 800)[:, None]
    for name, model in models.items():
        colour, style = STYLES[name]
        label = f"{name}, h = {model.bandwidth_[0]:.3g} years"
        ax.plot(grid, model.predict(grid), style, color=colour, linewidth=1.6, label=label)
    ax.set(xlabel="year", ylabel="CO2 in parts per million")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_title("all years")
axes[1].set_title("six of them")
axes[1].legend(frameon=False, loc="upper left")
fig.savefig("three-bandwidths.png", dpi=120)

for name, model in models.items():
    error = model.leave_one_out().error
    print(f"{name:8} h = {model.bandwidth_[0]:.4f} years, leave-one-out error {error:.4f}")
