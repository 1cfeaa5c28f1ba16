"""Argument parser of the command line, with the options of all commands.

Nothing but the standard library is imported, so that ``--help`` answers at once. Options are declared as a help page
shows them, each with its help text:

========================== ==============================================================
``DATA``, ``[NAME]``       an argument, one that may be left out
``--force``                a switch
``--target Y``             an option with a value; `TYPES` converts values called N, R, ...
``--folds K=5``            with a default; without one, the default is that of the library
``--missing {raise|drop}`` with one of these values; of ``SIGN{,|.}`` the page shows the name
``--keep [A,B]``           whose value may be left out
``--column A...``          that may be repeated
``--target Y!``            that must be given
``text:``                  the title of the options below it
========================== ==============================================================

`COMMANDS` has the module and function of each command, imported when it runs, and `OPTIONS` what it takes.
"""

import argparse
import csv
import re
from collections.abc import Callable
from typing import Any

from kernpool.cli.terminal import Parser

Options = dict[str, str]  # declarations of options, and their help

LEAST_MEMORY = 1 << 20
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "space": " "}


def must_be(what: str, read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a function that reads the value of an option, and says what it must be where `read` raises an error."""

    def value_of(text: str) -> Any:
        try:
            return read(text)
        except (ValueError, LookupError, csv.Error):
            raise argparse.ArgumentTypeError(f"must be {what}; got {text!r}") from None

    return value_of


def names(text: str) -> list[str]:
    """Split names that are separated by commas; a name that contains a comma is quoted."""
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]


def numbers(text: str) -> float | list[float]:
    """Read a number, or numbers separated by commas."""
    found = [float(part) for part in text.split(",")]
    return found[0] if len(found) == 1 else found


def numbers_or_name(text: str) -> float | list[float] | str:
    """Read numbers as `numbers` does; other text is a name, for the library to judge."""
    try:
        return numbers(text)
    except ValueError:
        return text


def assignments(text: str) -> dict[str, str | None]:
    """Split names with values, as hour=24,month=12; a name with a comma or an equality sign is quoted."""
    found: dict[str, str | None] = {}
    for item in re.findall(r'(?:"[^"]*"|[^",])+', text):
        quoted = re.fullmatch(r'\s*"([^"]+)"\s*=(.*)', item)
        name, sign, value = (quoted[1], "=", quoted[2]) if quoted else names(item)[0].partition("=")
        found[name.strip()] = value if sign else None
    return found


def periods(text: str) -> dict[str, float]:
    """Read the periods of columns, such as hour=24,month=12."""
    return {name: float(period or "") for name, period in assignments(text).items()}


def separator(text: str) -> str:
    """Return the character that a value of ``--sep`` stands for, such as ``;`` for ``semicolon``."""
    character = SEPARATORS.get(text.lower(), text)
    if len(character) != 1 or character in '"\r\n' or character.isalnum():
        raise ValueError(text)
    return character


def encoding(text: str) -> str:
    """Return the name of a text encoding that Python knows."""
    "".encode(text)
    return text


def number_of_bytes(text: str) -> int:
    """Read a size such as 512MiB, 1.5GB or 2000000."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *(?:([KMGT])(I?)B|B?)", text.strip().upper(), re.ASCII)
    number, letter, binary = found.groups() if found else ("0", None, None)
    size = int(float(number) * (1024 if binary else 1000) ** " KMGT".index(letter or " "))
    if size < LEAST_MEMORY:
        raise ValueError(text)
    return size


def number_of_neighbors(text: str) -> int | float | str:
    """Read a number of neighbors, 30, or a share of all rows, 30% or 0.3; "auto" is to be searched for."""
    if text == "auto":
        return text
    if text.endswith("%"):
        return float(text[:-1]) / 100.0
    return int(text) if text.isdigit() else float(text)


NAMES = must_be("names that are separated by commas, as in A,B", names)
NUMBERS = must_be("a number, or numbers separated by commas", numbers)
# How values are read, by the name that help pages give them.
TYPES: dict[str, Callable[[str], Any]] = {
    "N": int,
    "K": int,
    "R": float,
    "LEVEL": float,
    "ROWS": int,
    "K|SHARE": number_of_neighbors,
    "A,B": NAMES,
    "COLUMNS": must_be(
        "names of columns, as in A,B, or with levels in order, as in size=small:medium:large", assignments
    ),
    "LAT,LON": NAMES,
    "S": NUMBERS,
    "LEVELS": NUMBERS,
    "H": numbers_or_name,
    "1,2": must_be("whole numbers such as 1,2,3", lambda text: [int(part) for part in text.split(",")]),
    "PERIODS": must_be("columns and periods such as hour=24", periods),
    "SIZE": must_be("a size from 1MiB on, such as 512MiB, 2GiB, 1.5GB or a number of bytes", number_of_bytes),
    "ENCODING": must_be("a text encoding, such as utf-8, latin-1 or cp1252", encoding),
    "CHAR": must_be(f"one character, or one of {', '.join(SEPARATORS)}", separator),
}

# Values of options whose value is left out: all columns, and training rows of a prediction.
LEFT_OUT: dict[str, Any] = {"A,B": [], "ROWS": 3}

READING = {
    "format of DATA:": "",
    "--format {csv|tsv|parquet|npy}": "file format (default: by suffix; .gz, .bz2, .xz and .zst are unpacked)",
    "--sep CHAR": "column separator: comma, semicolon, tab, pipe, space, or another (default: found among the first "
    "three)",
    "--decimal SIGN{,|.}": "decimal sign, , or .; the other separates thousands (default: . and no thousands, but , in "
    "tables of semicolons)",
    "--encoding ENCODING": "text encoding: utf-8 (default), latin-1, cp1252, utf-16, gb18030 ...",
    "--na A,B": "codes of missing values, as in --na=-999,x; empty cells are always missing (default: NA, NaN, N/A, "
    "n.a., null, none, -, ., ?)",
}
COMPLETE = {
    **READING,
    "--missing {raise|drop}": "rows with missing values in the columns used: stop with an error, or drop and count "
    "(default: raise)",
}
COLUMN_TYPES = {
    "types of columns (default: text is categorical, all else numeric):": "",
    "--unordered A,B": "nominal columns, such as codes; Y for classification",
    "--ordered COLUMNS": "ordinal columns: years, or text in order as in size=small:medium:large",
    "--dates [A,B]": "date columns (2020-12-31, 2020-12-31T06:00Z), read as days since 1970-01-01; without names: all "
    "that hold dates",
}
FEATURES = {"--features A,B": "columns to predict from (default: all others)"}
JSON = {"--json": "print results as JSON on standard output; errors and warnings are lines of JSON on standard error"}
QUIET = {"--quiet": "no progress bar, no messages", **JSON}
RUNNING = {
    "--jobs N=-1": "threads (default: all processors)",
    "--quiet": "no report, no progress bar, no notes",
    **JSON,
}
SAVED = {"MODEL": "file written by kernpool fit --model"}
PREDICTED = "column to predict; a text column means classification"
OVERWRITE = {"--force": "overwrite existing outputs", **RUNNING}
CHUNKS = {
    "--memory SIZE": "out of core: read DATA in chunks in about this memory: 2GiB, 512MiB, bytes",
    **OVERWRITE,
}
FITTING = {
    **FEATURES,
    "--groups G": "cluster column (e.g. school): whole clusters are left out when bandwidths and errors are computed",
    "--kernel NAME": "name of the kernel (default: gaussian); 'product NAME' is a product over features",
    "--bandwidth H": "regularised (default), loo, aicc, gcv, scott, silverman, a number, or one number per "
    "feature: 0.5,2; for classifiers the default is log_loss",
    "--degree {0|1}": "1 for local lines (default), 0 for local means, as by default for a generator of explore",
    "--smoothing S": "smoothing of each categorical column (needs a numeric --bandwidth); 0: categories share nothing",
    "--periodic PERIODS": "features that come round, and their periods: hour=24,month=12",
    "--geographic LAT,LON": "latitude and longitude in degrees, as places on the globe; their bandwidth is in km",
    "--ridge R": "of local lines, ridge penalty on slopes, as a number of rows (default: chosen with --bandwidth "
    "regularised)",
    "--neighbors K|SHARE": "windows that reach to the nearest rows: 30, 30%% of all, or auto for the number of least "
    "leave-one-out error (default: windows of the bandwidth)",
}
CURVE = {
    "standard errors and confidence intervals of the curve:": "",
    "--se": "add the standard error of each prediction, as an estimate of the curve: Y_se",
    "--interval LEVEL": "confidence level, such as 0.95: adds confidence intervals for the curve, columns Y_center "
    "(bias-corrected), Y_lower, Y_upper; with --method, prediction intervals for a new observation instead",
    "--simultaneous": "with --interval, a band that covers the curve at all rows of DATA at once; for a single "
    "feature, also between them",
    "--variance {local|sandwich|nn|hc0|hc1|hc2|hc3}": "with --se and --interval, estimator of the error variance "
    "(default: local); sandwich where the variance jumps",
}
OBSERVATION = {
    "distribution of a new observation:": "",
    "--quantiles LEVELS": "add conditional quantiles of Y, such as 0.1,0.5,0.9: columns Y_q0.1, Y_q0.5, Y_q0.9",
    "--method METHOD": "with --interval 0.9, add 90 %% prediction intervals for a new observation, columns "
    "Y_new_lower, Y_new_upper: auto, adaptive, jackknife+, cv+, split, cqr; "
    "with --sets, the kind of sets: lac, aps (default: lac)",
    "--sets LEVEL": "for classifiers, coverage such as 0.9: adds prediction sets that contain the class of a new row "
    "with this probability, one column Y_in_CLASS of 1 and 0 per class; the most probable class is always included",
    "--calibration FILE": "table of rows with their Y that the model was not fitted to, which calibrate the width of "
    "prediction intervals and the size of sets (default: the training rows)",
    "--seed N": "random seed, for cv+ and aps (default: 0)",
}
TABLE = {
    "DATA": "table; - for standard input",
    "--target Y!": "response column",
    "--features A,B": "explanatory columns (default: all others)",
    "--bandwidth H": "a number, or one per column: 0.5,2 (default: chosen from the data)",
}


RESAMPLING: Options = {
    "--resamples N": "number of resamples (default: 399)",
    "--seed N": "random seed (default: 0)",
    **RUNNING,
}
COMMANDS = {
    "fit": ("fit:run_fit", "fit a model to a table", "Fit a regression, or a classifier if the target is text."),
    "predict": ("predict:run_predict", "predict the rows of a table", "Predict with a model."),
    "info": ("info:run_info", "describe a model", "Print a model as JSON or its summary."),
    "compare": (
        "compare:run_compare",
        "cross-validate against random forest and gradient boosting",
        "Compare the estimators of this package with scikit-learn's random forest and gradient boosting by "
        "cross-validation; the table goes to standard output.",
    ),
    "test": (
        "hypothesis_tests:run_test",
        "hypothesis tests",
        "Hypothesis tests of a fit or a table, by resampling. The result goes to standard output.",
    ),
    "explore": (
        "explore:run_explore",
        "write an interactive page of a fit",
        "Write a page on which one changes the bandwidth, kernel and query of a fit and sees curve and weights follow. "
        "It is one file, which needs no network and no Python.",
    ),
}
TESTS = {
    "significance": "does y depend on a column, given the others?",
    "specification": "is a linear regression adequate?",
}
OPTIONS: dict[str, Options] = {
    "fit": {
        "DATA": "CSV, TSV, Parquet or .npy file; - for standard input; a folder of Parquet files with --memory",
        "--target Y!": PREDICTED,
        **FITTING,
        "--stack": "average the fit with kernel ridge regressions, weighted by leave-one-out: usually the smallest "
        "error on tables of several columns and up to some 10 000 rows (kernpool compare); no quantiles, no tests",
        "--gap N": "when bandwidths and errors are computed, leave out the N rows on either side of a row as well, "
        "whose noise is correlated with its own (default: 0)",
        "--time COLUMN": "dates or numbers by which rows are in order, for --gap and for the warning of correlated "
        "noise (default: the only feature)",
        "--model FILE": "write the model to this file",
        "--plot PNG": "draw the fit over each feature, with confidence intervals, into this file",
        **CHUNKS,
        **COMPLETE,
        **COLUMN_TYPES,
    },
    "predict": {
        **SAVED,
        "DATA": "table with the model's features; - for standard input",
        "--out FILE=-": "output file (default: standard output)",
        "--empty {nan|nearest|mean|zero|raise}": "prediction for a row with no training row within the kernel's "
        "support (default: the model's setting)",
        "--unseen {raise|unlike}": "categories that the training rows do not have: an error, or treated as "
        "different from all others (default: the model's setting)",
        "--keep [A,B]": "copy these columns of DATA to the output; without names: all columns",
        "--proba": "for classifiers, add the probability of each class: columns Y_p_CLASS",
        "--explain [ROWS]": "add the training rows of largest weight behind each prediction (default: 3): columns "
        "Y_n_eff (effective rows; a mean of few has a large variance) and Y_row_1, Y_weight_1, Y_contribution_1, "
        "Y_influence_1, ...; rows are numbered from 0, as in the table of the fit; for classifiers, of the predicted "
        "class",
        **CHUNKS,
        **CURVE,
        **OBSERVATION,
        **COMPLETE,
    },
    "info": {**SAVED, "--summary": "print effective parameters, residual sd and R2 instead of JSON", **JSON},
    "compare": {
        "DATA": "table; - for standard input",
        "--target Y!": PREDICTED,
        **FEATURES,
        "--groups G": "cluster column; each cluster is in one fold",
        "--folds K=5": "number of folds (default: 5)",
        "--seed N=0": "random seed of folds and forests (default: 0)",
        **RUNNING,
        **COMPLETE,
        **COLUMN_TYPES,
    },
    "test": {},
    "test significance": {
        **SAVED,
        "--column A...": "column to test; repeat it to test several jointly (default: one after the other)",
        "--method {residual|gradient}": "test statistic (default: residual)",
        **RESAMPLING,
    },
    "test specification": TABLE | RESAMPLING | COMPLETE,
    "explore": {
        "DATA": "a table with --target; a file written by kernpool fit --model; make_sine_power or make_sine_linear",
        "--target Y": PREDICTED,
        **FITTING,
        "--out HTML=explorer.html": "page to write (default: explorer.html)",
        "--lang {en|zh}": "English or Simplified Chinese (default: the browser's)",
        "--seed N": "random seed of a generator (default: 0)",
        **OVERWRITE,
        **COMPLETE,
        **COLUMN_TYPES,
    },
}

EXAMPLES = """\
examples:
  kernpool fit engel.csv --target foodexp --model engel-model --plot engel.png
  kernpool predict engel-model new-households.csv --out predictions.csv
  cat new-households.csv | kernpool predict engel-model - > predictions.csv
  kernpool fit big.parquet --target y --memory 2GiB --model big-model
  kernpool predict big-model queries.parquet --memory 2GiB --out predictions.parquet
  kernpool predict engel-model new-households.csv --interval 0.95 > confidence.csv
  kernpool predict engel-model new-households.csv --interval 0.9 --method jackknife+ > prediction-intervals.csv
  kernpool predict engel-model new-households.csv --explain > explained.csv
  kernpool predict engel-model new-households.csv --quantiles 0.1,0.5,0.9 > quantiles.csv
  kernpool fit visits.csv --target y --features dose --groups patient --model visits-model
  kernpool info engel-model --summary
  kernpool test significance engel-model --column income
  kernpool compare engel.csv --target foodexp
  kernpool explore engel.csv --target foodexp

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
    for name, (run, help, description) in COMMANDS.items():
        command = _add_command(commands, name, run, help, description, OPTIONS[name])
        if name == "test":
            tests = command.add_subparsers(dest="test", required=True, metavar=f"{{{','.join(TESTS)}}}")
            for test, question in TESTS.items():
                _add_command(tests, test, run, question, question.capitalize(), OPTIONS[f"test {test}"])
    return parser


def _add_command(
    commands: Any, name: str, run: str, help: str, description: str, options: Options
) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=help, description=description)
    command.set_defaults(run=run, json=False)
    group: argparse._ActionsContainer = command
    for usage, text in options.items():
        if usage.endswith(":"):
            group = command.add_argument_group(usage.removesuffix(":"))
        else:
            _add_option(group, usage, text)
    return command


def _add_option(command: argparse._ActionsContainer, usage: str, help: str) -> None:
    """Add the option that a declaration describes, see the docstring of this module."""
    name, _, value = usage.removesuffix("!").partition(" ")
    value, _, default = value.partition("=")
    settings: dict[str, Any] = {"help": help}
    shown, brace, choices = value.partition("{")
    if brace:
        settings["choices"] = choices.rstrip("}").split("|")
    if shown:
        settings["metavar"] = shown.strip("[].")
    if not name.startswith("-"):
        settings |= {"metavar": name.strip("[]"), "nargs": "?" if name.startswith("[") else None}
        name = settings["metavar"].lower()
    elif not value:
        settings["action"] = "store_true"
    elif value.endswith("..."):
        settings["action"] = "append"
    elif value.startswith("["):
        settings |= {"nargs": "?", "const": LEFT_OUT[settings["metavar"]]}
    if name.startswith("--"):
        settings["required"] = usage.endswith("!")
    if default:
        settings["default"] = default
    if settings.get("metavar") in TYPES:
        settings["type"] = TYPES[settings["metavar"]]
    command.add_argument(name, **settings)
