"""Situations: an equivalent study, or another way to the same answers, and what of an answer it promises to keep."""

from __future__ import annotations

import pickle
import re
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray
from sklearn.base import clone

from kernpool import get_kernel, load_model, open_chunks, save_model
from tests.battery.answers import ANSWERS, Answer, Field, Fields
from tests.battery.options import LEVELS, OPTIONS, WEIGHT, Study

Array = NDArray[Any]
RNG = np.random.default_rng(1)
Outcome = Fields | Exception
Names = frozenset[str]
# Answers that depend on the rows in the window of each point, and on nothing else.
LOCAL: Names = frozenset(("predict", "predict_proba", "weights", "slope", "quantile", "cdf", "interval"))


class Situation:
    """The same study, fitted again: the least that holds."""

    rtol = 0.0
    keeps_order = True  # so that random numbers meet the same rows and points
    may_refuse = False  # with a remedy, what is answered otherwise, and otherwise than that is refused
    may_answer = False  # what is refused otherwise
    unknown: Names = frozenset()  # fields that it may not have
    answers: Names = frozenset(ANSWERS)

    def lacks(self, study: Study) -> str:
        """Return why the situation does not apply to a study; empty if it does."""
        return ""

    def promises(self, answer: str, study: Study) -> bool:
        """Return whether an answer is kept."""
        return answer in self.answers

    def base(self, study: Study) -> Study:
        """Return the study whose answers are expected."""
        return study

    def change(self, study: Study) -> Study:
        """Return the equivalent study."""
        return study

    def fit(self, study: Study) -> Any:
        """Return the fitted model of the equivalent study."""
        return study.fit()

    def ask(self, answer: Answer, model: Any, study: Study) -> Fields:
        """Return the answer of the model."""
        return answer.ask(model, study)

    def expect(self, field: Field, study: Study) -> Array | None:
        """Return what a field of the base becomes, or None where nothing is promised."""
        return field.value


class Pickled(Situation):
    """A pickled model answers with the same bits."""

    def fit(self, study: Study) -> Any:
        return pickle.loads(pickle.dumps(study.fit()))


class Saved(Situation):
    """A saved model answers with the same bits."""

    def fit(self, study: Study) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            save_model(study.fit(), Path(folder) / "model")
            return load_model(Path(folder) / "model")


class Threads(Situation):
    """Two threads that ask one model at once, which sums in two threads itself."""

    def change(self, study: Study) -> Study:
        return study.with_options(n_jobs=2) if hasattr(study.estimator, "n_jobs") else study

    def ask(self, answer: Answer, model: Any, study: Study) -> Fields:
        with ThreadPoolExecutor(2) as executor:
            first, second = executor.map(lambda _: answer.ask(model, study), range(2))
        compare(second, first)
        return first


class Repeated(Situation):
    """A weight of 3 is three equal rows."""

    rtol = 1e-9
    keeps_order = False

    def lacks(self, study: Study) -> str:
        return draws_rows(study)

    def base(self, study: Study) -> Study:
        return study if "sample_weight" in study.by_row else study.weighted(WEIGHT)

    def change(self, study: Study) -> Study:
        repeated = self.base(study).take(np.repeat(np.arange(len(study.x)), WEIGHT.astype(int)))
        by_row = {name: values for name, values in repeated.by_row.items() if name != "sample_weight"}
        return replace(repeated, by_row=by_row)

    def expect(self, field: Field, study: Study) -> Array | None:
        times = WEIGHT.astype(int)
        if field.axes == "top":
            return None  # the three equal rows are three of the rows that are named
        if field.axes == "rows":
            return np.repeat(field.value, times, axis=0)
        if field.axes == "points rows":
            return np.repeat(field.value / WEIGHT, times, axis=1)
        return field.value


class Permuted(Situation):
    """Rows in another order."""

    rtol = 1e-9
    keeps_order = False
    order = RNG.permutation(len(WEIGHT))

    def lacks(self, study: Study) -> str:
        return draws_rows(study)

    def change(self, study: Study) -> Study:
        return study.take(self.order)

    def expect(self, field: Field, study: Study) -> Array | None:
        if field.axes == "rows":
            return field.value[self.order]
        return field.value[:, self.order] if field.axes == "points rows" else field.value


class Alone(Situation):
    """One point after the other."""

    rtol = 1e-11
    keeps_order = False
    answers = frozenset(name for name in ANSWERS if not name.startswith("band"))

    def ask(self, answer: Answer, model: Any, study: Study) -> Fields:
        each = [answer.ask(model, study.ask_at([i])) for i in range(len(study.query))]
        return {name: replace(field, value=np.concatenate([np.atleast_1d(one[name].value) for one in each]))
                for name, field in each[0].items()}  # fmt: skip

    def expect(self, field: Field, study: Study) -> Array | None:
        return field.value if field.axes in ("points", "points rows", "top") else None


class Float32(Situation):
    """Tables of float32: their rounding, of 6e-8, and no more than it does to the sums."""

    rtol = 1e-4

    def change(self, study: Study) -> Study:
        y, seen = (each if study.classifies else each.astype(np.float32) for each in (study.y, study.seen))
        return replace(study, x=narrow(study.x), query=narrow(study.query), y=y, seen=seen)


class Places(Situation):
    """Columns by their places in arrays instead of their names, which a test of a specification is not told."""

    rtol = 1e-12
    answers = frozenset(ANSWERS) - {"specification_test"}

    def change(self, study: Study) -> Study:
        place = {name: i for i, name in enumerate(study.x)}
        options = {}
        for name in ("unordered", "ordered", "geographic", "linear", "by"):
            given = getattr(study.estimator, name, None)
            options |= {} if given is None else {name: [place[column] for column in given]}
        if getattr(study.estimator, "periodic", None):
            options["periodic"] = {place[name]: period for name, period in study.estimator.periodic.items()}
        if text := [place[name] for name in LEVELS if name in place]:
            options["unordered"] = text
        code = {"u": 0.0, "v": 1.0, "w": 2.0, "new": 3.0}
        x, query = (table.replace(code).to_numpy(dtype=float) for table in (study.x, study.query))
        return replace(study.with_options(**options), x=x, query=query)


class Polars(Situation):
    """Frames of polars."""

    rtol = 1e-12

    def change(self, study: Study) -> Study:
        import polars

        x, query = (polars.DataFrame(each.to_dict("list")) for each in (study.x, study.query))
        return replace(study, x=x, query=query)


class Stored(Situation):
    """Rows that are not in memory: the same answer, or a refusal that names the remedy."""

    rtol = 1e-9
    may_refuse = True
    unknown = frozenset(("effective_rows",))

    def lacks(self, study: Study) -> str:
        return "a search on stored rows is on a sample" if searches(study) else ""


class InChunks(Stored):
    """Chunks of arrays."""

    def fit(self, study: Study) -> Any:
        weight = study.by_row.get("sample_weight")
        chunks = open_chunks(study.x.to_numpy(), study.y, weight, rows=17)
        rest = {name: values for name, values in study.by_row.items() if name != "sample_weight"}
        return clone(study.estimator).fit(chunks, **rest)

    def ask(self, answer: Answer, model: Any, study: Study) -> Fields:
        return answer.ask(model, replace(study, query=study.query.to_numpy()))


class InParquet(Stored):
    """A Parquet file, opened by its path."""

    def lacks(self, study: Study) -> str:
        return super().lacks(study) or ("" if find_spec("pyarrow") else "Parquet needs the extra 'arrow'")

    def fit(self, study: Study) -> Any:
        outputs = np.reshape(study.y, (len(study.y), -1))
        names = [f"y{i}" for i in range(outputs.shape[1])]
        table = study.x.assign(**dict(zip(names, outputs.T, strict=True)), **study.by_row)
        path = Path(tempfile.mkdtemp(dir=self.folder.name)) / "table.parquet"
        table.to_parquet(path, row_group_size=25)
        by_row = {name: name for name in study.by_row}
        chunks = open_chunks(path, target=names[0] if len(names) == 1 else names, features=list(study.x),
                             weight=by_row.pop("sample_weight", None))  # fmt: skip
        return clone(study.estimator).fit(chunks, **by_row)

    folder = tempfile.TemporaryDirectory()


class OnDask(Stored):
    """Partitions of a Dask cluster, here of this process."""

    def lacks(self, study: Study) -> str:
        return super().lacks(study) or ("" if find_spec("dask") else "clusters need the extra 'dask'")

    def fit(self, study: Study) -> Any:
        import dask
        import dask.array

        dask.config.set(scheduler="synchronous")
        x, y = (dask.array.from_array(each, chunks=(25, *each.shape[1:])) for each in (study.x.to_numpy(), study.y))
        by_row = {name: dask.array.from_array(values, chunks=25) for name, values in study.by_row.items()}
        return clone(study.estimator).fit(x, y, **by_row)

    def ask(self, answer: Answer, model: Any, study: Study) -> Fields:
        return answer.ask(model, replace(study, query=study.query.to_numpy()))


class UnitsOfX(Situation):
    """Numeric columns with another origin and unit, and bandwidths with them."""

    rtol = 1e-8
    factor, origin = 8.0, 3.0

    def change(self, study: Study) -> Study:
        moved = {name: self.factor * study.x[name] + self.origin for name in study.numeric}
        asked = {name: self.factor * study.query[name] + self.origin for name in study.numeric}
        study = replace(study, x=study.x.assign(**moved), query=study.query.assign(**asked))
        name = "local__bandwidth" if hasattr(study.estimator, "local") else "bandwidth"
        bandwidth = study.estimator.get_params()[name]
        options = study.estimator.get_params(deep=False)
        if isinstance(bandwidth, str) or options.get("geographic"):
            return study
        if np.ndim(bandwidth) == 0:
            return study.with_options(**{name: self.factor * bandwidth})
        factors = [self.factor if column in moved else 1.0 for column in study.x]
        return study.with_options(**{name: list(np.multiply(bandwidth, factors))})

    def expect(self, field: Field, study: Study) -> Array | None:
        if field.unit == "dy/dx":
            options = study.estimator.get_params(deep=False)
            levels = {*LEVELS, *(options["ordered"] or ()), *(options["unordered"] or ())}
            factors = [self.factor if name in study.numeric else 1.0 for name in study.x if name not in levels]
            return field.value / np.reshape(factors, (-1, *[1] * (study.y.ndim - 1)))
        return field.value


class UnitsOfY(Situation):
    """Outputs with another origin and unit."""

    rtol = 1e-9
    factor, origin = 4.0, 10.0

    def lacks(self, study: Study) -> str:
        if study.classifies or hasattr(study.estimator, "family"):
            return "classes and counts have no unit"
        return "an empty window has the value zero" if getattr(study.estimator, "empty", "") == "zero" else ""

    def change(self, study: Study) -> Study:
        y, seen = (self.factor * each + self.origin for each in (study.y, study.seen))
        return replace(study, y=y, seen=seen, unit=self.factor * study.unit)

    def expect(self, field: Field, study: Study) -> Array | None:
        if field.unit == "y":
            return self.factor * field.value + self.origin
        power = {"dy": 1, "dy/dx": 1, "dy2": 2, "1/dy": -1}.get(field.unit, 0)
        return field.value * self.factor**power


class Turned(Situation):
    """Hours counted from another one, and those of other days; the globe turned about its axis."""

    rtol = 1e-9

    def lacks(self, study: Study) -> str:
        options = study.estimator.get_params(deep=False)
        return "" if options.get("periodic") or options.get("geographic") else "no column comes round"

    def change(self, study: Study) -> Study:
        return replace(study, x=self._turn(study.x), query=self._turn(study.query))

    def _turn(self, table: pandas.DataFrame) -> pandas.DataFrame:
        if "h" in table:
            return table.assign(h=table["h"] + 5.0 + 24.0 * (np.arange(len(table)) % 3))
        return table.assign(lon=(table["lon"] + 33.0 + 180.0) % 360.0 - 180.0)


class Weightless(Situation):
    """One row more, of weight zero."""

    rtol = 1e-9
    keeps_order = False

    def lacks(self, study: Study) -> str:
        return draws_rows(study)

    def base(self, study: Study) -> Study:
        return study if "sample_weight" in study.by_row else study.weighted(np.ones(len(study.x)))

    def change(self, study: Study) -> Study:
        rows = np.append(np.arange(len(study.x)), 7)
        more = self.base(study).take(rows)
        weight = more.by_row["sample_weight"].copy()
        weight[-1] = 0.0
        return replace(more, by_row={**more.by_row, "sample_weight": weight})

    def ask(self, answer: Answer, model: Any, study: Study) -> Fields:
        return of_rows(answer.ask(model, study), len(study.x) - 1)


class FirstOutput(Situation):
    """Of several outputs the first alone."""

    rtol = 1e-11
    # The others are of all outputs together, or draw random numbers for each.
    answers = frozenset(ANSWERS) - {
        "loo error", "expected_error", "score", "sample", "explain", "summary", "distribution_bandwidth",
    }  # fmt: skip
    may_answer = True

    def lacks(self, study: Study) -> str:
        return "" if study.y.ndim > 1 else "there is one output"

    def change(self, study: Study) -> Study:
        return replace(study, y=study.y[:, 0], seen=study.seen[:, 0])

    def expect(self, field: Field, study: Study) -> Array | None:
        several = field.axes != "points rows" and field.value.ndim > 1
        return field.value[..., 0] if several else field.value


class FarRow(Situation):
    """One row more, beyond the windows of all points and rows."""

    rtol = 1e-9
    keeps_order = False
    answers = LOCAL

    def lacks(self, study: Study) -> str:
        options = study.estimator.get_params()
        if (
            {"local", "linear", "by"} & options.keys()
            or not get_kernel(options["kernel"]).is_compact
            or searches(study)
        ):
            return "every row is in every window"
        if options["empty"] == "mean" and not study.classifies:
            return "an empty window has the mean of all rows"
        if options.get("robust"):
            return "outliers are found by the residuals of all rows"
        return "" if study.numeric else "nothing is far on the globe"

    def change(self, study: Study) -> Study:
        more = study.take(np.append(np.arange(len(study.x)), 7))
        x = more.x.copy()
        x.loc[len(x) - 1, study.numeric] += 100.0
        by_row = dict(more.by_row)
        if "time" in by_row:
            by_row["time"] = np.append(by_row["time"][:-1], 1000.0)
        return replace(more, x=x, by_row=by_row)

    def ask(self, answer: Answer, model: Any, study: Study) -> Fields:
        return of_rows(answer.ask(model, study), len(study.x) - 1)


class Plain(Situation):
    """The plain model that an option equals at each point."""

    rtol = 1e-9
    keeps_order = False
    may_answer = True
    answers = frozenset(("predict", "predict_proba", "weights", "quantile", "cdf"))

    def promises(self, answer: str, study: Study) -> bool:
        of_residuals = getattr(study.estimator, "_degree", 0) > 0  # left out in windows of their own
        return answer in self.answers and not (of_residuals and answer in ("quantile", "cdf"))

    def lacks(self, study: Study) -> str:
        return "" if study.plain else "no plain model is named"

    def ask(self, answer: Answer, model: Any, study: Study) -> Fields:
        assert study.plain is not None
        each = []
        for i in range(len(study.query)):
            plain = study.plain(study, i).ask_at([i])
            each.append(answer.ask(plain.fit(), plain))
        return {name: replace(field, value=np.concatenate([one[name].value for one in each]))
                for name, field in each[0].items()}  # fmt: skip


SITUATIONS: dict[str, Situation] = {
    "again": Situation(), "pickled": Pickled(), "saved": Saved(), "threads": Threads(), "repeated": Repeated(),
    "permuted": Permuted(), "alone": Alone(), "float32": Float32(), "places": Places(), "polars": Polars(),
    "chunks": InChunks(), "parquet": InParquet(), "dask": OnDask(), "units of x": UnitsOfX(), "units of y": UnitsOfY(),
    "turned": Turned(), "weightless": Weightless(), "first output": FirstOutput(), "far row": FarRow(),
    "plain": Plain(),
}  # fmt: skip


def searches(study: Study) -> bool:
    """Whether the fit chooses a bandwidth."""
    return isinstance(getattr(study.estimator, "bandwidth", "of a stack"), str)


def draws_rows(study: Study) -> str:
    """Return why another order of rows is another fit, or nothing."""
    options = study.estimator.get_params(deep=False)
    return "" if options.get("search") is None else "rows are drawn in their order"


def narrow(table: pandas.DataFrame) -> pandas.DataFrame:
    """Return a table with its numbers in float32."""
    return table.astype({name: np.float32 for name in table if table[name].dtype == float})


def of_rows(fields: Fields, n: int) -> Fields:
    """Return the fields of the first n rows."""
    cut = {"rows": np.s_[:n], "points rows": np.s_[:, :n]}
    return {name: replace(field, value=field.value[cut.get(field.axes, ...)]) for name, field in fields.items()}


def compare(found: Fields, expected: Fields, rtol: float = 0.0) -> None:
    """Assert that fields are equal, up to a fraction of their largest entries."""
    for name in expected.keys() & found.keys():
        field = expected[name]
        if field.value.dtype == object:
            np.testing.assert_array_equal(found[name].value, field.value, err_msg=name)
            continue
        target = np.asarray(field.value, dtype=float)
        finite = np.abs(target[np.isfinite(target)])
        scale = finite.max() if finite.size else 0.0
        np.testing.assert_allclose(
            found[name].value, target, rtol=rtol, atol=rtol * scale + 1e-12 * (rtol > 0), err_msg=name
        )


# ------------------------------------------------------------------------------------------------ cases


# Cases (option | answer | situation, with * for any) that fail, and why: to be mended, and then taken from here. The
# laws of test_laws.py are of the situation "law".
KNOWN = {
    "empty: nan | score | *": "scikit-learn's 'Input contains NaN.' does not say that empty=\"nan\" is the reason",
    "partially linear* | leave_one_out | law": "coefficients are those of all rows",
    "partially linear* | prediction_interval jackknife+ | law": "coefficients are those of all rows",
}
ABSENT = (AttributeError, KeyError)  # an estimator that does not have the answer
# A refusal says what to do, or what there is.
REMEDY = re.compile(r"; \w|\b(use|give|fit|pass|must|has no argument|it has)\b")


def check(option: str, answer: str, situation: str) -> str:
    """Return how an answer of an option holds in a situation, or raise AssertionError."""
    study, there, asked = OPTIONS[option], SITUATIONS[situation], ANSWERS[answer]
    if reason := there.lacks(study):
        return reason
    if not there.promises(answer, study):
        return "not promised"
    base = situation if there.base(study) is not study else "again"
    target, found = expected(option, answer, base), outcome(lambda: found_in(option, answer, situation))
    if isinstance(target, Exception):
        kind = object if there.may_answer else Exception if there.may_refuse else type(target)
        assert isinstance(found, kind), f"{target!r} became {found!r}"
        return "absent" if isinstance(target, ABSENT) else refused(target)
    if there.may_refuse and isinstance(found, (TypeError, ValueError)):
        return refused(found)
    if isinstance(found, Exception):
        raise AssertionError(f"{found!r}") from found
    if asked.drawn and not there.keeps_order:
        return "drawn anew"
    promised = {name: replace(field, value=there.expect(field, study)) for name, field in target.items()}
    promised = {name: field for name, field in promised.items() if field.value is not None}
    assert promised.keys() - found.keys() <= there.unknown
    ends = max(asked.rtol, 1e-6 * searches(study))  # of searches
    compare(found, promised, max(there.rtol, ends) if there.rtol else 0.0)
    return "holds"


def refused(error: Exception) -> str:
    """Return that an answer is refused, if the words name a remedy."""
    assert REMEDY.search(str(error)), f"no remedy: {error!r}"
    return "refused"


@cache
def expected(option: str, answer: str, base: str) -> Outcome:
    """Return the answer of the base, or its refusal."""
    return outcome(lambda: ANSWERS[answer].ask(fitted(option, base), SITUATIONS[base].base(OPTIONS[option])))


@cache
def fitted(option: str, base: str) -> Any:
    """Return the fitted model of the base."""
    return SITUATIONS[base].base(OPTIONS[option]).fit()


def found_in(option: str, answer: str, situation: str) -> Fields:
    """Return the answer in the situation."""
    there, model = SITUATIONS[situation], changed(option, situation)
    if isinstance(model, Exception):
        raise model
    return there.ask(ANSWERS[answer], model, there.change(OPTIONS[option]))


@cache
def changed(option: str, situation: str) -> Any:
    """Return the fitted model of the situation, or the refusal to fit it."""
    there = SITUATIONS[situation]
    return outcome(lambda: there.fit(there.change(OPTIONS[option])))


def outcome(ask: Callable[[], Any]) -> Any:
    """Return what a call returns, or the error by which it is refused."""
    with warnings.catch_warnings(action="ignore"):
        try:
            return ask()
        except (TypeError, ValueError, AttributeError) as error:
            return error
