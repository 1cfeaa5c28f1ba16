"""What benchmarks of predictions are made of: scores, samples, sums over runs, bars. Nothing here is timed."""

import json
from argparse import Namespace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import mean_pinball_loss

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def _scripts(monkeypatch):
    """Scripts import each other from their folder."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def test_pinball_loss_is_that_of_scikit_learn():
    scores, g = import_module("distribution_scores"), np.random.default_rng(0)
    truth, quantile = g.normal(size=50), np.sort(g.normal(size=(50, 9)), axis=1)
    expected = [mean_pinball_loss(truth, q, alpha=a) for q, a in zip(quantile.T, scores.LEVELS, strict=True)]
    np.testing.assert_allclose(scores.pinball(truth, quantile), expected, rtol=1e-12)
    assert scores.crps(truth, quantile) == pytest.approx(2 * np.sum(expected) / 10, rel=1e-12)


def test_crps_by_levels_is_near_that_of_a_normal_distribution():
    """Which is in closed form (Gneiting and Raftery 2007, section 4.2); nine levels miss two percent, in the tails."""
    scores, truth = import_module("distribution_scores"), np.random.default_rng(1).normal(size=2000)
    exact = truth * (2 * norm.cdf(truth) - 1) + 2 * norm.pdf(truth) - 1 / np.sqrt(np.pi)
    found = scores.crps(truth, np.broadcast_to(norm.ppf(scores.LEVELS), (2000, 9)))
    assert found == pytest.approx(exact.mean(), rel=0.03)


def test_quantiles_of_the_outcomes_trained_on_have_a_relative_loss_of_one():
    scores, g = import_module("distribution_scores"), np.random.default_rng(2)
    known, truth = g.exponential(size=300), g.exponential(size=4000)
    same = np.broadcast_to(np.quantile(known, scores.LEVELS, method="inverted_cdf"), (4000, 9))
    found = scores.quantile_scores(truth, same, known)
    assert found["relative"] == 1.0
    assert found["crossed"] == 0.0
    assert found["covered"] == pytest.approx(np.mean((truth >= same[0, 0]) & (truth <= same[0, -1])))
    assert scores.quantile_scores(truth, same[:, ::-1], known)["crossed"] == 1.0
    with pytest.raises(ValueError, match="not finite"):
        scores.quantile_scores(truth, np.full((4000, 9), np.nan), known)


def test_fresh_rows_have_the_density_that_the_likelihood_ratio_says():
    """The mean of exp(3 x) over uniform rows normalises it; then means over tilted rows are weighted ones."""
    settings, g = import_module("prediction_settings"), np.random.default_rng(3)
    x = settings.tilted(g, 200_000)[0][:, 0]
    grid = (np.arange(100_000) + 0.5) / 100_000
    weight = settings.tilt(grid[:, None])
    for power in (1, 2):
        assert np.mean(x**power) == pytest.approx(np.sum(weight * grid**power) / weight.sum(), abs=1e-5)
    assert np.all(np.floor(90 * settings.strata(g, 90)) == np.arange(90))


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
    asked = Namespace(names=["s"], runs=3, parts=parts, processes=1, page=False)
    seen = []

    def one(name, seed):
        seen.append(seed)
        return {"k held": share[seed], "k squared": share[seed] ** 2}

    monte_carlo.tallies(asked, one)
    found = monte_carlo.tallies(asked, one)["s"]  # nothing is missing any more
    assert seen == [0, 1, 2]
    assert sum(json.loads(line)["seeds"][1] for line in parts.read_text().splitlines()) == 3
    mean, error = report.shares(found, "k")
    np.testing.assert_allclose(mean, share.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(error, share.std(axis=0, ddof=1) / np.sqrt(3), rtol=1e-7)


def test_bars_are_missed_only_beyond_two_errors():
    report = import_module("prediction_report")
    assert report.judged(0.92, 0.001, (0.89, 0.915)) == "missed"
    assert report.judged(0.916, 0.001, (0.89, 0.915)) == "open"
    assert report.outcome({"all": "met", "a third": "missed"}) == "**missed**: a third"
    assert report.outcome({"all": "met", "a third": ""}) == "met"
    assert report.outcome({"all": ""}) == ""
