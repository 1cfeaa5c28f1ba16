"""Does `algorithm="auto"` pick well? A sample of a grid of problems: what it picks, beside all that can do them.

python benchmarks/choice.py                          288 of 1728 plain problems and 90 others, about twenty minutes
python benchmarks/choice.py --quick                  72 and 90 of them
python benchmarks/choice.py --all                    all, more than an hour
python benchmarks/choice.py --quick --columns 1 2    only these, and no report

To calibrate: change the constants beside `seconds` of each algorithm, or measure them by `constants.py`; the last table
that is printed tells measured from estimated seconds.
"""

import itertools
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from measure import finish, flags, report, table, tell

from kernpool import Problem
from kernpool.algorithms import ALGORITHMS
from kernpool.core.pair_factors import Factors
from kernpool.pooling.plan import choose_algorithm
from kernpool.pooling.recipe import choose

SIZES = (100, 1000, 10_000, 100_000, 1_000_000)
SHAPES = tuple((n, m) for n, m in itertools.product(SIZES, SIZES) if n * m <= 10**11)
COLUMNS = (1, 2, 3, 6, 16, 64)
KERNELS = ("gaussian", "epanechnikov", "laplace", "cosine")
# What a problem may have beside keys and values, with few and many queries of large tables, and of a small one.
WITH = ("nothing", "weights", "itself left out", "degree 1", "levels")
WITH_SHAPES = ((1000, 1000), (100_000, 100), (100_000, 100_000), (1_000_000, 100), (1_000_000, 10_000))
WITH_COLUMNS, WITH_KERNELS, WITH_BANDWIDTH, LEVELS = (1, 2, 3), ("gaussian", "epanechnikov"), 0.1, 5
BANDWIDTHS = (0.02, 0.2, 1.0)  # in standard deviations, times sqrt(d)
THREADS = 2
DENSE = 4_000_000  # pairs that the reference may hold
HOPELESS = 3.0  # times the best so far: an algorithm that has taken so long without an end is stopped
LEAST, MOST = 0.3, 3.0  # seconds until anything is stopped, and until everything is
ENOUGH, ROUNDS = 0.15, 5  # seconds of repetitions, and the most repetitions
DOUBTFUL = 1.5  # times the best: a pick that is looked at once more, and longer
REPORTS_TO_EXTRAPOLATE = 6
BAR, MEAN_BAR, SHOWN = 1.5, 1.08, 2


class OutOfTime(Exception):
    """Raised by `Watch` to stop a job."""


class Watch:
    """Listens to the progress of a job, stops it after `limit` seconds, and extrapolates to its end."""

    def __init__(self, limit: float) -> None:
        self.limit, self.reports = limit, []

    def __call__(self, done: int, total: int) -> None:
        elapsed = time.perf_counter() - self.started
        self.reports.append((elapsed, max(done / total, 1e-9)))
        told = len(self.reports) >= REPORTS_TO_EXTRAPOLATE or elapsed > 4.0 * self.limit
        if elapsed > self.limit and told and done < total:
            raise OutOfTime

    def time(self, job: Callable[[], object]) -> float:
        """Return the seconds of a job, or what it would have taken."""
        self.started = time.perf_counter()
        try:
            job()
        except OutOfTime:
            # What comes before the first report, such as sorting, happens once.
            (first, share), (last, done) = self.reports[0], self.reports[-1]
            return last + (1.0 - done) * ((last - first) / (done - share) if done > share else last / done)
        return time.perf_counter() - self.started


@dataclass(frozen=True)
class Trial:
    """One problem, and what was found."""

    n: int
    m: int
    columns: int
    kernel: str
    bandwidth: float
    data: str
    beside: str = "nothing"
    picked: str = ""
    choosing: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    estimates: dict[str, float] = field(default_factory=dict)

    @property
    def best(self) -> str:
        return min(self.seconds, key=self.seconds.__getitem__)

    @property
    def ratio(self) -> float:
        """What the pick takes, with the time to pick it, in times of the best."""
        return (self.seconds[self.picked] + self.choosing) / self.seconds[self.best]

    def problem(self) -> Problem:
        generator = np.random.default_rng([self.n, self.m, self.columns])
        draw = generator.normal if self.data == "normal" else lambda size: np.sqrt(12.0) * generator.random(size)
        query, key = draw(size=(self.m, self.columns)), draw(size=(self.n, self.columns))
        h = self.bandwidth * self.columns**0.5
        options: dict = {"kernel": self.kernel, "bandwidth": h}
        if self.beside == "weights":
            options["key_weight"] = 1.0 + generator.random(self.n)
        elif self.beside == "itself left out":
            query = key[generator.permutation(self.n)[: self.m]] if self.m < self.n else key
            options |= {"exclude_self": True, "self_index": np.arange(self.m) if self.m < self.n else None}
        elif self.beside == "degree 1":
            options["degree"] = 1
        elif self.beside == "levels":
            codes = (generator.integers(LEVELS, size=(rows, 1)) for rows in (self.m, self.n))
            table = np.full((LEVELS, LEVELS), 0.2) + 0.8 * np.eye(LEVELS)
            options["factors"] = Factors(*codes, (table,), (np.ones_like(table),))
        problem = Problem.from_arrays(query, key, np.sin(key[:, 0]), **options)
        return replace(problem, prepared=None)  # or a tree that one run has planted would serve all others


def sample(per_combination: int) -> list[Trial]:
    """Take some shapes for every number of columns, kernel and bandwidth; the same ones in every run."""
    return [
        Trial(*SHAPES[index], *combination, data=("uniform", "normal")[(number + index) % 2])
        for number, combination in enumerate(itertools.product(COLUMNS, KERNELS, BANDWIDTHS))
        for index in np.random.default_rng(number).permutation(len(SHAPES))[:per_combination]
    ]


def others() -> list[Trial]:
    """Return problems with something beside keys and values, large ones among them."""
    return [
        Trial(n, m, columns, kernel, WITH_BANDWIDTH, "normal", beside)
        for beside, (n, m), columns, kernel in itertools.product(WITH, WITH_SHAPES, WITH_COLUMNS, WITH_KERNELS)
        if n * m <= 10**10 and (columns != 2 or kernel == "gaussian")
    ]


def can(problem: Problem, name: str) -> bool:
    """Whether an algorithm can do a problem, all cells of its levels included."""
    return ALGORITHMS[name].refusal(problem.without_factors()) is None


def seconds_of(name: str, problem: Problem, limit: float) -> float:
    """Time an algorithm; where it exceeds the limit, extrapolate from its progress."""
    watch = Watch(limit)
    return watch.time(lambda: choose(problem, name, reuse=True).reduce(problem, n_jobs=THREADS, progress=watch))


def race(problem: Problem, names: list[str], least: float, most: float) -> dict[str, float]:
    """Time algorithms in turn, the hopeless ones once; return the smallest of what each took, the least noisy."""
    seconds: dict[str, float] = {}
    for name in names:
        limit = float(np.clip(HOPELESS * min(seconds.values(), default=most), least, most))
        seconds[name] = seconds_of(name, problem, limit)
    spent, rounds, best = 0.0, 1, min(seconds.values())
    close = [name for name in names if seconds[name] < HOPELESS * best]
    while rounds < ROUNDS and (spent < ENOUGH or rounds < 2) and best < most / ROUNDS:
        for name in close:
            found = seconds_of(name, problem, most)
            seconds[name], spent = min(seconds[name], found), spent + found
        rounds += 1
    return seconds


def pick(trial: Trial, problem: Problem, names: list[str]) -> Trial:
    """Note what is picked, how long that takes, and the estimates."""
    choosing = []
    for _ in range(3):
        started = time.perf_counter()
        picked = choose(problem, reuse=True).algorithm
        choosing.append(time.perf_counter() - started)
    seconds = dict.fromkeys(names, np.nan) if problem.factors else choose_algorithm(problem).seconds
    if picked == "cells":  # what each cell is summed by
        picked = "auto"
    return replace(trial, picked=picked, choosing=min(choosing), estimates={name: seconds[name] for name in names})


def run(trial: Trial) -> Trial:
    """Race all algorithms that can do a problem; look twice where the pick seems bad."""
    problem = trial.problem()
    names = [name for name in ALGORITHMS if can(problem, name) and (name != "reference" or trial.n * trial.m <= DENSE)]
    if problem.factors:
        names.append("auto")
    small = problem.block(slice(0, 400), slice(0, 400))
    for name in names:  # loads and compiles
        choose(small, name, reuse=True).reduce(small, n_jobs=THREADS)
    trial = pick(trial, problem, names)
    names.sort(key=lambda name: (name != trial.picked, trial.estimates[name]))  # NaN stays where it is
    seconds = race(problem, names, LEAST, MOST)
    done = replace(trial, seconds=seconds)
    if done.ratio > DOUBTFUL and done.picked != done.best:
        seconds |= race(problem, [done.best, done.picked], 4 * MOST, 4 * MOST)
    return done


def brief(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def worst_first(trials: list[Trial]) -> str:
    worst = (
        f"{t.n} keys, {t.m} queries, {t.columns} columns, {t.kernel}: {t.picked}, {t.best} takes "
        f"{brief(t.seconds[t.best])}"
        for t in sorted(trials, key=lambda t: -t.ratio)[:SHOWN]
    )
    return f"The worst: {'; '.join(worst)}."


def picks(trials: list[Trial]) -> str:
    """How often each algorithm was picked and was the fastest."""
    rows = []
    for name in dict.fromkeys(name for t in trials for name in t.seconds):
        able = [t for t in trials if name in t.seconds]
        times = np.median([t.seconds[name] / t.seconds[t.best] for t in able])
        counts = (sum(getattr(t, what) == name for t in able) for what in ("picked", "best"))
        rows.append([name, len(able), *counts, f"{times:.1f}"])
    return table("algorithm | could do | picked | fastest | times the fastest (median)", rows)


def measured_over_estimated(trials: list[Trial]) -> str:
    """Measured over estimated seconds, where there is an estimate: the smallest, the median, the largest."""
    groups: dict[tuple, list[float]] = defaultdict(list)
    for t in trials:
        for name, seconds in t.seconds.items():
            if np.isfinite(t.estimates[name]):
                groups[name, t.kernel, t.columns].append(seconds / t.estimates[name])
    columns, rows = sorted({d for _, _, d in groups}), []
    for name, kernel in dict.fromkeys((name, kernel) for name, kernel, _ in groups):
        found = [groups.get((name, kernel, d)) for d in columns]
        rows.append([name, kernel, *(f"{min(x):.2g} {np.median(x):.2g} {max(x):.2g}" if x else "" for x in found)])
    return table("algorithm | kernel | " + " | ".join(f"d = {d}" for d in columns), rows)


def write(trials: list[Trial], *, keep: bool) -> list[str]:
    """Write the page, and return the targets that are missed."""
    ratios = np.array([t.ratio for t in trials])
    within = np.mean(ratios <= BAR)
    report(
        "choice",
        '# Choice of algorithm: `"auto"` compared with the fastest',
        f"{len(trials)} problems: 10^2 ... 10^6 keys and queries, 1 to 64 columns, four kernels, three bandwidths, "
        "some "
        f"with weights, a row left out, degree 1 or a column of levels; {THREADS} threads. Every algorithm that can "
        "do a "
        "problem runs. The time of the pick includes picking.",
        f"**At most {BAR:g} times as long as the fastest (the target: everywhere): {within:.1%}.** "
        f"Mean {ratios.mean():.3f} (target: {MEAN_BAR}), "
        f"95 % within {np.quantile(ratios, 0.95):.2f}, worst {ratios.max():.2f}.",
        picks(trials),
        worst_first(trials),
        keep=keep,
    )
    print(measured_over_estimated(trials))
    missed = [f"{np.sum(ratios > BAR)} picks, the worst {ratios.max():.2f} times the fastest"] if within < 1 else []
    return missed + ([f"on average {ratios.mean():.3f} times the fastest"] if ratios.mean() > MEAN_BAR else [])


def main() -> None:
    asked = flags(__doc__, "quick", "all", columns=COLUMNS)
    drawn = sample(len(SHAPES) if asked.all else 1 if asked.quick else 4) + others()
    trials = []
    for trial in (trial for trial in drawn if trial.columns in asked.columns):
        done = run(trial)
        trials.append(done)
        problem = (
            f"n {done.n}, m {done.m}, d {done.columns}",
            done.kernel,
            f"h {done.bandwidth:g}",
            done.data,
            done.beside,
        )
        fastest = f"{done.ratio:.2f} times {done.best}", brief(done.seconds[done.best])
        tell(*problem, done.picked, *fastest, "<-- bad" * (done.ratio > BAR))
    finish(write(trials, keep=len(asked.columns) == len(COLUMNS)))


if __name__ == "__main__":
    main()
