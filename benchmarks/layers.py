"""The torch layer, forward and backward, beside the dense layer, KeOps and torch's own attention.

python benchmarks/layers.py            everything, about ten minutes
python benchmarks/layers.py --quick    one round, and no report
"""

import math
import time
from pathlib import Path

import torch
from measure import alternate, finish, flags, in_process, report, table, tell
from torch.nn import MultiheadAttention, TransformerEncoderLayer
from torch.nn.functional import pad, scaled_dot_product_attention

from kernpool.torch import AttentionPooling, DotProductSimilarity, GaussianSimilarity, MultiheadPooling, attention_pool

THREADS, ROUNDS, ROWS = 2, 5, 10_000
MEMORY_BAR = 256  # MiB above the inputs
SMALL, SMALL_BAR, CALLS = (40, 200, 300), 1.3, 4000  # rows; times the time of the others; rows per measurement
# columns, rows for the dense layer (which is the quickest way at the last of them), width, targets
CASES = ((1, ROWS, 0.1, {"dense": 10, "KeOps": 4}), (16, 3000, 1.0, {"dense": 1}), (64, 1500, 2.0, {"dense": 0.9}))
AUGMENTED = ((16, 1.0, 1.3), (64, 2.0, 1.2))  # columns, width, target
DOT_PRODUCT_BAR = 1.2  # times the time of torch's own
MEMORY = """
import torch
from kernpool.torch import DotProductSimilarity, GaussianSimilarity, Request, attention_pool, choose_route
torch.set_num_threads(threads)
x = torch.rand(100_000, columns, generator=torch.Generator().manual_seed(0)).requires_grad_()
y = torch.sin(20 * x[:, :1]).detach()
options = {"similarity": GaussianSimilarity(width) if width else DotProductSimilarity(), "algorithm": algorithm}
small, queries = x[:rows_first].detach().requires_grad_(), x[:rows].detach().requires_grad_()
attention_pool(small[:10], small, y[:rows_first], **options).sum().backward()  # loads
attention_pool(small, small, y[:rows_first], **options).sum().backward()  # compiles
before = peak_from_here()
attention_pool(queries, x, y, **options).square().sum().backward()
tell(mebibytes("VmHWM:") - before, choose_route(Request.check(queries, x, y, **options)).way)
"""
# Batch, heads, rows, columns, value columns (1 as well), times by hand at most; the last two are calls of few rows.
SHAPES = (
    (8, 12, 128, 64, 1.2),
    (32, 8, 64, 32, 1.2),
    (2, 8, 512, 64, 1.2),
    (64, 4, 20, 8, 1.3),
    (1, 1, 300, 2, 1.3),
)
# Widths that rows are from the origin, and that they spread over.
SITUATIONS = {"": (0.0, 1.0), ",far": (1000.0, 1.0), ",narrow": (0.0, 100.0)}
PEAK_OF_SHAPE = """
import sys
import torch
sys.path.insert(0, folder)
from layers import leaves_of, module, run_of
torch.set_num_threads(1)
leaves = leaves_of(shape, values, offset, spread)
small = leaves_of((1, 1, 8, shape[3]), values, offset, spread)
run_of(module(name, 1.0), small)()
before = peak_from_here()
run_of(module(name, 1.0), leaves)()
tell(mebibytes("VmHWM:") - before)
"""
ENCODER = 8, 128, 512, 8, 1.3  # sequences, rows, columns, heads, times torch's own attention at most
# Of each route but the dense one: columns, width or None for dot products, queries. Blocks and dot products of all
# queries would take too long; they keep nothing for a query but its row, so some queries are enough.
PEAKS = (
    (1, 0.01, 100_000, "auto"),
    (16, 1.0, 100_000, "auto"),
    (16, None, 2000, "auto"),
    (16, None, 4000, "auto"),
    *((columns, 0.1 * columns, rows, "blocks") for columns, rows in ((1, 1000), (1, 2000), (16, 300), (16, 600))),
)


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


def products(query, key, value, inverse):
    center = key.detach().mean(-2, keepdim=True)
    query, key = (query - center) * inverse, (key - center) * inverse
    return torch.softmax(query @ key.mT - 0.5 * key.square().sum(-1).unsqueeze(-2), dim=-1) @ value


def fused(query, key, value, inverse):
    center, columns = key.detach().mean(-2, keepdim=True), value.shape[-1]
    query, key = (query - center) * inverse, (key - center) * inverse
    query, key = pad(query, (0, 1), value=1.0), torch.cat([key, -0.5 * key.square().sum(-1, keepdim=True)], -1)
    query, key, value = (pad(rows, (0, max(key.shape[-1], columns) - rows.shape[-1])) for rows in (query, key, value))
    return scaled_dot_product_attention(query, key, value, scale=1.0)[..., :columns]


def differences(query, key, value, inverse):
    distance = torch.cdist(query * inverse, key * inverse, compute_mode="donot_use_mm_for_euclid_dist")
    return torch.softmax(-0.5 * distance.square(), dim=-1) @ value


class ByHand(torch.nn.Module):
    """Pool by a Gaussian of a learnable width, in a few lines without checks or masks."""

    def __init__(self, pooled, width):
        super().__init__()
        self.pooled, self.log_width = pooled, torch.nn.Parameter(torch.tensor(math.log(width)))

    def forward(self, query, key, value):
        return self.pooled(query, key, value, torch.exp(-self.log_width))


BY_HAND = {"products": products, "fused": fused, "differences": differences}


def module(name, width):
    return ByHand(BY_HAND[name], width) if name in BY_HAND else AttentionPooling(GaussianSimilarity(width))


def leaves_of(shape, values, offset, spread):
    *batch, rows, columns = shape
    generator = torch.Generator().manual_seed(0)
    leaves = [torch.randn(*batch, rows, wide, generator=generator) for wide in (columns, columns, values)]
    leaves[:2] = [points * spread / columns**0.5 + offset for points in leaves[:2]]
    return [leaf.requires_grad_() for leaf in leaves]


def run_of(layer, leaves, calls=1):
    def run():
        for _ in range(calls):
            for leaf in leaves:
                leaf.grad = None
            layer.zero_grad()
            layer(*leaves).square().sum().backward()

    return run


def shapes(rounds, all_threads=(1, 2)):
    """Yield rows of the table of shapes that people train, and which of them miss their target."""
    for situation, (offset, spread) in SITUATIONS.items():
        for *shape, bar in SHAPES[:: 2 if situation else 1]:
            for values in (shape[-1],) if situation else (1, shape[-1]):
                leaves = leaves_of(shape, values, offset, spread)
                right = module("products", 1.0).double()(*(leaf.double() for leaf in leaves)).detach()
                layers = {name: module(name, 1.0) for name in ("ours", *BY_HAND)}
                errors = {name: (layer(*leaves).double() - right).abs().max().item() for name, layer in layers.items()}
                equal = [name for name in layers if errors[name] <= 3 * errors["ours"]]
                if len(equal) == 1:  # where windows are narrow, none has our digits
                    equal.append("differences")
                calls = max(1, 1_000_000 // math.prod(shape[:3] + shape[2:3]))
                ratios, best = [], ""
                for threads in all_threads:
                    torch.set_num_threads(threads)
                    runs = {name: run_of(layers[name], leaves, calls) for name in equal}
                    seconds = alternate(runs, rounds, time.process_time if threads == 1 else time.perf_counter)
                    own = seconds.pop("ours")
                    quickest = min(seconds, key=seconds.get)
                    best = best or quickest
                    ratios.append(own / seconds[quickest])
                    if threads == 1:
                        milliseconds = f"{1e3 * own / calls:.2f}"
                given = {"shape": shape, "values": values, "offset": offset, "spread": spread}
                folder = str(Path(__file__).parent)
                ours, theirs = (
                    in_process(PEAK_OF_SHAPE, folder=folder, name=name, **given)[0] for name in ("ours", best)
                )
                what = f"{'x'.join(map(str, shape))};{values}{situation}"
                yield (
                    tell(
                        what, best, milliseconds, "/".join(f"{ratio:.2f}" for ratio in ratios),
                        f"{errors['ours']:.1e}/{errors['differences']:.1e}", f"{ours:.0f}/{theirs:.0f}",
                    ),
                    [f"{what}, {best}: {ratios[0]:.2f} times"] if ratios[0] > bar else [],
                )  # fmt: skip


def encoder(rounds):
    """Return the time of a step of an encoder layer with Gaussian similarity, in steps of one with torch's own."""
    batch, rows, columns, heads, _ = ENCODER
    tokens, runs = torch.randn(batch, rows, columns, generator=torch.Generator().manual_seed(0)), {}
    for name in ("ours", "torch"):
        torch.manual_seed(0)
        layer = TransformerEncoderLayer(columns, heads, dropout=0.0, batch_first=True)
        if name == "ours":
            similarity = GaussianSimilarity((columns / heads) ** 0.5)
            layer.self_attn = MultiheadPooling(columns, heads, batch_first=True, similarity=similarity)
        runs[name] = run_of(layer, [tokens])
    seconds = alternate(runs, rounds, time.process_time)
    return seconds["ours"] / seconds["torch"]


def small_sizes():
    """Yield rows, names, our and their layer for small calls on one thread, as runs of many calls."""

    def calls(layer, rows, columns, values, **options):
        def pooled(*given):
            layer.zero_grad()
            found = layer(*given, **options)
            return found[0] if isinstance(found, tuple) else found

        run = step(pooled, columns, rows, None, values)
        return lambda: [run() for _ in range(CALLS // rows)]

    for rows in SMALL:
        heads = (kind(64, 4, batch_first=True) for kind in (MultiheadPooling, MultiheadAttention))
        ours, theirs = (calls(layer, rows, 64, 64, need_weights=False) for layer in heads)
        yield f"4 heads of 16 columns, {rows} rows", "MultiheadAttention", ours, theirs


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
        yield f"{columns} column{'s' * (columns > 1)}, {rows} rows", runs, bars
    for columns, width, bar in AUGMENTED:
        runs = {
            "auto": step(ours("auto", width), columns, ROWS, None),
            "augmented": step(augmented, columns, ROWS, width),
        }
        yield f"{columns} columns, {ROWS} rows", runs, {"augmented": bar}
    runs = {"auto": step(dot_product, 64, ROWS, None, 64), "torch": step(attention, 64, ROWS, None, 64)}
    yield f"dot product, 64 columns, {ROWS} rows", runs, {"torch": 1 / DOT_PRODUCT_BAR}


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
    torch.set_num_threads(1)
    small = []
    for what, name, ours, theirs in small_sizes():
        ours(), theirs()
        seconds = alternate({"ours": ours, "theirs": theirs}, 1 if quick else 8 * ROUNDS, time.process_time)
        ratio = seconds["ours"] / seconds["theirs"]
        small.append(tell(what, name, f"{ratio:.2f}", SMALL_BAR))
        missed += [f"{what}, {name}: {ratio:.2f} times"] if ratio > SMALL_BAR else []
    trained = []
    for row, misses in shapes(1 if quick else 2 * ROUNDS + 1):
        trained.append(row)
        missed += misses
    torch.set_num_threads(1)
    step_ratio = encoder(1 if quick else 2 * ROUNDS)
    missed += [f"encoder layer: {step_ratio:.2f} times"] if step_ratio > ENCODER[-1] else []
    peaks = []
    for columns, width, queries, algorithm in PEAKS[: 1 if quick else None]:
        given = {"columns": columns, "width": width, "rows": queries, "algorithm": algorithm}
        first = 1000 if algorithm == "blocks" or width is None else 10_000
        peak, way = in_process(MEMORY, timeout=600, threads=THREADS, rows_first=first, **given)
        tell(way, columns, queries, f"{peak:.0f} MiB")
        peaks.append(peak)
        missed += [f"{way}, {columns} columns: peak {peak:.0f} MiB"] if peak > MEMORY_BAR else []
    report(
        "layers",
        "# Torch layers",
        "Forward and backward, gradients for query, key, value and width, float32, one value "
        f"column, {THREADS} threads, Gaussian of a learnable width.",
        table("what | compared with | ours | theirs | times as fast | target", rows),
        "*dense* has all weights; *augmented* is torch's `scaled_dot_product_attention` of the Gaussian as a dot "
        "product.",
        "## Shapes of transformers",
        "Batch x heads x rows x columns; value columns. *By hand*: the quickest of three modules with our digits: "
        "centred products and softmax, these as fused attention, differences (`torch.cdist`). Rows spread over one "
        "width; *far*: 1e3 widths from the origin; *narrow*: over a hundred. Targets: 1.2, of the last two shapes 1.3.",
        table("shape | by hand | ms, 1 thread | times, threads 1/2 | error/of differences | MiB/of it", trained),
        f"A step of `TransformerEncoderLayer`, 8x128x512, 8 heads, with `MultiheadPooling` of Gaussian similarity: "
        f"{step_ratio:.2f} times torch's (target: {ENCODER[-1]}).",
        "## Small sizes",
        "One thread, processor time.",
        table("what | compared with | times their time | at most", small),
        "Peak memory above inputs, forward and backward, 100 000 keys, by route: "
        f"{min(peaks):.0f} to {max(peaks):.0f} MiB (target: {MEMORY_BAR}).",
        "No accelerator was available: nothing here ran on one.",
        keep=not quick,
    )
    finish(missed)


if __name__ == "__main__":
    main()
