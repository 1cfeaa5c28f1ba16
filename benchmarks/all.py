"""All benchmarks one after the other, and an index of what they found in docs/benchmarks/README.md.

python benchmarks/all.py                   everything, about five hours; what `make bench` does
python benchmarks/all.py startup choice    only these; the other lines of the index stay
"""

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from measure import REPORTS, machine

INDEX = REPORTS / "README.md"


@dataclass(frozen=True)
class Benchmark:
    """A script, and the target it measures."""

    command: str
    page: str
    bar: str

    @property
    def name(self) -> str:
        return self.page.removesuffix(".md")


BENCHMARKS = (
    Benchmark("startup.py", "startup.md", "a fresh process that pools 50 x 50: at most 0.3 s more than `import numpy`"),
    Benchmark(
        "explorer.py",
        "explorer.md",
        "the explorer in Chromium, from a drag to the drawn curve: 16 ms at 1000 rows, 50 ms at 5000; module 60 kB",
    ),
    Benchmark("first_call.py", "first-call.md", "a fresh process at n = m = 10 000: 1 s with a warm cache, 5 s cold"),
    Benchmark(
        "brute_force.py",
        "brute-force.md",
        "every kernel, n = m = 10 000: 3 times as fast as dense NumPy, at most 64 MiB more memory",
    ),
    Benchmark(
        "brute_limit.py",
        "brute-limit.md",
        "Gaussian, n = m = 8000, float64 and float32, AVX-512: 3.2, 3, 2.5 and 3.2, 3.2, 3 times as fast as the best "
        "exact peer in 1, 3 and 5 columns, 1.4 and 1.2 in 15, 1.3 and 1.1 in 128; 70 % of the composite limit in 1 and "
        "3 columns, 60 % in 8 to 15",
    ),
    Benchmark(
        "brute_limit.py --avx2",
        "brute-limit-256.md",
        "the same, compiled for AVX2: 3, 3, 2.5 times the best exact peer in 1, 3 and 5 columns, 2.5 in 8 and 11, 2 in "
        "15, 1.5 in 64; 70 and 60 % of the limit",
    ),
    Benchmark(
        "one_column.py",
        "one-column.md",
        "10^6 keys and queries: 2 times `np.argsort` of both, Gaussian 3; a curve of 401 queries: 0.5 times, of keys",
    ),
    Benchmark(
        "one_column.py --large",
        "one-column-large.md",
        "10^7 keys and queries: the same multiples, and a peak memory of 6 times the inputs",
    ),
    Benchmark(
        "verification.py", "verification.md", "holding answers against what is known of them: at most 2 % of a call"
    ),
    Benchmark(
        "tree.py",
        "tree.md",
        "n = m = 100 000, 2 and 3 columns, about 500 neighbours: 20 times as fast as the fastest exact peer, the "
        "Gaussian in 3 columns 8; ten times the points at most 13 times the time",
    ),
    Benchmark(
        "choice.py", "choice.md", "what `auto` picks: nowhere slower than 1.5 times the best algorithm, on average 1.08"
    ),
    Benchmark(
        "growth.py",
        "growth.md",
        "10^6 and 10^7 keys in 2 and 3 columns, tree and Fourier transform: ten times the keys, 14 times the time",
    ),
    Benchmark("compare.py", "peers.md", "beside all peers, 10^2 to 10^6 rows, with pictures: the answers agree"),
    Benchmark(
        "search.py",
        "search.md",
        "leave-one-out searches: 100 times as fast as statsmodels and never worse; 10^6 rows in 30 times `np.argsort`; "
        "20 000 rows of 5 columns in 30 s and 1 GiB",
    ),
    Benchmark(
        "search_tables.py",
        "search-tables.md",
        "searches on tables with levels 3 s, of 34 columns 5 s, of classes 2 s, of 20 000 rows with levels 40 s",
    ),
    Benchmark(
        "defaults.py",
        "defaults.md",
        "what comes out of the box: at or above forests and boosting, within 0.04 of a Gaussian process; the bandwidth "
        "within 0.01 of an exhaustive grid",
    ),
    Benchmark(
        "test_size.py",
        "test-size.md",
        "tests at a level of 5 %, 1000 runs: 3.5 to 6.5 %; the test of columns by residuals 1.5 times as powerful as "
        "that by slopes",
    ),
    Benchmark(
        "interval_coverage.py",
        "coverage.md",
        "95 % intervals and bands, bandwidths found on the same rows, 2000 runs: within 1 % of 95, or of what a "
        "prototype had where that is further away; each place of a curve with a peak 94 to 98.5 %",
    ),
    Benchmark(
        "inference.py",
        "inference.md",
        "intervals at 401 places: 1000 rows 30 ms; 10^6 rows, interval and band 4 passes that leave each row out, "
        "a summary 3, memory 3 times the inputs; 10 times as fast as nprobust, 100 as npreg of R",
    ),
    Benchmark(
        "quantiles.py",
        "quantiles.md",
        "10^6 rows of one column, three conditional quantiles: 1 s and memory 3 times the inputs at 401 places, 20 s "
        "and 10 times at 10^6",
    ),
    Benchmark(
        "prediction_coverage.py",
        "prediction-coverage.md",
        "90 % prediction intervals, 2000 runs: full with a fixed bandwidth, shifted rows with weights, clusters 89 to "
        "91.5 %; adaptive with a searched bandwidth 88.5 to 91, no third of the rows below 87.5; randomised local ones "
        "89.5 to 92; sets of classes within 1.5 of 90, no larger than MAPIE's",
    ),
    Benchmark(
        "set_tables.py",
        "set-tables.md",
        "sets of classes of real tables, 100 splits: within 1.5 of 90 %, each class from 88.5 with by_class, no larger "
        "than MAPIE's of the same probabilities",
    ),
    Benchmark(
        "prediction.py",
        "prediction.md",
        "jackknife+ of 2000 rows at 1000 places: 200 times as fast as MAPIE and the same to 1e-12; split intervals of "
        "10^6 rows: faster than crepes; LAC sets those of MAPIE",
    ),
    Benchmark(
        "distribution_tables.py",
        "distribution-tables.md",
        "real tables that chose nothing, whole distributions: by mean rank in CRPS the best or the second, beside "
        "quantile forests, boosted quantiles and NGBoost",
    ),
    Benchmark(
        "learned.py",
        "learned.md",
        "a linear map that learns: above forests and one bandwidth per column on friedman1, at most 0.02 below the "
        "latter on diabetes",
    ),
    Benchmark(
        "tables.py",
        "tables.md",
        "real tables that chose nothing: R^2 at most 0.015 behind the best peer of each on average, more than 0.03 on "
        "two at most; a better mean rank than all peers but one; log loss at most 0.03 behind on average, nowhere "
        "more than 1.5 times; `expected_error` within 10 % on average, its bias within 3 %",
    ),
    Benchmark(
        "layers.py",
        "layers.md",
        "layers, forward and backward: 10 times as fast as the dense one in one column, 3 and 2.5 in 16 and 64; KeOps "
        "4; the Gaussian written as a dot product 1.3 and 1.2; dot products in 1.2 times torch's own; 256 MiB at "
        "n = m = 100 000; at most twice the error of the dense layer",
    ),
    Benchmark(
        "scale.py",
        "scale.md",
        "10^8 keys in Parquet, 10^4 queries: 5 times the time of reading, 1 GiB; memory flat in n; two Dask workers "
        "1.7 times as fast as one, with the same bits",
    ),
    Benchmark(
        "scale_model.py", "scale-model.md", "what a cluster costs: predicted within a factor of 2 where it was measured"
    ),
    Benchmark("interrupt.py", "interrupt.md", "Ctrl-C is answered within 0.3 s"),
)


def outcome(benchmark: Benchmark) -> tuple[str, float]:
    """Run one, and return what became of its target, in words, and its seconds."""
    script, *arguments = benchmark.command.split()
    started = time.perf_counter()
    print(f"\n--- {benchmark.command}", flush=True)
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name(script), *arguments], stderr=subprocess.PIPE, text=True
    )
    print(done.stderr, end="", file=sys.stderr, flush=True)
    if not done.returncode:
        return "met", time.perf_counter() - started
    said = (done.stderr.strip().splitlines() or ["no message"])[-1]
    words = said.replace("|", "/") if said.startswith(("a target was missed", "answers differ")) else "failed"
    return f"**{words}**", time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *(b.name for b in BENCHMARKS)], help="default: all")
    options = parser.parse_args()
    lines = {}
    if INDEX.exists():
        rows = [line for line in INDEX.read_text(encoding="utf-8").splitlines() if line.startswith("| [")]
        lines = {row.partition("](")[0].removeprefix("| ["): row for row in rows}
    for benchmark in BENCHMARKS:
        if options.names and benchmark.name not in options.names:
            continue
        words, seconds = outcome(benchmark)
        lines[benchmark.name] = (
            f"| [{benchmark.name}]({benchmark.page}) | {benchmark.bar} | {words} "
            f"| `python benchmarks/{benchmark.command}` | {seconds:.0f} |"
        )
        table = "\n".join(lines[b.name] for b in BENCHMARKS if b.name in lines)
        INDEX.write_text(
            "# Benchmarks\n\n`make bench` runs them all and writes these pages. Every figure is a ratio or a time of "
            "one run on one machine; alternating runs, medians. Accuracy and guarantees have targets as well; "
            "tests hold "
            "them (`tests/laws/test_battery.py` and its neighbours).\n\n"
            f"| page | target | outcome | command | seconds |\n|---|---|---|---|---|\n{table}\n\nMachine: "
            f"{machine()}.\n",
            encoding="utf-8",
        )
    missed = [name for name, row in lines.items() if "| met |" not in row]
    if missed:
        sys.exit(f"not met: {', '.join(missed)}")


if __name__ == "__main__":
    main()
