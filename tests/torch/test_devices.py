"""What layers do on other devices, on the processor by the same code: blocks of queries, exact and in linear memory."""

import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the layers need the extra 'torch'")

from kernpool.torch import AttentionPooling, GaussianSimilarity, attention_pool

FORMS = {
    "shared": lambda _: GaussianSimilarity(1.0),
    "per feature": lambda columns: GaussianSimilarity([1.0 + 0.1 * a for a in range(columns)], form="per_feature"),
    "linear": lambda columns: GaussianSimilarity(form="linear", size=columns),
}
ROWS = 60
CONDITIONS = {
    "all pairs": {},
    "mask": {"attn_mask": torch.arange(ROWS)[:, None] % 3 != torch.arange(ROWS) % 3},
    "lengths": {"valid_lens": torch.arange(ROWS) // 2 + 1},
    "leave-one-out": {"exclude_self": True},
}


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("columns", [1, 4, 64])
def test_far_from_the_origin_blocks_are_as_precise_as_the_dense_layer(columns, form, condition, monkeypatch):
    """A thousand widths away; the Gaussian as a dot product loses four digits where rows spread over 100 widths."""
    monkeypatch.setattr("kernpool.torch.algorithms.BLOCK_BYTES", 4 * 7 * ROWS * columns)
    generator = torch.Generator().manual_seed(columns)
    spread = torch.logspace(0, 2, ROWS)[:, None] / columns**0.5
    inputs = [torch.randn(ROWS, columns, generator=generator) * spread + 1000.0 for _ in range(2)]
    inputs.append(torch.randn(ROWS, 2, generator=generator))

    def outcome(algorithm, dtype):
        leaves = [tensor.to(dtype).requires_grad_() for tensor in inputs]
        similarity = FORMS[form](columns).to(dtype)
        pooled = attention_pool(*leaves, similarity=similarity, algorithm=algorithm, **CONDITIONS[condition])
        torch.sin(pooled).sum().backward()
        return [
            part.detach().double() for part in (pooled, *(leaf.grad for leaf in (*leaves, *similarity.parameters())))
        ]

    right = outcome("dense", torch.float64)
    blocks, dense = (outcome(algorithm, torch.float32) for algorithm in ("blocks", "dense"))
    for exact, one, other in zip(right, blocks, dense, strict=True):
        # A single number, as the gradient by the width, may be right by chance, and is off by 2e-5 on some processors.
        rounding = (1e-5 if exact.numel() > 1 else 3e-5) * exact.abs().max()
        assert (one - exact).abs().max() <= 2 * (other - exact).abs().max() + rounding


PEAK = """
import re, sys
from pathlib import Path
import torch
from kernpool.torch import AttentionPooling, GaussianSimilarity
columns, rows = int(sys.argv[1]), int(sys.argv[2])
key = torch.rand(100_000, columns, generator=torch.Generator().manual_seed(0)).requires_grad_()
value, query = torch.sin(20 * key[:, :1]).detach(), key[:rows].detach().requires_grad_()
layer = AttentionPooling(GaussianSimilarity(0.1 * columns), algorithm="blocks")
layer(query[:2], key[:1000], value[:1000]).sum().backward()
in_mib = lambda field: int(re.search(rf"{field}:\\s+(\\d+) kB", Path("/proc/self/status").read_text()).group(1)) / 1024
Path("/proc/self/clear_refs").write_text("5")
before = in_mib("VmRSS")
layer(query, key, value).square().sum().backward()
assert torch.isfinite(key.grad).all()
print(in_mib("VmHWM") - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux forgets a peak of memory")
@pytest.mark.parametrize(("columns", "rows"), [(1, 150), (16, 20)])
def test_blocks_of_a_hundred_thousand_keys(columns, rows):
    """Memory of a block depends on keys and columns only, so some blocks of queries are enough to see it."""
    command = [sys.executable, "-c", PEAK, str(columns), str(rows)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 320


@pytest.mark.slow
def test_one_program_for_sizes_from_tens_to_thousands():
    """Compiled with sizes that change, mapped and in mixed precision: one layer, 4 x 9 to 1000 x 1000."""
    layer = AttentionPooling(GaussianSimilarity(0.5))
    generator = torch.Generator().manual_seed(0)

    def given(rows, keys):
        shapes = {"query": (rows, 2), "key": (keys, 2), "value": (keys, 1)}
        return {name: torch.rand(shape, generator=generator) for name, shape in shapes.items()}

    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for rows, keys in ((4, 9), (300, 300), (1000, 1000)):
        asked = given(rows, keys)
        expected = layer(**asked)
        torch.testing.assert_close(compiled(**asked), expected, rtol=1e-4, atol=1e-5)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            torch.testing.assert_close(layer(**asked).float(), expected, rtol=2e-2, atol=2e-2)
    batch = [torch.stack([tensor, 2 * tensor]) for tensor in given(4, 9).values()]
    dense = AttentionPooling(layer.similarity, algorithm="dense")
    torch.testing.assert_close(torch.vmap(dense)(*batch), layer(*batch))
