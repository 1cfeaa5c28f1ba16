"""Entry point of the command line: runs one command and returns its exit code.

Data goes to standard output, everything else to standard error. Until a command runs, nothing but the standard
library is imported, so that ``--help`` answers at once.
"""

import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module

from kernpool.cli.options import COMMANDS, build_parser
from kernpool.cli.terminal import UsageError, describe, in_options, json_line, say


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one `kernpool` command and return its exit code."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    if options.version:
        from kernpool._version import __version__

        print(__version__)
        return 0
    if options.command is None:
        parser.error(f"a command is needed: {', '.join(COMMANDS)}")

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
            warnings.showwarning = lambda message, *_, **__: complain("warning", in_options(options, str(message)))
            run = getattr(import_module(f"kernpool.cli.{module}"), function)
            if hasattr(options, "force"):
                import_module("kernpool.cli.tables").refuse_inputs_as_outputs(options)
            silence = import_module("kernpool.execution.progress").silence
            with silence() if vars(options).get("quiet") or options.json else nullcontext():
                run(options)
    except KeyboardInterrupt:
        complain("error", "interrupted; nothing was written", 130)
        return 130
    except BrokenPipeError:  # the reader of the output has closed it, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except UsageError as error:
        complain("error", str(error), 2)
        return 2
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        text = in_options(options, describe(error))
        code = 2 if text.startswith("--") else 1  # the library refuses the value of an option
        complain("error", text, code)
        return code
    return 0
