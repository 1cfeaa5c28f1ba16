"""What layers do on other devices, on the processor by the same code: blocks of queries, exact and in linear memory."""

import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the layers need the extra 'torch'")

from kernpool.torch import AttentionPooling, GaussianSimilarity

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
