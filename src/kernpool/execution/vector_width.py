"""Vector width of the processor, for estimates of run time; detected once, without loading a compiler."""

import os
from functools import cache


@cache
def vector_bits() -> int:
    """Return the width of vectors in compiled loops in bits: 512 with AVX-512, 256 elsewhere."""
    # NumPy knows what the processor has, and ``NUMBA_CPU_FEATURES`` overrules it, since that is what is compiled for.
    # ARM counts as 256: narrower vectors, but as many in flight.
    asked = os.environ.get("NUMBA_CPU_FEATURES")
    if asked is not None:
        return 512 if "+avx512f" in asked.split(",") else 256
    from numpy._core._multiarray_umath import __cpu_features__  # type: ignore[import-not-found]  # no public way tells

    return 512 if __cpu_features__.get("AVX512F") else 256
