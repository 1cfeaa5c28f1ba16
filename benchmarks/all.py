"""All benchmarks that the index in docs/benchmarks/README.md lists, one after the other; outcomes go into the index.

python benchmarks/all.py                    everything, some hours; what `make bench` does
python benchmarks/all.py first-call walks   only these; the other lines stay
"""

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

from measure import REPORTS, machine

INDEX = REPORTS / "README.md"
# Name, what stands before its outcome, the outcome, and the command.
ROW = re.compile(r"^(\| \[([\w-]+)\]\(\S+\) \| .* \| )(.*)( \| `python benchmarks/([^`]*)` \| ).* \|$")


def outcome(command: str) -> tuple[str, float]:
    """Run one, and return what became of its target, in words, and its seconds."""
    script, *arguments = command.split()
    started = time.perf_counter()
    print(f"\n--- {command}", flush=True)
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name(script), *arguments], stderr=subprocess.PIPE, text=True
    )
    print(done.stderr, end="", file=sys.stderr, flush=True)
    seconds = time.perf_counter() - started
    if not done.returncode:
        return "met", seconds
    said = (done.stderr.strip().splitlines() or ["no message"])[-1]
    words = said.replace("|", "/") if said.startswith(("a target was missed", "answers differ")) else "failed"
    return f"**{words}**", seconds


def main() -> None:
    lines = INDEX.read_text(encoding="utf-8").splitlines()
    names = [row[2] for line in lines if (row := ROW.match(line))]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *names], help="default: all")
    asked, missed = parser.parse_args().names, []
    for i, line in enumerate(lines):
        row = ROW.match(line)
        if row and row[2] in (asked or names):
            words, seconds = outcome(row[5])
            lines[i] = f"{row[1]}{words}{row[4]}{seconds:.0f} |"
            missed += [row[2]] if words != "met" else []
        elif line.startswith("Machine: ") and not asked:
            lines[i] = f"Machine: {machine()}."
        INDEX.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if missed:
        sys.exit(f"not met: {', '.join(missed)}")


if __name__ == "__main__":
    main()
