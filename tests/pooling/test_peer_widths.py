"""Nearest-neighbour windows against the numbers that R's locfit and np print (`peer_numbers.json`).

Those of loess are in `test_loess_numbers.py`. Unlike ours, locfit solves to 1e-7, and np does not count a training row.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import kernpool

STORED = json.loads((Path(__file__).parent / "peer_numbers.json").read_text(encoding="utf-8"))
DATA = {name: {column: np.array(cells) for column, cells in table.items()} for name, table in STORED["data"].items()}
WAVE, TIES = ((DATA[name]["x"], DATA[name]["y"]) for name in ("wave", "ties"))
PLANE = np.column_stack([DATA["plane"]["x1"], DATA["plane"]["x2"]]), DATA["plane"]["y"]
LOCFIT = {"tcub": "tricube", "epan": "epanechnikov"}


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
    assert_allclose(found, entry["values"][:10], atol=2e-7)


@pytest.mark.filterwarnings("ignore::kernpool.core.local_fit.RankDeficiencyWarning")
@numbers("locfit_ties")
def test_locfit_with_ties(entry):
    k, x = int(len(TIES[0]) * float(entry["args"]["nn"]) + 1e-12), TIES[0]
    found = fit(x, TIES, k, 1, empty="nearest")
    assert_allclose(found, entry["values"], atol=2e-7)


@numbers("locfit_plane2")
def test_locfit_in_two_columns(entry):
    k = int(80 * float(entry["args"]["nn"]) + 1e-12)
    query = np.column_stack([[0.2, 0.5, 0.8, 0.5], [0.5, 1.5, 2.5, 2.9]])
    found = fit(query, PLANE, k, int(entry["args"]["deg"]))
    assert_allclose(found, entry["values"][:4], atol=2e-7)


def np_fit(entry, query, rows, k, *, at_rows=False, **options):
    """What np fits. Its generalised widths do not count a training row itself, ours do."""
    degree = {"lc": 0, "ll": 1}[entry["args"]["reg"]]
    return kernpool.pool(query, *rows, window=kernpool.Nearest(k + at_rows), degree=degree, **options)


@numbers("np_nn_wave")
def test_np_on_a_line(entry):
    k, new = int(entry["args"]["k"]), np.r_[-0.1, np.arange(0.05, 0.96, 0.15), 1.2]
    found = np.r_[np_fit(entry, WAVE[0], WAVE, k, at_rows=True), np_fit(entry, new, WAVE, k)]
    assert_allclose(found, entry["values"], rtol=1e-9)


@numbers("np_nn_ties")
def test_np_with_ties(entry):
    found = np_fit(entry, TIES[0], TIES, int(entry["args"]["k"]), at_rows=True)
    assert_allclose(found, entry["values"], rtol=1e-9)


@numbers("np_nn_search_wave")
def test_np_leaves_rows_out_alike(entry):
    k, error = entry["values"]
    left_out = np_fit(entry, WAVE[0], WAVE, int(k), exclude_self=True)
    assert_allclose(np.mean((WAVE[1] - left_out) ** 2), error, rtol=1e-9)
