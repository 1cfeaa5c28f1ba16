"""The table and the pictures of `compare.py`."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from measure import REPORTS, report

from kernpool.displays.drawing import BLACK, BLUE, GRAY, RED, tidy

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
SIZES = ("100", "1000", "10000", "100000", "1000000")


def curve(history: dict[str, dict]) -> tuple[list[int], list[float]]:
    """Return sizes and seconds of what was measured."""
    done = sorted((int(n), entry["seconds"]) for n, entry in history.items() if "seconds" in entry)
    return [n for n, _ in done], [seconds for _, seconds in done]


def words(columns: int) -> str:
    return "1 column" if columns == 1 else f"{columns} columns"


def draw(results: dict[str, dict], limit: float, patience: float) -> None:
    """One picture per number of columns: seconds against n, a panel per kernel."""
    for columns in sorted({int(name.split()[0]) for name in results}):
        kernels = [k for k in KERNEL_NAMES if f"{columns} {k} float64" in results]
        figure, axes = plt.subplots(
            1, len(kernels), figsize=(3.6 * len(kernels) + 2.0, 4.2), sharey=True, squeeze=False, layout="constrained"
        )
        handles = {}
        for ax, kernel in zip(axes[0], kernels, strict=True):
            for name, look in LOOKS.items():
                n, seconds = curve(results[f"{columns} {kernel} float64"].get(name, {}))
                if n:
                    (handles[name],) = ax.loglog(n, seconds, **({"markersize": 5, "linewidth": 1.4} | look))
            ax.set(title=KERNEL_NAMES[kernel], xlabel="keys, and as many queries", xlim=(70, 1.4e6), ylim=(3e-6, 30))
            ax.grid(visible=True, color="#e4e4e8", linewidth=0.7)
            ax.set_axisbelow(True)
            tidy(ax)
        axes[0][0].set_ylabel("seconds")
        figure.suptitle(f"{words(columns)}, float64, two threads".capitalize())
        figure.supxlabel(
            f"A line ends where the next size would take more than about {limit:.0f} s (kernpool: {patience:.0f} s) "
            "or 4 GiB.",
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
    for word, mark in (("GiB", "memory"), ("holds", "memory"), ("time", "slow"), ("long", "slow"), ("take", "slow")):
        if word in reason:
            return mark
    return "failed" if "failed" in reason else f"not here: {reason}"


def rows_of(result: dict[str, dict], dtype: str, agree: dict[str, float], sizes: tuple[str, ...]) -> list[str]:
    return [
        f"| {name} | " + " | ".join(cell(result[name].get(n), agree[dtype]) for n in sizes) + " |"
        for name in ours_first(result)
        if any(n in result[name] for n in sizes)
    ]


def ours_first(names) -> list[str]:
    return sorted(names, key=lambda name: name != "kernpool")


def times_as_fast(result: dict[str, dict], n: str, agree: float) -> str:
    """How many times the fastest peer takes, of those whose answers agree; extrapolated where all would take long."""
    ours = result.get("kernpool", {}).get(n, {}).get("seconds")
    if ours is None:
        return ""
    measured, expected = [], []
    for name, history in result.items():
        off = [entry["difference"] for entry in history.values() if "difference" in entry]
        if name.startswith("kernpool") or not off or max(off) > agree:
            continue
        entry = history.get(n, {})
        if "seconds" in entry:
            measured.append((entry["seconds"], name))
        elif "expected" in entry:
            expected.append((entry["expected"], name))
    if measured:
        return f"{min(measured)[0] / ours:.1f} ({min(measured)[1]})"
    return f"*over {round_down(min(expected)[0] / ours)}* ({min(expected)[1]})" if expected else "no peer"


def round_down(times: float) -> str:
    """Write with two digits, none of them too large."""
    unit = 10.0 ** max(0, int(np.log10(max(times, 1.0))) - 1)
    return f"{int(times / unit) * unit:.0f}"


def write(results: dict[str, dict], threads: int, limit: float, agree: dict[str, float]) -> list[str]:
    """Write the report; return what does not agree."""
    text = [
        "# Comparison with other packages",
        f"The same inputs for everybody, {threads} threads, as many queries as keys, uniform in the unit cube, the "
        "bandwidth by the normal-reference rule. Seconds: medians of up to nine runs after one to warm up, one or two "
        f"if they are long. *memory*: would take more than 4 GiB. *slow*: would take more than about {limit:.0f} s. "
        "`kernpool` is what `pool` chooses by itself; the lines below it are its algorithms one by one.",
        "",
    ]
    off = []
    largest: dict[str, float] = {}
    keys = sorted(
        results, key=lambda name: (name.split()[2], int(name.split()[0]), [*KERNEL_NAMES].index(name.split()[1]))
    )
    double = [name for name in keys if name.endswith("float64")]
    for name in keys:
        dtype = name.split()[2]
        for who, history in results[name].items():
            for n, entry in history.items():
                if "difference" in entry and dtype == "float64":
                    largest[who] = max(largest.get(who, 0.0), entry["difference"])
                if entry.get("difference", 0) > agree[dtype]:
                    off.append(f"{who} at {name}, n = {n}")
    text += ["## Times as fast as the fastest peer", ""]
    text += [
        "In italics: no peer could do it in time; its time is extrapolated from smaller sizes, and rather more.",
        "",
    ]
    text += [f"| columns | kernel | dtype | {' | '.join(f'{int(n):,}'.replace(',', ' ') for n in SIZES)} |"]
    text += ["|---|---|---|" + "---|" * len(SIZES)]
    for name in keys:
        columns, kernel, dtype = name.split()
        cells = (times_as_fast(results[name], n, agree[dtype]) for n in SIZES)
        text.append(f"| {columns} | {KERNEL_NAMES[kernel]} | {dtype} | {' | '.join(cells)} |")
    text += [
        "",
        "## Agreement",
        "",
        "Largest difference to a dense expression on 50 queries, in ranges of the values:",
        "",
    ]
    text += ["| who | float64 |", "|---|---|"] + [f"| {who} | {largest[who]:.0e} |" for who in ours_first(largest)]
    columns_before = ""
    for name in double:
        columns, kernel, dtype = name.split()
        if columns != columns_before:
            text += ["", f"## {words(int(columns)).capitalize()}", "", f"![Seconds against n](peers-{columns}.png)"]
            columns_before = columns
        text += [
            "",
            f"### {KERNEL_NAMES[kernel]}",
            "",
            f"| seconds | {' | '.join(SIZES)} |",
            "|---|" + "---|" * len(SIZES),
        ]
        text += rows_of(results[name], dtype, agree, SIZES)
    single = [name for name in keys if name.endswith("float32")]
    if single:
        text += ["", "## float32, Gaussian, n = m = 10 000", ""]
        names = list(dict.fromkeys(who for name in single for who in results[name]))
        text += [
            f"| seconds | {' | '.join('d = ' + name.split()[0] for name in single)} |",
            "|---|" + "---|" * len(single),
        ]
        for who in ours_first(names):
            cells = (cell(results[name].get(who, {}).get("10000"), agree["float32"]) for name in single)
            text.append(f"| {who} | {' | '.join(cells)} |")
    failed = {
        (who, entry["reason"]) for result in results.values() for who, history in result.items()
        for entry in history.values() if entry.get("reason", "").startswith("failed:")
    }  # fmt: skip
    text += ["", *(f"{who} {reason}" for who, reason in sorted(failed))]
    report("peers", "\n".join(text))
    return off
