"""What commands refuse: one line that says what to do, the exit code, and nothing written."""

import shlex
from importlib.util import find_spec

import numpy as np
import pytest

from kernpool import NadarayaWatsonClassifier, NadarayaWatsonRegressor, save_model
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
    "days.csv": "x,day,y\n" + "".join(f"{i * i},{7 * i % 20},{i % 5}\n" for i in range(20)),
}
FIT, MIXED = "fit t.csv --target y", "fit mixed.csv --target y"
FILE = "fit big.parquet --target y --memory 1GiB"
PREDICT = "predict model new.csv --out out.csv"
NEW, SETS = f"{PREDICT} --interval 0.9 --method", "predict text new.csv --out out.csv --sets 0.9"
EXPLORE = "explore mixed.csv --out p.html --target"
SPECIFICATION = "test specification mixed.csv --target y --features x"
# the command, its exit code, and a part of the line that it says
REFUSED = [
    ("", 2, "a command is needed: fit, predict"),
    ("dance", 2, "invalid choice"),
    ("tset t.csv", 2, "invalid choice: 'tset'; did you mean 'test'? kernpool --help shows the options"),
    ("fit missing.csv --target y", 1, "missing.csv: No such file or directory"),
    ("fit t.xls --target y", 1, "t.xls is a spreadsheet; save the sheet as CSV"),
    ("fit t.zip --target y", 1, "t.zip is an archive; unpack it"),
    ("fit folder --target y", 1, "folder is a folder; name a file in it"),
    ("fit t.doc --target y", 1, "unknown format 'doc'"),
    ("fit - --target y", 1, "standard input is empty"),
    ("fit t.csv", 2, "required: --target"),
    ("fit one.csv --target y", 1, "kernpool fit: error: one.csv has one row, and a curve needs two or more; add rows"),
    ("fit --target y --dates t.csv", 2, "--dates takes the name that follows: write it after all others, or --dates="),
    (f"{FIT} --features a,y", 2, "cannot predict itself"),
    (f"{FIT} --features a,a", 2, "each once"),
    (f"{FIT} --features z", 1, "no column 'z'"),
    (f"{FIT} --features 'a\nb'", 2, "must be names that are separated by commas"),
    (f"{FIT} --kernel gausian", 2, "did you mean 'gaussian'"),
    (f"{FIT} --bandwith 2", 2, "--bandwith 2; did you mean '--bandwidth'"),
    (f"{FIT} --bandwidth wide", 2, "--bandwidth must be a positive number, one per column, or one of 'loo'"),
    (f"{FIT} --bandwidth -1", 2, "--bandwidth must be positive"),
    (f"{FIT} --bandwidth 1,2", 2, "one per column"),
    (f"{FIT} --bandwidth nan", 2, "--bandwidth is nan; it must be finite"),
    (f"{MIXED} --smoothing 1", 2, "--smoothing is searched for with --bandwidth regularised and must be left out"),
    (f"{FIT} --ridge 1", 2, "--ridge is for --degree 1"),
    (f"{FIT} --degree 1 --ridge -1", 2, "--ridge must be left out, to be found, or a number from 0"),
    (f"{FIT} --jobs 0", 2, "--jobs must be left out, a positive number of threads"),
    (f"{FIT} --model no/where", 1, "does not exist; make it first"),
    (f"{FIT} --plot p.xyz --model m", 2, "--plot must end in one of png"),
    (f"{FIT} --plot m.png --model m.png", 2, "both name"),
    (f"{FIT} --bandwidth 1 --summary --model m --quiet", 1, "at least 5 rows, got 3"),
    ("fit misses.csv --target y --missing drop", 1, "column 'e' misses 100% of its cells"),
    ("fit german.csv --target y", 1, "a date; write dates as year-month-day, such as 2020-12-31, and say"),
    ("fit german.csv --target y --dates", 1, "(rows are counted from 0); write dates as year-month-day"),
    ("fit dated.csv --target y", 1, "say --dates y to read it as days since 1970-01-01, or name"),
    (f"{MIXED} --unordered side --ordered side", 2, "both name 'side'"),
    (f"{MIXED} --unordered nothing", 1, "no column 'nothing'"),
    (f"{MIXED} --features x --unordered side", 2, "name it in --features too"),
    (f"{MIXED} --features x,size --ordered size", 1, "whose order is not declared"),
    (f"{MIXED} --features x,size --ordered size=S:M", 1, "holds 'L', which is not in the order S:M"),
    (f"{MIXED} --unordered y", 1, "which are no classes; leave it out of --unordered for numbers"),
    (f"{MIXED} --ordered size=S", 2, "must list two levels or more"),
    (f"{MIXED} --ordered y", 2, "--ordered names the target 'y'"),
    (f"{MIXED} --dates x --unordered x", 2, "named in --dates, and in --unordered or --ordered"),
    (f"{MIXED} --sep ab", 2, "--sep: must be one character"),
    (f"{MIXED} --sep . --decimal .", 2, "must differ"),
    (f"{MIXED} --encoding klingon", 2, "--encoding: must be a text encoding, such as utf-8, latin-1 or cp1252; got"),
    (f"{MIXED} --features x --bandwidth log_loss", 2, "--bandwidth log_loss is for probabilities of classes"),
    (f"{MIXED} --features x,side --bandwidth 1 --smoothing a", 2, "--smoothing: must be"),
    ("fit mixed.csv --target side --features x --degree 1", 2, "--degree is for targets of numbers, and 'side' holds"),
    (f"{MIXED} --features x --groups room", 1, "mixed.csv: no column 'room'; columns are 'x'"),
    (f"{MIXED} --features x --groups side --bandwidth aicc", 2, "--bandwidth aicc leaves none out; use one of"),
    (f"{FIT} --groups a", 2, "--features must name at least one column, and t.csv has none besides 'y' and 'a'"),
    ("fit wrong.csv --target y --features x --groups empty", 1, "row 1, column 'empty' is empty, a missing cell"),
    ("fit wrong.csv --target y --features x --groups same", 2, "--groups has a single group"),
    (f"{FIT} --memory 1GiB", 2, "reads Parquet and .npy files in chunks"),
    *((f"{FILE} --{option}", 2, f"--{option.split()[0].split('=')[0]} needs the rows in memory") for option in (
        "unordered x", "na=-999", "groups x", "summary", "smoothing 1", "time x")),
    (f"{FILE} --features x --missing drop", 2, "--missing drop needs the rows in memory"),
    (f"{FILE} --plot p.png", 2, "--plot needs the rows in memory"),
    (f"{FILE} --sep ;", 2, "--sep says how text is written"),
    (f"{FILE.replace('--target y', '--target z')}", 1, "no column 'z'"),
    (FILE, 1, "column 'note' holds string"),
    (FILE.replace("big", "nowhere"), 1, "nowhere.parquet does not exist"),
    (f"{FILE} --features x --dates x", 1, "--dates names 'x', which is no column of dates to predict from"),
    ("fit days.parquet --target y --memory 1GiB", 1, "column 'day' holds dates; say --dates day"),
    *((f"fit big.parquet --target y --memory={size}", 2, "--memory: must be") for size in (
        "''", "lots", "-1GiB", "nan", "100", "٣GiB")),
    ("predict nothing t.csv", 1, "nothing is no file"),
    ("predict model new.csv --empty near", 2, "invalid choice: 'near'; did you mean 'nearest'? kernpool "),
    ("predict model big.parquet --memory 1GiB --json", 2, "--json prints records, which need the rows in memory"),
    ("predict model new.csv --cluster here", 2, "tcp://host:port"),
    (f"{PREDICT} --keep nothing", 1, "no column 'nothing'"),
    ("predict model no.parquet --memory 1GiB --out out.csv", 1, "has no rows"),
    ("predict model bad.parquet --memory 1GiB --out out.csv", 1, "row 1, column 'x' is nan"),
    ("predict model days.parquet --memory 1GiB --out out.csv", 1, "no column 'x'"),
    (f"{PREDICT} --quantiles 50", 2, "--quantiles must be between 0 and 1, got 50.0; a median is 0.5"),
    (f"{PREDICT} --quantiles 0.5,0.50", 2, "--quantiles must differ, as each is one column; got [0.5, 0.5]"),
    (f"{PREDICT} --quantiles 0.1,-1", 2, "--quantiles must be between 0 and 1, got -1"),
    (f"{PREDICT} --quantiles nan", 2, "--quantiles holds nan"),
    (f"{PREDICT} --quantiles 0.5 --cluster tcp://nowhere:1", 2, "--quantiles cannot be had from a cluster"),
    (f"{PREDICT} --interval 95", 2, "--interval must lie between 0 and 1, got 95.0; 95 percent is --interval 0.95"),
    (f"{PREDICT} --simultaneous", 2, "--simultaneous is for confidence intervals of the curve: say --interval 0.95"),
    (f"{PREDICT} --interval 0.9 --simultaneous --memory 1GiB", 2, "leave --memory out"),
    (f"{PREDICT} --variance nn", 2, "say --se, or --interval 0.95"),
    (f"{PREDICT} --method cv+", 2, "say --interval 0.9 or --sets 0.9 too"),
    (f"{PREDICT} --seed 1", 2, "--calibration and --seed are for prediction intervals and sets"),
    (f"{PREDICT} --interval 0.9 --calibration calm.csv", 2, "say --interval 0.9 --method split, or --sets 0.9, too"),
    (f"{NEW} lac", 2, "--method must be one of 'auto', 'adaptive'"),
    (f"{NEW} cv+ --simultaneous", 2, "without --method"),
    (f"{NEW} split", 2, "--method split needs calibration rows that the model was not fitted to: give --calibration"),
    (f"{NEW} split --calibration new.csv", 1, "no column 'y'"),
    (f"{NEW} jackknife+ --calibration calm.csv", 2, "has no use for --calibration"),
    ("predict nameless new.csv --interval 0.9 --method split --calibration calm.csv", 1, "save the model with target="),
    (f"{PREDICT} --sets 0.9", 2, "--sets is for classifiers, and model holds a NadarayaWatsonRegressor"),
    (f"{PREDICT} --proba", 2, "--proba is for classifiers"),
    (f"{SETS} --method aps --memory 1GiB", 2, "or use --method lac"),
    (f"{SETS} --method adaptive", 2, "--method must be 'lac' or 'aps'"),
    (f"{SETS} --interval 0.9", 2, "--interval is for regressors, and --sets for classifiers"),
    (SETS.replace("0.9", "90"), 2, "90 percent is --sets 0.9"),
    (f"{SETS} --calibration other.csv", 1, "column 'side' holds 'up', which is no class of the model"),
    ("predict text new.csv --interval 0.95", 2, "--interval is for regressors, and text holds"),
    ("predict few new.csv --se", 1, "inference needs at least 5 rows, got 3"),
    ("predict filed new.csv --interval 0.9 --method cv+", 2, "--method cv+ needs the rows themselves, and this"),
    ("predict filed new.csv --interval 0.9 --simultaneous", 1, "band needs the rows themselves; fit a sample"),
    ("predict filed new.csv --se --variance nn", 1, "without --memory, with the --bandwidth that kernpool info shows"),
    ("predict model new.csv --explain 0", 2, "--explain must be a number of training rows from 1 on"),
    ("predict model new.csv --explain few", 2, "argument --explain: invalid"),
    ("predict model new.csv --explain --cluster tcp://nowhere:1", 2, "--explain cannot be had from a cluster"),
    ("predict filed new.csv --explain", 1, "not in memory"),
    (f"{FIT} --neighbors 2.5", 2, "--neighbors must be a whole number"),
    (f"{MIXED} --time side", 1, "--time must name a column of numbers or of dates"),
    (f"{MIXED} --time year", 1, "no column 'year'"),
    (f"{MIXED} --time y", 2, "--time names the target 'y'"),
    (f"{MIXED} --time x --groups side", 2, "leaves whole clusters out"),
    ("fit days.csv --target y --gap 3", 2, "name their column with --time"),
    ("info .", 1, "is no file; kernpool fit --model FILE writes one"),
    ("info filed --summary", 1, "fit a sample of the rows without --memory, with the --bandwidth that kernpool info"),
    ("test significance model --column z", 1, "no column 'z'; it predicts from ['x']"),
    ("test significance text --column x", 1, "kernpool test is for regressors"),
    ("test significance filed --column x", 1, "significance_test needs the rows themselves; fit a sample"),
    ("test significance model --column x --resamples 0", 2, "--resamples must be an integer from 1 on such as 399"),
    ("test specification mixed.csv --target y --features side", 1, "column 'side' holds"),
    (f"{SPECIFICATION} --bandwidth h", 2, "--bandwidth must be a positive number"),
    ("compare mixed.csv --target y --folds 1", 2, "--folds must be at least 2"),
    ("compare mixed.csv --target y --folds 100", 2, "--folds 100 needs as many rows, and there are 45; say --folds 45"),
    ("compare mixed.csv --target y --folds 10 --groups side", 2, "needs as many clusters, and there are 2"),
    ("compare mixed.csv --target y --seed -1", 2, "--seed must be in"),
    ("compare apart.csv --target y --groups g --folds 2", 1, "without the clusters of one fold a single class is left"),
    ("compare alone.csv --target y --folds 2", 1, "the smallest class has 1 row, which is less than --folds 2; drop"),
    ("explore nothing", 1, "nothing does not exist; name a table and its --target"),
    ("explore mixed.csv", 2, "that the others explain; columns are '"),
    ("explore make_sine_power --target y --features x", 2, "--target, --features: make_sine_power makes"),
    ("explore make_sine_power --missing drop --sep ;", 2, "--sep, --missing"),
    ("explore make_sine_power --bandwidth log_loss", 2, "log_loss"),
    ("explore model --degree 1 --bandwidth 0.3 --out n.html", 2, "--bandwidth, --degree: model is a fitted model"),
    (f"{EXPLORE} y --seed 3", 2, "--seed: mixed.csv is no generator"),
    (f"{EXPLORE} y --features side --bandwidth 1 --smoothing 0.1", 1, "numeric"),
    ("explore filed --out n.html", 1, "explore needs the rows themselves; fit a sample of the rows without"),
    ("compile --processes 0", 2, "--processes must be an integer from 1 on, got 0"),
    ("compile --processes -1", 2, "--processes must be an integer from 1 on, got -1"),
    ("compile --kernels foo", 2, "--kernels 'foo' is unknown"),
    ("compile --columns a", 2, "--columns: must be whole numbers"),
]  # fmt: skip


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
    if find_spec("pyarrow"):
        write_parquet(path / "big.parquet", {"x": X, "y": Y, "note": ["text"] * N})
        write_parquet(path / "days.parquet", {"day": np.datetime64("2020-01-01") + np.arange(N), "y": Y})
        write_parquet(path / "bad.parquet", {"x": [1.0, np.nan]})
        write_parquet(path / "no.parquet", {"x": np.zeros(0)})
        write_parquet(path / "rows.parquet", {"x": X, "y": Y})
        fitted = NadarayaWatsonRegressor(bandwidth=0.5).fit(str(path / "rows.parquet"), "y")
        save_model(fitted, path / "filed", target="y")
    return path


@pytest.mark.parametrize(("command", "code", "message"), REFUSED)
def test_refusals_are_one_line_and_write_nothing(command, code, message, folder):
    needs = {"pyarrow": ("parquet", "filed"), "matplotlib": ("--plot",)}
    for extra, words in needs.items():
        if any(word in command for word in words) and not find_spec(extra):
            pytest.skip(f"needs {extra}")
    before = sorted(folder.rglob("*"))
    done = kernpool(*shlex.split(command), cwd=folder)
    said = done.stderr.decode()
    assert (done.returncode, message in said, done.stdout) == (code, True, b""), said
    assert (said.count("\n"), "Traceback" in said) == (1, False), said
    assert sorted(folder.rglob("*")) == before
