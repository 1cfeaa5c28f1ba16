"""Brute force beside the fastest exact peers, and beside a bare loop of powers of two; n = m = 10 000."""

import numpy as np
from measure import alternate, report

from kernpool import pool
from kernpool.algorithms.compiling import loop
from kernpool.algorithms.exponential import exp2_minus_32, exp2_minus_64

N, ROUNDS = 10_000, 5
BARS = {1: 3.0, 3: 3.0, 10: 2.5, 64: 1.5}


@loop
def bare_64(s, repeats):
    total = 0.0
    for _ in range(repeats):
        for j in range(s.size):
            total += exp2_minus_64(s[j])
    return total


@loop
def bare_32(s, repeats):
    total = 0.0
    for _ in range(repeats):
        part = s[0]
        for j in range(s.size):
            part += exp2_minus_32(s[j])
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


def benchmark() -> None:
    import torch
    from threadpoolctl import threadpool_limits

    generator, rows, shares = np.random.default_rng(0), [], []
    for columns in BARS:
        bandwidth = 0.3 * columns**0.5
        doubles = [generator.normal(size=s) for s in ((N, columns), (N, columns), (N,))]
        for dtype in (np.float64, np.float32):
            query, key, value = (array.astype(dtype) for array in doubles)
            for threads in (1, 2):
                torch.set_num_threads(threads)
                with threadpool_limits(threads, user_api="blas"):
                    contenders = {
                        "kernpool": lambda t=threads, a=(query, key, value), h=bandwidth: pool(
                            *a, bandwidth=h, n_jobs=t, algorithm="brute"
                        ),
                        "NumPy": dense(query, key, value, bandwidth),
                        "torch": attention(query, key, value, bandwidth),
                    }
                    answers = {name: run() for name, run in contenders.items()}
                    for answer in answers.values():
                        wanted = 1e-9 if dtype == np.float64 else 2e-3
                        assert np.abs(answer - answers["kernpool"]).max() < wanted * np.ptp(value)
                    if columns == 1 and threads == 1:
                        bare, s = (bare_64 if dtype == np.float64 else bare_32), np.linspace(0, 20, 512).astype(dtype)
                        bare(s, 1)
                        contenders["bare"] = lambda bare=bare, s=s: bare(s, N * N // 512)
                    median = alternate(contenders, ROUNDS)
                if "bare" in median:
                    shares.append(
                        f"The bare loop of powers of two makes {N * N / median['bare'] / 1e9:.2f}e9 per second in "
                        f"{np.dtype(dtype)}; brute force in one column reaches "
                        f"{median['bare'] / median['kernpool']:.0%} of it (bar: 60 %)."
                    )
                gain = min(median["NumPy"], median["torch"]) / median["kernpool"]
                rates = " | ".join(f"{N * N / median[name] / 1e9:.3f}" for name in ("kernpool", "NumPy", "torch"))
                rows.append(f"| {columns} | {np.dtype(dtype)} | {threads} | {rates} | {gain:.1f} | {BARS[columns]:g} |")
                print(rows[-1], flush=True)
    table = "\n".join(rows)
    report(
        "brute-limit",
        f"# {N} queries, {N} keys, Gaussian: 1e9 pairs per second\n\n"
        "| columns | type | threads | kernpool | dense NumPy | torch attention | times the faster peer | bar |\n"
        f"|---|---|---|---|---|---|---|---|\n{table}\n\n" + "\n".join(shares) + f"\n\nMedians of {ROUNDS} alternating "
        "runs, arrays in to values out. Answers agree (asserted).",
    )


if __name__ == "__main__":
    benchmark()
