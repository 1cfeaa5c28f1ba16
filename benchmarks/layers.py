"""The torch layer, forward and backward, beside the dense layer, KeOps and torch's own attention.

python benchmarks/layers.py            everything, about five minutes
python benchmarks/layers.py --quick    one round
"""

import copy
import subprocess
import sys

import torch
from measure import alternate, finish, report

from kernpool.torch import DotProductSimilarity, GaussianSimilarity, attention_pool

THREADS = 2
ROUNDS = 5
ROWS = 10_000
ACCURACY_ROWS, SEEDS = 500, 10
PARTS = ("pooled", "query", "key", "value", "width")
ERROR_BAR = 3.0  # times the error of the dense layer; 2 before that layer centered its values
DIFFERENCE_BAR = 1e-6
MEMORY_BAR = 256  # MiB above the inputs
# columns, rows for the dense layer (whose differences would need 26 GB at 10 000 x 10 000 x 64), width, targets
CASES = ((1, 10_000, 0.1, {"dense": 10, "KeOps": 4}), (16, 3000, 1.0, {"dense": 3}), (64, 1500, 2.0, {"dense": 2.5}))
AUGMENTED = {16: 1.3, 64: 1.2}
DOT_PRODUCT_BAR = 1.2  # times the time of torch's own
MEMORY = """
import re, torch
from kernpool.torch import GaussianSimilarity, attention_pool
def in_mib(field):
    return int(re.search(field + r":\\s+(\\d+) kB", open("/proc/self/status").read()).group(1)) / 1024
torch.set_num_threads({threads})
generator = torch.Generator().manual_seed(0)
x = torch.rand(100_000, {columns}, generator=generator).requires_grad_()
y = torch.sin(20 * x[:, :1]).detach()
similarity = GaussianSimilarity({width})
small = x[:10_000].detach()
attention_pool(small, small, y[:10_000], similarity=similarity, exclude_self=True).sum().backward()  # loads, compiles
open("/proc/self/clear_refs", "w").write("5")  # the peak starts anew
before = in_mib("VmRSS")
attention_pool(x, x, y, similarity=similarity, exclude_self=True).square().sum().backward()
print(in_mib("VmHWM") - before)
"""


def tensors(columns: int, rows: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(columns)
    shapes = ((rows, columns), (rows, columns), (rows, 1))
    return [torch.rand(shape, generator=generator).requires_grad_() for shape in shapes]


def clear(*parts) -> None:
    for part in parts:
        part.grad = None


def step(columns, rows, width, algorithm):
    """Forward and backward, with gradients for query, key, value and width."""
    inputs, similarity = tensors(columns, rows), GaussianSimilarity(width)

    def run():
        clear(*inputs, *similarity.parameters())
        attention_pool(*inputs, similarity=similarity, algorithm=algorithm).square().sum().backward()

    return run


def keops_step(columns, rows, width):
    import pykeops
    from pykeops.torch import LazyTensor

    pykeops.set_verbose(False)
    (query, key, value), log_width = tensors(columns, rows), torch.tensor(float(width)).log().requires_grad_()

    def run():
        clear(query, key, value, log_width)
        scale = torch.exp(-log_width)
        squared = ((LazyTensor((query * scale)[:, None, :]) - LazyTensor((key * scale)[None, :, :])) ** 2).sum(-1)
        weight = (-0.5 * squared).exp()
        both = torch.cat([torch.ones_like(value), value], dim=1)
        sums = weight @ both
        (sums[:, 1] / sums[:, 0]).square().sum().backward()

    return run


def augmented_step(columns, rows, width):
    """The Gaussian as a dot product: one more column, minus half of the squared key."""
    (query, key, value), log_width = tensors(columns, rows), torch.tensor(float(width)).log().requires_grad_()

    def run():
        clear(query, key, value, log_width)
        scale = torch.exp(-log_width)
        center = key.detach().mean(dim=0)
        q, k = (query - center) * scale, (key - center) * scale
        q = torch.cat([q, torch.ones_like(q[:, :1])], dim=1)
        k = torch.cat([k, -0.5 * k.square().sum(dim=1, keepdim=True)], dim=1)
        wide = torch.nn.functional.pad(value, (0, k.shape[1] - 1))
        pooled = torch.nn.functional.scaled_dot_product_attention(
            q[None, None], k[None, None], wide[None, None], scale=1.0
        )
        pooled[0, 0, :, 0].square().sum().backward()

    return run


def dot_product_steps(columns, rows):
    (query, key, _), value = tensors(columns, rows), torch.rand(rows, columns).requires_grad_()

    def ours():
        clear(query, key, value)
        attention_pool(query, key, value, similarity=DotProductSimilarity()).square().sum().backward()

    def theirs():
        clear(query, key, value)
        pooled = torch.nn.functional.scaled_dot_product_attention(query[None, None], key[None, None], value[None, None])
        pooled.square().sum().backward()

    return {"ours": ours, "torch": theirs}


def outcome(inputs, similarity, slope, algorithm) -> list[torch.Tensor]:
    """What a layer pools, and its gradients, in double precision."""
    leaves = [part.detach().clone().requires_grad_() for part in inputs]
    similarity = copy.deepcopy(similarity).to(leaves[0].dtype)
    pooled = attention_pool(*leaves, similarity=similarity, algorithm=algorithm)
    pooled.backward(slope.to(pooled.dtype))
    return [part.detach().double() for part in (pooled, *(part.grad for part in (*leaves, *similarity.parameters())))]


def errors(columns, width, dtype) -> list[float]:
    """Largest errors of pooled values and gradients beside those of the dense layer, root mean squares over seeds."""
    squares = torch.zeros(2, 5, dtype=torch.float64)
    slope = torch.linspace(-1, 1, ACCURACY_ROWS)[:, None].to(dtype)
    for seed in range(SEEDS):
        generator = torch.Generator().manual_seed(seed)
        inputs = [torch.rand(ACCURACY_ROWS, wide, generator=generator).to(dtype) for wide in (columns, columns, 1)]
        similarity = GaussianSimilarity(width).to(dtype)
        right = outcome([part.double() for part in inputs], similarity, slope, "dense")
        for row, algorithm in zip(squares, ("fused", "dense"), strict=True):
            found = outcome(inputs, similarity, slope, algorithm)
            row += torch.stack([(a - b).abs().max() / b.abs().max() for a, b in zip(found, right, strict=True)]) ** 2
    return (squares[0] / squares[1]).sqrt().tolist()


def dot_product_difference(columns) -> float:
    """Largest difference from torch's own attention of values and gradients, beside the largest of each."""
    found = {}
    for name in ("ours", "torch"):
        query, key, value = (torch.rand(2000, columns, generator=torch.Generator().manual_seed(i)) for i in range(3))
        leaves = [part.requires_grad_() for part in (query, key, value)]
        if name == "ours":
            pooled = attention_pool(*leaves, similarity=DotProductSimilarity())
        else:
            pooled = torch.nn.functional.scaled_dot_product_attention(*(part[None, None] for part in leaves))[0, 0]
        pooled.square().sum().backward()
        found[name] = [pooled.detach(), *(part.grad for part in leaves)]
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(found["ours"], found["torch"], strict=True))


def peak_memory(columns: int, width: float) -> float:
    """Mebibytes at the peak of a step above what there was before it."""
    code = MEMORY.format(threads=THREADS, columns=columns, width=width)
    return float(subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout)


def benchmark(quick: bool) -> None:
    torch.set_num_threads(THREADS)
    rows, missed, rounds = [], [], 1 if quick else ROUNDS

    def compare(what: str, steps: dict, bars: dict[str, float]) -> None:
        for run in steps.values():
            run()  # compiles
        seconds = alternate(steps, rounds)
        ours = seconds.pop("ours")
        for name, theirs in seconds.items():
            rows.append(f"| {what} | {name} | {ours:.3f} s | {theirs:.3f} s | {theirs / ours:.2f} | {bars[name]:.2g} |")
            print(rows[-1], flush=True)
            if theirs / ours < bars[name]:
                missed.append(f"{what}, {name}: {theirs / ours:.2f} times")

    for columns, dense_rows, width, bars in CASES:
        steps = {"ours": step(columns, dense_rows, width, "auto"), "dense": step(columns, dense_rows, width, "dense")}
        if "KeOps" in bars:
            try:
                keops_step(columns, 100, width)()
                steps["KeOps"] = keops_step(columns, dense_rows, width)
            except Exception as error:  # whatever its compiler says
                print(f"KeOps does not build here: {error}")
        compare(f"{columns} column{'s' * (columns > 1)}, n = m = {dense_rows}", steps, bars)
    for columns, bar in AUGMENTED.items():
        width = {16: 1.0, 64: 2.0}[columns]
        steps = {"ours": step(columns, ROWS, width, "auto"), "augmented": augmented_step(columns, ROWS, width)}
        compare(f"{columns} columns, n = m = {ROWS}", steps, {"augmented": bar})
    compare(f"dot product, 64 columns, n = m = {ROWS}", dot_product_steps(64, ROWS), {"torch": 1 / DOT_PRODUCT_BAR})
    accuracy = []
    for columns, width in ((1, 0.1), (16, 1.0), (64, 2.0)):
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            ratios = dict(zip(PARTS, errors(columns, width, dtype), strict=True))
            name = str(dtype).removeprefix("torch.")
            accuracy.append("| " + " | ".join([str(columns), name, *(f"{r:.2f}" for r in ratios.values())]) + " |")
            print(accuracy[-1], flush=True)
            missed += [f"{columns} columns, {name}, {part}: {r:.1f}" for part, r in ratios.items() if r > ERROR_BAR]
    difference = dot_product_difference(64)
    missed += [f"dot product differs by {difference:.1e}"] if difference > DIFFERENCE_BAR else []
    peaks = {columns: peak_memory(columns, width) for columns, width in ((1, 0.01), (16, 1.0))}
    missed += [f"peak memory {peak:.0f} MiB" for peak in peaks.values() if peak > MEMORY_BAR]
    head = ["", " what ", " beside ", " ours ", " theirs ", " times as fast ", " target ", ""]
    text = (
        "# Running time of torch layers\n\nForward and backward, gradients for query, key, value and width, "
        "float32, one value "
        f"column, {THREADS} threads, Gaussian of a learnable width.\n\n"
        + "\n".join(["|".join(head), "|---" * (len(head) - 2) + "|", *rows])
        + "\n\n*dense* is the plain layer with all weights; *augmented* is torch's `scaled_dot_product_attention` with "
        "the Gaussian written as a dot product, by one more column; its values are padded to the width of the keys, "
        "without which torch keeps all weights.\n\n"
        "## Errors beside those of the dense layer\n\nLargest error of pooled values and of each gradient, against the "
        f"dense layer in float64 on the same inputs, {ACCURACY_ROWS} queries and keys: that of the operator divided by "
        f"that of the dense layer, root mean squares over {SEEDS} seeds (target {ERROR_BAR:g}).\n\n"
        "| columns | precision | pooled | query | key | value | width |\n|---|---|---|---|---|---|---|\n"
        + "\n".join(accuracy)
        + "\n\n"
        f"Dot products, 64 columns, against torch's own attention: values and gradients differ by at most "
        f"{difference:.1e} of the largest (target {DIFFERENCE_BAR:g}).\n\n"
        f"## Memory\n\nPeak memory above inputs, forward and backward, n = m = 100 000: "
        + ", ".join(f"{peak:.0f} MiB in {columns} column{'s' * (columns > 1)}" for columns, peak in peaks.items())
        + f" (target {MEMORY_BAR})."
    )
    report("layers", text, keep=not quick)
    finish(missed)


if __name__ == "__main__":
    benchmark("--quick" in sys.argv)
