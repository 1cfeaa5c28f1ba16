"""Compilation of the numerical loops with Numba: compiler flags, and the cache of compiled code on disk.

This is the only module that states how loops are compiled. The flags let sums be reordered, which vectorises them,
and keep infinities and NaN, on which the pooling state relies. So never ``fastmath=True``. ``parallel=True`` is ruled
out as well: its default threading layer aborts the process when two Python threads enter it, and no interrupt gets
through. Threads are Python threads over blocks that release the GIL.

The cache is that of Numba, made safe for several processes that compile at once. Numba numbers the files of a
function's versions and lists them in an index. Two processes that compile two versions at once both read the index
and take the same number; from then on every process runs the code of the last writer as the other's version, without
an error. Here the name of a file is a hash of the version's key (types, processor, closure, Numba's version), so that
no two versions share a file and no index is needed; the key is compared again on loading. A file ends in a digest of
its content, which is compared before anything is unpickled: an empty, truncated or damaged file counts as missing and
is written again.
"""

import hashlib
import pickle
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any, TypeVar, cast

from numba import njit, types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.extending import intrinsic, overload

from kernpool.execution.progress import CompileNotice

DIGEST_SIZE = hashlib.sha256().digest_size


def closed_over(function: Any) -> str:
    """Describe the variables in a function's closure by a string that is the same in every process."""
    # Compiled functions are described by their names.
    # Numba pickles these variables. A compiled function among them has another number in every process, so that such
    # loops were written to disk each time and never found again: 0.7 s in every process that built a tree.
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return repr([(x.py_func.__module__, x.py_func.__qualname__) if hasattr(x, "py_func") else x for x in cells])


class NamedFiles(IndexDataCacheFile):
    """Cache files of compiled functions, named by a hash of types, processor, closure and Numba's version."""

    def _name(self, key: Any) -> str:
        what = repr((self._version, self._source_stamp, key)).encode()
        return f"{self._index_name.removesuffix('.nbi')}.{hashlib.sha256(what).hexdigest()[:32]}.nbc"

    def save(self, key: Any, data: Any) -> None:
        """Save a compiled version of the function to its file; a full disk raises no error."""
        # Later processes compile again then.
        with suppress(OSError):
            self._save_data(self._name(key), (key, data))  # type: ignore[no-untyped-call]  # Numba has no types

    def load(self, key: Any) -> Any:
        """Return a compiled version of the function from its file, or None if that is missing or damaged."""
        try:
            whole = memoryview(Path(self._cache_path, self._name(key)).read_bytes())
        except OSError:
            return None
        data, digest = whole[:-DIGEST_SIZE], whole[-DIGEST_SIZE:]
        if hashlib.sha256(data).digest() != digest:
            return None
        known, version = pickle.loads(data)
        return version if known == key else None

    def _dump(self, version: Any) -> bytes:
        data: bytes = super()._dump(version)  # type: ignore[no-untyped-call]  # Numba is not typed
        return data + hashlib.sha256(data).digest()


class LoopCache(FunctionCache):
    """Numba's on-disk cache of one compiled function, stored in `NamedFiles`."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]  # Numba is not typed
        stamp = self._impl.locator.get_source_stamp()
        base = self._impl.filename_base
        # Numba is not typed.
        self._cache_file = NamedFiles(self._cache_path, base, stamp)  # type: ignore[no-untyped-call]

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        function = self._py_func
        parts = function.__code__.co_code, closed_over(function).encode()
        return signature, codegen.magic_tuple(), tuple(hashlib.sha256(part).hexdigest() for part in parts)


Function = TypeVar("Function", bound=Callable[..., Any])

PACKAGE = Path(__file__).parents[1]
LOOPS = "loops"  # compiled functions live in folders of this name, and nowhere else


def compiled_sources(package: Path) -> list[Path]:
    """Return the source files of compiled code: those in folders named ``loops``, at any depth, and this module's."""
    return [*sorted(package.rglob(f"{LOOPS}/*.py")), Path(__file__)]


def digest_of(sources: list[Path]) -> str:
    """Return one hash of the contents of the source files, which changes with any of them."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Have an interrupt (Ctrl-C) wait until the block ends."""
    # LLVM calls Python back while it compiles, and what is raised there is printed and forgotten: without this, an
    # interrupt of a first call was lost, or ended in an error of the compiler. It waits for one loop, seconds at most.
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or current_thread() is not main_thread():  # others are never interrupted
        yield
        return
    received: list[tuple[int, Any]] = []
    signal.signal(signal.SIGINT, lambda *arguments: received.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if received:
            handler(*received[0])


NOTICE = CompileNotice()
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
    # What Numba calls for arguments of types that it has not compiled the loop for.
    compiled._compile_for_args = NOTICE.watch()(interrupts_deferred()(compiled._compile_for_args))
    return cast(Function, compiled)


def part(function: Function) -> Function:
    """Compile a function that only other compiled functions call, without a Python wrapper."""
    return _compile(function, _FLAGS, no_cpython_wrapper=True)


def loop(function: Function) -> Function:
    """Compile a numerical loop whose sums may be reordered."""
    return _compile(function, _FLAGS)


def ordered_loop(function: Function) -> Function:
    """Compile a function whose arithmetic may be fused (multiply-add) but not reordered."""
    # An exponential that rounds by adding a constant needs this.
    return _compile(function, {"contract"})


def strict_loop(function: Function) -> Function:
    """Compile a loop that must round exactly as NumPy does: nothing is reordered or fused."""
    # Distances need this, because the boxcar has an edge.
    return _compile(function, False)


def bare_part(function: Function) -> Function:
    """Compile as `part` does, but without reference counting, for functions that allocate no arrays."""
    # It takes a seventh less compile time. Slices of arguments do not count as new arrays.
    return _compile(function, _FLAGS, no_cpython_wrapper=True, _nrt=False)


def bare_loop(function: Function) -> Function:
    """Compile as `loop` does, but without reference counting, for functions that allocate no arrays."""
    # See `bare_part`.
    return _compile(function, _FLAGS, _nrt=False)


def by_type(stand_in: Callable[..., Any]) -> Callable[[Function], Function]:
    """Return a decorator that registers what compiled loops call for `stand_in`, chosen by the argument types."""
    # The decorated function takes these types and returns the implementation.
    return cast(Callable[[Function], Function], overload(stand_in))


@intrinsic
def use_widest_vectors(typing_context: Any) -> Any:  # noqa: ARG001  # as Numba calls it
    """Allow the calling loop to use 512-bit vectors on processors that have them; a no-op elsewhere."""
    # The stack is aligned as well. The attributes apply to one function: a part that may not be inlined has to call
    # this as well.
    # LLVM prefers 256 bits on Intel's processors with AVX-512, because the first of them ran slower clocks for wide
    # vectors. Numba aligns the stack to 16 bytes, and LLVM sees too late that registers will be stored there. In three
    # of four cases each stored register then crossed a cache line, depending on the chain of callers (five columns,
    # four queries: 2.15e9 pairs per second instead of 2.45e9).

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
    """Make the compiler inline the calling function into every loop that uses it."""
    # A part that LLVM does not inline exists twice: the process that compiles it runs the part's own copy; processes
    # that load the loop from disk run the copy linked into it, which was optimized once more. If either reorders sums,
    # the last bits differ. LLVM decides by size, so small parts need not call this.

    # As Numba calls it.
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        builder.function.attributes.add("alwaysinline")
        return context.get_dummy_value()

    return types.void(), generate


@cache
def vector_registers() -> int:
    """Return the number of vector registers that compiled loops have: 32 with AVX-512 or on ARM, 16 elsewhere."""
    # Numba is asked, not the processor: `NUMBA_CPU_FEATURES` changes what is compiled.
    from numba.core.registry import cpu_target

    triple, _, features = cpu_target.target_context.codegen().magic_tuple()
    return 32 if "+avx512f" in features.split(",") or not triple.startswith("x86_64") else 16
