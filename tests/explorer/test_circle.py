"""Columns that come round after a period: what the page shows of them, and what is refused."""

import numpy as np
import pytest

from kernpool import NadarayaWatsonRegressor, explore
from kernpool.explorer.explorer_model import EXACT_ROWS
from tests.support.browser import violations
from tests.support.explorer_panels import wait_until_idle
from tests.support.explorer_view import control, copied, facts, number


def test_the_page_has_no_nearest_windows_and_writes_the_period_in_python(shown):
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.uniform(-24, 72, 90), rng.normal(size=90)])
    y = np.sin(2 * np.pi * X[:, 0] / 24) + 0.5 * X[:, 1]
    told = {"periodic": {0: 24.0}, "empty": "nan"}
    model = NadarayaWatsonRegressor(bandwidth=[2.0], **told).fit(X[:, :1], y)
    with shown(explore(model, target="y", language="en")) as page:
        wait_until_idle(page)
        assert control(page, "widths").count() == 0
        code = copied(page, "copy.python")
        names = {"X": X[:, :1], "y": y}
        exec(code, names)
        np.testing.assert_allclose(
            names["model"].predict(names["query"])[0], number(facts(page)["Estimate"]), rtol=1e-3
        )
        assert "periodic={0: 24}" in code
        assert page.locator("[data-panel=controls] select").count() == 2  # kernel and degree
        assert control(page, "lesson").count() == 0
        assert violations(page) == []
    model = NadarayaWatsonRegressor(bandwidth=[2.0, 0.8], **told).fit(X, y)
    with shown(explore(model, target="y", language="en")) as page:
        assert control(page, "composition").count() == 0  # a product would depend on where the circle begins


def test_globes_and_many_rows_are_refused():
    rng = np.random.default_rng(0)
    globe = NadarayaWatsonRegressor(bandwidth=[500.0, 500.0], geographic=(0, 1)).fit(
        rng.uniform(0, 50, (20, 2)), np.arange(20.0)
    )
    with pytest.raises(ValueError, match="places on a globe; fit without geographic"):
        explore(globe)
    hours = rng.uniform(0, 24, (EXACT_ROWS + 1, 1))
    many = NadarayaWatsonRegressor(bandwidth=[2.0], periodic={0: 24}).fit(hours, hours[:, 0])
    with pytest.raises(
        ValueError, match="comes round, which the explorer shows for up to 5000 rows, got 5001; fit to a"
    ):
        explore(many)
