"""The main job on real data: fit two tables with the command line, predict, draw; then the pictures of the tour.

Everything lands in the folder `demo/`, made anew on every run.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from kernpool.cli.main import main

ROOT = Path(__file__).resolve().parent.parent
DATA, OUT = ROOT / "examples" / "data", ROOT / "demo"


def run(*arguments: object) -> None:
    """Run one command of kernpool, showing it first."""
    words = [str(word.relative_to(ROOT)) if isinstance(word, Path) else str(word) for word in arguments]
    print(f"\n$ kernpool {' '.join(words)}", file=sys.stderr)
    code = main([str(word) for word in arguments])
    if code != 0:
        sys.exit(code)


def demo() -> None:
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()

    engel = DATA / "engel.csv"
    plot = OUT / "engel.png"
    run("fit", engel, "--target", "foodexp", "--degree", "1", "--model", OUT / "engel-model", "--plot", plot)
    incomes = OUT / "new-households.csv"
    np.savetxt(incomes, [500.0, 1000.0, 2000.0], header="income", comments="", fmt="%g")
    run("predict", OUT / "engel-model", incomes, "--out", OUT / "engel-predictions.csv")

    # The last ten years, so that points can be told from the curve. Neighbouring weeks resemble each other, which
    # leave-one-out takes for signal: the bandwidth that it finds follows the seasons, and every other wave. The trend
    # is a choice of one's own, a bandwidth of a year.
    header, *weeks = (DATA / "mauna_loa_co2.csv").read_text(encoding="utf-8").splitlines()
    co2 = OUT / "co2-since-1992.csv"
    co2.write_text("\n".join([header, *(week for week in weeks if week >= "1992")]) + "\n", encoding="utf-8")
    print(
        "\nWeeks depend on each other, so the search follows the seasons; the trend takes --bandwidth 1.",
        file=sys.stderr,
    )
    run("fit", co2, "--target", "co2", "--degree", "1", "--model", OUT / "co2-model", "--plot", OUT / "co2.png")
    run("fit", co2, "--target", "co2", "--degree", "1", "--bandwidth", "1", "--plot", OUT / "co2-trend.png")

    print("\nThe pictures of docs/tour.md ...", file=sys.stderr)
    subprocess.run([sys.executable, ROOT / "docs" / "tour_pictures.py", OUT / "tour"], check=True)
    print("\nThe pictures, to be looked at; docs/tour.md tells the whole story of those of the tour:", file=sys.stderr)
    for picture in [*sorted(OUT.glob("*.png")), *sorted((OUT / "tour").iterdir())]:
        print(f"  {picture}", file=sys.stderr)


if __name__ == "__main__":
    demo()
