"""Parser and options of all commands.

Nothing but the standard library is imported, so that ``--help`` answers at once. Each command has a function that
adds it, listed in `COMMANDS`. Its ``run`` names a module of this folder and the function that does the work; the
module is imported when the command runs. `add_table_options` describes how a table is written and what its columns
are; `add_what_is_beside` has the options of `kernpool predict` that ask for more than predictions.
"""

import argparse
from typing import Any

from kernpool.cli.terminal import Parser, parse_degree, stream_name

INTERVAL_METHODS = (
    "adaptive", "full", "jackknife+", "minmax", "enclosure", "cv+", "split", "localized", "rlcp", "cqr", "jackknife",
)  # fmt: skip
SET_METHODS = ("lac", "aps", "raps", "full")


def add_what_is_beside(predict: argparse.ArgumentParser) -> None:
    """Add options for how sure the curve is, and for what to expect of the next value."""
    curve = predict.add_argument_group("how sure the curve is")
    curve.add_argument(
        "--se", action="store_true", help="write the standard error of each prediction beside it, as column Y_se"
    )
    curve.add_argument(
        "--interval",
        type=float,
        metavar="LEVEL",
        help="write intervals for the curve, such as 0.95: columns Y_center (bias taken off), Y_lower, Y_upper; with "
        "--method, intervals for the next value",
    )
    curve.add_argument(
        "--simultaneous",
        action="store_true",
        help="with --interval, cover all rows of DATA at once; of one column, the curve between them too",
    )
    curve.add_argument(
        "--variance",
        choices=["local", "sandwich", "nn", "hc0", "hc1", "hc2", "hc3"],
        help="with --se and --interval, where the noise is taken from (default: local); sandwich where it jumps",
    )
    value = predict.add_argument_group("what to expect of the next value")
    value.add_argument(
        "--quantiles",
        metavar="LEVELS",
        help="write quantiles of Y, such as 0.1,0.5,0.9: columns Y_q0.1, Y_q0.5, Y_q0.9",
    )
    value.add_argument(
        "--method",
        choices=list(dict.fromkeys(INTERVAL_METHODS + SET_METHODS)),
        metavar="METHOD",
        help="with --interval 0.9, write prediction intervals, which hold the next value with that probability, as "
        f"columns Y_new_lower, Y_new_upper, by {', '.join(INTERVAL_METHODS)}; with --sets, by {', '.join(SET_METHODS)} "
        "(default: lac)",
    )
    value.add_argument(
        "--sets",
        type=float,
        metavar="LEVEL",
        help="of a classifier, write sets that hold the class of the next row with this probability, such as 0.9: a "
        "column Y_in_CLASS of 1 and 0 for each class; a set has the most probable class at least",
    )
    value.add_argument(
        "--calibration",
        metavar="FILE",
        help="table of further rows with their Y, which the model was not fitted to: they say how wide intervals have "
        "to be, and how large sets (default: the rows of the fit)",
    )
    value.add_argument("--seed", type=int, metavar="N", help="of methods that draw: cv+, rlcp, aps, raps (default: 0)")


FORMATS = ["csv", "tsv", "parquet", "npy"]


def add_json(command: argparse.ArgumentParser) -> None:
    """Add the option that makes results, errors and warnings readable for programs."""
    command.add_argument(
        "--json",
        action="store_true",
        help="print results as JSON on standard output; errors and warnings are lines of JSON on standard error",
    )


def add_table_options(command: argparse.ArgumentParser, *, levels: bool = False) -> None:
    """Add options for reading DATA, and for what its columns are if these are chosen by this command."""
    reading = command.add_argument_group("how DATA is written (what is not given is found, and said)")
    reading.add_argument("--format", choices=FORMATS, help="of DATA (default: by suffix; .gz, .bz2, .xz, .zst unpack)")
    reading.add_argument("--sep", metavar="CHAR", help="between columns: comma, semicolon, tab, pipe, space, or any")
    reading.add_argument(
        "--decimal", choices=[",", "."], metavar="SIGN", help="sign of decimals, , or .; the other separates thousands"
    )
    reading.add_argument("--encoding", metavar="NAME", help="of text, such as utf-8, latin-1, cp1252, utf-16, gb18030")
    reading.add_argument(
        "--na",
        metavar="A,B",
        help="what missing cells hold, in addition to nothing, as in --na=-999,x (default: NA, NaN, N/A, n.a., null, "
        "none, -, ., ?)",
    )
    reading.add_argument(
        "--missing",
        default="error",
        choices=["error", "drop"],
        help="rows with missing cells in the columns that are used: an error, or dropped and counted (default: error)",
    )
    if not levels:
        return
    kinds = command.add_argument_group("what columns are (default: numbers, and levels where there is text)")
    kinds.add_argument(
        "--unordered", metavar="A,B", help="columns of levels without order, such as codes; Y for classes"
    )
    kinds.add_argument(
        "--ordered", metavar="A,B", help="columns of levels with order: years, or text as in size=small:medium:large"
    )
    kinds.add_argument(
        "--dates",
        nargs="?",
        const="",
        metavar="A,B",
        help="read dates (2020-12-31, 2020-12-31T06:00Z) as days since 1970-01-01; of all columns without names",
    )


def add_compile(commands: Any) -> None:
    """Add `kernpool compile`."""
    command = commands.add_parser(
        "compile",
        help="compile loops ahead of their first use, for a machine or an image",
        description="Fill the cache of compiled loops, so that nobody waits for the compiler later: some minutes for "
        "everything. NUMBA_CACHE_DIR says where it is; the default is beside the installed modules.",
    )
    command.add_argument("--kernels", metavar="A,B", help="only these (default: all)")
    command.add_argument("--columns", metavar="1,2", help="numbers of columns (default: 1,2,3,4,5,8,11,16)")
    command.add_argument("--processes", type=int, metavar="N", help="that compile at a time (default: one a processor)")
    command.add_argument("--quiet", action="store_true", help="no progress bar, no messages")
    add_json(command)
    command.set_defaults(run="setup_commands:run_compile")


def add_completion(commands: Any) -> None:
    """Add `kernpool completion`."""
    completion = commands.add_parser(
        "completion",
        help="write a script that completes commands and options in a shell",
        description='Write a completion script to standard output; for bash: eval "$(kernpool completion bash)".',
    )
    completion.add_argument("shell", choices=["bash", "zsh", "tcsh"], help="for which shell")
    completion.set_defaults(run="setup_commands:run_completion", json=False)


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
  kernpool compare engel.csv --target foodexp
  kernpool datasets engel > engel.csv
  kernpool explore engel.csv --target foodexp
  kernpool tour --open
  kernpool compile

tables as people have them (separators, decimal commas, text, dates, missing cells): kernpool fit --help
exit codes: 0 success, 1 failure (bad data, missing files), 2 wrong usage, 130 interrupted
"""


def build_parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(
        prog="kernpool",
        description="Kernel regression (Nadaraya-Watson): fit a table, predict, look at a model, compare, test.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for add in COMMANDS:
        add(commands)
    return parser


def _add_fit(commands: Any) -> None:
    fit = commands.add_parser("fit", help="fit a column of a table by the others", description="Fit a table.")
    fit.add_argument(
        "data",
        metavar="DATA",
        type=stream_name,
        help="CSV, TSV, Parquet or .npy file; - for standard input; a folder of Parquet files with --memory",
    )
    fit.add_argument(
        "--target", required=True, metavar="Y", help="the column to be predicted; one of text makes a classifier"
    )
    _add_how(fit)
    fit.add_argument("--model", metavar="DIR", help="write the model to this folder")
    fit.add_argument("--plot", metavar="PNG", help="draw the fit into this file")
    fit.add_argument(
        "--summary", action="store_true", help="print what the fit amounts to: parameters, noise, R2 (standard output)"
    )
    add_table_options(fit, levels=True)
    _add_common(fit)
    fit.set_defaults(run="commands:run_fit")


def _add_how(command: argparse.ArgumentParser) -> None:
    """Add options of what is fitted, and how."""
    command.add_argument("--features", metavar="A,B", help="columns to predict from (default: all others)")
    command.add_argument(
        "--groups",
        metavar="G",
        help="column of clusters, such as schools: bandwidths for new ones, and errors that let their rows go together",
    )
    command.add_argument("--kernel", default="gaussian", help="name of the kernel (default: gaussian)")
    command.add_argument(
        "--bandwidth",
        help="regularised (default), loo, aicc, gcv, plugin, scott, silverman, a number, or one per feature: 0.5,2; of "
        "a classifier log_loss (default)",
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
        help="of columns of levels, with a number as --bandwidth; 0 keeps levels apart; one per column",
    )
    command.add_argument("--composition", default="radial", choices=["radial", "product"], help="default: radial")
    command.add_argument(
        "--scale", default="raw", choices=["raw", "rank"], help="compare columns as they are, or by rank (default: raw)"
    )
    command.add_argument(
        "--extrapolate",
        choices=["plane", "clip"],
        help="with --degree 1, beyond the range of Y: follow the plane, or clip (default: plane)",
    )
    command.add_argument(
        "--ridge",
        type=float,
        metavar="R",
        help="with --degree 1, penalty on slopes, in rows (default: found if regularised)",
    )


def _add_predict(commands: Any) -> None:
    predict = commands.add_parser("predict", help="predict the rows of a table", description="Predict with a model.")
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
        "--unseen",
        choices=["raise", "unlike"],
        help="what a level is that the model has not seen: an error, or unlike all others (default: as the model was "
        "made)",
    )
    predict.add_argument(
        "--keep",
        nargs="?",
        const="",
        metavar="A,B",
        help="write these columns of DATA beside predictions; all of them without names",
    )
    predict.add_argument(
        "--proba", action="store_true", help="of a classifier, write the probability of each class: columns Y_p_CLASS"
    )
    predict.add_argument(
        "--cluster", metavar="ADDRESS", help="pool on the Dask cluster of this scheduler: tcp://host:port"
    )
    add_what_is_beside(predict)
    predict.add_argument("--groups", metavar="G", help=argparse.SUPPRESS)  # is told where it belongs
    add_table_options(predict)
    _add_common(predict)
    predict.set_defaults(run="commands:run_predict")


def _add_compare(commands: Any) -> None:
    compare = commands.add_parser(
        "compare",
        help="estimators beside forest and boosting, by cross-validation",
        description="Compare estimators of this package with scikit-learn's forest and gradient boosting by "
        "cross-validation: one table on standard output.",
    )
    compare.add_argument("data", metavar="DATA", type=stream_name, help="table; - for standard input")
    compare.add_argument("--target", required=True, metavar="Y", help="the column to be predicted; text makes classes")
    compare.add_argument("--features", metavar="A,B", help="columns to predict from (default: all others)")
    compare.add_argument("--groups", metavar="G", help="column of clusters, of which each is in one fold as a whole")
    compare.add_argument("--folds", type=int, default=5, metavar="K", help="how many (default: 5)")
    compare.add_argument("--seed", type=int, default=0, metavar="N", help="of the folds and the forests (default: 0)")
    add_table_options(compare, levels=True)
    compare.add_argument("--jobs", type=int, default=-1, metavar="N", help="threads (default: all processors)")
    compare.add_argument("--quiet", action="store_true", help="no progress bar, no messages")
    add_json(compare)
    compare.set_defaults(run="compare:run_compare")


def _add_datasets(commands: Any) -> None:
    datasets = commands.add_parser(
        "datasets",
        help="list tables to try, or write one",
        description="List tables that need no download, or write one to standard output, as CSV.",
    )
    datasets.add_argument("name", metavar="NAME", nargs="?", help="which to write (default: list them)")
    datasets.add_argument("--rows", type=int, metavar="N", help="of a synthetic one, how many rows (default: its own)")
    datasets.add_argument("--seed", type=int, metavar="N", help="of a synthetic one (default: 0)")
    add_json(datasets)
    datasets.set_defaults(run="datasets:run_datasets")


def _add_info(commands: Any) -> None:
    info = commands.add_parser("info", help="describe a model", description="Describe a model.")
    info.add_argument("model", metavar="MODEL", help="folder written by kernpool fit --model")
    info.add_argument("--summary", action="store_true", help="print what the fit amounts to, in place of JSON")
    add_json(info)
    info.set_defaults(run="commands:run_info")


def _add_tour(commands: Any) -> None:
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
    add_json(tour)
    tour.set_defaults(run="commands:run_tour")


def _add_explore(commands: Any) -> None:
    explore = commands.add_parser(
        "explore",
        help="look at a fit in the browser while its bandwidth moves",
        description="Explore a table, a model or a generator, in the browser until Ctrl-C, or as a page with --out. "
        "The server listens on 127.0.0.1 alone, and its address carries a token.",
    )
    explore.add_argument(
        "data",
        metavar="DATA",
        type=stream_name,
        help="a table with --target; a folder written by kernpool fit --model; make_sine_power or make_sine_linear",
    )
    explore.add_argument("--target", metavar="Y", help="the column that the others explain; one of text has classes")
    _add_how(explore)
    explore.add_argument("--out", metavar="HTML", help="write one page that needs no network and no Python")
    explore.add_argument("--port", type=int, default=0, metavar="N", help="of the server (default: a free one)")
    explore.add_argument("--lang", metavar="{en,zh}", help="English or Simplified Chinese (default: the browser's)")
    explore.add_argument("--seed", type=int, metavar="N", help="of a generator (default: 0)")
    explore.add_argument("--no-open", action="store_true", help="print the address, and open no browser")
    add_table_options(explore, levels=True)
    explore.add_argument("--jobs", type=int, default=-1, metavar="N", help="threads (default: all processors)")
    explore.add_argument("--force", action="store_true", help="replace a page that is there")
    explore.add_argument("--quiet", action="store_true", help="no progress bar, no notes")
    add_json(explore)
    explore.set_defaults(run="explore:run_explore", memory=None, plot=None, summary=False)


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--memory", metavar="SIZE", help="read DATA in chunks, in about so much memory: 2GiB, 512MiB, bytes"
    )
    command.add_argument("--jobs", type=int, default=-1, metavar="N", help="threads (default: all processors)")
    command.add_argument("--force", action="store_true", help="overwrite existing outputs")
    command.add_argument("--quiet", action="store_true", help="no summary, no progress bar, no notes")
    add_json(command)


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
        add_table_options(kind)
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
        add_json(kind)
        kind.add_argument("--jobs", type=int, default=-1, metavar="N", help="threads (default: all processors)")
        kind.add_argument("--quiet", action="store_true", help="no progress bar")
    test.set_defaults(run="commands:run_test")


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
