"""Brute force beside the fastest exact peers, and beside its composite limit; n = m = 8000.

python benchmarks/brute_limit.py                   everything, five minutes, and the report
python benchmarks/brute_limit.py --columns 1 8     only these numbers of columns, printed
python benchmarks/brute_limit.py --avx2            all of it compiled for AVX2, on a processor with AVX-512

The limit is made of two bare loops: of powers of two, and of one fused multiply-add per column and pair.
"""

import os
import sys
import time
from dataclasses import replace

import numpy as np
from cases import Case
from loops.limit import CHAIN, powers, products
from measure import alternate, finish, flags, report, table, tell
from peers import dense_numpy, keops, torch_attention
from threadpoolctl import threadpool_limits

from kernpool import pool
from kernpool.execution.compilation import vector_registers

N, ROUNDS, THREADS, SLICE = 8000, 9, 2, 250  # a slice of queries of the dense expression stays in the cache
PAUSE = 0.25  # seconds before each run: threads of OpenMP spin for .2 s after theirs, and slow down whoever is next
# Times the fastest peer, in float64 and in float32, by the bits of a vector.
BARS = {
    512: {
        1: (3.2, 3.2), 3: (3.0, 3.2), 5: (2.5, 3.0), 8: (2.0, 2.2), 11: (1.8, 1.7), 15: (1.4, 1.2), 20: (1.4, 1.3),
        32: (1.35, 1.2), 64: (1.4, 1.15), 128: (1.3, 1.1),
    },
    256: {1: (3.0, 3.0), 3: (3.0, 3.0), 5: (2.5, 2.5), 8: (2.5, 2.5), 11: (2.5, 2.5), 15: (2.0, 2.0), 64: (1.5, 1.5)},
}  # fmt: skip
COLUMNS = (1, 3, 5, 8, 11, 15, 64, 128)
SHARES = {1: 0.7, 3: 0.7, 8: 0.6, 11: 0.6, 15: 0.6}  # of the composite limit
# Numba, torch, MKL, NumPy and its BLAS; KeOps compiles for the processor itself.
FOR_AVX2 = {
    "NUMBA_CPU_NAME": "znver3", "NUMBA_CPU_FEATURES": "",
    "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V4",
}  # fmt: skip


def limit(dtype) -> tuple[float, float]:
    """Measure the seconds of a power of two, and of a fused multiply-add, on one thread."""
    s, factor, repeats = np.linspace(0, 20, 512).astype(dtype), dtype(0.5), N * N // 512
    runs = {"power": lambda: powers(s, repeats), "product": lambda: products(s.copy(), factor, repeats // CHAIN)}
    alternate(runs, 1)
    median = alternate(runs, ROUNDS)
    return median["power"] / N**2, median["product"] / N**2


def dense(case: Case) -> np.ndarray:
    slices = (slice(start, start + SLICE) for start in range(0, N, SLICE))
    return np.concatenate([dense_numpy(replace(case, query=case.query[some])) for some in slices])


def contenders(case: Case):
    """Return what runs here, by name."""
    options = {"bandwidth": case.bandwidth, "n_jobs": THREADS, "algorithm": "brute"}
    runs = {
        "kernpool": lambda: pool(case.query, case.key, case.value, **options),
        "dense NumPy": lambda: dense(case),
        "torch attention": lambda: torch_attention(case),
    }
    try:
        keops(case)
    except Exception as error:  # it compiles C++ on this machine, for which much has to be there
        print(f"KeOps does not run here: {error}")
        return runs
    return runs | {"KeOps": lambda: keops(case)}


def cells(columns: int, dtype, power: float, product: float, bars) -> tuple[list[str], list[str]]:
    """Measure one number of columns in one float width; return three cells, and which targets were missed."""
    generator, bandwidth = np.random.default_rng(columns), 0.35 * columns**0.5
    query, key, value = (generator.normal(size=s).astype(dtype) for s in ((N, columns), (N, columns), (N,)))
    runs, answers, once = contenders(Case(query, key, value, "gaussian", bandwidth, THREADS)), {}, {}
    for name, run in runs.items():
        run()  # compiles
        started = time.perf_counter()
        answers[name] = run()
        once[name] = time.perf_counter() - started
        assert np.abs(answers[name] - answers["kernpool"]).max() < (1e-9 if dtype == np.float64 else 2e-3) * np.ptp(
            value
        )
    hopeless = [name for name in once if name != "kernpool" and once[name] > 5 * min(once.values())]
    median = {name: once[name] for name in hopeless}
    median |= alternate({name: run for name, run in runs.items() if name not in hopeless}, ROUNDS, pause=PAUSE)
    ours, name = median["kernpool"], f"{columns} columns, {np.dtype(dtype)}"
    gain = min(seconds for name, seconds in median.items() if name != "kernpool") / ours
    share = N * N * (power + columns * product) / THREADS / ours
    bar, least = bars[columns][dtype == np.float32] if columns in bars else None, SHARES.get(columns)
    missed = [f"{name}: {gain:.2f} of {bar:g} times"] if bar and gain < bar else []
    missed += [f"{name}: {share:.0%} of the limit, not {least:.0%}"] if least and share < least else []
    times = f"{gain:.2f} ({bar})" if bar else f"{gain:.2f}"
    bound = f"{share:.0%} ({least:.0%})" if least else f"{share:.0%}"
    tell(name, *(f"{other} {N * N / seconds / 1e9:.3f}" for other, seconds in median.items()), times, bound)
    return [f"{N * N / ours / 1e9:.3f}", times, bound], missed


def main() -> None:
    asked = flags(__doc__, "avx2", columns=COLUMNS)
    if asked.avx2 and "NUMBA_CPU_NAME" not in os.environ:  # libraries read these once, before anything runs
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | FOR_AVX2)
    bits = 512 if vector_registers() == 32 else 256
    rows, sentences, missed = [], [], []
    heads = "1e9 pairs/s | times the fastest peer | share of the limit"
    limits = {dtype: limit(dtype) for dtype in (np.float64, np.float32)}
    for dtype, (power, product) in limits.items():
        sentences += tell(
            f"The limit in {np.dtype(dtype)}, on one thread: {1e-9 / power:.2f}e9 powers of two per second, and "
            f"{1e-9 / product:.1f}e9 fused multiply-adds."
        )
    with threadpool_limits(THREADS, user_api="blas"):
        for columns in asked.columns:
            line = [str(columns)]
            for dtype in limits:
                found, less = cells(columns, dtype, *limits[dtype], BARS[bits])
                line += found
                missed += less
            rows.append(line)
    report(
        "brute-limit" + ("" if bits == 512 else "-256"),
        f"# Brute force, vectors of {bits} bits",
        table(f"columns | {' | '.join(f'{dtype}: {heads}' for dtype in ('float64', 'float32'))}", rows),
        f"{N} queries, {N} keys, Gaussian, {THREADS} threads, arrays in to values out; targets in brackets; peers are "
        "dense NumPy, torch's attention and KeOps. The limit is a power of two and one multiply-add per column and "
        "pair.",
        "\n".join(sentences),
        keep=len(asked.columns) == len(COLUMNS),
    )
    finish(missed)


if __name__ == "__main__":
    main()
