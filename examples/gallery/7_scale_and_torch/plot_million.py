"""
A million rows in seconds
=========================

In one column the sum over keys is sorted and swept: time grows with n and not with n squared. The answer is that of
brute force, to rounding.
"""

# %%
# As many queries as keys, so a million rows make a million million pairs. No matrix of them is ever held.

import time

import matplotlib.pyplot as plt
import numpy as np

from kernpool import Problem, choose, pool

rng = np.random.default_rng(0)
pool(*rng.random((3, 200_000)), bandwidth=0.01)  # compiles, once

sizes, seconds = [10_000, 30_000, 100_000, 300_000, 1_000_000], []
for n in sizes:
    key, query = rng.random(n), rng.random(n)
    value = np.sin(20 * key) + rng.normal(size=n)
    started = time.perf_counter()
    pooled = pool(query, key, value, bandwidth=0.01)
    seconds.append(time.perf_counter() - started)
    print(f"{n:>9,} queries and keys: {seconds[-1]:.2f} s, mean error {np.abs(pooled - np.sin(20 * query)).mean():.4f}")

# %%
# The plan says which algorithm it takes and why.

plan = choose(Problem.from_arrays(query, key, value, bandwidth=0.01))
print(plan.algorithm, "-", plan.reason)

# %%
# Is it exact? A hundred of the queries by brute force, which looks at every key:

exact = pool(query[:100], key, value, bandwidth=0.01, algorithm="brute")
print(f"largest difference: {np.abs(pooled[:100] - exact).max():.1e}")

fig, ax = plt.subplots(figsize=(7.5, 4.6), layout="constrained")
ax.loglog(sizes, seconds, "o-", color="#3f90da", linewidth=2, label="measured here")
ax.loglog(sizes, seconds[-1] * np.array(sizes) / sizes[-1], ":", color="black", label="proportional to n")
pairs = np.array(sizes, float) ** 2 * 1e-9
ax.loglog(sizes, pairs, "--", color="#bd1f01", label="all pairs, at a billion per second")
ax.set(xlabel="keys, and as many queries", ylabel="seconds")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
