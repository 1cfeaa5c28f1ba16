"""
Out-of-core and streaming data
==============================

Sums over disjoint rows add up. So a file is pooled chunk by chunk, and a stream is pooled as it comes; the numbers
are those of all rows at once.
"""

# %%
# Simulated load by hour of the day, a file of 200 000 rows. It is written here, to a folder that goes away.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow
import pyarrow.parquet

from kernpool import NadarayaWatsonRegressor, empty_state, merge, open_chunks, pool, pool_state

rng = np.random.default_rng(0)
n = 200_000
hour = rng.uniform(0, 24, size=n)
load = 30 + 8 * np.sin((hour - 9) / 24 * 2 * np.pi) + 3 * np.sin(hour / 12 * 2 * np.pi) + 4 * rng.standard_t(3, size=n)
query = np.linspace(0, 24, 97)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "load.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"hour": hour, "load": load}), path, row_group_size=20_000)
    chunks = open_chunks(path, target="load", rows=20_000)
    from_file = pool(query, chunks, bandwidth=0.3)
    model = NadarayaWatsonRegressor().fit(path, "load")  # finds its bandwidth on drawn rows
    print(f"bandwidth {model.bandwidth_[0]:.2f} hours: {model.bandwidth_note_}")
    curve = model.predict(pyarrow.table({"hour": query}).to_pandas())

in_memory = pool(query, hour, load, bandwidth=0.3)
print(f"file and memory differ by {np.abs(from_file - in_memory).max():.1e}")

# %%
# A state keeps three numbers per query and forgets the rows; states merge. Here it is asked after 100, 1000, 20 000 and
# all rows.

state, seen = empty_state(len(query), 1), 0
fig, ax = plt.subplots(figsize=(8.5, 4.8), layout="constrained")
for rows, color in ((100, "0.75"), (1000, "#92dadd"), (20_000, "#3f90da"), (n, "#832db6")):
    state = merge(state, pool_state(query, hour[seen:rows], load[seen:rows], bandwidth=0.3))
    seen = rows
    ax.plot(query, state.finalize()[:, 0], color=color, linewidth=2, label=f"{rows:,} rows")
ax.plot(query, curve, "--", color="black", label="fit to the file")
ax.set(xlabel="hour of the day", ylabel="load", xticks=range(0, 25, 4))
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

print(f"merged states and memory differ by {np.abs(state.finalize()[:, 0] - in_memory).max():.1e}")

# %%
# Two machines that each saw half of the rows merge what they have:

halves = [pool_state(query, hour[i::2], load[i::2], bandwidth=0.3) for i in (0, 1)]
print(f"merged halves differ by {np.abs(merge(*halves).finalize()[:, 0] - in_memory).max():.1e}")
