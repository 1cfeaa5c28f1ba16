"""The table and the pictures of `compare.py`."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from cases import LIMIT, PATIENCE
from cases import SIZES as NUMBERS
from measure import REPORTS, report, table

from kernpool.displays.drawing import BLACK, BLUE, GRAY, RED, tidy

RESULTS = REPORTS / "peers.json"
AGREE = {"float64": 1e-9, "float32": 1e-3}  # of the range of the values
# After Petroff (arXiv:2107.02270), as in the package's own pictures; peers differ in marker as well.
LOOKS = {
    "kernpool": {"color": RED, "marker": "o", "linewidth": 2.4, "zorder": 5},
    "dense NumPy": {"color": BLACK, "marker": "s"},
    "torch attention": {"color": BLUE, "marker": "^"},
    "KeOps": {"color": "#e76300", "marker": "v"},
    "statsmodels KernelReg": {"color": "#832db6", "marker": "P"},
    "scikit-learn radius": {"color": "#ffa90e", "marker": "D"},
    "scipy cKDTree": {"color": "#2f8f8f", "marker": "X"},
    "bare exp2, every pair": {"color": GRAY, "linestyle": ":", "marker": ""},
    "bare matrix product": {"color": GRAY, "linestyle": "--", "marker": ""},
    "np.argsort": {"color": GRAY, "linestyle": "-.", "marker": ""},
}
KERNEL_NAMES = {"gaussian": "Gaussian", "epanechnikov": "Epanechnikov", "laplace": "Laplace"}
SIZES = tuple(map(str, NUMBERS))
MARKS = {"GiB": "memory", "holds": "memory", "time": "slow", "long": "slow", "take": "slow"}


def words(columns: str) -> str:
    return "1 column" if columns == "1" else f"{columns} columns"


def draw(results: dict[str, dict]) -> None:
    """One picture per number of columns: seconds against n, a panel per kernel."""
    for columns in {name.split()[0] for name in results}:
        kernels = [k for k in KERNEL_NAMES if f"{columns} {k} float64" in results]
        figure, axes = plt.subplots(
            1, len(kernels), figsize=(3.6 * len(kernels) + 2.0, 4.2), sharey=True, squeeze=False, layout="constrained"
        )
        handles = {}
        for ax, kernel in zip(axes[0], kernels, strict=True):
            for name, look in LOOKS.items():
                history = results[f"{columns} {kernel} float64"].get(name, {})
                done = sorted((int(n), entry["seconds"]) for n, entry in history.items() if "seconds" in entry)
                if done:
                    (handles[name],) = ax.loglog(
                        *zip(*done, strict=True), **({"markersize": 5, "linewidth": 1.4} | look)
                    )
            ax.set(title=KERNEL_NAMES[kernel], xlabel="keys, and as many queries", xlim=(70, 1.4e6), ylim=(3e-6, 30))
            ax.grid(visible=True, color="#e4e4e8", linewidth=0.7)
            ax.set_axisbelow(True)
            tidy(ax)
        axes[0][0].set_ylabel("seconds")
        figure.suptitle(f"{words(columns)}, float64, two threads".capitalize())
        figure.supxlabel(
            f"A line ends where the next size would take more than about {LIMIT:.0f} s (kernpool: "
            f"{PATIENCE * LIMIT:.0f} s) or 4 GiB.",
            fontsize=9,
            color=GRAY,
        )
        ordered = [name for name in LOOKS if name in handles]
        figure.legend([handles[name] for name in ordered], ordered, loc="outside right center", frameon=False)
        figure.savefig(REPORTS / f"peers-{columns}.png", dpi=130)
        plt.close(figure)


def cell(entry: dict | None, agree: float) -> str:
    """Seconds, or a word for why there are none."""
    if entry is None:
        return ""
    if "seconds" in entry:
        text = f"{entry['seconds']:.3g}"
        return f"{text} (**off by {entry['difference']:.0e}**)" if entry.get("difference", 0) > agree else text
    reason = entry["reason"]
    if reason == "computes in float64":
        return "float64 only"
    mark = next((mark for word, mark in MARKS.items() if word in reason), None)
    return mark or ("failed" if "failed" in reason else f"not here: {reason}")


def is_peer(name: str) -> bool:
    """Whether a line is `pool` or a peer, neither one of its algorithms nor a bare loop."""
    return name == "kernpool" or not name.startswith(("kernpool", "bare", "np."))


def ours_first(names) -> list[str]:
    return sorted(names, key=lambda name: name != "kernpool")


def times_as_fast(result: dict[str, dict], n: str, agree: float) -> str:
    """How many times the fastest peer takes, of those whose answers agree; extrapolated where all would take long."""
    ours = result.get("kernpool", {}).get(n, {}).get("seconds")
    if ours is None:
        return ""
    found: dict[str, list] = {"seconds": [], "expected": []}
    for name, history in result.items():
        off = [entry["difference"] for entry in history.values() if "difference" in entry]
        if off and max(off) <= agree and not name.startswith("kernpool"):
            for what, of in found.items():
                of += [(history[n][what] / ours, name)] if what in history.get(n, {}) else []
    if found["seconds"]:
        times, name = min(found["seconds"])
        return f"{times:.1f} ({name})"
    if not found["expected"]:
        return "no peer"
    times, name = min(found["expected"])
    unit = 10.0 ** max(0, int(np.log10(max(times, 1.0))) - 1)  # two digits, none of them too large
    return f"*over {int(times / unit) * unit:.0f}* ({name})"


def write(results: dict[str, dict], threads: int, *, keep: bool) -> list[str]:
    """Write the report; return what does not agree."""
    off, largest, failed = [], {}, {}
    order = {kernel: i for i, kernel in enumerate(KERNEL_NAMES)}
    cases = sorted((name.split() for name in results), key=lambda of: (of[2], int(of[0]), order[of[1]]))
    for case in cases:
        for who, history in results[" ".join(case)].items():
            for n, entry in history.items():
                if "difference" in entry and case[2] == "float64":
                    largest[who] = max(largest.get(who, 0.0), entry["difference"])
                if entry.get("difference", 0) > AGREE[case[2]]:
                    off.append(f"{who} at {' '.join(case)}, n = {n}")
                if entry.get("reason", "").startswith("failed:"):
                    failed[f"{who} {entry['reason']}"] = None
    times = []
    for columns, kernel, dtype in cases:
        of = results[f"{columns} {kernel} {dtype}"]
        times.append([columns, KERNEL_NAMES[kernel], dtype, *(times_as_fast(of, n, AGREE[dtype]) for n in SIZES)])
    widths = [columns for columns, kernel, dtype in cases if (kernel, dtype) == ("gaussian", "float64")]
    at_once = {columns: results[f"{columns} gaussian float64"] for columns in widths}
    names = [who for who in ours_first(dict.fromkeys(who for of in at_once.values() for who in of)) if is_peer(who)]
    seconds = [
        (who, *(cell(of.get(who, {}).get("10000"), AGREE["float64"]) for of in at_once.values())) for who in names
    ]
    report(
        "peers",
        "# Comparison with other packages",
        f"The same inputs for all, {threads} threads, as many queries as keys, uniform in the unit cube, the "
        "bandwidth by "
        "the normal-reference rule; medians of up to nine runs. *memory*: more than 4 GiB; *slow*: more than about "
        f"{LIMIT:.0f} s.",
        "## Times as fast as the fastest peer",
        "In italics: no peer could do it in time; its time is extrapolated from smaller sizes, and rather more.",
        table(f"columns | kernel | dtype | {' | '.join(f'{n:,}'.replace(',', ' ') for n in NUMBERS)}", times),
        "## Seconds, Gaussian, 10 000 queries and keys",
        table(f"seconds | {' | '.join(map(words, widths))}", seconds),
        *(f"![Seconds against n, {words(columns)}](peers-{columns}.png)" for columns in widths),
        "## Agreement",
        "Largest difference to a dense expression on 50 queries, in ranges of the values:",
        table("who | float64", [(who, f"{largest[who]:.0e}") for who in ours_first(largest) if is_peer(who)]),
        *sorted(failed),
        keep=keep,
    )
    return off
