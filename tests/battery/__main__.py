"""Print what each option answers: ``+`` holds, ``-`` is refused with the remedy, ``!`` is known to fail.

``python -m tests.battery > tests/battery/table.txt`` writes the table that tests compare with: what is refused from now
on, or no longer, shows in it.
"""

from tests.battery.answers import ANSWERS
from tests.battery.options import OPTIONS
from tests.battery.situations import check

MARKS = {"holds": "+", "refused": "-", "absent": " "}


def mark(option: str, answer: str) -> str:
    """Return the sign of an answer of an option."""
    try:
        return MARKS[check(option, answer, "again")]
    except AssertionError:
        return "!"


def main() -> None:
    """Print the table, answers across."""
    width = max(map(len, OPTIONS))
    for number, answer in enumerate(ANSWERS):
        print(f"{'':{width}} {'|' * number}{answer}")
    for option in OPTIONS:
        print(f"{option:{width}} {''.join(mark(option, answer) for answer in ANSWERS)}".rstrip())


if __name__ == "__main__":
    main()
