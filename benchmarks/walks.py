"""How many files and functions of the package a call passes, in the second call of a process.

python benchmarks/walks.py                  the table
python benchmarks/walks.py predict          besides, the path of one call, file by file, in the order of first visits
python benchmarks/walks.py --counts         files and functions of each call alone, as JSON
"""

import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType

import numpy as np
import torch
from measure import report, table

import kernpool
from kernpool import LocalLinearRegressor, pool
from kernpool.cli import main
from kernpool.torch import AttentionPooling, GaussianSimilarity

SOURCES = str(Path(kernpool.__file__).parent) + os.sep


class Walk:
    """Functions of the package that a call enters, in order; comprehensions and generators count with theirs."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.calls: list[CodeType] = []
        call()  # the first call imports, compiles and fills what later ones share
        sys.setprofile(self._enter)
        try:
            call()
        finally:
            sys.setprofile(None)

    def _enter(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCES) and not code.co_name.startswith("<"):
            self.calls.append(code)

    @property
    def files(self) -> dict[str, set[str]]:
        """The functions passed in each file, in the order of first visits."""
        files: dict[str, set[str]] = {}
        for code in self.calls:
            files.setdefault(code.co_filename.removeprefix(SOURCES), set()).add(code.co_qualname)
        return files

    @property
    def row(self) -> tuple[int, int, int, int]:
        """Files, functions, calls, and calls that change the file, as cells of a table."""
        names = [code.co_filename for code in self.calls]
        changes = sum(a != b for a, b in pairwise(names))
        return len(self.files), sum(map(len, self.files.values())), len(names), changes


def calls(folder: Path) -> dict[str, Callable[[], object]]:
    """The calls that users make most: 500 rows of two columns, 50 new ones."""
    rng = np.random.default_rng(0)
    X, new = rng.uniform(size=(500, 2)), rng.uniform(size=(50, 2))
    y = np.sin(6.0 * X[:, 0]) + 0.1 * rng.normal(size=500)
    table, large = folder / "table.csv", rng.normal(size=(3, 2000, 3))
    np.savetxt(table, np.column_stack([X, y]), delimiter=",", header="a,b,y", comments="")
    model = LocalLinearRegressor().fit(X, y)
    found: dict[str, Callable[[], object]] = {
        "pool 40 x 40": lambda: pool(X[:40], X[:40], y[:40], bandwidth=0.1),
        "pool 2000 x 2000 x 3": lambda: pool(*large, bandwidth=0.5, n_jobs=1),
        "fit": lambda: LocalLinearRegressor().fit(X, y),
        "predict": lambda: model.predict(new),
        "confidence_interval": lambda: model.confidence_interval(new),
        "prediction_interval": lambda: model.prediction_interval(new),
        "quantile": lambda: model.quantile(new, 0.9),
        "kernpool fit": lambda: main(
            ["fit", str(table), "--target", "y", "--model", str(folder / "model"), "--force", "--quiet"]
        ),
    }
    layer = AttentionPooling(GaussianSimilarity(0.1))
    tensors = [torch.as_tensor(array, dtype=torch.float32) for array in (X, X, y[:, None])]
    return found | {"torch layer": lambda: layer(*tensors)}


def walk_all() -> dict[str, Walk]:
    """Walk through every call."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: Walk(call) for name, call in calls(Path(folder)).items()}


def benchmark(shown: list[str]) -> None:
    walks = walk_all()
    for name in shown:
        for file, functions in walks[name].files.items():
            print(f"{name}: {file}: {', '.join(sorted(functions))}")
    report(
        "walks",
        "# What a call passes\n\nFiles and functions of the package that a call enters, calls in all, and calls that "
        "change the file: in the second call of a process, of 500 rows of two columns, predictions at 50.",
        table("call | files | functions | calls | changes of file", [(f"`{n}`", *w.row) for n, w in walks.items()]),
    )


if __name__ == "__main__":
    if sys.argv[1:] == ["--counts"]:
        print(json.dumps({name: walk.row[:2] for name, walk in walk_all().items()}))
    else:
        benchmark(sys.argv[1:])
