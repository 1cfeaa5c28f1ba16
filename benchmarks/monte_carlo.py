"""Sums over many simulated runs, in blocks that are kept as lines of JSON: a job that was stopped goes on where it was.

A run is its seed: whichever process makes it, and after whichever others, its outcome is the same. A file of parts
holds what the code of its time found; after a change of the code, begin a new one.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from measure import finish

BLOCK = 20  # runs that are lost at most when a job is stopped
OPEN = 2.0  # errors from a target, up to which a figure beside it does not decide
Outcome = Mapping[str, object]  # numbers, or lists of numbers


@dataclass(frozen=True)
class Tally:
    """Sums over the runs of a setting, and the seconds of a core that they took."""

    runs: int
    seconds: float
    sums: dict[str, np.ndarray]

    def share(self, name: str) -> np.ndarray:
        """Return the mean over runs."""
        return self.sums[name] / self.runs


def remark(found: Mapping[str, Tally], verdicts: Mapping[str, str]) -> str:
    """Say how many runs there were, and which targets are not met."""
    runs = [tally.runs for tally in found.values()]
    beside = "; ".join(f"{words} ({said})" for words, said in verdicts.items() if said not in ("", "met"))
    return f"Runs: {min(runs)} to {max(runs)}. {f'Not met: {beside}.' if beside else 'All targets are met.'}"


def study(document: str, names: Iterable[str], runs: int, one: Callable[[str, int], Outcome], write: Callable) -> None:
    """Read a command line: which settings, how many runs of each, where their sums are kept; run, and write the page.

    The page is kept if it has all runs of all settings, or is asked for.
    """
    names = [*names]
    parser = argparse.ArgumentParser(description=document, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*names, []], help="settings, by default all")
    parser.add_argument("--runs", type=int, default=runs, help=f"of each setting, by default {runs}")
    parser.add_argument("--parts", type=Path, help="lines of JSON that are read, and that missing runs are added to")
    parser.add_argument("--page", action="store_true", help="no runs; the page of what the parts hold")
    asked = parser.parse_args()
    if asked.page and asked.parts is None:
        parser.error("--page writes what --parts FILE holds; name the file")
    asked.names = asked.names or names
    found = {name: tally for name, tally in tallies(asked, one).items() if name in names}
    enough = len(found) == len(names) and min(tally.runs for tally in found.values()) >= runs
    finish(write(found, keep=asked.page or enough))


def tallies(asked: argparse.Namespace, one: Callable[[str, int], Outcome]) -> dict[str, Tally]:
    """Make the runs that are asked for and that the parts do not hold yet, and return all sums.

    Parameters
    ----------
    asked : Namespace
        Of the command line of a `study`.
    one : callable
        Outcome of a run, by setting and seed.
    """
    lines = _read(asked.parts)
    if asked.page:
        return _added(lines)
    for name in asked.names:
        blocks = _missing(lines, name, asked.runs)
        for block in blocks:
            line = _block(one, name, block)
            lines.append(line)
            if asked.parts is not None:
                with open(asked.parts, "a", encoding="utf-8") as parts:
                    parts.write(json.dumps(line) + "\n")
        tally = _added(lines)[name]
        shown = {key: round(float(np.mean(tally.share(key))), 3) for key in tally.sums}
        print(f"{name}: {tally.runs} runs, {tally.seconds / tally.runs:.3f} s each, {shown}", flush=True)
    return _added(lines)


def _read(path: Path | None) -> list[dict]:
    """Return the blocks of a file; a last line that was cut short when its job was stopped is cut off."""
    if path is None or not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return [json.loads(line) for line in whole.splitlines()]


def _missing(lines: list[dict], name: str, runs: int) -> list[range]:
    """Return the seeds below `runs` that no block of a setting holds, in blocks."""
    held = {seed for line in lines if line["setting"] == name for seed in range(*line["seeds"])}
    blocks: list[range] = []
    for seed in (seed for seed in range(runs) if seed not in held):
        if blocks and blocks[-1].stop == seed and len(blocks[-1]) < BLOCK:
            blocks[-1] = range(blocks[-1].start, seed + 1)
        else:
            blocks.append(range(seed, seed + 1))
    return blocks


def _block(one: Callable[[str, int], Outcome], name: str, seeds: range) -> dict:
    started, sums = time.process_time(), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of small samples, and of bandwidths at the end of their range
        for seed in seeds:
            for key, value in one(name, seed).items():
                sums[key] = sums.get(key, 0.0) + np.asarray(value, dtype=float)
    return {
        "setting": name,
        "seeds": [seeds.start, seeds.stop],
        "seconds": round(time.process_time() - started, 3),
        "sums": {key: np.asarray(value).tolist() for key, value in sums.items()},
    }


def _added(lines: list[dict]) -> dict[str, Tally]:
    found = {}
    for name in dict.fromkeys(line["setting"] for line in lines):
        of = [line for line in lines if line["setting"] == name]
        keys = dict.fromkeys(chain.from_iterable(line["sums"] for line in of))
        sums = {key: np.sum([line["sums"][key] for line in of if key in line["sums"]], axis=0) for key in keys}
        runs = sum(line["seeds"][1] - line["seeds"][0] for line in of)
        found[name] = Tally(runs, sum(line["seconds"] for line in of), sums)
    return found


def binomial_error(share, runs: int):
    """Return the standard deviation of a share of so many runs, as if one more run had each outcome.

    The correction keeps a share of one from an error of zero.
    """
    share = (np.asarray(share) * runs + 1.0) / (runs + 2.0)
    return np.sqrt(share * (1.0 - share) / runs)


def judged(value: float, error: float, bar: tuple[float, float] | None) -> str:
    """Say whether a figure is within its target, or too near to it for the number of runs to tell."""
    if bar is None:
        return ""
    beyond = max(bar[0] - value, value - bar[1])
    return "met" if beyond <= 0 else "open" if beyond <= OPEN * error else "missed"


def outcome(said: dict[str, str]) -> str:
    """Name what was missed or is open, or say that all targets are met."""
    words = {word: [what for what in said if said[what] == word] for word in ("missed", "open")}
    told = "; ".join(f"**{word}**: {', '.join(what)}" for word, what in words.items() if what)
    return told or ("met" if any(said.values()) else "")


def missed(words: str, said: dict[str, str]) -> list[str]:
    """Name the targets of a row that are missed."""
    return [f"{words}: {what}" for what, word in said.items() if word == "missed"]


def percent(mean: float, error: float | None = None, digits: int = 1, more: int = 0) -> str:
    """Write a share in percent, and its error with so many digits more."""
    return f"{100 * mean:.{digits}f}" + ("" if error is None else f" ± {100 * error:.{digits + more}f}")


def total(found: Mapping[str, Tally]) -> str:
    seconds, runs = (sum(getattr(tally, of) for tally in found.values()) for of in ("seconds", "runs"))
    return f"{runs} runs in all, {seconds / 60:.0f} minutes of one core."
