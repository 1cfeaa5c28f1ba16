"""Pictures are drawn without a screen, and closed after each test."""

import pytest


@pytest.fixture(autouse=True)
def closed_figures():
    plt = pytest.importorskip("matplotlib.pyplot", reason="pictures need the extra 'plot'")
    plt.switch_backend("agg")
    yield
    plt.close("all")
