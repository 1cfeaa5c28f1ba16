"""What commands refuse: one line that says what to do, the exit code, and nothing written."""

import shlex
from importlib.util import find_spec

import numpy as np
import pytest

from kernpool import KernelStackingRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor, save_model
from tests.support.commands import kernpool
from tests.support.parquet import write_parquet

N = 45
RNG = np.random.default_rng(0)
X, A = RNG.uniform(0, 4, (2, N)).round(3)
SIDE, SIZE = RNG.choice(["left", "right"], N), RNG.choice(["S", "M", "L"], N)
Y = (np.sin(X) + (SIDE == "left") + 0.1 * RNG.normal(size=N)).round(4)
FILES = {
    "t.csv": "a,y\n1,2\n2,3\n3,5\n",
    "few.csv": "a,y,g\n1,2,0\n2,3,1\n",
    "wrong.csv": "x,y,empty,same\n1,2,a,0\n2,3, ,0\n3,4,,0\n4,6,b,0\n",
    "new.csv": "x\n0.5\n1.5\n",
    "calm.csv": "x,y\n0.5,1\n1.5,0.5\n",
    "misses.csv": "x,e,y\n1,,2\n2,,3\n3,NA,4\n",
    "german.csv": "d,y\n31.12.2020,1\n30.12.2020,2\n",
    "dated.csv": "y,x\n2020-12-31,1\n2020-12-30,2\n",
    "alone.csv": "x,y\n" + "".join(f"{i},{'abc'[(i > 0) + (i > 9)]}\n" for i in range(20)),
    "apart.csv": "x,g,y\n" + "".join(f"{i},{i % 2},{'ab'[i % 2]}\n" for i in range(20)),
    "names.csv": "name,x,y\n" + "".join(f"n{i},{i},{i % 7}\n" for i in range(50)),
    "one.csv": "dose,y\n1,2\n",
    "none.csv": "x,y\n",
    "twice.csv": "x,x,y\n1,2,3\n",
    "wide.csv": "x,y\n1,2,3\n",
    "days.csv": "x,day,y\n" + "".join(f"{i * i},{7 * i % 20},{i % 5}\n" for i in range(20)),
}
FIT, MIXED = "fit t.csv --target y", "fit mixed.csv --target y"
FILE = "fit big.parquet --target y --memory 1GiB"
PREDICT = "predict model new.csv --out out.csv"
NEW, SETS = f"{PREDICT} --interval 0.9 --method", "predict text new.csv --out out.csv --sets 0.9"
EXPLORE = "explore mixed.csv --out p.html --target"
SPECIFICATION = "test specification mixed.csv --target y --features x"
# commands that are no command, by the part of the line that says so: exit code 2
MISUSED = {
    "": "a command is needed: fit, predict",
    "dance": "invalid choice",
    "tset t.csv": "invalid choice: 'tset'; did you mean 'test'? kernpool --help shows the options",
    "fit t.csv": "required: --target",
    "fit --target y --dates t.csv": "--dates takes the name that follows: write it after all others, or --dates=",
    f"{FIT} --features a,y": "cannot predict itself",
    f"{FIT} --features a,a": "each once",
    f"{FIT} --features 'a\nb'": "must be names that are separated by commas",
    f"{FIT} --kernel gausian": "did you mean 'gaussian'",
    f"{FIT} --bandwith 2": "unrecognized arguments: --bandwith; did you mean '--bandwidth'",
    "fit t.csv --taget y": "unrecognized arguments: --taget; did you mean '--target'",
    f"{FIT} --robust": "unrecognized arguments: --robust; kernpool fit --help",
    f"{FIT} --bandwidth wide": "--bandwidth must be a positive number, one per column, or one of 'loo'",
    f"{FIT} --bandwidth -1": "--bandwidth must be positive",
    f"{FIT} --bandwidth 1,2": "one per column",
    f"{FIT} --bandwidth nan": "--bandwidth is nan; it must be finite",
    f"{MIXED} --smoothing 1": "--smoothing is searched for with --bandwidth regularised and must be left out",
    f"{FIT} --degree 0 --ridge 1": "--ridge is for local lines",
    f"{FIT} --degree 1 --ridge -1": "--ridge must be left out, to be found, or a number from 0",
    f"{FIT} --jobs 0": "--jobs must be left out, a positive number of threads",
    f"{FIT} --plot p.xyz --model m": "--plot must end in one of png",
    f"{FIT} --plot m.png --model ./m.png": "both name",
    f"{MIXED} --unordered side --ordered side": "both name 'side'",
    f"{MIXED} --features x --unordered side": "name it in --features too",
    f"{MIXED} --ordered size=S": "must list two levels or more",
    f"{MIXED} --ordered y": "--ordered names the target 'y'",
    f"{MIXED} --dates x --unordered x": "named in --dates, and in --unordered or --ordered",
    f"{MIXED} --sep ab": "--sep: must be one character",
    f"{MIXED} --sep . --decimal .": "must differ",
    f"{MIXED} --encoding klingon": "--encoding: must be a text encoding, such as utf-8, latin-1 or cp1252; got",
    f"{MIXED} --features x --bandwidth log_loss": "--bandwidth log_loss is for probabilities of classes",
    f"{MIXED} --features x,side --bandwidth 1 --smoothing a": "--smoothing: must be",
    "fit mixed.csv --target side --features x --degree 1": "--degree is for targets of numbers, and 'side' holds",
    f"{MIXED} --features x --groups side --bandwidth aicc": "--bandwidth aicc leaves none out; use one of",
    f"{FIT} --groups a": "--features must name at least one column, and t.csv has none besides 'y' and 'a'",
    "fit wrong.csv --target y --features x --groups same": "--groups has a single group",
    f"{FIT} --memory 1GiB": "reads Parquet and .npy files in chunks",
    **{f"{FILE} --{option}": f"--{option.split()[0].split('=')[0]} needs the rows in memory" for option in (
        "unordered x", "na=-999", "groups x", "smoothing 1", "time x")},
    f"{FILE} --features x --missing drop": "--missing drop needs the rows in memory",
    f"{FILE} --plot p.png": "--plot needs the rows in memory",
    f"{FILE} --sep ;": "--sep says how text is written",
    **{f"fit big.parquet --target y --memory={size}": "--memory: must be" for size in (
        "''", "lots", "-1GiB", "nan", "100", "٣GiB")},
    "predict model new.csv --empty near": "invalid choice: 'near'; did you mean 'nearest'? kernpool ",
    "predict model big.parquet --memory 1GiB --json": "--json prints records, which need the rows in memory",
    f"{PREDICT} --quantiles 50": "--quantiles must be between 0 and 1, got 50.0; a median is 0.5",
    f"{PREDICT} --quantiles 0.5,0.50": "--quantiles must differ, as each is one column; got [0.5, 0.5]",
    f"{PREDICT} --quantiles 0.1,-1": "--quantiles must be between 0 and 1, got -1",
    f"{PREDICT} --quantiles nan": "--quantiles holds nan",
    f"{PREDICT} --interval 95": "--interval must lie between 0 and 1, got 95.0; 95 percent is --interval 0.95",
    f"{PREDICT} --simultaneous": "--simultaneous is for confidence intervals of the curve: say --interval 0.95",
    f"{PREDICT} --interval 0.9 --simultaneous --memory 1GiB": "leave --memory out",
    f"{PREDICT} --variance nn": "say --se, or --interval 0.95",
    f"{PREDICT} --method cv+": "say --interval 0.9 or --sets 0.9 too",
    f"{PREDICT} --seed 1": "--calibration and --seed are for prediction intervals and sets",
    f"{PREDICT} --interval 0.9 --calibration calm.csv": "say --interval 0.9 --method split, or --sets 0.9, too",
    f"{NEW} lac": "--method must be one of 'auto', 'adaptive'",
    f"{NEW} cv+ --simultaneous": "without --method",
    f"{NEW} split": "--method split needs calibration rows that the model was not fitted to: give --calibration",
    f"{NEW} jackknife+ --calibration calm.csv": "has no use for --calibration",
    f"{PREDICT} --sets 0.9": "--sets is for classifiers, and model holds a NadarayaWatsonRegressor",
    f"{PREDICT} --proba": "--proba is for classifiers",
    f"{SETS} --method aps --memory 1GiB": "or use --method lac",
    f"{SETS} --method adaptive": "--method must be 'lac' or 'aps'",
    f"{SETS} --interval 0.9": "--interval is for regressors, and --sets for classifiers",
    SETS.replace("0.9", "90"): "90 percent is --sets 0.9",
    "predict text new.csv --interval 0.95": "--interval is for regressors, and text holds",
    "predict filed new.csv --interval 0.9 --method cv+": "--method cv+ needs the rows themselves, and this",
    "predict model new.csv --explain 0": "--explain must be a number of training rows from 1 on",
    "predict model new.csv --explain few": "argument --explain: invalid",
    f"{FIT} --neighbors 2.5": "--neighbors must be a whole number",
    f"{MIXED} --features x --neighbors 5 --gap 2": "for rows that share noise with those next to them; leave --neigh",
    f"{MIXED} --time y": "--time names the target 'y'",
    f"{MIXED} --time x --groups side": "leaves whole clusters out",
    "fit days.csv --target y --gap 3": "name their column with --time",
    "test significance model --column x --resamples 0": "--resamples must be an integer from 1 on such as 399",
    f"{SPECIFICATION} --bandwidth h": "--bandwidth must be a positive number",
    "compare mixed.csv --target y --folds 1": "--folds must be at least 2",
    "compare mixed.csv --target y --folds 100": "--folds 100 needs as many rows, and there are 45; say --folds 45",
    "compare mixed.csv --target y --folds 10 --groups side": "needs as many clusters, and there are 2",
    "compare mixed.csv --target y --seed -1": "--seed must be in",
    "explore mixed.csv": "that the others explain; columns are '",
    "explore make_sine_power --target y --features x": "--target, --features: make_sine_power makes",
    "explore make_sine_power --missing drop --sep ;": "--sep, --missing",
    "explore make_sine_power --bandwidth log_loss": "log_loss",
    "explore model --degree 1 --bandwidth 0.3 --out n.html": "--bandwidth, --degree: model is a fitted model",
    f"{EXPLORE} y --seed 3": "--seed: mixed.csv is no generator",
    "predict stack new.csv --explain": "--explain is for fits without --stack, and stack holds a KernelStacking",
}  # fmt: skip
# what files do not allow: exit code 1
IMPOSSIBLE = {
    "fit missing.csv --target y": "missing.csv: No such file or directory",
    "fit t.xls --target y": "t.xls is a spreadsheet; save the sheet as CSV",
    "fit folder --target y": "folder is a folder; name a file in it",
    "fit t.doc --target y": "unknown format 'doc'",
    "fit - --target y": "standard input is empty",
    "fit one.csv --target y": "kernpool fit: error: one.csv has one row, and a curve needs two or more; add rows",
    "fit none.csv --target y": "none.csv has no rows",
    "fit twice.csv --target y": "two columns have the same name; rename one. Columns are x, x, y",
    "fit wide.csv --target y": "rows have more cells than the first line names",
    "fit names.csv --target name": "holds 50 different texts in 50 rows, which is no column of classes",
    f"{FIT} --dates a": "column 'a' holds no dates",
    f"{FIT} --features z": "no column 'z'",
    f"{FIT} --model no/where": "does not exist; make it first",
    "fit misses.csv --target y --missing drop": "column 'e' misses 100% of its cells",
    "fit german.csv --target y": "a date; write dates as year-month-day, such as 2020-12-31, and say",
    "fit german.csv --target y --dates": "(rows are counted from 0); write dates as year-month-day",
    "fit dated.csv --target y": "say --dates y to read it as days since 1970-01-01, or name",
    f"{MIXED} --unordered nothing": "no column 'nothing'",
    f"{MIXED} --features x,size --ordered size": "whose order is not declared",
    f"{MIXED} --features x,size --ordered size=S:M": "holds 'L', which is not in the order S:M",
    f"{MIXED} --unordered y": "which are no classes; leave it out of --unordered for numbers",
    f"{MIXED} --features x --groups room": "mixed.csv: no column 'room'; columns are 'x'",
    "fit wrong.csv --target y --features x --groups empty": "row 1, column 'empty' is empty, a missing cell",
    f"{FILE.replace('--target y', '--target z')}": "no column 'z'",
    FILE: "column 'note' holds string",
    FILE.replace("big", "nowhere"): "nowhere.parquet does not exist",
    f"{FILE} --features x --dates x": "--dates names 'x', which is no column of dates to predict from",
    "fit days.parquet --target y --memory 1GiB": "column 'day' holds dates; say --dates day",
    "predict nothing t.csv": "nothing is no file",
    f"{PREDICT} --keep nothing": "no column 'nothing'",
    "predict model no.parquet --memory 1GiB --out out.csv": "has no rows",
    "predict model bad.parquet --memory 1GiB --out out.csv": "row 1, column 'x' is nan",
    "predict model days.parquet --memory 1GiB --out out.csv": "no column 'x'",
    f"{NEW} split --calibration new.csv": "no column 'y'",
    "predict nameless new.csv --interval 0.9 --method split --calibration calm.csv": "save the model with target=",
    f"{SETS} --calibration other.csv": "column 'side' holds 'up', which is no class of the model",
    "explore stack": "explore takes a fitted NadarayaWatsonRegressor",
    "predict few new.csv --se": "inference needs at least 5 rows, got 3",
    "predict filed new.csv --interval 0.9 --simultaneous": "band needs the rows themselves; fit a sample",
    "predict filed new.csv --se --variance nn": "without --memory, with the --bandwidth that kernpool info shows",
    "predict filed new.csv --explain": "not in memory",
    f"{MIXED} --time side": "--time must name a column of numbers or of dates",
    f"{MIXED} --time year": "no column 'year'",
    "info .": "is no file; kernpool fit --model FILE writes one",
    "info filed --summary": "fit a sample of the rows without --memory, with the --bandwidth that kernpool info",
    "test significance model --column z": "no column 'z'; it predicts from ['x']",
    "test significance text --column x": "kernpool test is for regressors",
    "test significance filed --column x": "significance_test needs the rows themselves; fit a sample",
    "test specification mixed.csv --target y --features side": "column 'side' holds",
    "compare apart.csv --target y --groups g --folds 2": "without the clusters of one fold a single class is left",
    "compare alone.csv --target y --folds 2": "the smallest class has 1 row, which is less than --folds 2; drop",
    "explore nothing": "nothing does not exist; name a table and its --target",
    f"{EXPLORE} y --features side --bandwidth 1 --smoothing 0.1": "numeric",
    "explore filed --out n.html": "explore needs the rows themselves; fit a sample of the rows without",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables, models of numbers, of classes, of few rows and without a name of the target, and one of a file."""
    path = tmp_path_factory.mktemp("refusals")
    (path / "folder").mkdir()
    for name, text in FILES.items():
        (path / name).write_text(text)
    rows = [",".join(map(str, row)) for row in zip(X, A, SIDE, SIZE, Y, strict=True)]
    (path / "mixed.csv").write_text("\n".join(["x,a,side,size,y", *rows]) + "\n")
    (path / "other.csv").write_text("x,side\n1,up\n")
    for name, rows, names in (("model", N, ("x", "y")), ("few", 3, ("x", "y")), ("nameless", N, ("x", None))):
        fitted = NadarayaWatsonRegressor(bandwidth=0.5).fit(X[:rows, None], Y[:rows])
        save_model(fitted, path / name, features=["x"], target=names[1])
    fitted = NadarayaWatsonClassifier(bandwidth=0.5).fit(X[:, None], SIDE)
    save_model(fitted, path / "text", features=["x"], target="side")
    save_model(KernelStackingRegressor().fit(X[:, None], Y), path / "stack", features=["x"], target="y")
    if find_spec("pyarrow"):
        write_parquet(path / "big.parquet", {"x": X, "y": Y, "note": ["text"] * N})
        write_parquet(path / "days.parquet", {"day": np.datetime64("2020-01-01") + np.arange(N), "y": Y})
        write_parquet(path / "bad.parquet", {"x": [1.0, np.nan]})
        write_parquet(path / "no.parquet", {"x": np.zeros(0)})
        write_parquet(path / "rows.parquet", {"x": X, "y": Y})
        fitted = NadarayaWatsonRegressor(bandwidth=0.5).fit(str(path / "rows.parquet"), "y")
        save_model(fitted, path / "filed", target="y")
    return path


@pytest.mark.parametrize(("command", "message"), (MISUSED | IMPOSSIBLE).items())
def test_refusals_are_one_line_and_write_nothing(command, message, folder):
    needs = {"pyarrow": ("parquet", "filed"), "matplotlib": ("--plot",)}
    for extra, words in needs.items():
        if any(word in command for word in words) and not find_spec(extra):
            pytest.skip(f"needs {extra}")
    before = sorted(folder.rglob("*"))
    done = kernpool(*shlex.split(command), cwd=folder)
    said = done.stderr.decode()
    assert (done.returncode, message in said, done.stdout) == (1 + (command in MISUSED), True, b""), said
    assert (said.count("\n"), "Traceback" in said) == (1, False), said
    assert sorted(folder.rglob("*")) == before
