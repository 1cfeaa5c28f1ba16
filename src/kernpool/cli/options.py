"""Argument parser of the command line, with the options of all commands.

Nothing but the standard library is imported, so that ``--help`` answers at once. Each command has a function that
adds it, listed in `COMMANDS`. Its ``run`` names a module of this folder and the function that does the work; the
module is imported when the command runs. `add_table_options` describes how a table is written and what its columns
are; `_add_uncertainty` has the options of `kernpool predict` for intervals, quantiles and prediction sets.
"""

import argparse
from typing import Any

from kernpool.cli.terminal import Parser, parse_degree, stream_name

INTERVAL_METHODS = ("adaptive", "full", "jackknife+", "cv+", "split", "cqr", "localized")
SET_METHODS = ("lac", "aps", "raps", "full")


def _add_uncertainty(predict: argparse.ArgumentParser) -> None:
    """Add the options of `kernpool predict` for intervals, quantiles and prediction sets."""
    curve = predict.add_argument_group("standard errors and confidence intervals of the curve")
    curve.add_argument(
        "--se", action="store_true", help="add the standard error of each prediction, as an estimate of the curve: Y_se"
    )
    curve.add_argument(
        "--interval",
        type=float,
        metavar="LEVEL",
        help="confidence level, such as 0.95: adds confidence intervals for the curve, columns Y_center "
        "(bias-corrected), Y_lower, Y_upper; with --method, prediction intervals for a new observation instead",
    )
    curve.add_argument(
        "--simultaneous",
        action="store_true",
        help="with --interval, a band that covers the curve at all rows of DATA at once; for a single feature, also "
        "between them",
    )
    curve.add_argument(
        "--variance",
        choices=["local", "sandwich", "nn", "hc0", "hc1", "hc2", "hc3"],
        help="with --se and --interval, estimator of the error variance (default: local); sandwich where the "
        "variance jumps",
    )
    value = predict.add_argument_group("distribution of a new observation")
    value.add_argument(
        "--quantiles",
        metavar="LEVELS",
        help="add conditional quantiles of Y, such as 0.1,0.5,0.9: columns Y_q0.1, Y_q0.5, Y_q0.9",
    )
    value.add_argument(
        "--method",
        choices=list(dict.fromkeys(INTERVAL_METHODS + SET_METHODS)),
        metavar="METHOD",
        help="with --interval 0.9, add 90 %% prediction intervals for a new observation, columns Y_new_lower, "
        f"Y_new_upper: {', '.join(INTERVAL_METHODS)}; with --sets, the kind of sets: {', '.join(SET_METHODS)} "
        "(default: lac)",
    )
    value.add_argument(
        "--sets",
        type=float,
        metavar="LEVEL",
        help="for classifiers, coverage such as 0.9: adds prediction sets that contain the class of a new row with "
        "this probability, one column Y_in_CLASS of 1 and 0 per class; the most probable class is always included",
    )
    value.add_argument(
        "--calibration",
        metavar="FILE",
        help="table of rows with their Y that the model was not fitted to, which calibrate the width of prediction "
        "intervals and the size of sets (default: the training rows)",
    )
    value.add_argument("--seed", type=int, metavar="N", help="random seed, for cv+, aps and raps (default: 0)")


FORMATS = ["csv", "tsv", "parquet", "npy"]


def add_json(command: argparse.ArgumentParser) -> None:
    """Add the option `--json` to a command: results, errors and warnings are printed as JSON."""
    command.add_argument(
        "--json",
        action="store_true",
        help="print results as JSON on standard output; errors and warnings are lines of JSON on standard error",
    )


def add_table_options(command: argparse.ArgumentParser, *, levels: bool = False) -> None:
    """Add the options for reading the input table; with `levels`, also those for the types of columns."""
    reading = command.add_argument_group("format of DATA (options not given are detected, and reported)")
    reading.add_argument(
        "--format", choices=FORMATS, help="file format (default: by suffix; .gz, .bz2, .xz and .zst are unpacked)"
    )
    reading.add_argument(
        "--sep", metavar="CHAR", help="column separator: comma, semicolon, tab, pipe, space, or another"
    )
    reading.add_argument(
        "--decimal", choices=[",", "."], metavar="SIGN", help="decimal sign, , or .; the other separates thousands"
    )
    reading.add_argument(
        "--encoding", metavar="NAME", help="text encoding: utf-8, latin-1, cp1252, utf-16, gb18030 ..."
    )
    reading.add_argument(
        "--na",
        metavar="A,B",
        help="codes of missing values, as in --na=-999,x; empty cells are always missing (default: NA, NaN, N/A, n.a., "
        "null, none, -, ., ?)",
    )
    reading.add_argument(
        "--missing",
        default="error",
        choices=["error", "drop"],
        help="rows with missing values in the columns used: stop with an error, or drop and count (default: error)",
    )
    if not levels:
        return
    kinds = command.add_argument_group("types of columns (default: text is categorical, all else numeric)")
    kinds.add_argument("--unordered", metavar="A,B", help="nominal columns, such as codes; Y for classification")
    kinds.add_argument(
        "--ordered", metavar="A,B", help="ordinal columns: years, or text in order as in size=small:medium:large"
    )
    kinds.add_argument(
        "--dates",
        nargs="?",
        const="",
        metavar="A,B",
        help="date columns (2020-12-31, 2020-12-31T06:00Z), read as days since 1970-01-01; without names: all that "
        "hold dates",
    )


def add_compile(commands: Any) -> None:
    """Add the command `kernpool compile` and its options."""
    command = commands.add_parser(
        "compile",
        help="precompile, e.g. in a Docker image, so that first calls are fast",
        description="Fill the cache of compiled loops, so that first calls are fast; all kernels and columns take some "
        "minutes. The cache is in NUMBA_CACHE_DIR, by default next to the installed modules.",
    )
    command.add_argument("--kernels", metavar="A,B", help="kernels to compile (default: all)")
    command.add_argument(
        "--columns", metavar="1,2", help="numbers of features to compile for (default: 1,2,3,4,5,8,11,16)"
    )
    command.add_argument("--processes", type=int, metavar="N", help="parallel processes (default: one per processor)")
    command.add_argument("--quiet", action="store_true", help="no progress bar, no messages")
    add_json(command)
    command.set_defaults(run="setup_commands:run_compile")


def add_completion(commands: Any) -> None:
    """Add the command `kernpool completion` and its argument."""
    completion = commands.add_parser(
        "completion",
        help="write a script that completes commands and options in a shell",
        description='Write a completion script to standard output; for bash: eval "$(kernpool completion bash)".',
    )
    completion.add_argument("shell", choices=["bash", "zsh", "tcsh"], help="shell that the script is for")
    completion.set_defaults(run="setup_commands:run_completion", json=False)


EXAMPLES = """\
examples:
  kernpool fit engel.csv --target foodexp --model engel-model --plot engel.png
  kernpool predict engel-model new-households.csv --out predictions.csv
  cat new-households.csv | kernpool predict engel-model - > predictions.csv
  kernpool fit big.parquet --target y --memory 2GiB --model big-model
  kernpool predict big-model queries.parquet --memory 2GiB --out predictions.parquet
  kernpool predict engel-model new-households.csv --interval 0.95 > confidence.csv
  kernpool predict engel-model new-households.csv --interval 0.9 --method full > prediction-intervals.csv
  kernpool predict engel-model new-households.csv --quantiles 0.1,0.5,0.9 > quantiles.csv
  kernpool fit visits.csv --target y --features dose --groups patient --model visits-model
  kernpool info engel-model --summary
  kernpool test significance engel-model --column income
  kernpool compare engel.csv --target foodexp
  kernpool datasets engel > engel.csv
  kernpool explore engel.csv --target foodexp
  kernpool tour --open
  kernpool compile

reading of tables (separators, decimal commas, text, dates, missing cells): kernpool fit --help
exit codes: 0 success, 1 failure (bad data, missing files), 2 wrong usage, 130 interrupted
"""


def build_parser() -> Parser:
    """Build the argument parser of `kernpool`, with all commands."""
    parser = Parser(
        prog="kernpool",
        description="Kernel regression and classification (Nadaraya-Watson, local linear): fit, predict, test, compare "
        "and plot tables.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for add in COMMANDS:
        add(commands)
    return parser


def _add_fit(commands: Any) -> None:
    fit = commands.add_parser(
        "fit", help="fit a model to a table", description="Fit a regression, or a classifier if the target is text."
    )
    fit.add_argument(
        "data",
        metavar="DATA",
        type=stream_name,
        help="CSV, TSV, Parquet or .npy file; - for standard input; a folder of Parquet files with --memory",
    )
    fit.add_argument(
        "--target", required=True, metavar="Y", help="column to predict; a text column means classification"
    )
    _add_model_options(fit)
    fit.add_argument("--model", metavar="DIR", help="write the model to this folder")
    fit.add_argument("--plot", metavar="PNG", help="draw the fitted curve into this file")
    fit.add_argument(
        "--summary", action="store_true", help="print effective parameters, residual sd and R2 to standard output"
    )
    add_table_options(fit, levels=True)
    _add_common(fit)
    fit.set_defaults(run="fit:run_fit")


def _add_model_options(command: argparse.ArgumentParser) -> None:
    """Add the options that describe the model: features, clusters, kernel, bandwidth, degree and extrapolation."""
    command.add_argument("--features", metavar="A,B", help="columns to predict from (default: all others)")
    command.add_argument(
        "--groups",
        metavar="G",
        help="cluster column (e.g. school): whole clusters are left out when bandwidths and errors are computed",
    )
    command.add_argument("--kernel", default="gaussian", help="name of the kernel (default: gaussian)")
    command.add_argument(
        "--bandwidth",
        help="regularised (default), loo, aicc, gcv, plugin, scott, silverman, a number, or one number per feature: "
        "0.5,2; for classifiers the default is log_loss",
    )
    command.add_argument(
        "--degree",
        type=parse_degree,
        default=0,
        metavar="{0,1}",
        help="0 for local constant, 1 for local linear (default: 0)",
    )
    command.add_argument(
        "--smoothing",
        metavar="S",
        help="smoothing of each categorical column (needs a numeric --bandwidth); 0: categories share nothing",
    )
    command.add_argument(
        "--composition", default="radial", choices=["radial", "product"], help="for several features (default: radial)"
    )
    command.add_argument(
        "--scale", default="raw", choices=["raw", "rank"], help="features, or their ranks (default: raw)"
    )
    command.add_argument(
        "--extrapolate",
        choices=["plane", "clip"],
        help="with --degree 1, predictions beyond the range of Y: keep the local plane, or clip (default: plane)",
    )
    command.add_argument(
        "--ridge",
        type=float,
        metavar="R",
        help="with --degree 1, ridge penalty on slopes, as a number of rows (default: chosen with --bandwidth "
        "regularised)",
    )


def _add_predict(commands: Any) -> None:
    predict = commands.add_parser("predict", help="predict the rows of a table", description="Predict with a model.")
    predict.add_argument("model", metavar="MODEL", help="folder written by kernpool fit --model")
    predict.add_argument(
        "data", metavar="DATA", type=stream_name, help="table with the model's features; - for standard input"
    )
    predict.add_argument(
        "--out", default="-", metavar="FILE", type=stream_name, help="output file (default: standard output)"
    )
    predict.add_argument(
        "--empty",
        choices=["nan", "nearest", "mean", "zero", "raise"],
        help="prediction for a row with no training row within the kernel's support (default: the model's setting)",
    )
    predict.add_argument(
        "--unseen",
        choices=["raise", "unlike"],
        help="categories that the training rows do not have: an error, or treated as different from all others "
        "(default: the model's setting)",
    )
    predict.add_argument(
        "--keep",
        nargs="?",
        const="",
        metavar="A,B",
        help="copy these columns of DATA to the output; without names: all columns",
    )
    predict.add_argument(
        "--proba", action="store_true", help="for classifiers, add the probability of each class: columns Y_p_CLASS"
    )
    predict.add_argument(
        "--cluster", metavar="ADDRESS", help="compute on the Dask cluster of this scheduler: tcp://host:port"
    )
    _add_uncertainty(predict)
    predict.add_argument("--groups", metavar="G", help=argparse.SUPPRESS)  # refused with a remedy: belongs to fit
    add_table_options(predict)
    _add_common(predict)
    predict.set_defaults(run="predict:run_predict")


def _add_compare(commands: Any) -> None:
    compare = commands.add_parser(
        "compare",
        help="cross-validate against random forest and gradient boosting",
        description="Compare the estimators of this package with scikit-learn's random forest and gradient boosting by "
        "cross-validation; the table goes to standard output.",
    )
    compare.add_argument("data", metavar="DATA", type=stream_name, help="table; - for standard input")
    compare.add_argument("--target", required=True, metavar="Y", help="column to predict; text means classification")
    compare.add_argument("--features", metavar="A,B", help="columns to predict from (default: all others)")
    compare.add_argument("--groups", metavar="G", help="cluster column; each cluster is in one fold")
    compare.add_argument("--folds", type=int, default=5, metavar="K", help="number of folds (default: 5)")
    compare.add_argument(
        "--seed", type=int, default=0, metavar="N", help="random seed of folds and forests (default: 0)"
    )
    add_table_options(compare, levels=True)
    compare.add_argument("--jobs", type=int, default=-1, metavar="N", help="threads (default: all processors)")
    compare.add_argument("--quiet", action="store_true", help="no progress bar, no messages")
    add_json(compare)
    compare.set_defaults(run="compare:run_compare")


def _add_datasets(commands: Any) -> None:
    datasets = commands.add_parser(
        "datasets",
        help="list the example tables, or write one",
        description="List the example tables, or write one to standard output as CSV. None needs a download.",
    )
    datasets.add_argument("name", metavar="NAME", nargs="?", help="table to write (default: list all)")
    datasets.add_argument("--rows", type=int, metavar="N", help="rows of a synthetic table (default: depends on it)")
    datasets.add_argument("--seed", type=int, metavar="N", help="random seed of a synthetic table (default: 0)")
    add_json(datasets)
    datasets.set_defaults(run="datasets:run_datasets")


def _add_info(commands: Any) -> None:
    info = commands.add_parser("info", help="describe a model", description="Print a model as JSON or its summary.")
    info.add_argument("model", metavar="MODEL", help="folder written by kernpool fit --model")
    info.add_argument(
        "--summary", action="store_true", help="print effective parameters, residual sd and R2 instead of JSON"
    )
    add_json(info)
    info.set_defaults(run="info:run_info")


def _add_tour(commands: Any) -> None:
    tour = commands.add_parser(
        "tour",
        help="write an illustrated introduction to attention pooling",
        description="Write the tour, an illustrated introduction to attention pooling: one HTML page that needs no "
        "network.",
    )
    tour.add_argument(
        "--out", default="kernpool-tour", metavar="DIR", help="empty or new folder (default: kernpool-tour)"
    )
    tour.add_argument("--lang", default="en", metavar="{en,zh}", help="English or Simplified Chinese (default: en)")
    tour.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the synthetic data (default: 0)")
    tour.add_argument("--open", action="store_true", help="show the page in the browser")
    tour.add_argument("--force", action="store_true", help="replace an earlier tour")
    tour.add_argument("--quiet", action="store_true", help="no progress bar, no messages")
    add_json(tour)
    tour.set_defaults(run="explore:run_tour")


def _add_explore(commands: Any) -> None:
    explore = commands.add_parser(
        "explore",
        help="explore a fit interactively in the browser",
        description="Change the bandwidth, kernel and query of a fit and see curve and weights follow: in the browser "
        "until Ctrl-C, or as a page with --out. The server listens on 127.0.0.1 only and requires the token in the "
        "address that it prints.",
    )
    explore.add_argument(
        "data",
        metavar="DATA",
        type=stream_name,
        help="a table with --target; a folder written by kernpool fit --model; make_sine_power or make_sine_linear",
    )
    explore.add_argument("--target", metavar="Y", help="column to predict; a text column means classification")
    _add_model_options(explore)
    explore.add_argument(
        "--out", metavar="HTML", help="write a self-contained page that needs no network and no Python"
    )
    explore.add_argument("--port", type=int, default=0, metavar="N", help="port of the server (default: a free one)")
    explore.add_argument("--lang", metavar="{en,zh}", help="English or Simplified Chinese (default: the browser's)")
    explore.add_argument("--seed", type=int, metavar="N", help="random seed of a generator (default: 0)")
    explore.add_argument("--no-open", action="store_true", help="print the address without opening the browser")
    add_table_options(explore, levels=True)
    explore.add_argument("--jobs", type=int, default=-1, metavar="N", help="threads (default: all processors)")
    explore.add_argument("--force", action="store_true", help="overwrite an existing page")
    explore.add_argument("--quiet", action="store_true", help="no progress bar, no notes")
    add_json(explore)
    explore.set_defaults(run="explore:run_explore", memory=None, plot=None, summary=False)


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--memory", metavar="SIZE", help="out of core: read DATA in chunks in about this memory: 2GiB, 512MiB, bytes"
    )
    command.add_argument("--jobs", type=int, default=-1, metavar="N", help="threads (default: all processors)")
    command.add_argument("--force", action="store_true", help="overwrite existing outputs")
    command.add_argument("--quiet", action="store_true", help="no report, no progress bar, no notes")
    add_json(command)


def _add_test(commands: Any) -> None:
    test = commands.add_parser(
        "test",
        help="hypothesis tests",
        description="Hypothesis tests of a fit or a table, by resampling. The result goes to standard output.",
    )
    kinds = test.add_subparsers(dest="test", required=True, metavar="{significance,specification,monotonicity,curves}")
    significance = kinds.add_parser("significance", help="does y depend on a column, given the others?")
    significance.add_argument("model", metavar="MODEL", help="folder written by kernpool fit --model")
    significance.add_argument(
        "--column",
        required=True,
        action="append",
        metavar="A",
        help="column to test; repeat it to test several jointly",
    )
    significance.add_argument(
        "--method", default="residual", choices=["residual", "gradient"], help="test statistic (default: residual)"
    )
    specification = kinds.add_parser("specification", help="is a linear regression adequate?")
    monotonicity = kinds.add_parser("monotonicity", help="is the curve of one column increasing (or decreasing)?")
    monotonicity.add_argument(
        "--direction", default="increasing", choices=["increasing", "decreasing"], help="default: increasing"
    )
    curves = kinds.add_parser("curves", help="do groups of rows have the same curve?")
    curves.add_argument("--groups", required=True, metavar="G", help="column of group labels")
    curves.add_argument(
        "--null",
        default="equal",
        choices=["equal", "parallel"],
        help="null hypothesis: equal curves, or curves that differ by constants (default: equal)",
    )
    for kind in (specification, monotonicity, curves):
        kind.add_argument("data", metavar="DATA", type=stream_name, help="table; - for standard input")
        kind.add_argument("--target", required=True, metavar="Y", help="response column")
        kind.add_argument("--features", metavar="A,B", help="explanatory columns (default: all others)")
        add_table_options(kind)
        kind.add_argument(
            "--bandwidth", metavar="H", help="a number, or one per column: 0.5,2 (default: chosen from the data)"
        )
    for kind, resamples in ((significance, 399), (specification, 399), (monotonicity, 999), (curves, 999)):
        kind.add_argument(
            "--kind",
            default="wild",
            choices=["wild", "mammen", "gaussian", *(["normal"] if kind is curves else [])],
            help="multipliers of the residuals in the bootstrap (default: wild, random signs)",
        )
        kind.add_argument(
            "--resamples", type=int, default=resamples, metavar="N", help=f"number of resamples (default: {resamples})"
        )
        kind.add_argument("--seed", type=int, default=0, metavar="N", help="random seed (default: 0)")
        add_json(kind)
        kind.add_argument("--jobs", type=int, default=-1, metavar="N", help="threads (default: all processors)")
        kind.add_argument("--quiet", action="store_true", help="no progress bar")
    test.set_defaults(run="hypothesis_tests:run_test")


COMMANDS = (
    _add_fit,
    _add_predict,
    _add_info,
    _add_compare,
    _add_test,
    _add_datasets,
    _add_explore,
    _add_tour,
    add_compile,
    add_completion,
)
