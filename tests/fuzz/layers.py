"""The operator of torch: values and gradients against the same numbers without torch."""

from dataclasses import replace
from importlib.util import find_spec

import numpy as np

from kernpool import choose
from kernpool.pooling import rounding_bound
from tests.fuzz.gradients import sizes
from tests.fuzz.report import LEAST
from tests.support.problems import EVERYTHING


def layers(case, report):
    if find_spec("torch") is None:
        return
    import torch

    from kernpool.torch import KernelSimilarity, attention_pool

    problem = case.problem()
    centered = problem.without_center()
    plan = choose(centered, "brute")
    state = plan.reduce(centered)
    if problem.degree or problem.similarity.kernel.profile_name in ("boxcar", "constant"):
        return  # slopes of thin windows are anything; flat kernels have none
    exact = np.float64 == case.key.dtype
    tensors = [torch.from_numpy(array.copy()).requires_grad_() for array in (case.query, case.key, case.value)]
    similarity = KernelSimilarity(
        case.options["kernel"],
        case.options["bandwidth"],
        dtype=tensors[0].dtype,
    )
    h = similarity.bandwidth
    if h != case.options["bandwidth"]:  # the layer keeps a logarithm, which rounds
        problem = case.problem(bandwidth=h)
        centered = problem.without_center()
        state = choose(centered, "brute").reduce(centered)
    found = attention_pool(*tensors, similarity=similarity)
    target = np.where(state.denominator[:, None] > 0, state.finalize("zero") + problem.value_center, 0.0)
    report.saw("torch", len(target))
    off = np.abs(found.detach().double().numpy() - target)
    base = rounding_bound(replace(centered, dtype=case.key.dtype), state)
    allowed = 4.0 * base + (0 if exact else 2e-6) * np.abs(target) + 2e-14 * np.abs(target) + LEAST
    if (bad := np.flatnonzero(np.any(~(off <= allowed), axis=1))).size:
        report.wrong("torch", bad, f"{bad.size} of {len(off)} queries are off by {np.nanmax(off[bad]):.3g}")
    cotangent = case.generator().normal(size=target.shape)
    found.backward(torch.from_numpy(cotangent).to(found.dtype))
    right = choose(centered, "brute").pullback(centered, state, cotangent, EVERYTHING)
    scale = sizes(centered, state, right, cotangent)
    for name, tensor in zip(("query", "key", "value"), tensors, strict=True):
        mine, expected = tensor.grad.double().numpy(), getattr(right, name)
        report.saw("torch gradients", len(mine))
        off = np.abs(mine - expected)
        allowed = scale[name] + (0.0 if exact else 1e-5 * np.abs(expected).max(axis=0))
        if (bad := np.flatnonzero(np.any(~(off <= allowed), axis=1))).size:
            report.wrong(
                "torch", [], f"gradients by {name}: {bad.size} rows are off by up to {np.nanmax(off[bad]):.3g}; row "
                f"{bad[0]}: {mine[bad[0]]} for {expected[bad[0]]}"
            )  # fmt: skip
