"""`kernpool datasets`: example tables that need no download, synthetic or shipped with an installed package."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module, resources
from typing import Any

import numpy as np

from kernpool import datasets
from kernpool.cli.terminal import UsageError, need_output, print_json
from kernpool.execution.text_table import columns_of_text
from kernpool.tables.file_formats import read_table, write_table

Columns = dict[str, Any]


@dataclass(frozen=True)
class ShippedTable:
    """Example table that needs no download: its target, description, size and loader.

    Parameters
    ----------
    target : str
        The column that is usually predicted.
    about : str
        What it is, and where it comes from.
    rows : int
        How many, unless another number is asked for.
    load : callable
        Takes a number of rows and a seed, and returns the columns.
    synthetic : bool
        Whether these mean something.
    """

    target: str
    about: str
    rows: int
    load: Callable[[int, int], Columns]
    synthetic: bool = False


def run_datasets(options: argparse.Namespace) -> None:
    """Run `kernpool datasets`: list the example tables, or write one."""
    need_output("open it")
    if options.name not in (None, *TABLES):
        raise UsageError(f"no table {options.name!r}; there are {', '.join(TABLES)}")
    table = TABLES.get(options.name)
    for name, least in (("rows", 1), ("seed", 0)):
        value = vars(options)[name]
        if value is not None and (table is None or not table.synthetic):
            raise UsageError(f"--{name} is for synthetic tables; name one, such as kernpool datasets sine")
        if value is not None and value < least:
            raise UsageError(f"--{name} must be at least {least}, got {value}")
    if table is None:
        _list_tables(options.json)
        return
    columns = table.load(options.rows or table.rows, options.seed or 0)
    if options.json:
        print_json({"name": options.name, "target": table.target, "columns": columns})
    else:
        write_table("-", columns)


def _list_tables(as_json: bool) -> None:
    names = ["name", "rows", "target", "synthetic", "about"]
    rows: list[list[Any]] = [
        [name, table.rows, table.target, table.synthetic, table.about] for name, table in TABLES.items()
    ]
    if as_json:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        shown = [[name, f"{count:4}", target, about] for name, count, target, _, about in rows]
        print("\n".join(columns_of_text(["name", "rows", "target", "what it is"], shown)))


def _engel(_: int, __: int) -> Columns:
    with resources.as_file(resources.files("kernpool.data") / "shipped" / "engel.csv") as path:
        table = read_table(str(path))
    return {name: table.numbers([name])[:, 0] for name in table.names}


def _sine(make: Callable[..., Any]) -> Callable[[int, int], Columns]:
    def load(rows: int, seed: int) -> Columns:
        sample = make(rows, random_state=seed)
        return {"x": sample.x_train, "y": sample.y_train}

    return load


def _of_sklearn(name: str, target: str, **options: Any) -> Callable[[int, int], Columns]:
    """Return a function that loads an example table of scikit-learn, with names of classes instead of codes."""

    def load(_: int, __: int) -> Columns:
        bunch = getattr(import_module("sklearn.datasets"), f"load_{name}")(**options)
        features = [feature.replace(" (cm)", "").replace(" ", "_") for feature in bunch.feature_names]
        columns: Columns = dict(zip(features, bunch.data.T, strict=True))
        if name == "linnerud":
            return columns | {
                label.lower(): column for label, column in zip(bunch.target_names, bunch.target.T, strict=True)
            }
        labels = vars(bunch).get("target_names", bunch.get("target_names"))
        y = bunch.target if labels is None else np.asarray(labels)[bunch.target]
        return columns | {target: y}

    return load


TABLES = {
    "engel": ShippedTable("foodexp", "food expenditure by income of 235 Belgian households, 1857", 235, _engel),
    "diabetes": ShippedTable(
        "progression",
        "progression of diabetes after a year, by ten measurements (scikit-learn)",
        442,
        _of_sklearn("diabetes", "progression", scaled=False),
    ),
    "iris": ShippedTable(
        "species", "three species of iris, by four lengths (scikit-learn)", 150, _of_sklearn("iris", "species")
    ),
    "wine": ShippedTable(
        "cultivar", "three cultivars of wine, by thirteen analyses (scikit-learn)", 178, _of_sklearn("wine", "cultivar")
    ),
    "breast_cancer": ShippedTable(
        "diagnosis",
        "malignant or benign, by thirty measurements (scikit-learn)",
        569,
        _of_sklearn("breast_cancer", "diagnosis"),
    ),
    "linnerud": ShippedTable(
        "weight",
        "exercises, and weight, waist and pulse, of twenty men (scikit-learn)",
        20,
        _of_sklearn("linnerud", ""),
    ),
    "sine": ShippedTable(
        "y", "2 sin(x) + x with noise of deviation 1", 40, _sine(datasets.make_sine_linear), synthetic=True
    ),
    "sine_power": ShippedTable(
        "y", "2 sin(x) + x^0.8 with noise of deviation 0.5", 50, _sine(datasets.make_sine_power), synthetic=True
    ),
}
