"""How we measure and tell: alternating runs, medians, processes whose peak of memory is their own, pages of tables."""

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

REPORTS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"
# Reports that are a section of a page, and the page.
PAGES = {
    "brute-limit": "algorithms", "brute-limit-256": "algorithms", "choice": "algorithms", "walks": "algorithms",
    "prediction-coverage": "coverage", "test-size": "coverage", "coverage": "coverage",
    "first-call": "speed", "growth": "speed", "scale": "speed", "search": "speed", "search-tables": "speed",
    "fit-times": "speed", "inference": "speed", "prediction": "speed", "layers": "speed", "explorer": "speed",
    "places": "speed",
}  # fmt: skip

VECTORS = {"avx512f": 512, "avx2": 256, "sse2": 128}  # the widest first


def alternate(
    contenders: Mapping[str, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
    pause: float = 0.0,
) -> dict[str, float]:
    """Run the contenders in turn, so that a noisy minute hits all of them, and return their median seconds."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            if pause:
                time.sleep(pause)
                run()  # awake again, processor and threads
            started = clock()
            run()
            seconds[name].append(clock() - started)
    return {name: statistics.median(times) for name, times in seconds.items()}


# What a process of its own has: `mebibytes("VmHWM:")` is its peak, which `peak_from_here` begins anew; `tell` ends it.
PROLOGUE = """
import json, time
import numpy as np
def mebibytes(name):
    return int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith(name))) / 1024
def peak_from_here():
    open("/proc/self/clear_refs", "w").write("5")
    return mebibytes("VmRSS:")
def tell(*found):
    print(json.dumps(found))
"""


def in_process(code: str, *, timeout: float | None = None, **given: object) -> list:
    """Run a script with these variables in a process of its own, and return what it tells."""
    variables = "".join(f"{name} = {value!r}\n" for name, value in given.items())
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:  # a file, which processes that it starts can import
        script.write(PROLOGUE + variables + code)
        script.flush()
        command = [sys.executable, script.name]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=timeout)
    return json.loads(done.stdout)


def processor() -> str:
    """Describe the class of the machine."""
    model, vectors = platform.processor() or platform.machine(), ""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        flags = next((line.split() for line in lines if line.startswith("flags")), [])
        bits = next((bits for flag, bits in VECTORS.items() if flag in flags), None)
        model, vectors = names[0] if names else model, f" with vectors of {bits} bits" if bits else ""
    if "NUMBA_CPU_NAME" in os.environ:
        vectors += f", compiled for {os.environ['NUMBA_CPU_NAME']}"
    return f"{len(os.sched_getaffinity(0))} cores of {model}{vectors}"


def machine() -> str:
    """Describe the class of the machine, and the versions that matter, in a line."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("NumPy", "Numba", "scipy"))
    return f"{processor()}, {platform.system()}, Python {platform.python_version()}, {versions}"


def table(head: str, rows: Iterable[Iterable[object]]) -> str:
    """Return a table of Markdown; its headings are apart by bars, and None is an empty cell."""
    lines = ["| " + " | ".join("" if cell is None else str(cell) for cell in row) + " |" for row in rows]
    return "\n".join([f"| {head} |", "|---" * (head.count(" | ") + 1) + "|", *lines])


def tell(*cells: object) -> list[str]:
    """Print a row, and return it."""
    row = [str(cell) for cell in cells]
    print(" | ".join(row), flush=True)
    return row


def report(name: str, *parts: str, keep: bool = True) -> None:
    """Print a page or a section, whose parts are apart by blank lines, and keep it in docs/benchmarks/."""
    text = "\n\n".join(part.strip() for part in parts if part.strip())
    text = f"{text}\n\nMachine: {processor()}.\n"
    print(text)
    if not keep:
        return
    page = REPORTS / f"{PAGES.get(name, name)}.md"
    if name in PAGES:
        section = re.sub(r"^#", "##", text, flags=re.MULTILINE)
        before, rest = page.read_text(encoding="utf-8").split(f"<!--{name}-->\n", 1)
        after = rest.split(f"<!--/{name}-->\n", 1)[1]
        text = f"{before}<!--{name}-->\n\n{section}\n<!--/{name}-->\n{after}"
    page.write_text(text, encoding="utf-8")


def finish(missed: list[str]) -> None:
    """End the process, saying which targets were missed if any were."""
    if missed:
        sys.exit(f"a target was missed: {'; '.join(missed)}")


def flags(document: str, *names: str, **lists: Sequence) -> argparse.Namespace:
    """Read a command line: what is said or not, and which ones of some lists, by default all."""
    parser = argparse.ArgumentParser(description=document, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in names:
        parser.add_argument(f"--{name}", action="store_true")
    for name, all_of_them in lists.items():
        parser.add_argument(f"--{name}", nargs="*", type=type(all_of_them[0]), choices=all_of_them, default=all_of_them)
    return parser.parse_args()
