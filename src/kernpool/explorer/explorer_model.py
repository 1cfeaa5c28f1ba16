"""The model shown by the explorer, with its rows and settings, as JSON and as the HTML page that shows it.

A `ExplorerModel` is a fitted model, or one fitted to draws of a generator, with the true function if it is known.
`payload_of` writes rows, names and settings as JSON, with every digit of floating-point numbers, and a table of a
kernel that is not built in. `render_page` writes the page, with the program `page.js`, which
`tools/bundle_explorer.py` makes of the sources in the folders `js` and `words` by esbuild.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from kernpool._arrays import Array, Index
from kernpool.data import INFINITE
from kernpool.datasets import make_sine_linear, make_sine_power
from kernpool.estimators import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor
from kernpool.estimators.kernel_smoother import KernelSmoother
from kernpool.estimators.limits import refuse
from kernpool.estimators.methods.row_order import is_ordered
from kernpool.estimators.model import as_fitted
from kernpool.execution import abbreviate, check_choice
from kernpool.kernels import BUILT_IN, COMPILED, Kernel, get_kernel
from kernpool.pooling import Nearest

Truth = Callable[[Array], ArrayLike] | tuple[ArrayLike, ArrayLike]

MODELS = (NadarayaWatsonRegressor, LocalLinearRegressor, NadarayaWatsonClassifier)
GENERATORS = {"make_sine_power": make_sine_power, "make_sine_linear": make_sine_linear}
SEEDS = range(10)  # of each generator, 1.4 kB a sample: a class draws again and sees what the noise does
PLACES = 401  # of the truth


@dataclass(frozen=True)
class ExplorerModel:
    """Fitted estimator with its data, names and settings, as shown by the explorer."""

    model: KernelSmoother
    names: tuple[str, ...]  # of the columns of X
    target: str
    title: str
    truth: tuple[Array, Array] | None = None  # the true function along the first numeric column
    samples: list[dict[str, Any]] = field(default_factory=list, repr=False)  # offered in place of the rows
    load: str = "# X, y: the data that you explored"
    column: int = 0  # numeric column that the curve runs along first
    query: tuple[tuple[float, ...], tuple[int, ...]] | None = None  # numbers and category codes; None: the middle

    @property
    def rows(self) -> int:
        """Number of training rows of the model."""
        return len(self.model.key_)

    @property
    def is_classifier(self) -> bool:
        """Whether the model is a classifier."""
        return isinstance(self.model, NadarayaWatsonClassifier)

    def start_at(self, column: int | str | None, query: Sequence[Any] | None) -> ExplorerModel:
        """Return a copy that opens with the curve along this column and with this query."""
        encoding, names = self.model.encoding_, self.names
        places = {encoding.numeric[a]: a for a in axes_of(self.model)}
        if column is not None:
            place = names.index(column) if isinstance(column, str) and column in names else column
            if place not in places:
                known = ", ".join(repr(names[i]) for i in places)
                raise ValueError(f"column must be one of the numeric columns, {known}; got {abbreviate(column)}")
        start = replace(self, column=next(iter(places.values())) if column is None else places[int(place)])
        if query is not None:
            if len(query) != len(names):
                raise ValueError(f"query must be a row of X, with {len(names)} cells, got {len(query)}")
            try:
                row = np.array([list(query)], dtype=object)
                (numbers,), (codes,) = replace(encoding, labels=None).encode(row, self.model.unseen)
            except (TypeError, ValueError) as error:
                raise ValueError(f"query must be a row of X: {error}") from None
            start = replace(start, query=(tuple(numbers.tolist()), tuple(codes.tolist())))
        return start


def _refuse_windows(model: KernelSmoother) -> None:
    """Raise ValueError if the page cannot compute windows of a fitted model."""
    n, as_they_are = len(model.key_), not model.encoding_.options
    if not as_they_are and n > EXACT_ROWS:
        raise ValueError(
            f"a column of this model comes round, which the explorer shows for up to {EXACT_ROWS} rows, got {n}; fit "
            "to a sample of them with bandwidth=model.bandwidth_"
        )
    if not isinstance(model.smoother_.window, Nearest):
        return
    is_line = is_ordered(model) and as_they_are
    is_alone = not isinstance(model, NadarayaWatsonClassifier) and model.smoother_.units.code is None
    if not (is_line and is_alone and 2 < n <= EXACT_ROWS):
        raise ValueError(
            f"this model has window={model.window}, and the explorer shows windows that follow the rows only "
            f"for regressions of 3 to {EXACT_ROWS} rows of one numeric column without groups; fit with "
            "window='fixed' to explore it"
        )


def subject_of_model(
    model: Any, *, truth: Truth | None, target: str, title: str | None, load: str | None
) -> ExplorerModel:
    """Create an `ExplorerModel` from a fitted estimator."""
    if not isinstance(model, KernelSmoother):
        raise TypeError(
            f"explore takes a fitted {', '.join(kind.__name__ for kind in MODELS)}, rows X and y, or the name of a "
            f"generator ({', '.join(GENERATORS)}); got {type(model).__name__}"
        )
    check_is_fitted(model)
    model = as_fitted(model)
    refuse(model, "explore")
    _refuse_windows(model)
    names = column_names(model)
    return ExplorerModel(
        model=model,
        names=names,
        target=target,
        title=title or f"{target} by {', '.join(names)}",
        truth=None if truth is None else truth_along(truth, model),
        load=load or ExplorerModel.load,
    )


def column_names(model: KernelSmoother) -> tuple[str, ...]:
    """Return the input column names of a fitted estimator; unnamed columns are x, or x1, x2 and so on."""
    known = model.encoding_.names
    if known is not None:
        return tuple(str(name) for name in known)
    columns = model.n_features_in_
    return ("x",) if columns == 1 else tuple(f"x{i}" for i in range(1, columns + 1))


def axes_of(model: KernelSmoother) -> list[int]:
    """Return the indices, among the numeric columns, of those that a curve can be drawn along."""
    # binary columns only if there are no others
    encoding = model.encoding_
    kinds = encoding.numeric_kinds()
    lines = [a for a, kind in enumerate(kinds) if kind != "binary"]
    return lines or [*range(len(kinds))]


def truth_along(truth: Truth, model: KernelSmoother) -> tuple[Array, Array]:
    """Return sorted points along the first numeric column, and the values of the true function at these points."""
    if axes_of(model)[0] != 0:
        raise ValueError(
            "truth is along the first numeric column, which has two categories here; fit with a column of numbers "
            "before it, or leave truth out"
        )
    if callable(truth):
        column = np.asarray(model.key_, dtype=np.float64)[:, 0]
        points = np.linspace(column.min(), column.max(), PLACES)
        truth = points, truth(points)
    parts = [np.asarray(part, dtype=np.float64) for part in truth]
    if len(parts) == 2 and parts[1].ndim == 0:  # a constant
        parts[1] = np.broadcast_to(parts[1], parts[0].shape)
    shapes = [part.shape for part in parts]
    if len(parts) != 2 or parts[0].ndim != 1 or shapes[0] != shapes[1] or not np.all(np.isfinite(parts)):
        raise ValueError(
            "truth must be a pair (x, y) with one finite value per point, or a function that takes an array and "
            f"returns one of its shape, got shapes {', '.join(map(str, shapes))}"
        )
    places, values = parts
    order = np.argsort(places, kind="stable")
    return places[order], values[order]


def subject_of_generator(
    name: str, seed: int, title: str | None, model: Any = None, target: str = "y"
) -> ExplorerModel:
    """Create an `ExplorerModel` fitted to a sample of a data generator, with more samples to choose from."""
    check_choice("data", name, GENERATORS)
    data = GENERATORS[name](random_state=seed)
    model = (NadarayaWatsonRegressor() if model is None else model).fit(data.x_train[:, None], data.y_train)
    draws = [(generator, number) for generator in GENERATORS for number in SEEDS]
    if (name, seed) not in draws:
        draws.insert(0, (name, seed))
    samples = [_sample(generator, number) for generator, number in draws]
    load = (
        f"from kernpool.datasets import {name}\n"
        f"sample = {name}(random_state={seed})\n"
        "X, y = sample.x_train[:, None], sample.y_train"
    )
    return ExplorerModel(model, ("x",), target, title or name, (data.x_test, data.y_truth), samples, load)


VERSION = 1
EXACT_ROWS = 5000  # up to so many the page visits every pair itself
LARGEST_PAGE = 100_000  # rows, 3 MB of two columns; of more the page has a sample


def page_rows(rows: int) -> Index:
    """Return the indices of the rows that a page has: all, or a random sample of `LARGEST_PAGE`, in order."""
    if rows <= LARGEST_PAGE:
        return np.arange(rows)
    return np.sort(np.random.default_rng(0).choice(rows, LARGEST_PAGE, replace=False))


def payload_of(subject: ExplorerModel, *, language: str | None = None) -> dict[str, Any]:
    """Return everything that the explorer's page needs (rows, names, settings) as a JSON-compatible dictionary."""
    # arrays are base64 of little-endian numbers: 10.7 bytes a number in place of up to 20 of text
    model = subject.model
    code = model.smoother_.units.code
    rows = page_rows(subject.rows)
    fitted = settings_of(model)
    kernel = get_kernel(model.kernel)
    tables = [] if kernel.profile_name in COMPILED else [tabulate(kernel)]
    return {
        "version": VERSION,
        "task": "classification" if subject.is_classifier else "regression",
        "language": language,
        "title": subject.title,
        "rows": subject.rows,
        "columns": _columns(subject, rows),
        "target": _target(subject, rows),
        "weight": None if model.key_weight_ is None else floats(model.key_weight_[rows]),
        "group": None if code is None else integers(code[rows]),
        "truth": None if subject.truth is None else {"x": floats(subject.truth[0]), "y": floats(subject.truth[1])},
        "settings": fitted,
        "fitted": fitted,
        "column": subject.column,
        "query": None if subject.query is None else {"numeric": [*subject.query[0]], "codes": [*subject.query[1]]},
        "kernels": list(dict.fromkeys([*(name for name in BUILT_IN if name in COMPILED), kernel.profile_name])),
        "tables": [table | {"values": floats(table["values"])} for table in tables],
        "samples": subject.samples or None,
        "python": _python(subject),
        "limits": {"exact": EXACT_ROWS},
        "relevance": _relevance(model),
    }


def _python(subject: ExplorerModel) -> dict[str, Any]:
    """Return what the page's button 'Copy as Python' needs besides the settings, such as code that loads the data."""
    model = subject.model
    return {
        "load": subject.load,
        "weighted": model.key_weight_ is not None,
        "grouped": model.smoother_.units.code is not None,
        "unseen": model.unseen,
    }


def _relevance(model: KernelSmoother) -> list[float] | None:
    """Return how much each column matters to the fit (its relevance); None without a bandwidth search."""
    found = getattr(model, "relevance_", None)
    if found is None:
        return None
    encoding = model.encoding_
    return [float(found[position]) for position in encoding.numeric + encoding.categorical]


def settings_of(model: KernelSmoother) -> dict[str, Any]:
    """Return kernel, bandwidth, degree and other settings of a fitted estimator, as the page represents them."""
    recipe, window = model.smoother_.recipe, model.smoother_.window
    return {
        "kernel": recipe.kernel.profile_name,
        "bandwidth": np.minimum(model.bandwidth_, INFINITE).tolist(),  # JSON has no infinity
        # Of Gaussians both are one, and a product on circles is of these.
        "composition": recipe.kernel.composition,
        "degree": recipe.degree,
        "widths": "nearest" if isinstance(window, Nearest) else "fixed",
        "neighbors": window.k if isinstance(window, Nearest) else None,
        "smoothing": np.asarray(model.smoothing_, dtype=np.float64).tolist(),
        "ridge": float(model.ridge_) if recipe.degree and np.any(recipe.ridge) else None,
        "empty": model.empty,
        "priorShare": float(getattr(model, "prior_share_", 0.0)),
    }


def floats(array: ArrayLike) -> dict[str, str]:
    """Encode numbers for the page as base64 of little-endian float64."""
    return {"f64": b64encode(np.asarray(array, dtype="<f8").tobytes()).decode("ascii")}


def integers(array: ArrayLike) -> dict[str, str]:
    """Encode integers for the page as base64 of little-endian int32."""
    return {"i32": b64encode(np.asarray(array, dtype="<i4").tobytes()).decode("ascii")}


def _columns(subject: ExplorerModel, rows: Index) -> list[dict[str, Any]]:
    """Describe each input column for the page: numbers, or category codes with the parameters of their kernel."""
    # a binary column is numeric, 0 and 1, and has levels
    model, encoding = subject.model, subject.model.encoding_
    turns = (one.turn for one in encoding.options if one.turn is not None)
    periods = {column: {"period": period} for column, period in turns}
    categories, numeric, categorical = model._categories(), list(encoding.numeric), list(encoding.categorical)
    pairs = iter(encoding.pairs)
    described: list[dict[str, Any]] = []
    for position, name in enumerate(subject.names):
        if position in numeric:
            a = numeric.index(position)
            column = model.key_[rows, a]
            levels = _levels(next(pairs)) if encoding.kinds[position] == "binary" else {}
            time = {"time": encoding.kinds[position]} if position in encoding.dates else {}
            described.append(
                {"name": name, "kind": "numeric", "values": floats(column), **levels, **time, **periods.get(a, {})}
            )
            continue
        k = categorical.index(position)
        places = encoding.places[k]
        described.append(
            {
                "name": name,
                "kind": encoding.kinds[position],
                **_levels(encoding.levels[k]),
                "codes": integers(model.key_code_[rows, k]),
                "kernel": categories.kernels[k].name,
                "largest": float(categories.largest[k]),
                "places": None if places is None else list(places),
            }
        )
    return described


def _levels(levels: Sequence[Any]) -> dict[str, list[str]]:
    """Return the categories of a column as text to show and as Python literals."""
    # literals keep the types: a ZIP code stays text even if it looks like a number
    plain = [level.item() if isinstance(level, np.generic) else level for level in levels]
    return {"levels": [str(level) for level in plain], "literals": [repr(level) for level in plain]}


def _target(subject: ExplorerModel, rows: Index) -> dict[str, Any]:
    model = subject.model
    if subject.is_classifier:
        number = np.argmax(model.value_[rows], axis=1)
        return {"name": subject.target, "classes": [str(name) for name in model.classes_], "codes": integers(number)}
    return {"name": subject.target, "values": floats(np.asarray(model.value_, dtype=np.float64).reshape(-1)[rows])}


def _sample(generator: str, seed: int) -> dict[str, Any]:
    data = GENERATORS[generator](random_state=seed)
    return {
        "generator": generator,
        "seed": seed,
        "noise": signature(GENERATORS[generator]).parameters["noise"].default,
        "x": floats(data.x_train),
        "y": floats(data.y_train),
        "truth": {"x": floats(data.x_test), "y": floats(data.y_truth)},
    }


# Of the kernels of users, which the page interpolates (`js/tabulated_kernels.js`).
STEPS = 1024
FIRST, LAST, LOG_STEP = 1e-9, 1e12, 1 / 32
# A profile ends where it is zero if it falls from this logarithm within a tenth of the way: others underflow there.
STEEP = -325.0


def tabulate(kernel: Kernel) -> dict[str, Any]:
    """Tabulate a kernel for the page, which draws polynomials through eight neighbouring values."""
    # right to 1e-9 of the value at zero, but within four steps of a kink; steps of log u suit all widths
    edge = _edge(kernel)
    if np.isfinite(edge):
        places = np.linspace(0.0, edge, STEPS + 1)
        places[-1] = np.nextafter(edge, 0.0)  # a profile may fall to zero in a step there
        values = kernel.profile(places)
        return {"name": kernel.profile_name, "support": edge, "start": 0.0, "step": edge / STEPS, "values": values}
    start = float(np.log(FIRST))
    logs = _logarithms(kernel, np.exp(np.arange(start, np.log(LAST), LOG_STEP)))
    values = logs[np.isfinite(logs)]
    return {"name": kernel.profile_name, "support": None, "start": start, "step": LOG_STEP, "values": values}


def _edge(kernel: Kernel) -> float:
    """Return beyond which u the kernel is zero: its support, or, where none was given, what bisection finds."""
    if np.isfinite(kernel.support) or np.isfinite(_logarithms(kernel, np.array([LAST]))[0]):
        return kernel.support
    edge = _last(kernel, -np.inf)
    return edge if _last(kernel, STEEP) > 0.9 * edge else np.inf


def _last(kernel: Kernel, level: float) -> float:
    """Return the u, by bisection, up to which the logarithm of a kernel is above a level."""
    low, high = 0.0, LAST
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if _logarithms(kernel, np.array([middle]))[0] > level else (low, middle)
    return high


def _logarithms(kernel: Kernel, u: Array) -> Array:
    with np.errstate(all="ignore"):
        return kernel.log_profile(u)


BUNDLE = Path(__file__).parent / "page.js"
# Pages carry the bundle compressed to a half. Browsers decompress by themselves (`DecompressionStream`:
# Chromium 80, Safari 16.4, Firefox 113).
LOADER = """\
async function load(packed) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const url = URL.createObjectURL(new Blob([await new Response(stream).text()], { type: "text/javascript" }));
  return import(url).finally(() => URL.revokeObjectURL(url));
}"""


def packed_module() -> str:
    """Return the explorer's JavaScript module, compressed by gzip, as base64 text, which `LOADER` imports."""
    return b64encode(gzip.compress(BUNDLE.read_bytes(), mtime=0)).decode("ascii")


# Nothing may be loaded: whatever a page would ask a network for, the browser refuses.
POLICY = "default-src 'none'; script-src 'unsafe-inline' blob:; style-src 'unsafe-inline'; img-src data: blob:"


def render_page(subject: ExplorerModel, language: str | None) -> str:
    """Return the explorer's HTML page with its data, program and styles."""
    return f"""<!doctype html>
<html lang="{"zh-Hans" if language == "zh" else "en"}"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="generator" content="kernpool explorer"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(subject.title)}</title>
<link rel="icon" href="data:,">
<style>body{{margin:0}}</style></head>
<body><main id="explorer"></main>
<script type="application/json" id="payload">{json_for_html(payload_of(subject, language=language))}</script>
<script type="module">
{LOADER}
const explorer = await load("{packed_module()}");
const payload = JSON.parse(document.getElementById("payload").text);
explorer.mount(document.getElementById("explorer"), payload);
</script></body></html>
"""


def json_for_html(value: Any) -> str:
    r"""Return a value as JSON that is safe inside an HTML script element, whatever its texts contain."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
