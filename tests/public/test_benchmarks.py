"""What benchmarks of predictions are made of: samples, sums over runs, bars. Nothing here is timed."""

import json
from argparse import Namespace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def _scripts(monkeypatch):
    """Scripts import each other from their folder."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.mark.parametrize(("n", "share"), [(20, 19 / 21), (50, 46 / 51), (99, 0.9), (200, 181 / 201)])
def test_exact_coverage_of_ranks(n, share):
    """Of a new score among n: it is at most the k-th of them with probability k / (n + 1)."""
    assert import_module("prediction_settings").exact(n) == share


def test_shares_and_their_errors_are_those_of_runs(tmp_path):
    """Two runs in blocks, a line cut short when a job stopped: sums over runs, and an error between them."""
    monte_carlo, report = import_module("monte_carlo"), import_module("prediction_report")
    share = np.array([[0.8, 0.7, 0.8, 0.9], [1.0, 1.0, 1.0, 1.0], [0.9, 0.9, 0.9, 0.9]])
    parts = tmp_path / "parts.jsonl"
    parts.write_text('{"setting": "s", "seeds": [0, 1], "sec')  # cut short
    asked = Namespace(names=["s"], runs=3, parts=parts, page=False)
    seen = []

    def one(name, seed):
        seen.append(seed)
        return {"k held": share[seed], "k squared": share[seed] ** 2}

    monte_carlo.tallies(asked, one)
    found = monte_carlo.tallies(asked, one)["s"]  # nothing is missing any more
    assert seen == [0, 1, 2]
    assert sum(json.loads(line)["seeds"][1] for line in parts.read_text().splitlines()) == 3
    mean, error = report.shares(found, "k")
    assert_allclose(mean, share.mean(axis=0), rtol=1e-12)
    assert_allclose(error, share.std(axis=0, ddof=1) / np.sqrt(3), rtol=1e-7)


def test_bars_are_missed_only_beyond_two_errors():
    monte_carlo = import_module("monte_carlo")
    assert monte_carlo.judged(0.92, 0.001, (0.89, 0.915)) == "missed"
    assert monte_carlo.judged(0.916, 0.001, (0.89, 0.915)) == "open"
    assert monte_carlo.outcome({"all": "met", "a third": "missed"}) == "**missed**: a third"
    assert monte_carlo.outcome({"all": "met", "a third": ""}) == "met"
    assert monte_carlo.outcome({"all": ""}) == ""
