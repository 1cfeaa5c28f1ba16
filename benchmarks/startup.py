"""A fresh process that pools 50 queries over 50 keys, beside one that only imports NumPy."""

import subprocess
import sys

from measure import alternate, report

POOL = "import kernpool, numpy; x = numpy.linspace(0, 5, 50); kernpool.pool(x, x, x)"
UNWANTED = "import sys; assert not {'numba', 'torch', 'sklearn', 'matplotlib'} & set(sys.modules), sys.modules.keys()"


def process(code: str):
    return lambda: subprocess.run([sys.executable, "-c", code], check=True)


def benchmark() -> None:
    process(f"{POOL}; {UNWANTED}")()
    median = alternate({"numpy": process("import numpy"), "kernpool": process(POOL)}, rounds=15)
    report(
        "startup",
        "# Start-up time: a fresh process, 50 queries, 50 keys\n\n"
        "| process | seconds |\n|---|---|\n"
        f"| `import numpy` | {median['numpy']:.3f} |\n"
        f"| `import kernpool`, pool 50 x 50 | {median['kernpool']:.3f} |\n"
        f"| difference (target: at most 0.3) | {median['kernpool'] - median['numpy']:.3f} |\n\n"
        "Medians of 15 alternating runs. The process loads none of Numba, torch, scikit-learn, matplotlib (asserted).",
    )


if __name__ == "__main__":
    benchmark()
