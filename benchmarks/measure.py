"""How we measure: alternating runs in one process, medians, ratios. Shared by the benchmarks."""

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path

REPORTS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"

REPORTS_TO_EXTRAPOLATE = 6
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


class OutOfTime(Exception):
    """Raised by `Watch` to stop a job."""


class Watch:
    """Listens to the progress of a job, stops it after `limit` seconds, and extrapolates to its end."""

    def __init__(self, limit: float) -> None:
        self.limit, self.reports = limit, []

    def __call__(self, done: int, total: int) -> None:
        elapsed = time.perf_counter() - self.started
        self.reports.append((elapsed, max(done / total, 1e-9)))
        told = len(self.reports) >= REPORTS_TO_EXTRAPOLATE or elapsed > 4.0 * self.limit
        if elapsed > self.limit and told and done < total:
            raise OutOfTime

    def time(self, job: Callable[[], object]) -> float:
        """Return the seconds of a job, or what it would have taken."""
        self.started = time.perf_counter()
        try:
            job()
        except OutOfTime:
            # What comes before the first report, such as sorting, happens once.
            (first, share), (last, done) = self.reports[0], self.reports[-1]
            return last + (1.0 - done) * ((last - first) / (done - share) if done > share else last / done)
        return time.perf_counter() - self.started


def machine() -> str:
    """Describe the class of the machine, and the versions that matter, in a line."""
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
    versions = ", ".join(f"{name} {version(name)}" for name in ("NumPy", "Numba", "scipy"))
    python = f"{platform.system()}, Python {platform.python_version()}"
    return f"{len(os.sched_getaffinity(0))} cores of {model}{vectors}, {python}, {versions}"


def busy() -> str:
    """Say how busy the machine was, if others kept it from this process."""
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    return "" if load < cores + 1.5 else f"Measured with {load:.0f} processes on {cores} cores: times are too long."


def report(name: str, text: str, *, keep: bool = True) -> None:
    """Print a report, and keep it in docs/benchmarks/."""
    text = f"{text.rstrip()}\n\nMachine: {machine()}. Made by `make bench`.\n"
    if keep:
        REPORTS.mkdir(parents=True, exist_ok=True)
        (REPORTS / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)


def finish(missed: list[str]) -> None:
    """End the process, saying which targets were missed if any were."""
    if missed:
        sys.exit(f"a target was missed: {'; '.join(missed)}")
