"""The torch layer, forward and backward, beside the dense layer, KeOps and torch's own attention.

python benchmarks/layers.py            everything, about five minutes
python benchmarks/layers.py --quick    one round, and no report
"""

import torch
from measure import alternate, finish, flags, in_process, report, table, tell
from torch.nn.functional import pad, scaled_dot_product_attention

from kernpool.torch import DotProductSimilarity, GaussianSimilarity, attention_pool

THREADS, ROUNDS, ROWS = 2, 5, 10_000
MEMORY_BAR = 256  # MiB above the inputs
# columns, rows for the dense layer (whose differences would need 26 GB at 10 000 x 10 000 x 64), width, targets
CASES = ((1, ROWS, 0.1, {"dense": 10, "KeOps": 4}), (16, 3000, 1.0, {"dense": 3}), (64, 1500, 2.0, {"dense": 2.5}))
AUGMENTED = ((16, 1.0, 1.3), (64, 2.0, 1.2))  # columns, width, target
DOT_PRODUCT_BAR = 1.2  # times the time of torch's own
MEMORY = """
import torch
from kernpool.torch import GaussianSimilarity, attention_pool
torch.set_num_threads(threads)
x = torch.rand(100_000, columns, generator=torch.Generator().manual_seed(0)).requires_grad_()
y = torch.sin(20 * x[:, :1]).detach()
similarity = GaussianSimilarity(width)
small = x[:10_000].detach()
attention_pool(small, small, y[:10_000], similarity=similarity, exclude_self=True).sum().backward()  # loads, compiles
before = peak_from_here()
attention_pool(x, x, y, similarity=similarity, exclude_self=True).square().sum().backward()
tell(mebibytes("VmHWM:") - before)
"""


def step(pooled, columns: int, rows: int, width: float | None, values: int = 1):
    """Forward and backward, with gradients for query, key, value and, if there is one, the logarithm of a width."""
    generator = torch.Generator().manual_seed(columns)
    leaves = [torch.rand(rows, wide, generator=generator) for wide in (columns, columns, values)]
    leaves += [] if width is None else [torch.tensor(float(width)).log()]
    for leaf in leaves:
        leaf.requires_grad_()

    def run():
        for leaf in leaves:
            leaf.grad = None
        pooled(*leaves).square().sum().backward()

    return run


def ours(algorithm: str, width: float):
    similarity = GaussianSimilarity(width)

    def pooled(query, key, value):
        similarity.zero_grad()
        return attention_pool(query, key, value, similarity=similarity, algorithm=algorithm)

    return pooled


def keops(query, key, value, log_width):
    import pykeops
    from pykeops.torch import LazyTensor

    pykeops.set_verbose(False)
    scale = torch.exp(-log_width)
    squared = ((LazyTensor((query * scale)[:, None, :]) - LazyTensor((key * scale)[None, :, :])) ** 2).sum(-1)
    sums = (-0.5 * squared).exp() @ torch.cat([torch.ones_like(value), value], dim=1)
    return sums[:, 1] / sums[:, 0]


def attention(query, key, value, **options):
    return scaled_dot_product_attention(query[None, None], key[None, None], value[None, None], **options)


def augmented(query, key, value, log_width):
    """The Gaussian as a dot product: one more column, minus half of the squared key."""
    scale, center = torch.exp(-log_width), key.detach().mean(dim=0)
    q, k = (query - center) * scale, (key - center) * scale
    q = torch.cat([q, torch.ones_like(q[:, :1])], dim=1)
    k = torch.cat([k, -0.5 * k.square().sum(dim=1, keepdim=True)], dim=1)
    return attention(q, k, pad(value, (0, k.shape[1] - 1)), scale=1.0)[0, 0, :, 0]


def dot_product(query, key, value):
    return attention_pool(query, key, value, similarity=DotProductSimilarity())


def comparisons():
    """Yield what is compared, ours and others by name, and the targets of these."""
    for columns, rows, width, bars in CASES:
        runs = {name: step(ours(name, width), columns, rows, None) for name in ("auto", "dense")}
        if "KeOps" in bars:
            try:
                step(keops, columns, 100, width)()
                runs["KeOps"] = step(keops, columns, rows, width)
            except Exception as error:  # whatever its compiler says
                print(f"KeOps does not build here: {error}")
        yield f"{columns} column{'s' * (columns > 1)}, n = m = {rows}", runs, bars
    for columns, width, bar in AUGMENTED:
        runs = {
            "auto": step(ours("auto", width), columns, ROWS, None),
            "augmented": step(augmented, columns, ROWS, width),
        }
        yield f"{columns} columns, n = m = {ROWS}", runs, {"augmented": bar}
    runs = {"auto": step(dot_product, 64, ROWS, None, 64), "torch": step(attention, 64, ROWS, None, 64)}
    yield f"dot product, 64 columns, n = m = {ROWS}", runs, {"torch": 1 / DOT_PRODUCT_BAR}


def main() -> None:
    quick, rows, missed = flags(__doc__, "quick").quick, [], []
    torch.set_num_threads(THREADS)
    for what, runs, bars in comparisons():
        for run in runs.values():
            run()  # compiles
        seconds = alternate(runs, 1 if quick else ROUNDS)
        own = seconds.pop("auto")
        for name, theirs in seconds.items():
            times = f"{own:.3f} s", f"{theirs:.3f} s", f"{theirs / own:.2f}"
            rows.append(tell(what, name, *times, f"{bars[name]:.2g}"))
            missed += [f"{what}, {name}: {theirs / own:.2f} times"] if theirs / own < bars[name] else []
    widths = {1: 0.01, 16: 1.0}
    peaks = {d: in_process(MEMORY, threads=THREADS, columns=d, width=width)[0] for d, width in widths.items()}
    missed += [f"peak memory {peak:.0f} MiB" for peak in peaks.values() if peak > MEMORY_BAR]
    told = ", ".join(f"{peak:.0f} MiB in {columns} column{'s' * (columns > 1)}" for columns, peak in peaks.items())
    report(
        "layers",
        "# Running time of torch layers",
        "Forward and backward, gradients for query, key, value and width, float32, one value "
        f"column, {THREADS} threads, Gaussian of a learnable width.",
        table("what | beside | ours | theirs | times as fast | target", rows),
        "*dense* is the plain layer with all weights; *augmented* is torch's `scaled_dot_product_attention` with "
        "the Gaussian written as a dot product, by one more column; its values are padded to the width of the keys, "
        "without which torch keeps all weights.",
        "## Memory",
        f"Peak memory above inputs, forward and backward, n = m = 100 000: {told} (target {MEMORY_BAR}).",
        keep=not quick,
    )
    finish(missed)


if __name__ == "__main__":
    main()
