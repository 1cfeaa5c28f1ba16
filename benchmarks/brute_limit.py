"""Brute force beside the fastest exact peers, and beside a bare loop of powers of two; n = m = 10 000.

python benchmarks/brute_limit.py         everything, three minutes, and the report
python benchmarks/brute_limit.py 1 10    only these numbers of columns, printed
"""

import sys
import time
from pathlib import Path

import numpy as np
from cases import Case
from measure import alternate, finish, report
from peers import keops

from kernpool import pool
from kernpool.execution.compiling import loop, ordered_loop

N, ROUNDS, THREADS = 10_000, 5, 2
BARS = {1: 3.0, 3: 3.0, 10: 2.5, 64: 1.5}
SHARE = 0.6  # of the rate of the bare loop
A0, A1, A2, A3, A4, A5 = (
    np.float32(a) for a in (1.00000007, 0.693146967, 0.240221197, 0.0555071328, 0.00967554139, 0.00132764715)
)
ROUND, FAINTEST = np.float32(1.5 * 2.0**23), np.float32(125.0)


@ordered_loop
def shortest_64(s):
    """2**-s with the fewest operations: nothing follows it, so a long chain of them does no harm."""
    s = s if s < 1021.0 else 1021.0
    rounded = 1.5 * 2.0**52 - s
    f = -(s + (rounded - 1.5 * 2.0**52))
    p = 7.0372890723202395e-9
    p = p * f + 1.0208537844778034e-7
    p = p * f + 1.3215662773751729e-6
    p = p * f + 1.5252658116852302e-5
    p = p * f + 1.540352996125744e-4
    p = p * f + 0.0013333558228561023
    p = p * f + 0.009618129108034489
    p = p * f + 0.05550410866445884
    p = p * f + 0.24022650695908768
    p = p * f + 0.6931471805599497
    p = p * f + 1.0
    return np.int64(np.float64(p).view(np.int64) + (np.float64(rounded).view(np.int64) << np.int64(52))).view(
        np.float64
    )


@ordered_loop
def shortest_32(s):
    """Do the same in float32."""
    s = s if s < FAINTEST else FAINTEST
    rounded = ROUND - s
    f = -(s + (rounded - ROUND))
    p = ((((A5 * f + A4) * f + A3) * f + A2) * f + A1) * f + A0
    return np.int32(np.float32(p).view(np.int32) + (np.float32(rounded).view(np.int32) << np.int32(23))).view(
        np.float32
    )


@loop
def bare_64(s, repeats):
    total = 0.0
    for _ in range(repeats):
        for j in range(s.size):
            total += shortest_64(s[j])
    return total


@loop
def bare_32(s, repeats):
    total = 0.0
    for _ in range(repeats):
        part = s[0]
        for j in range(s.size):
            part += shortest_32(s[j])
        total += part
    return total


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


def row(columns, dtype, notes) -> tuple[str, float]:
    """Measure one number of columns in one float width; return a line of the table and the gain."""
    generator, bandwidth = np.random.default_rng(columns), 0.3 * columns**0.5
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
        started = time.perf_counter()
        answers[name] = run()
        once[name] = time.perf_counter() - started
    for answer in answers.values():
        assert np.abs(answer - answers["kernpool"]).max() < (1e-9 if dtype == np.float64 else 2e-3) * np.ptp(value)
    hopeless = [name for name in once if name != "kernpool" and once[name] > 5 * min(once.values())]
    median = {name: once[name] for name in hopeless}
    median |= alternate({name: run for name, run in contenders.items() if name not in hopeless}, ROUNDS)
    gain = min(seconds for name, seconds in median.items() if name != "kernpool") / median["kernpool"]
    rates = " | ".join(f"{N * N / median[name] / 1e9:.3f}" if name in median else "" for name in PEERS)
    return f"| {columns} | {np.dtype(dtype)} | {rates} | {gain:.1f} | {BARS[columns]:g} |", gain


def share(dtype) -> tuple[str, float]:
    """Measure brute force in one column on one thread beside the bare loop."""
    generator = np.random.default_rng(1)
    query, key, value = (generator.normal(size=N).astype(dtype) for _ in range(3))
    bare, s = (bare_64 if dtype == np.float64 else bare_32), np.linspace(0, 20, 512).astype(dtype)
    contenders = {
        "kernpool": lambda: pool(query, key, value, bandwidth=0.3, n_jobs=1, algorithm="brute"),
        "bare": lambda: bare(s, N * N // s.size),
    }
    for run in contenders.values():
        run()
    median = alternate(contenders, ROUNDS)
    reached = median["bare"] / median["kernpool"]
    return (
        f"The bare loop of powers of two makes {N * N / median['bare'] / 1e9:.2f}e9 per second and thread in "
        f"{np.dtype(dtype)}; brute force in one column reaches {reached:.0%} of it (bar: {SHARE:.0%})."
    ), reached


PEERS = ("kernpool", "dense NumPy", "torch attention", "KeOps")


def benchmark(chosen: tuple[int, ...]) -> None:
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(THREADS)
    rows, shares, notes, missed = [], [], {}, []
    with threadpool_limits(THREADS, user_api="blas"):
        for columns in chosen:
            for dtype in (np.float64, np.float32):
                line, gain = row(columns, dtype, notes)
                rows.append(line)
                if gain < BARS[columns]:
                    missed.append(f"{columns} columns, {np.dtype(dtype)}: {gain:.1f} of {BARS[columns]:g} times")
                print(line, flush=True)
                if columns == 1:
                    sentence, reached = share(dtype)
                    shares.append(sentence)
                    if reached < SHARE:
                        missed.append(f"{reached:.0%} of the bare loop in {np.dtype(dtype)}, not {SHARE:.0%}")
                    print(sentence, flush=True)
    if tuple(chosen) == tuple(BARS):
        report(
            Path(__file__).stem.replace("_", "-"),
            f"# {N} queries, {N} keys, Gaussian, {THREADS} threads: 1e9 pairs per second\n\n"
            f"| columns | type | {' | '.join(PEERS)} | times the fastest peer | bar |\n"
            "|---|---|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n\n" + "\n".join([*shares, *notes.values()])
            + f"\n\nMedians of {ROUNDS} alternating runs, arrays in to values out; one run of peers "
            "that take five times as long as the fastest. Answers agree (asserted).",
        )  # fmt: skip
    finish(missed)


if __name__ == "__main__":
    benchmark(tuple(map(int, sys.argv[1:])) or tuple(BARS))
