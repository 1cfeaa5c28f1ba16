"""Does `algorithm="auto"` pick well? A sample of a grid of problems: what it picks, beside all that can do them.

python benchmarks/choice.py            288 of 1728 plain problems and 90 others, about twenty minutes
python benchmarks/choice.py --quick    72 and 90 of them
python benchmarks/choice.py --all      all, more than an hour
python benchmarks/choice.py -d 1 -k gaussian laplace --csv FILE     only these; every measurement and estimate in a file
python benchmarks/choice.py --again FILE [FILE ...]    what would be picked today, with the times of then; in seconds

To calibrate: keep the times in a file, change the constants beside `seconds` of each algorithm, look at what `--again`
says; its last table tells measured from estimated seconds.
"""

import argparse
import csv
import itertools
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from choice_report import BAR, write
from measure import Watch

from kernpool import Problem
from kernpool.algorithms import ALGORITHMS
from kernpool.core.pair_factors import Factors
from kernpool.pooling.plan import estimates
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
    seconds = dict.fromkeys(names, np.nan) if problem.factors else estimates(problem)
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


HEADER = (
    "n",
    "m",
    "columns",
    "kernel",
    "bandwidth",
    "data",
    "beside",
    "picked",
    "choosing",
    "algorithm",
    "seconds",
    "estimate",
)


def save(trials: list[Trial], path: Path) -> None:
    """Write every measurement beside its estimate."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for t in trials:
            head = (t.n, t.m, t.columns, t.kernel, t.bandwidth, t.data, t.beside, t.picked, f"{t.choosing:.3g}")
            for name, seconds in t.seconds.items():
                writer.writerow([*head, name, f"{seconds:.4g}", f"{t.estimates[name]:.4g}"])


def load(path: Path) -> list[Trial]:
    """Read what `save` wrote, and pick again."""
    found: dict[tuple, dict[str, float]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            shape = (int(row["n"]), int(row["m"]), int(row["columns"]))
            trial = (*shape, row["kernel"], float(row["bandwidth"]), row["data"], row["beside"])
            found.setdefault(trial, {})[row["algorithm"]] = float(row["seconds"])
    return [
        pick(Trial(*trial, seconds=seconds), Trial(*trial).problem(), list(seconds)) for trial, seconds in found.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("-d", "--columns", type=int, nargs="*", default=COLUMNS, choices=COLUMNS)
    parser.add_argument("-k", "--kernels", nargs="*", default=KERNELS, choices=KERNELS)
    parser.add_argument("--csv", type=Path, help="keep every measurement and estimate here")
    parser.add_argument("--again", type=Path, nargs="*", help="measure nothing, read such files")
    options = parser.parse_args()
    grid = len(SHAPES) * len(COLUMNS) * len(KERNELS) * len(BANDWIDTHS)
    if options.again:
        write([trial for path in options.again for trial in load(path)], grid, THREADS, keep=False)
        return
    drawn = sample(len(SHAPES) if options.all else 1 if options.quick else 4)
    drawn += others()
    drawn = [trial for trial in drawn if trial.columns in options.columns and trial.kernel in options.kernels]
    trials = []
    for number, trial in enumerate(drawn, 1):
        done = run(trial)
        trials.append(done)
        print(
            f"{number:4d}/{len(drawn)}  n {done.n:<8d} m {done.m:<8d} d {done.columns:<3d} {done.kernel:13s} "
            f"h {done.bandwidth:<5g} {done.data:8s} {done.beside:15s} "
            f"{done.picked:9s} {done.ratio:6.2f} times {done.best:9s} {done.seconds[done.best]:8.4f} s"
            f"{'   <-- bad' * (done.ratio > BAR)}",
            flush=True,
        )
        if options.csv:
            save(trials, options.csv)
    partly = len(options.columns) < len(COLUMNS) or len(options.kernels) < len(KERNELS)
    write(trials, grid, THREADS, keep=not partly)


if __name__ == "__main__":
    main()
