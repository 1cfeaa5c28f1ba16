"""Brute force beside the fastest exact peers, and beside its composite limit; n = m = 8000.

python benchmarks/brute_limit.py         everything, five minutes, and the report
python benchmarks/brute_limit.py 1 10    only these numbers of columns, printed
python benchmarks/brute_limit.py --avx2  all of it compiled for AVX2, on a processor with AVX-512

The limit is made of two bare loops: of powers of two, and of one fused multiply-add per column and pair.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np
from cases import Case
from loops.limit import CHAIN, powers, products
from measure import alternate, finish, report
from peers import keops

from kernpool import pool
from kernpool.execution.compilation import vector_registers

N, ROUNDS, THREADS = 8000, 9, 2
PAUSE = 0.25  # seconds before each run: threads of OpenMP spin for .2 s after theirs, and slow down whoever is next
# Times the fastest peer, in float64 and in float32, by the bits of a vector.
BARS = {
    512: {
        1: (3.2, 3.2), 3: (3.0, 3.2), 5: (2.5, 3.0), 8: (2.0, 2.2), 11: (1.8, 1.7), 15: (1.4, 1.2), 20: (1.4, 1.3),
        32: (1.35, 1.2), 64: (1.4, 1.15), 128: (1.3, 1.1),
    },
    256: {1: (3.0, 3.0), 3: (3.0, 3.0), 5: (2.5, 2.5), 8: (2.5, 2.5), 11: (2.5, 2.5), 15: (2.0, 2.0), 64: (1.5, 1.5)},
}  # fmt: skip
COLUMNS = (1, 2, 3, 5, 8, 11, 15, 20, 32, 64, 128)
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
    for run in runs.values():
        run()
    median = alternate(runs, ROUNDS)
    return median["power"] / N**2, median["product"] / N**2


def dense(query, key, value, bandwidth):
    """Make the NumPy expression, in slices that stay in the cache; products for many columns, differences for few."""

    def run():
        pooled = np.empty_like(value)
        for start in range(0, len(query), 250):
            part = query[start : start + 250]
            if key.shape[1] <= 3:
                squared = sum((part[:, a, None] - key[:, a]) ** 2 for a in range(key.shape[1]))
            else:
                squared = (part**2).sum(axis=1)[:, None] + (key**2).sum(axis=1) - 2 * part @ key.T
            weights = np.exp(squared * (-0.5 / bandwidth**2))
            pooled[start : start + 250] = weights @ value / weights.sum(axis=1)
        return pooled

    return run


def attention(query, key, value, bandwidth):
    """Make torch's scaled_dot_product_attention with a column for the norm of the key; head sizes have to be equal."""
    import torch

    def run():
        center = key.mean(axis=0)
        k = (key - center) / bandwidth
        q = np.concatenate([(query - center) / bandwidth, np.ones((len(query), 1), query.dtype)], axis=1)
        k = np.concatenate([k, -0.5 * np.sum(k * k, axis=1, keepdims=True)], axis=1)
        v = np.zeros_like(k)
        v[:, 0] = value
        q, k, v = (torch.from_numpy(x)[None, None] for x in (q, k, v))
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=1.0)[0, 0, :, 0].numpy()

    return run


def made_by_keops(case):
    """Make KeOps' reduction, or say why there is none."""
    try:
        keops(case)
    except Exception as error:  # it compiles C++ on this machine, for which much has to be there
        return None, f"{type(error).__name__}: {str(error).splitlines()[0][:80] if str(error) else ''}"
    return lambda: keops(case), None


def row(columns, dtype, power, product, bars, notes) -> tuple[str, list[str]]:
    """Measure one number of columns in one float width; return a line of the table, and which targets were missed."""
    generator, bandwidth = np.random.default_rng(columns), 0.35 * columns**0.5
    query, key, value = (generator.normal(size=s).astype(dtype) for s in ((N, columns), (N, columns), (N,)))
    contenders = {
        "kernpool": lambda: pool(query, key, value, bandwidth=bandwidth, n_jobs=THREADS, algorithm="brute"),
        "dense NumPy": dense(query, key, value, bandwidth),
        "torch attention": attention(query, key, value, bandwidth),
    }
    compiled, reason = made_by_keops(Case(query, key, value, "gaussian", bandwidth, THREADS))
    if compiled:
        contenders["KeOps"] = compiled
    else:
        notes["KeOps"] = f"KeOps does not run here ({reason})."
    answers, once = {}, {}
    for name, run in contenders.items():
        run()  # compiles
        started = time.perf_counter()
        answers[name] = run()
        once[name] = time.perf_counter() - started
    for answer in answers.values():
        assert np.abs(answer - answers["kernpool"]).max() < (1e-9 if dtype == np.float64 else 2e-3) * np.ptp(value)
    hopeless = [name for name in once if name != "kernpool" and once[name] > 5 * min(once.values())]
    median = {name: once[name] for name in hopeless}
    median |= alternate({name: run for name, run in contenders.items() if name not in hopeless}, ROUNDS, pause=PAUSE)
    ours, missed, name = median["kernpool"], [], f"{columns} columns, {np.dtype(dtype)}"
    gain = min(seconds for name, seconds in median.items() if name != "kernpool") / ours
    share = N * N * (power + columns * product) / THREADS / ours
    bar = bars[columns][dtype == np.float32] if columns in bars else None
    if bar and gain < bar:
        missed.append(f"{name}: {gain:.2f} of {bar:g} times")
    if share < (least := SHARES.get(columns, 0.0)):
        missed.append(f"{name}: {share:.0%} of the limit, not {least:.0%}")
    rates = " | ".join(f"{N * N / median[name] / 1e9:.3f}" if name in median else "" for name in PEERS)
    bound = f"{share:.0%} | {least:.0%}" if least else f"{share:.0%} | "
    return f"| {columns} | {np.dtype(dtype)} | {rates} | {gain:.2f} | {bar or ''} | {bound} |", missed


PEERS = ("kernpool", "dense NumPy", "torch attention", "KeOps")


def benchmark(chosen: tuple[int, ...]) -> None:
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(THREADS)
    bits = 512 if vector_registers() == 32 else 256
    rows, sentences, notes, missed = [], [], {}, []
    limits = {dtype: limit(dtype) for dtype in (np.float64, np.float32)}
    for dtype, (power, product) in limits.items():
        sentences.append(
            f"The limit in {np.dtype(dtype)}, on one thread: {1e-9 / power:.2f}e9 powers of two per second, and "
            f"{1e-9 / product:.1f}e9 fused multiply-adds."
        )
        print(sentences[-1], flush=True)
    with threadpool_limits(THREADS, user_api="blas"):
        for columns in chosen or COLUMNS:
            for dtype in limits:
                line, less = row(columns, dtype, *limits[dtype], BARS[bits], notes)
                rows.append(line)
                missed += less
                print(line, flush=True)
    if not chosen:
        report(
            Path(__file__).stem.replace("_", "-") + ("" if bits == 512 else "-256"),
            f"# Brute force and the limits of the processor: {N} queries, {N} keys, Gaussian, {THREADS} threads, "
            f"vectors of {bits} bits: 1e9 pairs per second\n\n"
            f"| columns | type | {' | '.join(PEERS)} | times the fastest peer | target | share of the limit | "
            "target |\n"
            f"|{'---|' * 10}\n" + "\n".join(rows) + "\n\n" + "\n".join([*sentences, *notes.values()])
            + "\nThe limit is a power of two and one multiply-add per column and pair, nothing else.\n\n"
            f"Medians of {ROUNDS} alternating runs, a pause and an untimed run before each, arrays in to values out; "
            "one run of peers that take five times as long as the fastest. Answers agree (asserted).",
        )  # fmt: skip
    finish(missed)


if __name__ == "__main__":
    if "--avx2" in sys.argv:  # libraries read these once, before anything runs
        os.execve(
            sys.executable,
            [sys.executable, __file__, *(a for a in sys.argv[1:] if a != "--avx2")],
            os.environ | FOR_AVX2,
        )
    benchmark(tuple(map(int, sys.argv[1:])))
