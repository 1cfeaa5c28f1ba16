"""Stacks of tables with missing cells, and with columns on circles and the globe."""

import numpy as np
import pytest

from kernpool import KernelStackingRegressor, LocalLinearRegressor, NadarayaWatsonRegressor


@pytest.mark.parametrize("kind", [NadarayaWatsonRegressor, LocalLinearRegressor])
def test_all_members_go_round(kind, generator):
    X = np.column_stack([generator.uniform(0.0, 24.0, 60), generator.normal(size=60)])
    y = np.sin(2 * np.pi * X[:, 0] / 24) + X[:, 1] + 0.1 * generator.normal(size=60)
    model = KernelStackingRegressor(kind(bandwidth=[3.0, 1.0], periodic={0: 24})).fit(X, y)
    turned = X + np.array([24.0, 0.0]) * generator.integers(-3, 4, 60)[:, None]
    np.testing.assert_allclose(model.predict(turned), model.predict(X), rtol=1e-9)
    np.testing.assert_allclose(model.confidence_interval(turned).lower, model.confidence_interval(X).lower, rtol=1e-8)
    late, early = model.predict([[23.999, 0.0], [0.001, 0.0]])
    assert late == pytest.approx(early, abs=0.01)


def test_the_date_line_is_no_border(generator):
    where = np.column_stack([generator.uniform(-60, 60, 60), generator.uniform(170.0, 190.0, 60)])
    y = where[:, 0] + where[:, 1]
    model = KernelStackingRegressor(LocalLinearRegressor(geographic=(0, 1), bandwidth=2000.0)).fit(where, y)
    np.testing.assert_allclose(model.predict([[5.0, 181.0]]), model.predict([[5.0, -179.0]]), rtol=1e-12)
