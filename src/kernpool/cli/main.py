"""Command line: arguments to estimators and pictures. Data on standard output, everything else on standard error.

Nothing but the standard library is imported here until a command runs, so that ``--help`` answers at once.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from kernpool.cli.asking import add_what_is_beside
from kernpool.cli.terminal import UsageError, say, stream_name

EXAMPLES = """\
examples:
  kernpool fit engel.csv --target foodexp --model engel-model --plot engel.png
  kernpool predict engel-model new-households.csv --out predictions.csv
  cat new-households.csv | kernpool predict engel-model - > predictions.csv
  kernpool fit big.parquet --target y --memory 2GiB --model big-model
  kernpool predict big-model queries.parquet --memory 2GiB --out predictions.parquet
  kernpool predict engel-model new-households.csv --interval 0.95 > intervals-of-the-curve.csv
  kernpool predict engel-model new-households.csv --interval 0.9 --method full > expected.csv
  kernpool predict engel-model new-households.csv --quantiles 0.1,0.5,0.9 > quantiles.csv
  kernpool fit visits.csv --target y --features dose --groups patient --model visits-model
  kernpool info engel-model --summary
  kernpool test significance engel-model --column income
  kernpool tour --open

exit codes: 0 success, 1 failure (bad data, missing files), 2 wrong usage, 130 interrupted
"""


ADVICE = {
    "fit": "use a larger --bandwidth, or a kernel of infinite support",
    "predict": "say --empty nearest or --empty mean, or fit again with a larger --bandwidth",
}


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="kernpool",
        description="Kernel regression (Nadaraya-Watson): fit a table, predict, look at a model, test.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="{fit,predict,info,test,tour}")

    fit = _add_fit(commands)

    predict = _add_predict(commands)

    tour = commands.add_parser(
        "tour",
        help="write the story of attention pooling, in pictures",
        description="Write the tour: one page, offline.",
    )
    tour.add_argument(
        "--out", default="kernpool-tour", metavar="DIR", help="empty or new folder (default: kernpool-tour)"
    )
    tour.add_argument("--lang", default="en", metavar="{en,zh}", help="English or Simplified Chinese (default: en)")
    tour.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the synthetic data (default: 0)")
    tour.add_argument("--open", action="store_true", help="show the page in the browser")
    tour.add_argument("--force", action="store_true", help="replace an earlier tour")
    tour.add_argument("--quiet", action="store_true", help="no progress bar, no messages")
    tour.set_defaults(run="run_tour")

    info = commands.add_parser("info", help="describe a model", description="Describe a model.")
    info.add_argument("model", metavar="MODEL", help="folder written by kernpool fit --model")
    info.add_argument("--summary", action="store_true", help="print what the fit amounts to, in place of JSON")
    info.set_defaults(run="run_info")

    _add_test(commands)

    for command in (fit, predict):
        command.add_argument("--format", choices=["csv", "tsv", "parquet", "npy"], help="of DATA (default: by suffix)")
        command.add_argument(
            "--memory", metavar="SIZE", help="read DATA in chunks, in about so much memory: 2GiB, 512MiB, bytes"
        )
        command.add_argument("--jobs", type=int, default=-1, metavar="N", help="threads (default: all processors)")
        command.add_argument("--force", action="store_true", help="overwrite existing outputs")
        command.add_argument("--quiet", action="store_true", help="no summary, no progress bar")
    return parser


def _add_fit(commands: Any) -> argparse.ArgumentParser:
    fit: argparse.ArgumentParser = commands.add_parser(
        "fit", help="fit a column of a table by the others", description="Fit a table."
    )
    fit.add_argument(
        "data",
        metavar="DATA",
        type=stream_name,
        help="CSV, TSV, Parquet or .npy file; - for standard input; a folder of Parquet files with --memory",
    )
    fit.add_argument("--target", required=True, metavar="Y", help="the column to be predicted")
    fit.add_argument("--features", metavar="A,B", help="columns to predict from (default: all others)")
    fit.add_argument(
        "--groups",
        metavar="G",
        help="column of clusters, such as schools: bandwidths for new ones, and errors that let their rows go together",
    )
    fit.add_argument("--kernel", default="gaussian", help="name of the kernel (default: gaussian)")
    fit.add_argument(
        "--bandwidth",
        default="regularised",
        help="regularised (default), loo, aicc, gcv, plugin, scott, silverman, a number, or one per feature: 0.5,2",
    )
    fit.add_argument(
        "--degree", type=int, default=0, choices=[0, 1], help="0 for local constant, 1 for local linear (default: 0)"
    )
    fit.add_argument("--composition", default="radial", choices=["radial", "product"], help="default: radial")
    fit.add_argument(
        "--scale", default="raw", choices=["raw", "rank"], help="compare columns as they are, or by rank (default: raw)"
    )
    fit.add_argument(
        "--extrapolate",
        choices=["plane", "clip"],
        help="with --degree 1, beyond the range of Y: follow the plane, or clip (default: plane)",
    )
    fit.add_argument(
        "--ridge",
        type=float,
        metavar="R",
        help="with --degree 1, penalty on slopes, in rows (default: found if regularised)",
    )
    fit.add_argument("--model", metavar="DIR", help="write the model to this folder")
    fit.add_argument("--plot", metavar="PNG", help="draw the fit into this file")
    fit.add_argument(
        "--summary", action="store_true", help="print what the fit amounts to: parameters, noise, R2 (standard output)"
    )
    fit.set_defaults(run="run_fit")
    return fit


def _add_predict(commands: Any) -> argparse.ArgumentParser:
    predict: argparse.ArgumentParser = commands.add_parser(
        "predict", help="predict the rows of a table", description="Predict with a model."
    )
    predict.add_argument("model", metavar="MODEL", help="folder written by kernpool fit --model")
    predict.add_argument(
        "data", metavar="DATA", type=stream_name, help="table with the model's features; - for standard input"
    )
    predict.add_argument(
        "--out", default="-", metavar="FILE", type=stream_name, help="where to write (default: standard output)"
    )
    predict.add_argument(
        "--empty",
        choices=["nan", "nearest", "mean", "zero", "raise"],
        help="what a row gets that has no training row within the kernel's support (default: as the model was made)",
    )
    predict.add_argument(
        "--cluster", metavar="ADDRESS", help="pool on the Dask cluster of this scheduler: tcp://host:port"
    )
    add_what_is_beside(predict)
    predict.add_argument("--groups", metavar="G", help=argparse.SUPPRESS)  # is told where it belongs
    predict.set_defaults(run="run_predict")
    return predict


def _add_test(commands: Any) -> None:
    test = commands.add_parser(
        "test",
        help="questions that a p-value answers",
        description="Test a fit or a table, by resampling. The result goes to standard output.",
    )
    kinds = test.add_subparsers(dest="test", required=True, metavar="{significance,specification,monotonicity,curves}")
    significance = kinds.add_parser("significance", help="do columns matter, given the others?")
    significance.add_argument("model", metavar="MODEL", help="folder written by kernpool fit --model")
    significance.add_argument(
        "--column", required=True, action="append", metavar="A", help="which; several are tested together"
    )
    significance.add_argument(
        "--method", default="residual", choices=["residual", "gradient"], help="the statistic (default: residual)"
    )
    specification = kinds.add_parser("specification", help="is a linear regression enough?")
    monotonicity = kinds.add_parser("monotonicity", help="does the curve of one column only rise?")
    monotonicity.add_argument(
        "--direction", default="increasing", choices=["increasing", "decreasing"], help="default: increasing"
    )
    curves = kinds.add_parser("curves", help="do groups of rows have the same curve?")
    curves.add_argument("--groups", required=True, metavar="G", help="the column of labels")
    curves.add_argument(
        "--null", default="equal", choices=["equal", "parallel"], help="parallel: apart from a constant each"
    )
    for kind in (specification, monotonicity, curves):
        kind.add_argument("data", metavar="DATA", type=stream_name, help="table; - for standard input")
        kind.add_argument("--target", required=True, metavar="Y", help="the column to be explained")
        kind.add_argument("--features", metavar="A,B", help="columns it depends on (default: all others)")
        kind.add_argument("--format", choices=["csv", "tsv", "parquet", "npy"], help="of DATA (default: by suffix)")
        kind.add_argument("--bandwidth", metavar="H", help="a number, or one per column: 0.5,2 (default: found)")
    for kind, resamples in ((significance, 399), (specification, 399), (monotonicity, 999), (curves, 999)):
        kind.add_argument(
            "--kind",
            default="wild",
            choices=["wild", "mammen", "gaussian", *(["normal"] if kind is curves else [])],
            help="what is drawn (default: wild, random signs of residuals)",
        )
        kind.add_argument(
            "--resamples", type=int, default=resamples, metavar="N", help=f"how many (default: {resamples})"
        )
        kind.add_argument("--seed", type=int, default=0, metavar="N", help="of the draws (default: 0)")
        kind.add_argument("--json", action="store_true", help="print the numbers as JSON")
        kind.add_argument("--jobs", type=int, default=-1, metavar="N", help="threads (default: all processors)")
        kind.add_argument("--quiet", action="store_true", help="no progress bar")
    test.set_defaults(run="run_test")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    if options.version:
        from kernpool import __version__

        print(__version__)
        return 0
    if options.command is None:
        parser.error("a command is needed: fit, predict, info, test or tour")
    try:
        from kernpool.cli import commands

        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: say(
                f"kernpool {options.command}: warning: {in_options(options.command, str(message))}"
            )
            getattr(commands, options.run)(options)
    except KeyboardInterrupt:
        say("interrupted; nothing was written")
        return 130
    except BrokenPipeError:  # the reader of the output has closed it, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except UsageError as error:
        say(f"kernpool {options.command}: {error}")
        return 2
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        say(f"kernpool {options.command}: error: {in_options(options.command, describe(error))}")
        return 1
    return 0


def in_options(command: str, text: str) -> str:
    """Return a message of the library in one line, with the options of a command for what functions call ``empty=``.

    Examples
    --------
    >>> in_options("fit", "2 queries have no key; use a larger bandwidth, or empty='nearest'")
    '2 queries have no key; use a larger --bandwidth, or a kernel of infinite support'
    """
    text = re.sub(r"; [^;]*\bempty=[^;]*", f"; {ADVICE.get(command, '')}", text, count=1)
    if command == "predict":
        text = re.sub(r"\b(empty|variance|method)='([\w+]+)'", r"--\1 \2", text).replace("empty= says", "--empty says")
        text = re.sub(r"\bX_calibration( and y_calibration)?", "--calibration", text)
        text = text.replace("leave variance out, or groups", "leave --variance out")
    if command == "fit":
        text = text.replace("groups has ", "--groups has ")
    if command == "test":
        text = re.sub(r"\b(method|kind)='(\w+)'", r"--\1 \2", text).replace("bandwidth= ", "--bandwidth ")
        text = text.replace("bandwidth=", "--bandwidth ").replace("--bandwidth ,", "--bandwidth,")
    return " ".join(text.split("\n"))


def describe(error: BaseException) -> str:
    """Return an error's message as one sentence for people."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'standard output'}: {error.strerror}"
    return str(error) or type(error).__name__
