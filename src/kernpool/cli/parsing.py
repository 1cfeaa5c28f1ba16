"""What is written behind options: sizes, lists of columns, bandwidths."""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Sequence

from kernpool.cli.terminal import UsageError
from kernpool.execution.messages import did_you_mean

UNITS = {"": 1, "B": 1} | {
    name: base**power
    for power, letter in enumerate("KMGT", start=1)
    for name, base in ((f"{letter}IB", 1024), (f"{letter}B", 1000))
}
LEAST_MEMORY = 1 << 20


def parse_memory(text: str | None) -> int | None:
    """Return a size such as 512MiB, 1.5GB or 2000000 in bytes.

    Examples
    --------
    >>> parse_memory("1.5GB"), parse_memory("2 GiB")
    (1500000000, 2147483648)
    """
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *([A-Z]*)", text.strip().upper(), re.ASCII)
    if found is None or found[2] not in UNITS:
        raise UsageError(f"--memory must be a size such as 512MiB, 2GiB, 1.5GB or a number of bytes, got {text!r}")
    size = int(float(found[1]) * UNITS[found[2]])
    if size < LEAST_MEMORY:
        raise UsageError(f"--memory must be at least 1MiB, got {text!r}")
    return size


def parse_degree(text: str) -> int:
    """Return the degree of a local fit that a model can have.

    Examples
    --------
    >>> parse_degree("1")
    1
    """
    if text not in ("0", "1"):
        quadratic = "; kernpool.pool(..., degree=2) in Python fits local quadratics" if text == "2" else ""
        raise argparse.ArgumentTypeError(f"must be 0 (local constant) or 1 (local linear), got {text!r}{quadratic}")
    return int(text)


def split_names(text: str) -> list[str]:
    """Return names that are separated by commas; one with a comma stands in quotes.

    Examples
    --------
    >>> split_names('a, "b,c"')
    ['a', 'b,c']
    """
    try:
        return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    except csv.Error as error:
        raise UsageError(f"names are separated by commas, as in A,B; got {text!r} ({error})") from None


def parse_features(listed: str | None, target: str) -> list[str] | None:
    """Return the columns that were listed to predict from, None for all others."""
    if listed is None:
        return None
    # Read as a line of CSV, so that a name with a comma can stand in quotes.
    features = split_names(listed)
    if target in features:
        raise UsageError(f"--features names the target {target!r} too; a column cannot predict itself")
    if not features or len(set(features)) < len(features):
        raise UsageError(f"--features must name at least one column, each once; got {features}")
    return features


def parse_bandwidth(text: str, names: Sequence[str] = ()) -> str | float | list[float]:
    """Return a rule's name, if it is among those, a number, or a list of numbers.

    Examples
    --------
    >>> parse_bandwidth("0.5"), parse_bandwidth("0.5,2"), parse_bandwidth("loo", ["loo", "aicc"])
    (0.5, [0.5, 2.0], 'loo')
    """
    if text in names:
        return text
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        known = f"one of {', '.join(names)}, " if names else ""
        raise UsageError(
            f"--bandwidth must be {known}a number, or numbers separated by commas; got {text!r}; "
            f"{did_you_mean(text, names)}".rstrip("; ")
        ) from None
    return numbers[0] if len(numbers) == 1 else numbers


def parse_numbers(option: str, text: str) -> list[float]:
    """Return numbers that are separated by commas.

    Examples
    --------
    >>> parse_numbers("--smoothing", "0.5, 2")
    [0.5, 2.0]
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{option} must be a number, or numbers separated by commas; got {text!r}") from None


def parse_levels(text: str) -> tuple[float, ...]:
    """Return levels of quantiles, in the order in which they were written.

    Examples
    --------
    >>> parse_levels(".1, .5,.9")
    (0.1, 0.5, 0.9)
    """
    try:
        levels = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(
            f"--quantiles must be numbers separated by commas, such as 0.1,0.5,0.9; got {text!r}"
        ) from None
    wrong = [level for level in levels if not 0.0 <= level <= 1.0]
    if wrong:
        hint = f"; {wrong[0]:g} percent is {wrong[0] / 100:g}" if 1.0 < wrong[0] <= 100.0 else ""
        raise UsageError(f"--quantiles must lie between 0 and 1, got {wrong[0]:g}{hint}")
    if len(set(levels)) < len(levels):
        raise UsageError(f"--quantiles must differ from each other, got {text!r}")
    return levels
