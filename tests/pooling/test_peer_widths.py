"""Nearest-neighbour windows against the numbers that R's loess, locfit and np print (`peer_numbers.json`).

What differs: loess and locfit count all rows, np at a training row the others only, and locfit solves to 1e-7.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import kernpool

STORED = json.loads((Path(__file__).parent / "peer_numbers.json").read_text(encoding="utf-8"))
DATA = {name: {column: np.array(cells) for column, cells in table.items()} for name, table in STORED["data"].items()}
WAVE, TIES = ((DATA[name]["x"], DATA[name]["y"]) for name in ("wave", "ties"))
PLANE = np.column_stack([DATA["plane"]["x1"], DATA["plane"]["x2"]]), DATA["plane"]["y"]
LOCFIT = {"tcub": "tricube", "epan": "epanechnikov"}


ROBUST = {int(e["args"]["degree"]): e["values"] for e in STORED["numbers"] if e["name"] == "R_loess_wave_robust"}


def numbers(name):
    entries = [entry for entry in STORED["numbers"] if entry["name"] == name]
    assert entries
    return pytest.mark.parametrize("entry", entries, ids=lambda entry: "-".join(entry["args"].values()))


def fit(query, rows, k, degree, kernel="tricube", **options):
    return kernpool.pool(query, *rows, kernel=kernel, degree=degree, window=kernpool.Nearest(k), **options)


@numbers("locfit_wave")
def test_locfit_on_a_line(entry):
    share, degree = float(entry["args"]["nn"]), int(entry["args"]["deg"])
    k = int(len(WAVE[0]) * share + 1e-12)
    found = fit(np.arange(0.05, 1, 0.1), WAVE, k, degree, LOCFIT[entry["args"]["kern"]])
    np.testing.assert_allclose(found, entry["values"][:10], atol=2e-7)


@pytest.mark.filterwarnings("ignore::kernpool.core.local_fit.RankDeficiencyWarning")
@numbers("locfit_ties")
def test_locfit_with_ties(entry):
    k, x = int(len(TIES[0]) * float(entry["args"]["nn"]) + 1e-12), TIES[0]
    found = fit(x, TIES, k, 1, empty="nearest")
    np.testing.assert_allclose(found, entry["values"], atol=2e-7)


@numbers("locfit_plane2")
def test_locfit_in_two_columns(entry):
    k = int(80 * float(entry["args"]["nn"]) + 1e-12)
    query = np.column_stack([[0.2, 0.5, 0.8, 0.5], [0.5, 1.5, 2.5, 2.9]])
    found = fit(query, PLANE, k, int(entry["args"]["deg"]))
    np.testing.assert_allclose(found, entry["values"][:4], atol=2e-7)


@numbers("R_loess_wave")
def test_loess_on_a_line(entry):
    span, degree = float(entry["args"]["span"]), int(entry["args"]["degree"])
    weight = None
    if entry["args"]["family"] == "symmetric":  # with the weights of its robust steps; widths count rows, not these
        weight = np.array(ROBUST[degree])
    k, (x, y) = int(np.floor(len(WAVE[0]) * span + 1e-5)), WAVE
    if weight is None:
        np.testing.assert_allclose(fit(x, WAVE, k, degree), entry["values"], rtol=1e-9)
    distance = np.sort(np.abs(x[:, None] - x), axis=1)[:, k - 1]
    problem = kernpool.Problem.from_arrays(
        x, x, y, kernel="tricube", degree=degree, key_weight=weight, widening=distance
    )  # fmt: skip
    np.testing.assert_allclose(solved(problem), entry["values"], rtol=1e-9)


def solved(problem):
    fitted = kernpool.core.solve(kernpool.choose(problem).reduce(problem.without_center()), problem.layout)
    return (fitted.intercept + problem.value_center)[:, 0]


@numbers("R_loess_plane")
def test_loess_in_two_columns(entry):
    k = int(np.floor(80 * float(entry["args"]["span"]) + 1e-5))
    found = fit(PLANE[0], PLANE, k, int(entry["args"]["degree"]))
    np.testing.assert_allclose(found, entry["values"], rtol=1e-9)


def np_fit(entry, query, rows, k, *, at_rows=False, **options):
    """What np fits. Its generalised widths do not count a training row itself, ours do."""
    degree = {"lc": 0, "ll": 1}[entry["args"]["reg"]]
    return kernpool.pool(query, *rows, window=kernpool.Nearest(k + at_rows), degree=degree, **options)


@numbers("np_nn_wave")
def test_np_on_a_line(entry):
    k, new = int(entry["args"]["k"]), np.r_[-0.1, np.arange(0.05, 0.96, 0.15), 1.2]
    found = np.r_[np_fit(entry, WAVE[0], WAVE, k, at_rows=True), np_fit(entry, new, WAVE, k)]
    np.testing.assert_allclose(found, entry["values"], rtol=1e-9)


@numbers("np_nn_ties")
def test_np_with_ties(entry):
    found = np_fit(entry, TIES[0], TIES, int(entry["args"]["k"]), at_rows=True)
    np.testing.assert_allclose(found, entry["values"], rtol=1e-9)


@numbers("np_nn_search_wave")
def test_np_leaves_rows_out_alike(entry):
    k, error = entry["values"]
    left_out = np_fit(entry, WAVE[0], WAVE, int(k), exclude_self=True)
    np.testing.assert_allclose(np.mean((WAVE[1] - left_out) ** 2), error, rtol=1e-9)
