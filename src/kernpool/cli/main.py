"""Entry point of the command line: runs one command and returns its exit code.

Data goes to standard output, everything else to standard error. Until a command runs, nothing but the standard
library is imported, so that ``--help`` answers at once.
"""

import os
import re
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

from kernpool.cli.options import build_parser
from kernpool.cli.terminal import UsageError, json_line, say

ADVICE = {
    "fit": "use a larger --bandwidth, or a kernel of infinite support",
    "predict": "fit again with a larger --bandwidth, or say --empty nearest, mean, nan or zero",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one `kernpool` command and return its exit code."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    if options.version:
        from kernpool._version import __version__

        print(__version__)
        return 0
    if options.command is None:
        parser.error(
            "a command is needed: fit, predict, info, compare, test, datasets, explore, tour, compile or completion"
        )

    def complain(what: str, text: str, code: int | None = None) -> None:
        if options.json:
            say(json_line(what, text, options.command, code))
        else:
            say(f"kernpool {options.command}: {'' if code == 2 else f'{what}: '}{text}")

    try:
        module, function = options.run.split(":")
        with warnings.catch_warnings():
            if not sys.warnoptions:  # a command says what it warns of, whatever a caller in Python filters
                warnings.simplefilter("default", UserWarning)
                warnings.simplefilter("default", RuntimeWarning)
            warnings.showwarning = lambda message, *_, **__: complain(
                "warning",
                in_options(options.command, name_columns(str(message), getattr(options, "columns", None))),
            )
            run = getattr(import_module(f"kernpool.cli.{module}"), function)
            if hasattr(options, "force"):
                import_module("kernpool.cli.tables").refuse_inputs_as_outputs(options)
            run(options)
    except KeyboardInterrupt:
        text = "interrupted; nothing was written"
        say(json_line("error", text, options.command, 130) if options.json else text)
        return 130
    except BrokenPipeError:  # the reader of the output has closed it, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except UsageError as error:
        complain("error", str(error), 2)
        return 2
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        complain("error", in_options(options.command, describe(error)), 1)
        return 1
    return 0


def in_options(command: str, text: str) -> str:
    """Return a message of the library in one line, with Python parameters replaced by command-line options.

    Examples
    --------
    >>> in_options("fit", "2 queries have no key; use a larger bandwidth, or empty='nearest'")
    '2 queries have no key; use a larger --bandwidth, or a kernel of infinite support'
    """
    text = text.replace("force=True", "--force")
    text = text.replace("kernpool.save_model writes", "kernpool fit --model DIR writes")
    text = re.sub(r"; [^;]*\bempty=[^;]*", f"; {ADVICE.get(command, '')}", text, count=1)
    if command == "predict":
        text = re.sub(r"\b(empty|variance|method)='([\w+]+)'", r"--\1 \2", text).replace("empty= says", "--empty says")
        text = text.replace("unseen='unlike'", "--unseen unlike")
        text = re.sub(r"\bX_calibration( and y_calibration)?", "--calibration", text)
        text = text.replace("leave variance out, or groups", "leave --variance out")
    if command == "fit":
        text = text.replace("groups has ", "--groups has ").replace(
            "drop duplicates first (DataFrame.drop_duplicates of pandas), or give groups= with one label for each",
            "drop duplicates first, or name a --groups column with one label for each",
        )
        text = re.sub("^smoothing must", "--smoothing must", text)
    if command == "test":
        text = re.sub(r"\b(method|kind)='(\w+)'", r"--\1 \2", text).replace("bandwidth= ", "--bandwidth ")
        text = text.replace("bandwidth=", "--bandwidth ").replace("--bandwidth ,", "--bandwidth,")
    return " ".join(text.split("\n"))


def describe(error: BaseException) -> str:
    """Return the message of an exception for the user; for a system error, the file name and the reason."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'standard output'}: {error.strerror}"
    return str(error) or type(error).__name__


def name_columns(text: str, names: Sequence[str] | None) -> str:
    """Replace column numbers in a warning about an array by the column names of the table.

    Examples
    --------
    >>> name_columns("column(s) [0, 2] do not vary", ["a", "b", "c"])
    "column(s) 'a', 'c' do not vary"
    """
    if names is None:
        return text
    return re.sub(
        r"column\(s\) \[([\d, ]+)\]",
        lambda found: "column(s) " + ", ".join(repr(names[int(place)]) for place in found[1].split(",")),
        text,
    )
