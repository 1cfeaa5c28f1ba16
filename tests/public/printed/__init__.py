"""What prints, as sessions: each line after ``>>>`` or ``$`` has below it what it prints.

``python -m tests.public.printed`` writes these files anew: what changed shows in their difference. A line that is added
to one of them is one case more. They see the names of this module.
"""

import io
import re
import tempfile
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest

import kernpool as kp
from tests.support.commands import kernpool

FILES = sorted(Path(__file__).parent.glob("*.session"))
N = 40
ROW = np.arange(N)
X = pandas.DataFrame({"dose": ROW * 0.618034 % 2.0, "age": ROW * 0.414214 % 1.0})  # spread evenly, without ties
KIND = np.array(["new", "old", "used"])[ROW % 3]
MIXED = X.assign(kind=KIND)
DOSE = X[["dose"]]
HOUSES = X.set_axis([f"house {i}" for i in ROW])
DAYS = pandas.DataFrame({"day": pandas.Timestamp("2024-01-01") + pandas.to_timedelta(ROW, unit="D")})
Y = (np.sin(3.0 * X["dose"]) + X["age"] + 0.3 * np.cos(57.0 * ROW)).to_numpy()
TWO = np.column_stack([Y, 10.0 - Y**2])
LABEL = np.where(Y > 0.8, "high", np.where(Y > 0.2, "middle", "low"))
GROUPS = ROW // 5
SCORES = [  # whose table is ours, and whose numbers are those of other libraries
    {"name": name, "mean_squared_error": error, "standard_error": 0.1 * error, "r2": 1.0 - error, "seconds": 1.25}
    for name, error in (("LocalLinearRegressor", 0.123456), ("mean of y", 0.9))
]
MEASURED = re.compile(r"(algorithm  |\"(?:algorithm|reason)\": ).*")  # choices and times of a machine


def planes(X=X, y=Y, bandwidth=0.4, rows=None, **options):
    """Return fitted local planes; `rows` are arguments of `fit` by name."""
    return kp.LocalLinearRegressor(bandwidth=bandwidth, **options).fit(X, y, **(rows or {}))


def means(y=Y, bandwidth=0.4, rows=None, **options):
    """Return fitted local means of one column."""
    return kp.NadarayaWatsonRegressor(bandwidth=bandwidth, **options).fit(DOSE, y, **(rows or {}))


def classes(y=LABEL, rows=None, **options):
    """Return a fitted classifier."""
    return kp.NadarayaWatsonClassifier(bandwidth=0.4, **options).fit(X, y, **(rows or {}))


def stack(y=Y):
    """Return a fitted stack."""
    return kp.KernelStackingRegressor(kp.LocalLinearRegressor(bandwidth=0.4)).fit(X, y)


def partially(**rows):
    """Return a partially linear fit."""
    return kp.PartiallyLinearRegressor(linear=["age", "kind"], bandwidth=0.2).fit(MIXED, Y, **rows)


def varying(**rows):
    """Return a fit whose coefficients vary with the dose."""
    return kp.VaryingCoefficientRegressor(by=["dose"], bandwidth=0.3).fit(X, Y, **rows)


def search(model):
    """Return the record of a search, without its time and its effort."""
    return replace(model.bandwidth_search_, seconds=0.25, evaluations=50)


def output(line, names, folder):
    """Return what a line prints; of a command on both streams, figures of more than five digits with four."""
    prompt, _, rest = line.partition(" ")
    if prompt == ">>>":
        with redirect_stdout(io.StringIO()) as out:
            exec(compile(rest, "session", "single"), names)
        return out.getvalue()
    with pytest.MonkeyPatch.context() as patch:
        if "compare" in rest:
            patch.setattr("kernpool.cli.compare.compare", lambda *_: SCORES)
        done = kernpool(*rest.split()[1:], cwd=folder)
    text = MEASURED.sub(r"\1...", f"{done.stdout.decode()}{done.stderr.decode()}")
    return re.sub(r"\d+\.\d{5,}(e-?\d+)?", lambda number: f"{float(number[0]):.4g}", text)


def session(path):
    """Return the lines of a file, and below each what it prints now."""
    lines = re.findall(r"^(?:>>>|\$) .*", path.read_text(encoding="utf-8"), re.MULTILINE)
    names = dict(globals())
    with tempfile.TemporaryDirectory() as folder:
        MIXED.assign(y=Y).to_csv(Path(folder) / "t.csv", index=False)
        X[:3].assign(kind="old").to_csv(Path(folder) / "new.csv", index=False)
        return "\n".join(f"{line}\n{output(line, names, Path(folder))}" for line in lines)
