"""How we measure: alternating runs in one process, medians, ratios. Shared by the benchmarks."""

import platform
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

REPORTS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"


def alternate(contenders: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Run the contenders in turn, so that a noisy minute hits all of them, and return their median seconds."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            started = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(times) for name, times in seconds.items()}


def machine() -> str:
    """Describe the machine in a line."""
    import os

    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].partition(":")[2].strip() if lines else model
    return f"{len(os.sched_getaffinity(0))} cores of {model}, {platform.system()}, Python {platform.python_version()}"


def report(name: str, text: str) -> None:
    """Print a report, and keep it in docs/benchmarks/."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    text = f"{text.rstrip()}\n\nMachine: {machine()}. Made by `make bench`.\n"
    (REPORTS / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)
