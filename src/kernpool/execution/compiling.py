"""The only place that states how loops are compiled.

The flags let sums be reordered, which vectorises them, and keep what the state relies on: infinities and NaN. So never
``fastmath=True``. ``parallel=True`` is out as well: its default threading layer aborts the process when two Python
threads enter it, and no interrupt gets through; threads are Python threads over blocks that release the GIL.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit, types
from numba.extending import intrinsic, overload

from kernpool.execution.loop_cache import LoopCache, closed_over

Function = TypeVar("Function", bound=Callable[..., Any])

PACKAGE = Path(__file__).parents[1]
LOOPS = "loops"  # compiled functions live in folders of this name, and nowhere else


def compiled_sources(package: Path) -> list[Path]:
    """Return all files that compiled code may come from: those in folders named ``loops``, at any depth, and this one.

    Parameters
    ----------
    package : Path
        Where to look.

    Returns
    -------
    list of Path
        In a fixed order.
    """
    return [*sorted(package.rglob(f"{LOOPS}/*.py")), Path(__file__)]


def digest_of(sources: list[Path]) -> str:
    """Return one digest of all the sources, which identifies their version.

    Parameters
    ----------
    sources : list of Path
        Files.

    Returns
    -------
    str
        Hexadecimal digits.
    """
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


_SOURCES = digest_of(compiled_sources(PACKAGE))
_FLAGS = {"contract", "reassoc", "arcp", "nsz"}


def _compile(function: Function, flags: set[str] | bool, **options: Any) -> Function:
    if Path(function.__code__.co_filename).parent.name != LOOPS:
        raise ValueError(
            f"{function.__module__}.{function.__qualname__} would be compiled outside a folder named {LOOPS!r}, so the "
            "cache on disk would not know when it changes; move it into one"
        )
    # Numba reuses a cached loop as long as the file that holds it has not changed, even if a function that it calls, in
    # another file, has. The digest of all sources in the name of the cache entry prevents that.
    function.__qualname__ += f"_{_SOURCES}"
    # Numba tells specialisations of one source apart by a number, which starts anew in every process, and a process may
    # load what several have compiled: what they close over is in their names.
    if function.__closure__ is not None:
        function.__qualname__ += f"_{hashlib.sha256(closed_over(function).encode()).hexdigest()[:12]}"
    # Nothing calls them from C, so that wrapper is not compiled.
    options |= {"nogil": True, "error_model": "numpy", "fastmath": flags, "no_cfunc_wrapper": True}
    compiled = njit(**options)(function)
    with suppress(RuntimeError):  # no writable place for the cache: compile in every process instead of failing
        compiled._cache = LoopCache(function)
    return cast(Function, compiled)


def part(function: Function) -> Function:
    """Compile a part of loops, which is called by other compiled functions only: without a Python wrapper."""
    return _compile(function, _FLAGS, no_cpython_wrapper=True)


def loop(function: Function) -> Function:
    """Compile a loop whose sums may be reordered."""
    return _compile(function, _FLAGS)


def ordered_loop(function: Function) -> Function:
    """Compile arithmetic whose order matters but may be fused: an exponential that rounds by adding a constant."""
    return _compile(function, {"contract"})


def strict_loop(function: Function) -> Function:
    """Compile a loop that has to round exactly as NumPy does: distances, because the boxcar has an edge."""
    return _compile(function, False)


def bare_part(function: Function) -> Function:
    """Compile a part of loops that makes no arrays: without reference counts, compiling takes a seventh less time.

    Slices of arguments do not count as new arrays.
    """
    return _compile(function, _FLAGS, no_cpython_wrapper=True, _nrt=False)


def bare_loop(function: Function) -> Function:
    """Compile a loop that makes no arrays, as `bare_part`."""
    return _compile(function, _FLAGS, _nrt=False)


def by_type(stand_in: Callable[..., Any]) -> Callable[[Function], Function]:
    """Compile, wherever loops call the stand-in, what the decorated function makes for the types of its arguments."""
    return cast(Callable[[Function], Function], overload(stand_in))


@intrinsic
def use_widest_vectors(typing_context: Any) -> Any:  # noqa: ARG001  # as Numba calls it
    """Let the loop that calls this use vectors of 512 bits where the processor has them; elsewhere nothing changes.

    LLVM prefers 256 bits on Intel's processors with AVX-512, because the first of them ran slower clocks for wide ones.
    The attributes count for the function that they are in: a part that may not be inlined has to call this as well.

    The stack is aligned as well. Numba's own is aligned to 16 bytes, and LLVM sees too late that registers are to be
    stored there: three of four times each of them then crossed a line of the cache, by chance of who called whom (five
    columns of four queries: 2.15e9 pairs per second in place of 2.45e9).
    """

    # As Numba calls it.
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        # llvmlite knows no attributes of the form "name"="value", and prints those of its set as they are; adding goes
        # around its check.
        for attribute in ('"prefer-vector-width"="512"', '"stackrealign"'):
            set.add(builder.function.attributes, attribute)
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def always_inline(typing_context: Any) -> Any:  # noqa: ARG001  # as Numba calls it
    """Inline the part that calls this into every loop that uses it.

    A part that LLVM leaves a function exists twice: the process that compiles runs the part's own copy, those that load
    the loop from disk the one that was linked into it, optimized once more. Where either reorders sums, last bits
    differ. LLVM decides by size, so that small parts need not ask for it.
    """

    # As Numba calls it.
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        builder.function.attributes.add("alwaysinline")
        return context.get_dummy_value()

    return types.void(), generate


@cache
def vector_registers() -> int:
    """Return how many vectors a loop can hold: 32 with AVX-512 or on ARM, 16 elsewhere.

    Numba is asked, not the processor: `NUMBA_CPU_FEATURES` changes what is compiled.
    """
    from numba.core.registry import cpu_target

    triple, _, features = cpu_target.target_context.codegen().magic_tuple()
    return 32 if "+avx512f" in features.split(",") or not triple.startswith("x86_64") else 16
