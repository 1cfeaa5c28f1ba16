"""The report of `choice.py`: worst picks first, and how far measured seconds are from estimated ones."""

import numpy as np
from measure import finish, report

BAR, MEAN_BAR = 1.5, 1.08
SHOWN = 20


def brief(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def worst(trials: list) -> list[str]:
    lines = [
        "| keys | queries | columns | kernel | h | data | beside | picked | | fastest | | times |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {t.n} | {t.m} | {t.columns} | {t.kernel} | {t.bandwidth:g} | {t.data} | {t.beside} "
        f"| {t.picked} | {brief(t.seconds[t.picked] + t.choosing)} | {t.best} | {brief(t.seconds[t.best])} "
        f"| {t.ratio:.2f} |"
        for t in sorted(trials, key=lambda t: -t.ratio)[:SHOWN]
    ]
    return lines


def picks(trials: list) -> list[str]:
    """How often each algorithm was picked and was the fastest."""
    names = list(dict.fromkeys(name for t in trials for name in t.seconds))
    lines = [
        "| algorithm | could do | picked | fastest | times the fastest (median) |",
        "|---|---|---|---|---|",
    ]
    for name in names:
        able = [t for t in trials if name in t.seconds]
        times = np.median([t.seconds[name] / t.seconds[t.best] for t in able])
        picked, best = (sum(getattr(t, what) == name for t in able) for what in ("picked", "best"))
        lines.append(f"| {name} | {len(able)} | {picked} | {best} | {times:.1f} |")
    return lines


def estimates(trials: list) -> list[str]:
    """Measured over estimated seconds, where there is an estimate: the smallest, the median, the largest."""
    groups: dict[tuple, list[float]] = {}
    for t in trials:
        for name, seconds in t.seconds.items():
            if np.isfinite(t.estimates[name]):
                groups.setdefault((name, t.kernel, t.columns), []).append(seconds / t.estimates[name])
    columns = sorted({d for _, _, d in groups})
    lines = [f"| algorithm | kernel | {' | '.join(f'd = {d}' for d in columns)} |", "|---|---|" + "---|" * len(columns)]
    for name, kernel in dict.fromkeys((name, kernel) for name, kernel, _ in groups):
        found = [groups.get((name, kernel, d), []) for d in columns]
        cells = (f"{min(x):.2g} {np.median(x):.2g} {max(x):.2g}" if x else "" for x in found)
        lines.append(f"| {name} | {kernel} | {' | '.join(cells)} |")
    return lines


def write(trials: list, grid: int, threads: int, *, keep: bool) -> None:
    """Print the report; keep it if it is of the whole grid or of a fair sample."""
    ratios = np.array([t.ratio for t in trials])
    within = np.mean(ratios <= BAR)
    text = [
        '# Choice of algorithm: `"auto"` compared with the fastest',
        "",
        f"{len(trials)} problems, most of a grid of {grid}: 10^2 ... 10^6 keys and queries (at most "
        "10^11 pairs), 1 to 64 columns, "
        "four kernels, three bandwidths (in standard deviations, times sqrt(columns)), uniform or normal data, "
        "and others with weights, a row left out, degree 1 or a column of levels beside; "
        f"{threads} threads. Every algorithm that can do a problem runs; those that take more than three times the "
        "best, and all after some seconds, are stopped and extrapolated from their progress. Each time is the "
        "smallest of up to five; that of the pick includes picking.",
        "",
        f"**At most {BAR:g} times as long as the fastest (the target: everywhere): {within:.1%}.** "
        f"Mean {ratios.mean():.3f} (target: {MEAN_BAR}), "
        f"95 % within {np.quantile(ratios, 0.95):.2f}, worst {ratios.max():.2f}.",
        "",
        *picks(trials),
        "",
        "## Worst first",
        "",
        *worst(trials),
        "",
        "## Measured over estimated seconds",
        "",
        "Least, median, most. Estimates are for one thread, and only ratios matter to the plan; what has no estimate "
        "is never picked, or was ruled out before looking.",
        "",
        *estimates(trials),
    ]
    report("choice", "\n".join(text), keep=keep)
    missed = [f"{np.sum(ratios > BAR)} picks, the worst {ratios.max():.2f} times the fastest"] if within < 1 else []
    if ratios.mean() > MEAN_BAR:
        missed.append(f"on average {ratios.mean():.3f} times the fastest")
    finish(missed)
